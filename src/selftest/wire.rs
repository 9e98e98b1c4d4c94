//! Mutants of the wire: the suite against a correct server whose messages are mutated on their way. What survives is a hole.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use globset::GlobMatcher;

use crate::frame::Pointer;
use crate::protocol::Protocol;
use crate::results::event::{CaseReport, Verdict};
use crate::run::{RunError, RunOptions};
use crate::scenario::LoadedCase;
use crate::selftest::driver::{AT_ONCE, false_alarms_of, sampled, side_by_side};
use crate::selftest::harmless::Harmless;
use crate::selftest::reach::Reach;
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
    pub fn chooses_any(&self, protocol: &Arc<Protocol>) -> bool {
        mutations(protocol).iter().any(|mutation| self.chooses(mutation))
    }
}

/// What became of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MutantOutcome {
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
    pub outcome: MutantOutcome,
    /// Requirements found broken.
    pub by: BTreeSet<String>,
    /// How many messages were mutated.
    pub hits: u64,
    /// Of what is harmless, and of what is declared to be and is not: the name of the declaration.
    pub declared: Option<String>,
}

/// A mutant may silence a server; this is long on loopback.
const SHORT: Duration = Duration::from_millis(700);

/// Runs the suite against mutants of the wire, and reports each to `sink`. A mutant meets only the cases in which its message comes. Of
/// a user's own server only cases count that pass without a mutation; `skipped` is told those that do not.
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
    let (passed, reach) = as_it_is(protocol, cases, subject, options).await?;
    let (cases, short, at_once) = match subject {
        Subject::Reference(_) => (cases.to_vec(), SHORT, AT_ONCE),
        // It may need all the time that it is given.
        Subject::Own(_) => {
            let (passing, other): (Vec<_>, Vec<_>) =
                cases.iter().cloned().partition(|case| passed.contains(&case.id));
            other.iter().for_each(|case| skipped(&case.id));
            (passing, options.timing.step_deadline, 1)
        }
    };
    let harmless = Harmless::new(&protocol.extension.mutants);
    let mut all = mutations(protocol);
    all.retain(|mutation| plan.chooses(mutation));
    let mutations = sampled(all, plan.sample, SeededRng::new(plan.seed, 1)).into_iter().map(Arc::new);
    let tries = mutations.map(|mutation| {
        let cases = reach.cases(&cases, &mutation);
        one(protocol, cases, subject, (options, short), mutation, &harmless)
    });
    side_by_side(tries, at_once, |mutant| sink(&mutant)).await
}

/// The cases that pass against a server as it is, and what each of them receives.
async fn as_it_is(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    subject: &Subject,
    options: &RunOptions,
) -> Result<(BTreeSet<String>, Reach), RunError> {
    let (mut passed, mut reach) = (BTreeSet::new(), Reach::default());
    let mut on_case = |report: &CaseReport| {
        if report.verdict == Verdict::Passed {
            passed.insert(report.case.clone());
        }
        reach.add(report);
    };
    let mut options = options.clone();
    options.kept.frames = true;
    subject.run(None, protocol, cases.to_vec(), options, &mut on_case).await?;
    Ok((passed, reach))
}

/// All mutations of a protocol's messages, message by message.
pub(super) fn mutations(protocol: &Arc<Protocol>) -> Vec<Mutation> {
    let mut all = Vec::new();
    let mut known = BTreeSet::new();
    for message in protocol.messages.iter().filter(|message| message.dir == Direction::Recv) {
        let says = protocol.says(&message.name, message.dir).then(|| message.name.clone());
        let new = |operator| Mutation::new(protocol, says.clone(), operator);
        let mut mutations: Vec<Mutation> =
            Operator::OF_MESSAGES.iter().map(|(operator, _)| new(*operator)).collect();
        for (at, field) in message.fields_with_types() {
            let Ok(at) = Pointer::new(&at) else { continue };
            // What no value of the field is changed by would be tried in vain.
            let fits = |operator: Operator, types: &[&str]| match operator {
                Operator::OtherMember => field.members.len() > 1,
                _ => field.may_be(types),
            };
            let fitting = Operator::OF_FIELDS.iter().filter(|(operator, _, types)| fits(*operator, types));
            let spoilt = fitting.map(|(operator, ..)| new(*operator).of(at.clone(), field.members.clone()));
            mutations.extend(spoilt);
        }
        for mutation in mutations {
            for (occurrence, _) in Occurrence::ALL {
                let mutation = mutation.at(occurrence);
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
    cases: Vec<LoadedCase>,
    subject: &Subject,
    (options, short): (&RunOptions, Duration),
    mutation: Arc<Mutation>,
    harmless: &Harmless<'_>,
) -> Result<Mutant, RunError> {
    let declared = harmless.of(&mutation.name());
    if cases.is_empty() {
        let (outcome, by) = (MutantOutcome::NotReached, BTreeSet::new());
        return Ok(Mutant { name: mutation.name(), outcome, by, hits: 0, declared });
    }
    let defect = Defect::Mutation(Arc::clone(&mutation));
    let run = async |cases, options, on_case: &mut (dyn FnMut(&CaseReport) + Send)| {
        subject.run(Some(&defect), protocol, cases, options, on_case).await
    };
    let held = false_alarms_of(&cases, options, short, &[], run).await?;
    let killed = !held.is_nothing();
    let hits = mutation.hits.load(Ordering::Relaxed);
    let by = if hits > 0 { held.by.into_keys().collect() } else { BTreeSet::new() };
    let outcome = match (killed, hits) {
        // Whatever was found then is not its doing.
        (_, 0) => MutantOutcome::NotReached,
        (true, _) => MutantOutcome::Killed,
        (false, _) if declared.is_some() => MutantOutcome::Harmless,
        (false, _) => MutantOutcome::Survived,
    };
    Ok(Mutant { name: mutation.name(), outcome, by, hits, declared })
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
}
