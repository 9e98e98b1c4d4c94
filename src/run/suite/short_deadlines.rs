//! Servers that greet and then say nothing: the rest of the suite is run with short deadlines, and nothing that patience could change is
//! held against them before patience was tried again.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::results::event::{CaseReport, Verdict};
use crate::run::Timing;
use crate::run::context::RunContext;
use crate::run::options::CaseOptions;
use crate::run::triage::activity::{ActivityLevel, ServerActivity};
use crate::run::triage::groups::FailureGroups;
use crate::scenario::LoadedCase;
use crate::text::normalize;

/// What part of its deadline a step is given in a short.
const PART: u32 = 10;

/// Kinds of silence of which each is tried again with patience; more are taken for the same.
const KINDS: usize = 8;

/// A case, and the round of the suite that it belongs to.
pub(crate) type QueuedCase = (Arc<LoadedCase>, u32);

/// Cases that were run in a short.
#[derive(Default)]
pub(crate) struct ShortDeadlines {
    on: bool,
    /// Those that have failed, with their reports.
    held: Vec<(QueuedCase, CaseReport)>,
    /// So many of them were run again with patience, one of each kind of silence. None: not yet.
    tried: Option<usize>,
    hurried: usize,
    /// What was found with short deadlines stands.
    stands: bool,
}

impl ShortDeadlines {
    /// Whether cases that begin now are run in a short.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Begins to use them, if there is reason.
    pub fn begin(&mut self, causes: &FailureGroups, run: &RunContext) {
        let may = !run.is_reference && !run.options.timing.no_deadline && self.tried.is_none();
        self.on |= may && causes.are_idle(&run.activity);
    }

    /// What has become of a case that was run with short deadlines: its report, if it stands already. The others are held back.
    pub fn keep(&mut self, turn: QueuedCase, report: CaseReport) -> Option<CaseReport> {
        self.hurried += 1;
        if matches!(report.verdict, Verdict::Passed | Verdict::NotApplicable) {
            return Some(report);
        }
        self.held.push((turn, report));
        None
    }

    /// The cases to be run again, for the server has answered somebody.
    pub fn released(&mut self, heard: &ServerActivity) -> Vec<QueuedCase> {
        if heard.extent() <= ActivityLevel::Openings {
            return Vec::new();
        }
        self.on = false;
        self.hurried -= self.held.len();
        self.held.drain(..).map(|(turn, _)| turn).collect()
    }

    /// When nothing else is left: a case of each kind of silence, to be run again with patience. Once.
    pub fn last(&mut self) -> Vec<QueuedCase> {
        self.on = false;
        if self.tried.is_some() || self.held.is_empty() {
            return Vec::new();
        }
        let (mut kinds, mut again, mut rest) = (BTreeSet::new(), Vec::new(), Vec::new());
        for (turn, report) in self.held.drain(..) {
            // As far as is known of it: behind which message.
            let kind = report.precise_cause.as_ref().or(report.cause.as_ref());
            let kind = kind.map(|cause| normalize(&cause.to_string()));
            if kinds.len() < KINDS && kinds.insert(kind) {
                again.push(turn);
            } else {
                rest.push((turn, report));
            }
        }
        self.held = rest;
        self.hurried -= again.len();
        self.tried = Some(again.len());
        again
    }

    /// The reports that stand now.
    pub fn reports(&mut self) -> Vec<CaseReport> {
        self.stands |= !self.held.is_empty();
        self.held.drain(..).map(|(_, report)| report).collect()
    }

    /// The options of a case that is run in a short.
    pub fn options(options: CaseOptions) -> CaseOptions {
        CaseOptions { longest_step: Some(options.step_deadline / PART), goes_on: false, ..options }
    }

    /// What is to be said of it.
    pub fn hint(&self, timing: &Timing) -> Option<String> {
        let tried = self.tried.filter(|_| self.stands)?;
        Some(format!(
            "the server answered nothing after the opening: {} of the cases ran with a deadline of {:.1?} for each step, and one for each \
             kind of silence ({tried}) again with {:.1?}. For a slower server, use --timeout-scale",
            self.hurried,
            timing.scaled(timing.step_deadline / PART),
            timing.scaled(timing.step_deadline),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{LoadOptions, Protocol};
    use crate::results::cause::Cause;
    use crate::run::{RunOptions, Target};

    #[test]
    fn nothing_is_held_against_a_server_that_answers_later() {
        let protocol =
            Protocol::embedded(Protocol::embedded_names()[0], &LoadOptions::default()).expect("it loads");
        let cases = crate::scenario::embedded(&protocol).expect("they load");
        let turn = |at: usize| (Arc::new(cases[at].clone()), 0);
        let report = |verdict| CaseReport { verdict, ..CaseReport::default() };
        let silent = |kind: &str| {
            let precise_cause = Some(Cause::Unanswered(kind.to_owned()));
            CaseReport { precise_cause, ..report(Verdict::Failed) }
        };
        let heard = ServerActivity::default();
        heard.note(ActivityLevel::Openings);
        let mut short = ShortDeadlines { on: true, ..ShortDeadlines::default() };
        assert!(short.keep(turn(0), report(Verdict::Passed)).is_some());
        for (at, kind) in ["behind a", "behind a", "behind b", "behind a"].iter().enumerate() {
            assert!(short.keep(turn(at + 1), silent(kind)).is_none());
        }
        assert!(short.released(&heard).is_empty());
        let last: Vec<String> = short.last().into_iter().map(|(case, _)| case.id.clone()).collect();
        assert_eq!(last, [cases[1].id.clone(), cases[3].id.clone()], "one of each kind");
        assert!(!short.is_on() && short.last().is_empty());
        heard.note(ActivityLevel::Answers);
        assert_eq!(short.released(&heard).len(), 2);
        assert!(short.reports().is_empty());
        let timing = Timing::default();
        assert!(short.hint(&timing).is_none());
        short.keep(turn(5), report(Verdict::Failed));
        assert_eq!(short.reports().len(), 1);
        assert!(short.hint(&timing).expect("one").contains("2 of the cases ran with a deadline of 500.0ms"));
        // However many kinds there are, patience has an end.
        let mut short = ShortDeadlines { on: true, ..ShortDeadlines::default() };
        (0..20).for_each(|at| drop(short.keep(turn(at), silent(&"x".repeat(at)))));
        assert_eq!(short.last().len(), KINDS);
        let run = RunContext::new(
            &protocol,
            &Target::Reference(crate::reference::Variant::default()),
            RunOptions::default(),
        )
        .expect("its invariants compile");
        let deadline = ShortDeadlines::options(run.case_options(0)).deadline(&timing, None);
        assert_eq!(deadline, timing.step_deadline / PART);
    }
}
