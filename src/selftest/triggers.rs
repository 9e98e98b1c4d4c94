//! Conditional faults: the suite against faults that strike at certain moments only. What survives is a hole.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::protocol::{Level, Protocol};
use crate::reference::{Fault, Trigger, Variant, faults};
use crate::results::event::CaseReport;
use crate::run::{RunError, RunOptions};
use crate::scenario::LoadedCase;
use crate::selftest::driver::{AT_ONCE, Held, false_alarms_of, run_against, sampled, side_by_side};
use crate::selftest::harmless::Harmless;
use crate::synthesis::rng::SeededRng;

/// What is to be tried.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Only these faults; empty: all of them.
    pub faults: Vec<String>,
    /// Only these triggers; empty: all but `always`.
    pub triggers: Vec<Trigger>,
    /// So many pairs at most; none: all of them.
    pub sample: Option<usize>,
    /// What chooses the sample.
    pub seed: u64,
    /// Styles that the servers have besides.
    pub styles: Vec<String>,
}

/// What became of a mutant of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MutantOutcome {
    /// One of the requirements that it violates was found broken.
    Killed,
    /// Only others were.
    KilledByAnother,
    /// Only a warning was given, though the fault violates what a MUST says.
    Warned,
    /// Nothing was found.
    Survived,
    /// Nothing was found, and the protocol says why nothing need.
    Harmless,
    /// Nothing was found, and no such moment came.
    Unmet,
}

impl MutantOutcome {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::KilledByAnother => "by another",
            Self::Warned => "warned",
            Self::Survived => "SURVIVED",
            Self::Harmless => "harmless",
            Self::Unmet => "unmet",
        }
    }
}

/// What the suite made of one fault under one trigger.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// The fault.
    pub fault: Fault,
    /// When it strikes.
    pub trigger: Trigger,
    /// What became of it.
    pub outcome: MutantOutcome,
    /// For each requirement found broken, how many cases found it.
    pub by: BTreeMap<String, usize>,
    /// Of what is harmless, and of what is declared to be and is not: the name of the declaration.
    pub declared: Option<String>,
}

impl Mutant {
    /// As `--fault` names it.
    pub fn name(&self) -> String {
        format!("{}@{}", self.fault.name, self.trigger.name())
    }
}

/// A fault may make a server silent; this is long on loopback.
const SHORT: Duration = Duration::from_millis(500);

/// Runs the suite against faults under triggers, and reports each to `sink`.
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
    let harmless = Harmless::new(&protocol.extension.mutants);
    let pairs = pairs(faults(&protocol.name), plan).into_iter();
    let tries = pairs.map(|pair| one(protocol, cases, options, pair, &plan.styles, &harmless));
    side_by_side(tries, AT_ONCE, |mutant| sink(&mutant)).await
}

/// The pairs that are tried, in the order of the tables.
fn pairs(all: &[Fault], plan: &Plan) -> Vec<(Fault, Trigger)> {
    let wanted = |fault: &&Fault| plan.faults.is_empty() || plan.faults.iter().any(|name| name == fault.name);
    let tried = |trigger: &Trigger| match plan.triggers.is_empty() {
        true => *trigger != Trigger::Always,
        false => plan.triggers.contains(trigger),
    };
    let triggers: Vec<Trigger> =
        Trigger::ALL.iter().map(|(trigger, ..)| *trigger).filter(|trigger| tried(trigger)).collect();
    let wanted = all.iter().filter(wanted);
    let pairs = wanted.flat_map(|fault| triggers.iter().map(|trigger| (*fault, *trigger))).collect();
    sampled(pairs, plan.sample, SeededRng::new(plan.seed, 0))
}

async fn one(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    options: &RunOptions,
    (fault, trigger): (Fault, Trigger),
    styles: &[String],
    harmless: &Harmless<'_>,
) -> Result<Mutant, RunError> {
    let name = format!("{}@{}", fault.name, trigger.name());
    let declared = harmless.of(&name);
    let met = Arc::new(AtomicBool::new(false));
    let variant =
        Variant { fault: Some(name), met: Arc::clone(&met), styles: styles.to_vec(), ..Variant::default() };
    let run = async |cases, options, on_case: &mut (dyn FnMut(&CaseReport) + Send)| {
        run_against(variant.clone(), protocol, cases, options, on_case).await
    };
    let Held { by, failed, warned, .. } = false_alarms_of(cases, options, SHORT, fault.violates, run).await?;
    let own = fault.violates.iter().chain(fault.also).any(|id| by.contains_key(*id));
    // What a SHOULD says can be warned of only.
    let must = fault
        .violates
        .iter()
        .any(|id| protocol.requirements.get(id).is_some_and(|it| it.level == Level::Must));
    let outcome = match (failed, warned) {
        // Whatever was found then is not its doing.
        _ if !met.load(Ordering::Relaxed) => MutantOutcome::Unmet,
        (false, _) if declared.is_some() => MutantOutcome::Harmless,
        (false, false) => MutantOutcome::Survived,
        (false, true) if must => MutantOutcome::Warned,
        _ if own => MutantOutcome::Killed,
        _ => MutantOutcome::KilledByAnother,
    };
    Ok(Mutant { fault, trigger, outcome, by, declared })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_part_of_all_pairs_and_comes_again() {
        let fault = |name| Fault { name, title: "", violates: &[], also: &[] };
        let all = [fault("a"), fault("b"), fault("c")];
        let plan =
            Plan { faults: Vec::new(), triggers: Vec::new(), sample: None, seed: 1, styles: Vec::new() };
        let whole = pairs(&all, &plan);
        assert_eq!(whole.len(), 3 * (Trigger::ALL.len() - 1));
        let plan = Plan { sample: Some(7), ..plan };
        let sample = pairs(&all, &plan);
        assert_eq!(sample.len(), 7);
        assert!(sample.iter().all(|pair| whole.contains(pair)));
        assert_eq!(sample, pairs(&all, &plan));
        let plan = Plan { faults: vec!["b".to_owned()], triggers: vec![Trigger::Always], ..plan };
        assert_eq!(pairs(&all, &plan), [(fault("b"), Trigger::Always)]);
    }
}
