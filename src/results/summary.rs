//! Adding up: from cases to requirements and the exit code.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::exit::Exit;
use crate::results::baseline::Baseline;
use crate::results::event::{CaseReport, Failure, RequirementResult, StopReason, Summary, Verdict};
use crate::results::excused::ExcusedList;
use crate::text::listed;

/// A requirement, as far as the summary has to know it.
pub(crate) struct Rule {
    pub id: String,
    /// Breaking it is a failure and no warning.
    pub is_must: bool,
    /// The summary gives a verdict on it: it is one of the server's, and can be observed.
    pub is_judged: bool,
}

/// The run so far.
pub(crate) struct SummaryBuilder {
    /// All requirements of the protocol.
    rules: Vec<Rule>,
    strict: bool,
    baseline: Option<Baseline>,
    used: BTreeSet<usize>,
    cases: BTreeMap<Verdict, usize>,
    seen: RequirementsSeen,
    /// Cases that were run.
    ran: BTreeSet<String>,
    /// Cases that say nothing about this server.
    untried: BTreeSet<String>,
    failed: usize,
    excused_by_overlay: ExcusedList,
    unoffered: BTreeMap<String, usize>,
}

/// What the cases have shown of each requirement, by its id.
#[derive(Default)]
struct RequirementsSeen {
    exercised: BTreeMap<String, u64>,
    /// The cases in which it was broken.
    broken: BTreeMap<String, Vec<String>>,
    /// Those of them that were broken by more than a warning.
    failing: BTreeSet<String>,
    /// Broken only in ways that the baseline knows.
    excused: BTreeSet<String>,
    /// Of cases that were not applicable.
    not_applicable: BTreeSet<String>,
    /// Cases whose failures violate no requirement: a closed connection, something that never came.
    without: BTreeSet<String>,
}

impl RequirementsSeen {
    /// Takes a failure that no baseline knows.
    fn add(&mut self, case: &str, failure: &Failure) {
        for id in &failure.requirements {
            if failure.verdict != Verdict::Warned {
                self.failing.insert(id.clone());
            }
            let cases = self.broken.entry(id.clone()).or_default();
            if !cases.iter().any(|known| known == case) {
                cases.push(case.to_owned());
            }
        }
    }
}

impl SummaryBuilder {
    pub fn new(rules: Vec<Rule>, strict: bool, baseline: Option<Baseline>) -> Self {
        Self {
            rules,
            strict,
            baseline,
            used: BTreeSet::new(),
            cases: BTreeMap::new(),
            seen: RequirementsSeen::default(),
            ran: BTreeSet::new(),
            untried: BTreeSet::new(),
            failed: 0,
            excused_by_overlay: ExcusedList::default(),
            unoffered: BTreeMap::new(),
        }
    }

    /// Takes a case's report; excuses it where the baseline knows all of its failures.
    pub fn add(&mut self, report: &mut CaseReport) {
        let mut all_known = !report.failures.is_empty() && report.verdict != Verdict::Error;
        let mut reasons = Vec::new();
        let baseline = self.baseline.as_ref();
        let (excuses, used) =
            baseline.map(|baseline| baseline.excuses(&report.case, &report.failures)).unwrap_or_default();
        self.used.extend(used);
        let excuses = excuses.into_iter().chain(std::iter::repeat(None));
        for (failure, excuse) in report.failures.iter().zip(excuses) {
            match excuse {
                Some(excuse) => {
                    reasons.push(excuse.reason.to_owned());
                    self.seen.excused.extend(failure.requirements.iter().cloned());
                }
                None => {
                    all_known &= !(failure.verdict == Verdict::Failed || self.strict);
                    self.seen.add(&report.case, failure);
                }
            }
        }
        if all_known && !reasons.is_empty() {
            reasons.dedup();
            report.known = Some(reasons.join("; "));
            report.verdict = Verdict::Known;
        }
        report.exercised.add_to(&mut self.seen.exercised);
        let fails = |failure: &&Failure| failure.verdict == Verdict::Failed || self.strict;
        let mut failing = report.failures.iter().filter(fails);
        if report.verdict == Verdict::Failed && failing.all(|failure| failure.requirements.is_empty()) {
            self.seen.without.insert(report.case.clone());
        }
        if report.verdict == Verdict::NotApplicable {
            self.seen.not_applicable.extend(report.covers.iter().cloned());
        }
        for name in &report.unoffered {
            *self.unoffered.entry(name.clone()).or_default() += 1;
        }
        self.excused_by_overlay.merge(report.excused.clone());
        let seen = if report.verdict.says_nothing() { &mut self.untried } else { &mut self.ran };
        seen.insert(report.case.clone());
        self.failed += usize::from(matches!(report.verdict, Verdict::Failed | Verdict::Error));
        *self.cases.entry(report.verdict).or_default() += 1;
    }

    pub fn failed(&self) -> usize {
        self.failed
    }

    pub fn summary(self, stopped: Option<StopReason>, complete: bool, time: Duration) -> Summary {
        let mut requirements = BTreeMap::new();
        for rule in self.rules.iter().filter(|rule| rule.is_judged) {
            let exercised = self.seen.exercised.get(&rule.id).copied().unwrap_or(0);
            let broken_in = self.seen.broken.get(&rule.id).cloned().unwrap_or_default();
            let verdict = self.verdict_on(rule, exercised);
            requirements.insert(rule.id.clone(), RequirementResult { verdict, exercised, broken_in });
        }
        let (stale, untried) = match &self.baseline {
            Some(baseline) if complete => {
                let ran = self.seen.exercised.keys().chain(self.seen.broken.keys()).chain(&self.ran);
                let ran: BTreeSet<&str> = ran.map(String::as_str).collect();
                let ids = self.rules.iter().map(|rule| &rule.id).chain(&self.untried);
                let known = ids.map(String::as_str).chain(ran.iter().copied());
                baseline.stale(&self.used, &ran, &known.collect())
            }
            _ => (Vec::new(), Vec::new()),
        };
        let count = |verdict| self.cases.get(&verdict).copied().unwrap_or(0);
        let exit = if stopped == Some(StopReason::Interrupted) {
            Exit::Interrupted
        } else if count(Verdict::Failed) > 0 || !stale.is_empty() {
            Exit::Failed
        } else if count(Verdict::Error) > 0
            || matches!(stopped, Some(StopReason::Time | StopReason::Shortage))
        {
            Exit::Harness
        } else if self.cases.keys().all(|verdict| verdict.says_nothing()) && !self.cases.is_empty() {
            Exit::Nothing
        } else {
            Exit::Passed
        };
        Summary {
            cases: self.cases,
            requirements,
            stale_baseline: stale,
            excused: self.excused_by_overlay,
            unoffered: self.unoffered,
            hints: untried
                .into_iter()
                .map(|entry| format!("the baseline's entry {entry}"))
                .chain(without_requirement(&self.seen.without))
                .collect(),
            coverage: None,
            stopped,
            seconds: time.as_secs_f64(),
            exit_code: exit.code(),
        }
    }

    fn verdict_on(&self, rule: &Rule, exercised: u64) -> Verdict {
        if self.seen.broken.contains_key(&rule.id) {
            let fails = self.strict || (rule.is_must && self.seen.failing.contains(&rule.id));
            return if fails { Verdict::Failed } else { Verdict::Warned };
        }
        if self.seen.excused.contains(&rule.id) {
            Verdict::Known
        } else if exercised > 0 {
            Verdict::Passed
        } else if self.seen.not_applicable.contains(&rule.id) {
            Verdict::NotApplicable
        } else {
            Verdict::NotExercised
        }
    }
}

/// Which cases failed though the table of requirements shows nothing for them.
fn without_requirement(cases: &BTreeSet<String>) -> Option<String> {
    let head = match cases.len() {
        0 => return None,
        1 => "1 case failed and violates".to_owned(),
        many => format!("{many} cases failed and violate"),
    };
    Some(format!("{head} no requirement: {}", listed(cases.iter(), 4)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Check;

    fn report(case: &str, ids: &[&str]) -> CaseReport {
        let mut failure = Failure::new(Check::Step, Verdict::Failed, "it never came".to_owned());
        failure.requirements = ids.iter().map(|id| (*id).to_owned()).collect();
        CaseReport {
            case: case.to_owned(),
            verdict: Verdict::Failed,
            failures: vec![failure],
            ..CaseReport::default()
        }
    }

    #[test]
    fn cases_that_violate_no_requirement_are_told() {
        let mut builder = SummaryBuilder::new(Vec::new(), false, None);
        builder.add(&mut report("f/a", &["X-1"]));
        for case in ["f/b", "f/c", "f/d", "f/e", "f/f"] {
            builder.add(&mut report(case, &[]));
        }
        let summary = builder.summary(None, true, Duration::ZERO);
        assert_eq!(
            summary.hints,
            ["5 cases failed and violate no requirement: f/b, f/c, f/d, f/e and 1 more"]
        );
    }

    #[test]
    fn what_fails_because_warnings_do_violates_its_requirement() {
        let mut builder = SummaryBuilder::new(Vec::new(), true, None);
        let mut warned = report("f/a", &["X-1"]);
        warned.failures[0].verdict = Verdict::Warned;
        builder.add(&mut warned);
        assert!(builder.summary(None, true, Duration::ZERO).hints.is_empty());
    }
}
