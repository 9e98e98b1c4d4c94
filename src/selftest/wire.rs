//! Mutants of the wire: the suite against a correct server whose messages are mutated on their way. What survives is a hole.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::frame::Pointer;
use crate::protocol::Protocol;
use crate::reference::Variant;
use crate::results::event::{CaseReport, Verdict};
use crate::run::{RunError, RunOptions};
use crate::scenario::LoadedCase;
use crate::selftest::driver::{run_against, sampled, with_deadline};
use crate::synthesis::rng::SeededRng;
use crate::trace::Direction;
use crate::wire::relay::{Mutation, Occurrence, Operator};

/// What is to be tried.
#[derive(Debug, Clone)]
pub struct Plan {
    /// So many mutants at most; none: all of them.
    pub sample: Option<usize>,
    /// What chooses the sample.
    pub seed: u64,
    /// Styles that the servers have besides.
    pub styles: Vec<String>,
}

/// What became of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Something failed, or was warned of.
    Killed,
    /// Nothing did.
    Survived,
    /// No message that it fits was ever sent, or none that it changes.
    NotReached,
}

/// A mutant, and what the suite made of it.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// Message, field, operator and occurrence.
    pub name: String,
    /// What became of it.
    pub fate: Fate,
    /// Requirements found broken.
    pub by: BTreeSet<String>,
    /// How many messages were mutated.
    pub hits: u64,
}

/// A mutant may silence a server; this is long on loopback.
const SHORT: Duration = Duration::from_millis(700);

/// Runs the suite against mutants of the wire, and reports each to `sink`.
///
/// # Errors
/// See [`RunError`].
pub async fn selftest(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    options: &RunOptions,
    plan: &Plan,
    sink: &mut (dyn FnMut(&Mutant) + Send),
) -> Result<(), RunError> {
    for mutation in mutations(protocol, plan) {
        let options = with_deadline(options, SHORT);
        sink(&one(protocol, cases, options, Arc::new(mutation), &plan.styles).await?);
    }
    Ok(())
}

/// The mutations that are tried, message by message.
fn mutations(protocol: &Protocol, plan: &Plan) -> Vec<Mutation> {
    let mut all = Vec::new();
    let mut known = BTreeSet::new();
    for message in protocol.messages.iter().filter(|message| message.dir == Direction::Recv) {
        let says = protocol.says(&message.name).then(|| message.name.clone());
        let fields = message.fields();
        let whole = Operator::OF_MESSAGES.iter().map(|(operator, _)| (None, *operator));
        let single = fields.iter().filter_map(|field| Pointer::new(field).ok()).flat_map(|field| {
            Operator::OF_FIELDS.iter().map(move |(operator, _)| (Some(field.clone()), *operator))
        });
        for (field, operator) in whole.chain(single) {
            for occurrence in [Occurrence::Every, Occurrence::First, Occurrence::Second] {
                let mutation = Mutation {
                    discriminator: protocol.extension.discriminator.clone(),
                    message: says.clone(),
                    field: field.clone(),
                    operator,
                    occurrence,
                    hits: AtomicU64::new(0),
                };
                // Replies have fields in common, and no name to tell them by.
                if known.insert(named(&mutation)) {
                    all.push(mutation);
                }
            }
        }
    }
    sampled(all, plan.sample, SeededRng::new(plan.seed, 1))
}

fn named(mutation: &Mutation) -> String {
    let message = mutation.message.as_deref().unwrap_or("(reply)");
    let field = mutation.field.as_ref().map_or("", |field| field.as_str());
    let occurrence = match mutation.occurrence {
        Occurrence::Every => "every",
        Occurrence::First => "first",
        Occurrence::Second => "second",
    };
    format!("{message}{field} {} {occurrence}", mutation.operator.name())
}

async fn one(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    options: RunOptions,
    mutation: Arc<Mutation>,
    styles: &[String],
) -> Result<Mutant, RunError> {
    let variant =
        Variant { styles: styles.to_vec(), mutation: Some(Arc::clone(&mutation)), ..Variant::default() };
    let (mut by, mut killed) = (BTreeSet::new(), false);
    let mut on_case = |report: &CaseReport| {
        killed |= !report.failures.is_empty() || report.verdict == Verdict::Error;
        by.extend(report.failures.iter().flat_map(|failure| failure.requirements.iter().cloned()));
    };
    run_against(variant, protocol, cases.to_vec(), options, &mut on_case).await?;
    let hits = mutation.hits.load(Ordering::Relaxed);
    let fate = match (killed, hits) {
        (true, _) => Fate::Killed,
        (false, 0) => Fate::NotReached,
        (false, _) => Fate::Survived,
    };
    Ok(Mutant { name: named(&mutation), fate, by, hits })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LoadOptions;

    #[test]
    fn every_message_and_field_of_a_server_is_spoilt() {
        let name = Protocol::embedded_names()[0];
        let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("a shipped protocol");
        let plan = |sample| Plan { sample, seed: 5, styles: Vec::new() };
        let all: Vec<String> = mutations(&protocol, &plan(None)).iter().map(named).collect();
        let sent = protocol.messages.iter().filter(|message| message.dir == Direction::Recv);
        for message in sent.filter(|message| protocol.says(&message.name)) {
            assert!(all.contains(&format!("{} drop first", message.name)), "{}", message.name);
            let discriminator = &protocol.extension.discriminator;
            assert!(all.contains(&format!("{}{} null second", message.name, discriminator.as_str())));
        }
        let few: Vec<String> = mutations(&protocol, &plan(Some(9))).iter().map(named).collect();
        let again: Vec<String> = mutations(&protocol, &plan(Some(9))).iter().map(named).collect();
        assert!(few.len() == 9 && few == again && few.iter().all(|name| all.contains(name)));
    }
}
