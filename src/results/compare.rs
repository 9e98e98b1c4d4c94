//! Two runs compared: what has become worse, what better.

use std::collections::BTreeMap;

use crate::results::event::{CaseReport, RequirementResult, RunEvent, Verdict};
use crate::text::{normalize, same};

/// A case takes longer if it takes so many times as long, and less time if the other way round …
const TIMES: f64 = 2.0;
/// … and so many seconds more or less: a busy machine is no news.
const SECONDS: f64 = 0.25;

/// What differs between two runs. Names are `PROTOCOL FAMILY/CASE` where the runs have several protocols.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Cases that fail (or are an error) and did not, with the reason.
    pub failing: Vec<Difference>,
    /// Cases that are warned of and were not.
    pub warned: Vec<Difference>,
    /// Cases that passed only when they were run again, and had not before.
    pub flaky: Vec<Difference>,
    /// Cases that fail or are warned of in both, for another reason.
    pub changed: Vec<Difference>,
    /// Cases that failed or were warned of, and pass.
    pub fixed: Vec<Difference>,
    /// Cases that only the first run has, or that say nothing any more.
    pub gone: Vec<String>,
    /// Cases that only the second run has, or that said nothing before.
    pub new: Vec<String>,
    /// Requirements that were exercised and no longer are.
    pub lost: Vec<String>,
    /// Requirements that are exercised and were not.
    pub gained: Vec<String>,
    /// Cases that take another time.
    pub pace: Pace,
    /// Seconds of the two runs.
    pub seconds: (f64, f64),
    /// Cases that both have.
    pub common: usize,
}

/// Cases that take much longer, or much less time.
#[derive(Debug, Default)]
pub struct Pace {
    /// Those that take at least twice as long.
    pub slower: Vec<Duration>,
    /// Those that take at most half as long.
    pub faster: Vec<Duration>,
}

/// A case whose verdict or reason differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The case.
    pub case: String,
    /// What is wrong with it: the messages of its failures, in the first run and in the second.
    pub reasons: (Vec<String>, Vec<String>),
}

/// A case that takes much longer, or much less time.
#[derive(Debug, Clone, PartialEq)]
pub struct Duration {
    /// The case.
    pub case: String,
    /// Seconds in the first run and in the second.
    pub seconds: (f64, f64),
}

impl Comparison {
    /// Whether the second run is worse: something fails, is warned of or is flaky that was not, or is no longer tried.
    pub fn is_worse(&self) -> bool {
        let cases = [&self.failing, &self.warned, &self.flaky];
        cases.iter().any(|list| !list.is_empty()) || !self.gone.is_empty() || !self.lost.is_empty()
    }

    /// Whether nothing differs but times.
    pub fn is_same(&self) -> bool {
        let better = self.changed.is_empty() && self.fixed.is_empty();
        !self.is_worse() && better && self.new.is_empty() && self.gained.is_empty()
    }
}

/// One run or several, as far as they are compared.
#[derive(Default)]
struct Runs<'r> {
    cases: BTreeMap<String, Vec<&'r CaseReport>>,
    requirements: BTreeMap<&'r str, &'r RequirementResult>,
    seconds: f64,
}

impl<'r> Runs<'r> {
    fn of(events: &'r [RunEvent], is_named: bool) -> Self {
        let mut runs = Self::default();
        let mut prefix = String::new();
        for event in events {
            match event {
                RunEvent::RunStarted(started) if is_named => prefix = format!("{} ", started.protocol),
                RunEvent::RunStarted(_) | RunEvent::CaseStarted { .. } => {}
                RunEvent::CaseFinished(report) => {
                    runs.cases.entry(format!("{prefix}{}", report.case)).or_default().push(report);
                }
                RunEvent::RunFinished(summary) => {
                    runs.seconds += summary.seconds;
                    runs.requirements
                        .extend(summary.requirements.iter().map(|(id, result)| (id.as_str(), result)));
                }
            }
        }
        runs
    }

    fn exercises(&self, id: &str) -> bool {
        self.requirements.get(id).is_some_and(|result| !result.verdict.says_nothing())
    }
}

/// How a case ended, over all its repeats. In order of gravity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Silent,
    Good,
    Flaky,
    Warned,
    Failing,
}

/// Failures that a baseline knows count as what they are: it may have changed between the runs.
fn state(reports: &[&CaseReport]) -> State {
    let one = |report: &&CaseReport| match report.verdict {
        Verdict::NotApplicable | Verdict::NotExercised => State::Silent,
        Verdict::Passed => State::Good,
        Verdict::Flaky => State::Flaky,
        Verdict::Warned => State::Warned,
        Verdict::Failed | Verdict::Error => State::Failing,
        Verdict::Known => match report.failures.iter().all(|failure| failure.verdict == Verdict::Warned) {
            true => State::Warned,
            false => State::Failing,
        },
    };
    reports.iter().map(one).max().unwrap_or(State::Silent)
}

/// What is wrong, each message once.
fn reasons(reports: &[&CaseReport]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for report in reports {
        let earlier = report.earlier.iter().flatten();
        let own = report.failures.iter().chain(earlier).map(|failure| &failure.message);
        let own = own.chain(&report.reason);
        for message in own {
            if !reasons.iter().any(|known| same(known, message)) {
                reasons.push(message.clone());
            }
        }
    }
    reasons
}

/// What is wrong, without what differs each time: requirements, and messages without ids and numbers.
fn essence(reports: &[&CaseReport]) -> Vec<(Vec<String>, String)> {
    let failures = reports.iter().flat_map(|report| &report.failures);
    let mut essence: Vec<_> =
        failures.map(|failure| (failure.requirements.clone(), normalize(&failure.message))).collect();
    essence.sort();
    essence.dedup();
    essence
}

/// Compares two runs by their events.
pub fn compare(before: &[RunEvent], after: &[RunEvent]) -> Comparison {
    let count =
        |events: &[RunEvent]| events.iter().filter(|event| matches!(event, RunEvent::RunStarted(_))).count();
    let is_named = count(before) > 1 || count(after) > 1;
    let (before, after) = (Runs::of(before, is_named), Runs::of(after, is_named));
    let mut found = Comparison { seconds: (before.seconds, after.seconds), ..Comparison::default() };
    for (case, now) in &after.cases {
        match before.cases.get(case) {
            Some(then) => found.case(case, then, now),
            None => found.first(case, now),
        }
    }
    let gone = before
        .cases
        .iter()
        .filter(|(case, then)| !after.cases.contains_key(*case) && state(then) != State::Silent);
    found.gone.extend(gone.map(|(case, _)| case.clone()));
    let lost = before.requirements.keys().filter(|id| before.exercises(id) && !after.exercises(id));
    found.lost = lost.map(|id| (*id).to_owned()).collect();
    let gained = after.requirements.keys().filter(|id| after.exercises(id) && !before.exercises(id));
    found.gained = gained.map(|id| (*id).to_owned()).collect();
    let change = |one: &Duration| (one.seconds.1 - one.seconds.0).abs();
    for list in [&mut found.pace.slower, &mut found.pace.faster] {
        list.sort_by(|one, other| change(other).total_cmp(&change(one)));
    }
    found
}

impl Comparison {
    /// A case that only the second run has.
    fn first(&mut self, case: &str, now: &[&CaseReport]) {
        let difference = Difference { case: case.to_owned(), reasons: (Vec::new(), reasons(now)) };
        match state(now) {
            State::Failing => self.failing.push(difference),
            State::Warned => self.warned.push(difference),
            State::Flaky => self.flaky.push(difference),
            State::Good => self.new.push(case.to_owned()),
            State::Silent => {}
        }
    }

    fn case(&mut self, case: &str, then: &[&CaseReport], now: &[&CaseReport]) {
        self.common += 1;
        let difference = || Difference { case: case.to_owned(), reasons: (reasons(then), reasons(now)) };
        let (old, new) = (state(then), state(now));
        match (old, new) {
            (State::Silent, State::Silent) | (State::Good, State::Good) | (State::Flaky, State::Flaky) => {}
            (_, State::Silent) => self.gone.push(case.to_owned()),
            (State::Silent, State::Good) => self.new.push(case.to_owned()),
            (_, State::Failing) if old != State::Failing => self.failing.push(difference()),
            (_, State::Warned) if old < State::Warned => self.warned.push(difference()),
            (_, State::Flaky) if old < State::Flaky => self.flaky.push(difference()),
            (_, State::Good | State::Flaky) => self.fixed.push(difference()),
            _ if old != new || essence(then) != essence(now) => self.changed.push(difference()),
            _ => {}
        }
        let seconds = |reports: &[&CaseReport]| {
            reports.iter().map(|report| report.seconds).sum::<f64>() / reports.len().max(1) as f64
        };
        let (old, new) = (seconds(then), seconds(now));
        let is_more = |more: f64, less: f64| more > less * TIMES && more > less + SECONDS;
        let duration = || Duration { case: case.to_owned(), seconds: (old, new) };
        if is_more(new, old) {
            self.pace.slower.push(duration());
        } else if is_more(old, new) {
            self.pace.faster.push(duration());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Check;
    use crate::results::event::{Failure, Summary};

    fn case(name: &str, verdict: Verdict, seconds: f64, message: &str) -> RunEvent {
        let failure = Failure::new(Check::Step, verdict, message);
        let failures = if message.is_empty() { Vec::new() } else { vec![failure] };
        RunEvent::CaseFinished(Box::new(CaseReport {
            case: name.to_owned(),
            verdict,
            seconds,
            failures,
            ..CaseReport::default()
        }))
    }

    fn end(exercised: &[&str]) -> RunEvent {
        let result = RequirementResult { verdict: Verdict::Passed, exercised: 1, broken_in: Vec::new() };
        let requirements = exercised.iter().map(|id| ((*id).to_owned(), result.clone())).collect();
        RunEvent::RunFinished(Box::new(Summary { requirements, ..Summary::default() }))
    }

    fn names(differences: &[Difference]) -> Vec<&str> {
        differences.iter().map(|one| one.case.as_str()).collect()
    }

    #[test]
    fn each_kind_of_difference_has_its_list() {
        let before = [
            case("a/breaks", Verdict::Passed, 0.1, ""),
            case("a/mends", Verdict::Failed, 0.1, "no answer"),
            case("a/other", Verdict::Failed, 0.1, "no answer to 1"),
            case("a/same", Verdict::Failed, 0.1, "no answer to 1"),
            case("a/wavers", Verdict::Passed, 0.1, ""),
            case("a/leaves", Verdict::Passed, 0.1, ""),
            case("a/tires", Verdict::Passed, 0.1, ""),
            case("a/hurries", Verdict::Passed, 0.9, ""),
            end(&["R-1", "R-2"]),
        ];
        let after = [
            case("a/breaks", Verdict::Failed, 0.1, "two answers"),
            case("a/mends", Verdict::Passed, 0.1, ""),
            case("a/other", Verdict::Failed, 0.1, "two answers to 1"),
            case("a/same", Verdict::Failed, 0.1, "no answer to 2"),
            case("a/wavers", Verdict::Flaky, 0.1, ""),
            case("a/tires", Verdict::Passed, 0.9, ""),
            case("a/hurries", Verdict::Passed, 0.1, ""),
            case("a/comes", Verdict::Passed, 0.1, ""),
            end(&["R-1", "R-3"]),
        ];
        let found = compare(&before, &after);
        assert_eq!(names(&found.failing), ["a/breaks"]);
        assert_eq!(found.failing[0].reasons, (Vec::new(), vec!["two answers".to_owned()]));
        assert_eq!(names(&found.fixed), ["a/mends"]);
        assert_eq!(names(&found.changed), ["a/other"]);
        assert_eq!(names(&found.flaky), ["a/wavers"]);
        assert_eq!((found.gone, found.new), (vec!["a/leaves".to_owned()], vec!["a/comes".to_owned()]));
        assert_eq!((found.lost, found.gained), (vec!["R-2".to_owned()], vec!["R-3".to_owned()]));
        assert_eq!(found.pace.slower.iter().map(|one| one.case.as_str()).collect::<Vec<_>>(), ["a/tires"]);
        assert_eq!(found.pace.faster.iter().map(|one| one.case.as_str()).collect::<Vec<_>>(), ["a/hurries"]);
        assert_eq!(found.common, 7);
    }

    #[test]
    fn what_is_the_same_is_not_worse() {
        let run = [case("a/b", Verdict::Failed, 0.1, "no answer"), end(&["R-1"])];
        let found = compare(&run, &run);
        assert!(found.is_same() && !found.is_worse());
        let fixed = compare(&run, &[case("a/b", Verdict::Passed, 0.1, ""), end(&["R-1"])]);
        assert!(!fixed.is_same() && !fixed.is_worse());
    }
}
