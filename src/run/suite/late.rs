//! Cases that failed while this process itself was late. What it sent came late, too, and what it measured was off: they are run
//! again, and a case that passes then has not failed by the server.

use std::collections::HashMap;
use std::time::Duration;

use crate::results::event::{CaseReport, Failure, Verdict};

/// Late enough to change what a case sees: several times what a tick of an idle machine is late by.
const LATE: Duration = Duration::from_millis(40);
/// How often a case is run again.
const TRIES: usize = 2;
/// Cases of a run that are: where more fail, it is not for want of time.
const CASES: usize = 16;

/// A case, and the round of it.
type Key = (String, u32);

/// What is run again.
#[derive(Default)]
pub(crate) struct LateCases {
    /// What the last attempt came to, with the failures of those before.
    held: HashMap<Key, (CaseReport, Vec<Vec<Failure>>)>,
    /// How many have been held.
    count: usize,
    /// How many of them passed later.
    passed: usize,
    worst: Duration,
}

impl LateCases {
    /// Holds a failed case back that is to be run again, or gives the report that stands. `late`: the longest that this process was
    /// late meanwhile.
    pub fn settle(&mut self, key: &Key, mut report: CaseReport, late: Duration) -> Option<CaseReport> {
        let before = self.held.remove(key);
        let tried = before.as_ref().map_or(0, |(_, failures)| failures.len());
        if report.verdict == Verdict::Failed {
            if late < LATE || tried == TRIES || (tried == 0 && self.count == CASES) {
                return Some(report);
            }
            self.count += usize::from(tried == 0);
            self.worst = self.worst.max(late);
            let mut failures = before.map(|(_, failures)| failures).unwrap_or_default();
            failures.push(report.failures.clone());
            self.held.insert(key.clone(), (report, failures));
            return None;
        }
        if let Some((_, failures)) = before {
            self.passed += 1;
            if matches!(report.verdict, Verdict::Passed | Verdict::Warned) {
                report.verdict = Verdict::Flaky;
                report.earlier = failures;
            }
        }
        Some(report)
    }

    /// What was held back and will not be run again.
    pub fn reports(&mut self) -> Vec<CaseReport> {
        self.held.drain().map(|(_, (report, _))| report).collect()
    }

    /// What is to be said of it.
    pub fn hint(&self) -> Option<String> {
        let passed = match self.passed {
            0 => return None,
            1 => "a case that had failed passed".to_owned(),
            many => format!("{many} cases that had failed passed"),
        };
        Some(format!(
            "this process itself was late, by up to {:.0?}: {passed} when run again. On a busy machine, run fewer cases at a time (--jobs)",
            self.worst
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(verdict: Verdict) -> CaseReport {
        CaseReport { verdict, ..CaseReport::default() }
    }

    fn key(name: &str) -> Key {
        (name.to_owned(), 0)
    }

    #[test]
    fn only_what_failed_late_is_run_again_and_not_for_ever() {
        let mut late = LateCases::default();
        let a = key("a");
        assert!(late.settle(&a, report(Verdict::Failed), LATE / 2).is_some(), "in time");
        assert!(late.settle(&a, report(Verdict::Passed), LATE * 2).is_some(), "passed");
        for _ in 0..TRIES {
            assert!(late.settle(&a, report(Verdict::Failed), LATE).is_none(), "late");
        }
        let stands = late.settle(&a, report(Verdict::Failed), LATE).expect("it stands");
        assert_eq!(stands.verdict, Verdict::Failed);
        assert!(late.hint().is_none() && late.reports().is_empty());
    }

    #[test]
    fn what_passes_then_is_flaky() {
        let mut late = LateCases::default();
        assert!(late.settle(&key("a"), report(Verdict::Failed), LATE).is_none());
        let stands = late.settle(&key("a"), report(Verdict::Passed), LATE).expect("it stands");
        assert_eq!((stands.verdict, stands.earlier.len()), (Verdict::Flaky, 1));
        assert!(late.hint().expect("a hint").contains("by up to 40ms: a case that had failed passed"));
        assert!(late.settle(&key("b"), report(Verdict::Failed), LATE).is_none());
        assert_eq!(late.reports().len(), 1, "what was not run again is told");
    }

    #[test]
    fn many_failures_are_not_for_want_of_time() {
        let mut late = LateCases::default();
        let held = (0..CASES * 2)
            .filter(|index| late.settle(&key(&index.to_string()), report(Verdict::Failed), LATE).is_none());
        assert_eq!(held.count(), CASES);
    }
}
