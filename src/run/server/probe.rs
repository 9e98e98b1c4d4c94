//! Which dialect the server speaks: found out by its answer to the opening.

use std::sync::Arc;

use serde_json::Value;

use crate::protocol::{Protocol, is_subset};
use crate::results::event::{Verdict, Way};
use crate::run::Target;
use crate::run::case::outcome::CaseOutcome;
use crate::run::context::RunContext;
use crate::run::server::pool::ServerPool;
use crate::run::server::serve::run_on_server;
use crate::scenario::synthetic::Builder;
use crate::trace::Direction;

/// Sets the protocol as the server speaks it, and the bare one in the same dialect. It is the one that was given, unless the
/// server refuses the opening as that spells it, in the way of one that speaks another dialect, and does the opening in that.
pub(crate) async fn detect_dialect(pool: &ServerPool, target: &Target, run: &mut RunContext) {
    // The reference server was started for the dialect that was asked for.
    if matches!(target, Target::Reference { .. }) || run.protocol.alternatives().next().is_none() {
        return;
    }
    let first = opened(pool, run).await;
    let protocol = Arc::clone(&run.protocol);
    for (name, alternative) in protocol.alternatives() {
        let known = protocol.extension.dialects.get(name);
        if !known.is_some_and(|known| is_refused(&protocol, &first, &known.refused)) {
            continue;
        }
        let bare = run.bare.as_ref().and_then(|bare| {
            let (_, same) = bare.alternatives().find(|(other, _)| *other == name)?;
            Some(Arc::clone(same))
        });
        let Ok(other) = run.speaking(alternative, bare.or(run.bare.clone())) else { continue };
        if does(&opened(pool, &other).await) {
            *run = other;
            return;
        }
    }
}

/// What came of the opening alone.
async fn opened(pool: &ServerPool, run: &RunContext) -> CaseOutcome {
    match Builder::new(&run.protocol, "dialect", "The opening").open("client").build() {
        Ok(case) => run_on_server(pool, run, &case, run.case_options(run.options.randomness.seed)).await,
        Err(error) => CaseOutcome::error(error),
    }
}

fn does(outcome: &CaseOutcome) -> bool {
    outcome.end.has_run() && outcome.failures.iter().all(|failure| failure.verdict != Verdict::Failed)
}

/// Whether a message came by which a server refuses what is spelt otherwise.
fn is_refused(protocol: &Protocol, outcome: &CaseOutcome, refusal: &Value) -> bool {
    let came = outcome.record.wire.iter().filter(|line| line.way == Way::ToClient);
    let mut came = came.flat_map(|line| protocol.bodies(&line.text, Direction::Recv));
    !does(outcome) && came.any(|body| is_subset(refusal, &body))
}
