//! Which dialect the server speaks: found out by its answer to the opening.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::protocol::{Protocol, is_subset};
use crate::results::event::Verdict;
use crate::run::case::interpreter::Outcome;
use crate::run::isolation::precheck as isolation;
use crate::run::server::pool::Hosts;
use crate::run::suite::schedule;
use crate::run::{Options, Target};

/// The protocol as the server speaks it, and the options with the bare protocol in the same dialect. It is the one that was
/// given, unless the server refuses the opening as that spells it, in the way of one that speaks another dialect, and does the
/// opening in that.
pub(crate) async fn spoken(
    hosts: &Hosts,
    protocol: &Arc<Protocol>,
    target: &Target,
    options: &mut Options,
) -> Arc<Protocol> {
    // The reference server was started for the dialect that was asked for.
    if matches!(target, Target::Reference { .. }) || protocol.alternatives().next().is_none() {
        return Arc::clone(protocol);
    }
    let first = opened(hosts, protocol, options).await;
    for (name, alternative) in protocol.alternatives() {
        let refused =
            protocol.extension.dialects.get(name).is_some_and(|known| is_refused(&first, &known.refused));
        if refused && does(&opened(hosts, alternative, options).await) {
            if let Some(bare) = &options.bare {
                let same = bare.alternatives().find(|(other, _)| *other == name);
                options.bare = same.map(|(_, bare)| Arc::clone(bare)).or_else(|| options.bare.clone());
            }
            return Arc::clone(alternative);
        }
    }
    Arc::clone(protocol)
}

/// What came of the opening alone.
async fn opened(hosts: &Hosts, protocol: &Arc<Protocol>, options: &Options) -> Outcome {
    let steps = json!([{ "open": "client" }]);
    match isolation::made(protocol, "dialect", "The opening", Value::Null, &steps) {
        Ok(case) => schedule::served(hosts, protocol, &case, options, options.seed).await,
        Err(error) => Outcome { reason: Some((Verdict::Error, error)), ..Outcome::default() },
    }
}

fn does(outcome: &Outcome) -> bool {
    outcome.reason.is_none() && outcome.failures.iter().all(|failure| failure.verdict != Verdict::Failed)
}

/// Whether a message came by which a server refuses what is spelt otherwise.
fn is_refused(outcome: &Outcome, refusal: &Value) -> bool {
    let came = outcome.wire.iter().filter(|line| line.dir == "<-");
    let mut came = came.filter_map(|line| serde_json::from_str::<Value>(&line.text).ok());
    !does(outcome) && came.any(|body| is_subset(refusal, &body))
}
