//! Adding up: from cases to requirements and the exit code.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::check::same;
use crate::protocol::{Level, Protocol};
use crate::results::baseline::Baseline;
use crate::results::event::{CaseReport, Excused, RequirementResult, Summary, Verdict};
use crate::run::RunOptions;

/// The run so far.
pub(crate) struct Tally {
    protocol: Arc<Protocol>,
    strict: bool,
    baseline: Option<Baseline>,
    used: BTreeSet<usize>,
    cases: BTreeMap<Verdict, usize>,
    exercised: BTreeMap<String, u64>,
    broken: BTreeMap<String, Vec<String>>,
    /// Those of them that were broken by more than a warning.
    failing: BTreeSet<String>,
    /// Requirements broken only in ways that the baseline knows.
    excused: BTreeSet<String>,
    /// Requirements of cases that were not applicable.
    not_applicable: BTreeSet<String>,
    /// Cases that were run.
    ran: BTreeSet<String>,
    /// Cases that say nothing about this server.
    untried: BTreeSet<String>,
    failed: usize,
    excused_by_overlay: Vec<Excused>,
}

impl Tally {
    pub fn new(protocol: &Arc<Protocol>, options: &RunOptions) -> Self {
        Self {
            protocol: Arc::clone(protocol),
            strict: options.strict,
            baseline: options.baseline.clone(),
            used: BTreeSet::new(),
            cases: BTreeMap::new(),
            exercised: BTreeMap::new(),
            broken: BTreeMap::new(),
            failing: BTreeSet::new(),
            excused: BTreeSet::new(),
            not_applicable: BTreeSet::new(),
            ran: BTreeSet::new(),
            untried: BTreeSet::new(),
            failed: 0,
            excused_by_overlay: Vec::new(),
        }
    }

    /// Takes a case's report; excuses it where the baseline knows all of its failures.
    pub fn add(&mut self, report: &mut CaseReport) {
        let mut all_known = !report.failures.is_empty() && report.verdict != Verdict::Error;
        let mut reasons = Vec::new();
        for failure in &report.failures {
            let known = self.baseline.iter().flat_map(|baseline| baseline.entries_for(&report.case, failure));
            let known: Vec<(usize, &str)> = known.collect();
            match known.first() {
                Some((_, reason)) => {
                    self.used.extend(known.iter().map(|(index, _)| index));
                    reasons.push((*reason).to_owned());
                    self.excused.extend(failure.requirements.iter().cloned());
                }
                None => {
                    all_known &= !(failure.verdict == Verdict::Failed || self.strict);
                    for id in &failure.requirements {
                        if failure.verdict != Verdict::Warned {
                            self.failing.insert(id.clone());
                        }
                        let cases = self.broken.entry(id.clone()).or_default();
                        if !cases.contains(&report.case) {
                            cases.push(report.case.clone());
                        }
                    }
                }
            }
        }
        if all_known && !reasons.is_empty() {
            reasons.dedup();
            report.known = Some(reasons.join("; "));
            report.verdict = Verdict::Known;
        }
        for (id, count) in &report.exercised {
            *self.exercised.entry(id.clone()).or_default() += count;
        }
        if report.verdict == Verdict::NotApplicable {
            self.not_applicable.extend(report.covers.iter().cloned());
        }
        for one in &report.excused {
            let known = self
                .excused_by_overlay
                .iter_mut()
                .find(|known| known.requirements == one.requirements && same(&known.message, &one.message));
            match known {
                Some(known) => known.count += one.count,
                None => self.excused_by_overlay.push(one.clone()),
            }
        }
        match report.verdict.says_nothing() {
            true => self.untried.insert(report.case.clone()),
            false => self.ran.insert(report.case.clone()),
        };
        self.failed += usize::from(matches!(report.verdict, Verdict::Failed | Verdict::Error));
        *self.cases.entry(report.verdict).or_default() += 1;
    }

    pub fn failed(&self) -> usize {
        self.failed
    }

    pub fn summary(self, stopped: Option<String>, complete: bool, time: Duration) -> Summary {
        let mut requirements = BTreeMap::new();
        for requirement in self.protocol.requirements.0.values().filter(|requirement| requirement.is_judged())
        {
            let exercised = self.exercised.get(&requirement.id).copied().unwrap_or(0);
            let broken_in = self.broken.get(&requirement.id).cloned().unwrap_or_default();
            let verdict = match (broken_in.is_empty(), requirement.level) {
                (false, Level::Must) if self.failing.contains(&requirement.id) => Verdict::Failed,
                (false, _) if self.strict => Verdict::Failed,
                (false, _) => Verdict::Warned,
                (true, _) if self.excused.contains(&requirement.id) => Verdict::Known,
                (true, _) if exercised > 0 => Verdict::Passed,
                (true, _) if self.not_applicable.contains(&requirement.id) => Verdict::NotApplicable,
                (true, _) => Verdict::NotExercised,
            };
            requirements.insert(requirement.id.clone(), RequirementResult { verdict, exercised, broken_in });
        }
        let (stale, untried) = match &self.baseline {
            Some(baseline) if complete => {
                let ran = self.exercised.keys().chain(self.broken.keys()).chain(&self.ran);
                let ran: BTreeSet<&str> = ran.map(String::as_str).collect();
                let known = self
                    .protocol
                    .requirements
                    .0
                    .keys()
                    .chain(&self.untried)
                    .map(String::as_str)
                    .chain(ran.iter().copied());
                baseline.stale(&self.used, &ran, &known.collect())
            }
            _ => (Vec::new(), Vec::new()),
        };
        let count = |verdict| self.cases.get(&verdict).copied().unwrap_or(0);
        let exit_code = if stopped.as_deref() == Some("interrupted") {
            130
        } else if count(Verdict::Failed) > 0 || !stale.is_empty() {
            1
        } else if count(Verdict::Error) > 0 {
            3
        } else if self.cases.keys().all(|verdict| verdict.says_nothing()) && !self.cases.is_empty() {
            4
        } else {
            0
        };
        Summary {
            cases: self.cases,
            requirements,
            stale_baseline: stale,
            excused: self.excused_by_overlay,
            hints: untried.into_iter().map(|entry| format!("the baseline's entry {entry}")).collect(),
            stopped,
            seconds: time.as_secs_f64(),
            exit_code,
        }
    }
}
