//! The suite against one variant of a reference server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::watch;

use crate::protocol::Protocol;
use crate::reference::Variant;
use crate::results::event::{CaseReport, RunEvent, Summary, Verdict};
use crate::run::{RunError, RunOptions, Target, run};
use crate::scenario::LoadedCase;
use crate::synthesis::rng::SeededRng;

/// Runs the cases against this server, and hands over the report of each.
pub(super) async fn run_against(
    variant: Variant,
    protocol: &Arc<Protocol>,
    cases: Vec<LoadedCase>,
    options: RunOptions,
    on_case: &mut (dyn FnMut(&CaseReport) + Send),
) -> Result<Summary, RunError> {
    run_on(Target::Reference(variant), protocol, cases, options, on_case).await
}

/// The same against any server.
pub(super) async fn run_on(
    target: Target,
    protocol: &Arc<Protocol>,
    cases: Vec<LoadedCase>,
    options: RunOptions,
    on_case: &mut (dyn FnMut(&CaseReport) + Send),
) -> Result<Summary, RunError> {
    let (_keep, stop) = watch::channel(false);
    run_until(target, protocol, cases, options, stop, on_case).await
}

/// The same until `stop` becomes `true`.
pub(super) async fn run_until(
    target: Target,
    protocol: &Arc<Protocol>,
    cases: Vec<LoadedCase>,
    options: RunOptions,
    stop: watch::Receiver<bool>,
    on_case: &mut (dyn FnMut(&CaseReport) + Send),
) -> Result<Summary, RunError> {
    let mut sink = |event: &RunEvent| {
        if let RunEvent::CaseFinished(report) = event {
            on_case(report);
        }
    };
    run(Arc::clone(protocol), cases, target, options, &mut sink, stop).await
}

/// How many embedded servers are tried at the same time: with one, a run waits most of the time for the deadlines of its last cases.
pub(super) const AT_ONCE: usize = 4;

/// Tries so many servers at the same time, and hands over what became of each, in their order.
pub(super) async fn side_by_side<R>(
    tries: impl IntoIterator<Item = impl Future<Output = Result<R, RunError>>>,
    at_once: usize,
    mut take: impl FnMut(R),
) -> Result<(), RunError> {
    let mut results = stream::iter(tries).buffered(at_once);
    while let Some(result) = results.try_next().await? {
        take(result);
    }
    Ok(())
}

/// The same options for a server that may be silent: it costs a deadline in every case.
pub(super) fn with_deadline(options: &RunOptions, step_deadline: Duration) -> RunOptions {
    let mut options = options.clone();
    options.timing.step_deadline = step_deadline;
    options
}

/// So many of them at most, in their order.
pub(super) fn sampled<T>(mut all: Vec<T>, most: Option<usize>, mut rng: SeededRng) -> Vec<T> {
    while most.is_some_and(|most| all.len() > most) {
        all.remove(rng.below(all.len()));
    }
    all
}

/// What a suite holds against a server.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// How many failures and warnings name each requirement.
    pub by: BTreeMap<String, usize>,
    /// Something failed.
    pub failed: bool,
    /// Something was warned of.
    pub warned: bool,
    /// The cases, with the requirements that they name.
    cases: Vec<(String, BTreeSet<String>)>,
}

/// Cases that are run again to confirm what they hold.
const FEW: usize = 8;
/// How long an answer may take then.
const CONFIRMING: Duration = Duration::from_secs(2);

impl Held {
    fn add(&mut self, report: &CaseReport) {
        for failure in &report.failures {
            self.failed |= failure.verdict != Verdict::Warned;
            self.warned |= failure.verdict == Verdict::Warned;
            failure.requirements.iter().for_each(|id| *self.by.entry(id.clone()).or_default() += 1);
        }
        self.failed |= report.verdict == Verdict::Error;
        if !report.failures.is_empty() || report.verdict == Verdict::Error {
            let ids = report.failures.iter().flat_map(|failure| failure.requirements.iter().cloned());
            self.cases.push((report.case.clone(), ids.collect()));
        }
    }

    /// Nothing is held against it.
    pub fn is_nothing(&self) -> bool {
        !self.failed && !self.warned
    }

    /// A few cases, first those that name one of these requirements, then those that name what none before does.
    fn decisive_failures(&self, own: &[&str]) -> BTreeSet<&str> {
        let names_own = |ids: &BTreeSet<String>| own.iter().any(|id| ids.contains(*id));
        let mut cases: Vec<_> = self.cases.iter().collect();
        cases.sort_by_key(|(_, ids)| !names_own(ids));
        let mut named = BTreeSet::new();
        let (new, old): (Vec<_>, Vec<_>) = cases.into_iter().partition(|(_, ids)| {
            let before = named.len();
            named.extend(ids);
            named.len() > before
        });
        new.into_iter().chain(old).take(FEW).map(|(case, _)| case.as_str()).collect()
    }
}

/// Runs cases against a defective server, first with a short deadline, for it may be silent. What is held against it then is confirmed
/// with a longer one, by a few cases or else by all: on a busy machine a correct answer may come late, too.
pub(super) async fn false_alarms_of(
    cases: &[LoadedCase],
    options: &RunOptions,
    short: Duration,
    own: &[&str],
    run: impl AsyncFn(
        Vec<LoadedCase>,
        RunOptions,
        &mut (dyn FnMut(&CaseReport) + Send),
    ) -> Result<Summary, RunError>,
) -> Result<Held, RunError> {
    let mut first = Held::default();
    run(cases.to_vec(), with_deadline(options, short), &mut |report| first.add(report)).await?;
    if first.is_nothing() {
        return Ok(first);
    }
    let options = with_deadline(options, CONFIRMING.max(short));
    let telling = first.decisive_failures(own);
    let few = cases.iter().filter(|case| telling.contains(&*case.id)).cloned().collect();
    let mut again = Held::default();
    run(few, options.clone(), &mut |report| again.add(report)).await?;
    if again.failed || (again.warned && !first.failed) {
        return Ok(again);
    }
    let mut whole = Held::default();
    run(cases.to_vec(), options, &mut |report| whole.add(report)).await?;
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Check;
    use crate::results::event::Failure;

    fn report(case: &str, ids: &[&str]) -> CaseReport {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        let failures = vec![Failure::new(Check::Step, Verdict::Failed, "no").breaking(&ids)];
        CaseReport { case: case.to_owned(), failures, ..CaseReport::default() }
    }

    fn case(id: &str) -> LoadedCase {
        let name = Protocol::embedded_names()[0];
        let protocol = Protocol::embedded(name, &crate::protocol::LoadOptions::default()).expect("it loads");
        let mut case = crate::scenario::embedded(&protocol).expect("its cases")[0].clone();
        case.id = id.to_owned();
        case
    }

    #[tokio::test]
    async fn what_comes_late_once_is_not_held_against_a_server() {
        let cases = [case("a"), case("b")];
        for (fails_again, expected) in [(true, 1), (false, 0)] {
            let runs = std::cell::RefCell::new(Vec::new());
            let run = async |cases: Vec<LoadedCase>,
                             options: RunOptions,
                             on_case: &mut (dyn FnMut(&CaseReport) + Send)| {
                let is_first = runs.borrow().is_empty();
                runs.borrow_mut().push((cases.len(), options.timing.step_deadline));
                if is_first || fails_again {
                    on_case(&report("b", &["X-1"]));
                }
                Ok(Summary::default())
            };
            let short = Duration::from_millis(1);
            let held =
                false_alarms_of(&cases, &RunOptions::default(), short, &[], run).await.expect("it runs");
            assert_eq!(held.by.get("X-1").copied().unwrap_or_default(), expected);
            assert_eq!(held.is_nothing(), !fails_again);
            // Only the case that failed, and then all of them.
            let all = [(2, short), (1, CONFIRMING), (2, CONFIRMING)];
            assert_eq!(*runs.borrow(), all[..if fails_again { 2 } else { 3 }]);
        }
    }

    #[test]
    fn the_cases_that_tell_most_are_run_again() {
        let mut held = Held::default();
        for index in 0..20 {
            held.add(&report(&format!("same/{index}"), &["X-1"]));
        }
        held.add(&report("other", &["X-1", "X-2"]));
        held.add(&report("own", &["X-1", "X-3"]));
        let telling = held.decisive_failures(&["X-3"]);
        assert_eq!(telling.len(), FEW);
        assert!(telling.contains("own") && telling.contains("other"), "{telling:?}");
    }
}
