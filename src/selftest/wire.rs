//! Mutants of the wire: the suite against a correct server whose messages are mutated on their way. What survives is a hole.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use globset::{Glob, GlobMatcher};
use indexmap::IndexMap;

use crate::frame::Pointer;
use crate::protocol::{HarmlessMutants, Protocol};
use crate::results::event::{CaseReport, Verdict};
use crate::run::{RunError, RunOptions};
use crate::scenario::LoadedCase;
use crate::selftest::driver::{AT_ONCE, sampled, side_by_side, with_deadline};
use crate::selftest::subject::{Defect, Subject};
use crate::synthesis::rng::SeededRng;
use crate::trace::Direction;
use crate::wire::relay::{Mutation, Occurrence, Operator};

/// What is to be tried.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Only mutants whose names match one of these; empty: all of them.
    pub only: Vec<GlobMatcher>,
    /// So many mutants at most; none: all of them.
    pub sample: Option<usize>,
    /// What chooses the sample.
    pub seed: u64,
}

impl Plan {
    fn chooses(&self, mutation: &Mutation) -> bool {
        self.only.is_empty() || self.only.iter().any(|glob| glob.is_match(mutation.name()))
    }

    /// Whether there is a mutant of a protocol's messages to be tried.
    pub fn chooses_any(&self, protocol: &Protocol) -> bool {
        mutations(protocol).iter().any(|mutation| self.chooses(mutation))
    }
}

/// What became of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Something failed, or was warned of.
    Killed,
    /// Nothing did.
    Survived,
    /// Nothing did, and the protocol says why nothing need.
    Harmless,
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
    /// Of what is harmless, and of what is declared to be and is not: the name of the declaration.
    pub declared: Option<String>,
}

/// A mutant may silence a server; this is long on loopback.
const SHORT: Duration = Duration::from_millis(700);

/// Runs the suite against mutants of the wire, and reports each to `sink`. Of a user's own server only cases count that pass without a
/// mutation; `skipped` is told those that do not.
///
/// # Errors
/// See [`RunError`].
pub async fn selftest(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    subject: &Subject,
    options: &RunOptions,
    plan: &Plan,
    skipped: &mut (dyn FnMut(&str) + Send),
    sink: &mut (dyn FnMut(&Mutant) + Send),
) -> Result<(), RunError> {
    let (cases, options, at_once) = match subject {
        Subject::Reference(_) => (cases.to_vec(), with_deadline(options, SHORT), AT_ONCE),
        Subject::Own(_) => (passing(protocol, cases, subject, options, skipped).await?, options.clone(), 1),
    };
    let harmless = Harmless::new(&protocol.extension.mutants);
    let mut all = mutations(protocol);
    all.retain(|mutation| plan.chooses(mutation));
    let mutations = sampled(all, plan.sample, SeededRng::new(plan.seed, 1)).into_iter().map(Arc::new);
    let tries = mutations.map(|mutation| one(protocol, &cases, subject, &options, mutation, &harmless));
    side_by_side(tries, at_once, |mutant| sink(&mutant)).await
}

/// The cases that pass against a server as it is.
async fn passing(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    subject: &Subject,
    options: &RunOptions,
    skipped: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<LoadedCase>, RunError> {
    let mut passed = BTreeSet::new();
    let mut on_case = |report: &CaseReport| {
        if report.verdict == Verdict::Passed {
            passed.insert(report.case.clone());
        } else {
            skipped(&report.case);
        }
    };
    subject.run(None, protocol, cases.to_vec(), options.clone(), &mut on_case).await?;
    Ok(cases.iter().filter(|case| passed.contains(&case.id)).cloned().collect())
}

/// The mutants that a protocol declares to be harmless.
struct Harmless<'p>(Vec<(&'p str, Vec<GlobMatcher>)>);

impl<'p> Harmless<'p> {
    /// What is no glob was told when the protocol was loaded.
    fn new(declared: &'p IndexMap<String, HarmlessMutants>) -> Self {
        let globs = |one: &HarmlessMutants| {
            let globs = one.mutants.as_slice().iter().filter_map(|glob| Glob::new(glob).ok());
            globs.map(|glob| glob.compile_matcher()).collect()
        };
        Self(declared.iter().map(|(name, one)| (name.as_str(), globs(one))).collect())
    }

    fn of(&self, mutant: &str) -> Option<String> {
        let mut all = self.0.iter();
        let found = all.find(|(_, globs)| globs.iter().any(|glob| glob.is_match(mutant)));
        found.map(|(name, _)| (*name).to_owned())
    }
}

/// All mutations of a protocol's messages, message by message.
pub(super) fn mutations(protocol: &Protocol) -> Vec<Mutation> {
    let mut all = Vec::new();
    let mut known = BTreeSet::new();
    for message in protocol.messages.iter().filter(|message| message.dir == Direction::Recv) {
        let says = protocol.says(&message.name, message.dir).then(|| message.name.clone());
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
                if known.insert(mutation.name()) {
                    all.push(mutation);
                }
            }
        }
    }
    all
}

async fn one(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    subject: &Subject,
    options: &RunOptions,
    mutation: Arc<Mutation>,
    harmless: &Harmless<'_>,
) -> Result<Mutant, RunError> {
    let (mut by, mut killed) = (BTreeSet::new(), false);
    let mut on_case = |report: &CaseReport| {
        killed |= !report.failures.is_empty() || report.verdict == Verdict::Error;
        by.extend(report.failures.iter().flat_map(|failure| failure.requirements.iter().cloned()));
    };
    let defect = Defect::Mutation(Arc::clone(&mutation));
    subject.run(Some(&defect), protocol, cases.to_vec(), options.clone(), &mut on_case).await?;
    let hits = mutation.hits.load(Ordering::Relaxed);
    let declared = harmless.of(&mutation.name());
    let fate = match (killed, hits) {
        (true, _) => Fate::Killed,
        (false, 0) => Fate::NotReached,
        (false, _) if declared.is_some() => Fate::Harmless,
        (false, _) => Fate::Survived,
    };
    Ok(Mutant { name: mutation.name(), fate, by, hits, declared })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LoadOptions;

    #[test]
    fn every_message_and_field_of_a_server_is_spoilt() {
        let name = Protocol::embedded_names()[0];
        let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("a shipped protocol");
        let all: Vec<String> = mutations(&protocol).iter().map(Mutation::name).collect();
        let sent = protocol.messages.iter().filter(|message| message.dir == Direction::Recv);
        for message in sent.filter(|message| protocol.says(&message.name, message.dir)) {
            assert!(all.contains(&format!("{} drop first", message.name)), "{}", message.name);
            let discriminator = &protocol.extension.discriminator;
            assert!(all.contains(&format!("{}{} null second", message.name, discriminator.as_str())));
        }
        let few = || sampled(mutations(&protocol), Some(9), SeededRng::new(5, 1));
        let names = |few: Vec<Mutation>| few.iter().map(Mutation::name).collect::<Vec<_>>();
        let (few, again) = (names(few()), names(few()));
        assert!(few.len() == 9 && few == again && few.iter().all(|name| all.contains(name)));
    }

    #[test]
    fn what_is_declared_harmless_is_known_by_its_name() {
        let declared: IndexMap<String, HarmlessMutants> = serde_json::from_value(serde_json::json!({
            "texts": { "mutants": ["snapshot/title other-*", "* one-more second"], "allowed-by": ["X-1"], "why": "free" },
        }))
        .expect("declarations");
        let harmless = Harmless::new(&declared);
        assert_eq!(harmless.of("snapshot/title other-text every").as_deref(), Some("texts"));
        assert_eq!(harmless.of("status/run/n one-more second").as_deref(), Some("texts"));
        assert_eq!(harmless.of("snapshot/title null every"), None);
    }
}
