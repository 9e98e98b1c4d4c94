//! Two runs compared: what has become worse, what better.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};

use crate::results::event::{CaseReport, RunEvent, Verdict};
use crate::results::recorded::Recorded;
use crate::text::normalize;

/// A case takes longer if it takes so many times as long, and less time if the other way round …
const TIMES: f64 = 2.0;
/// … and so many seconds more or less: a busy machine is no news.
const SECONDS: f64 = 0.25;
/// Most messages that are kept of a case, over all its repeats.
const REASONS: usize = 20;

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
    /// What is wrong with it: the messages of its failures, in the first run and in the second; the first 20 of each.
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

/// One run or several, as far as they are compared: little of each case, for there may be very many.
#[derive(Default)]
struct Runs {
    cases: BTreeMap<String, Seen>,
    /// Requirements, and whether they were exercised.
    requirements: BTreeMap<String, bool>,
    seconds: f64,
}

/// What is known of a case, over all its repeats.
#[derive(Default)]
struct Seen {
    state: State,
    /// What is wrong, each message once: the first ones.
    reasons: Vec<String>,
    /// Digests of all messages, without ids and numbers.
    told: BTreeSet<u64>,
    /// Digests of what is wrong, without what differs each time: requirements, and messages without ids and numbers.
    essence: BTreeSet<u64>,
    /// Of all repeats together, and how many there are.
    seconds: f64,
    repeats: u32,
}

/// How a case ended, over all its repeats. In order of gravity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    #[default]
    Silent,
    Good,
    Flaky,
    Warned,
    Failing,
}

impl Runs {
    fn of(events: &(impl Recorded + ?Sized), is_named: bool) -> Result<Self, String> {
        let mut runs = Self::default();
        let mut prefix = String::new();
        for at in 0..events.count() {
            match &*events.event(at)? {
                RunEvent::RunStarted(started) if is_named => prefix = format!("{} ", started.protocol),
                RunEvent::RunStarted(_) | RunEvent::CaseStarted { .. } => {}
                RunEvent::CaseFinished(report) => {
                    runs.cases.entry(format!("{prefix}{}", report.case)).or_default().add(report);
                }
                RunEvent::RunFinished(summary) => {
                    runs.seconds += summary.seconds;
                    let results = summary.requirements.iter();
                    runs.requirements
                        .extend(results.map(|(id, result)| (id.clone(), !result.verdict.says_nothing())));
                }
            }
        }
        Ok(runs)
    }

    fn exercises(&self, id: &str) -> bool {
        self.requirements.get(id).is_some_and(|exercised| *exercised)
    }
}

impl Seen {
    fn add(&mut self, report: &CaseReport) {
        self.state = self.state.max(state(report));
        self.seconds += report.seconds;
        self.repeats += 1;
        let own =
            report.failures.iter().chain(report.earlier.iter().flatten()).map(|failure| &failure.message);
        for message in own.chain(&report.reason) {
            if self.told.insert(digest(normalize(message))) && self.reasons.len() < REASONS {
                self.reasons.push(message.clone());
            }
        }
        for failure in &report.failures {
            self.essence.insert(digest((&failure.requirements, normalize(&failure.message))));
        }
    }

    /// Seconds of one of the repeats, on average.
    fn pace(&self) -> f64 {
        self.seconds / f64::from(self.repeats.max(1))
    }
}

fn digest(of: impl Hash) -> u64 {
    let mut digest = DefaultHasher::new();
    of.hash(&mut digest);
    digest.finish()
}

/// Failures that a baseline knows count as what they are: it may have changed between the runs.
fn state(report: &CaseReport) -> State {
    match report.verdict {
        Verdict::NotApplicable | Verdict::NotExercised => State::Silent,
        Verdict::Passed => State::Good,
        Verdict::Flaky => State::Flaky,
        Verdict::Warned => State::Warned,
        Verdict::Failed | Verdict::Error => State::Failing,
        Verdict::Known => match report.failures.iter().all(|failure| failure.verdict == Verdict::Warned) {
            true => State::Warned,
            false => State::Failing,
        },
    }
}

/// Compares two runs by their events.
///
/// # Errors
/// Those of [`Recorded::event`].
pub fn compare(
    before: &(impl Recorded + ?Sized),
    after: &(impl Recorded + ?Sized),
) -> Result<Comparison, String> {
    let is_named = before.starts()?.len() > 1 || after.starts()?.len() > 1;
    let (before, after) = (Runs::of(before, is_named)?, Runs::of(after, is_named)?);
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
        .filter(|(case, then)| !after.cases.contains_key(*case) && then.state != State::Silent);
    found.gone.extend(gone.map(|(case, _)| case.clone()));
    let lost = before.requirements.keys().filter(|id| before.exercises(id) && !after.exercises(id));
    found.lost = lost.cloned().collect();
    let gained = after.requirements.keys().filter(|id| after.exercises(id) && !before.exercises(id));
    found.gained = gained.cloned().collect();
    let change = |one: &Duration| (one.seconds.1 - one.seconds.0).abs();
    for list in [&mut found.pace.slower, &mut found.pace.faster] {
        list.sort_by(|one, other| change(other).total_cmp(&change(one)));
    }
    Ok(found)
}

impl Comparison {
    /// A case that only the second run has.
    fn first(&mut self, case: &str, now: &Seen) {
        let difference = Difference { case: case.to_owned(), reasons: (Vec::new(), now.reasons.clone()) };
        match now.state {
            State::Failing => self.failing.push(difference),
            State::Warned => self.warned.push(difference),
            State::Flaky => self.flaky.push(difference),
            State::Good => self.new.push(case.to_owned()),
            State::Silent => {}
        }
    }

    fn case(&mut self, case: &str, then: &Seen, now: &Seen) {
        self.common += 1;
        let difference =
            || Difference { case: case.to_owned(), reasons: (then.reasons.clone(), now.reasons.clone()) };
        let (old, new) = (then.state, now.state);
        match (old, new) {
            (State::Silent, State::Silent) | (State::Good, State::Good) | (State::Flaky, State::Flaky) => {}
            (_, State::Silent) => self.gone.push(case.to_owned()),
            (State::Silent, State::Good) => self.new.push(case.to_owned()),
            (_, State::Failing) if old != State::Failing => self.failing.push(difference()),
            (_, State::Warned) if old < State::Warned => self.warned.push(difference()),
            (_, State::Flaky) if old < State::Flaky => self.flaky.push(difference()),
            (_, State::Good | State::Flaky) => self.fixed.push(difference()),
            _ if old != new || then.essence != now.essence => self.changed.push(difference()),
            _ => {}
        }
        let (old, new) = (then.pace(), now.pace());
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
    use crate::results::event::{Failure, RequirementResult, Summary};

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
        let found = compare(&before[..], &after[..]).expect("compared");
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
        let found = compare(&run[..], &run[..]).expect("compared");
        assert!(found.is_same() && !found.is_worse());
        let fixed =
            compare(&run[..], &[case("a/b", Verdict::Passed, 0.1, ""), end(&["R-1"])][..]).expect("compared");
        assert!(!fixed.is_same() && !fixed.is_worse());
    }

    /// What compares each message with all before it takes hours for this.
    #[test]
    fn very_many_repeats_of_one_case_are_compared_at_once() {
        // Words without digits, which would count as ids.
        let word = |n: u32| n.to_string().bytes().map(|digit| char::from(digit + 49)).collect::<String>();
        let run = |last: u32| {
            let message = |n: u32| format!("no {} {}", if n == 0 { last } else { 7 }, word(n));
            (0..50_000).map(|n| case("a/b", Verdict::Failed, 0.1, &message(n))).collect::<Vec<_>>()
        };
        let found = compare(&run(1)[..], &run(2)[..]).expect("compared");
        assert!(found.is_same(), "numbers differ only");
        let mut other = run(1);
        other.push(case("a/b", Verdict::Failed, 0.1, "something else"));
        let found = compare(&run(1)[..], &other[..]).expect("compared");
        assert_eq!(names(&found.changed), ["a/b"], "what is behind the bound counts, too");
        let (then, now) = &found.changed[0].reasons;
        assert_eq!((then.len(), now.len()), (REASONS, REASONS));
    }
}
