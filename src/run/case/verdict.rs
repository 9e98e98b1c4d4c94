//! What is found wrong with a case, and by whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::check::{self, JudgePair, Judged, PairJudged, Violation};
use crate::results::Check;
use crate::results::cause::Cause;
use crate::results::event::{Failure, StepPlace, Verdict};
use crate::results::excused::{ExcusedDeviation, ExcusedList};
use crate::run::case::context::CaseContext;
use crate::run::case::outcome::CaseOutcome;
use crate::run::case::readings;
use crate::run::loop_lag::{LagMark, LoopLag};
use crate::run::options::{GoesOn, Retention};
use crate::trace::Event;

/// What each whole `--timeout-scale` above 1 adds to the delays that are measured.
const SLOW: Duration = Duration::from_millis(100);
/// Failures that are listed of a case, before those that are like another are only counted.
const LISTED: usize = 200;
/// What a case finds behind its first violation before it ends: a server that breaks everything is not heard to the end.
const AFTERMATH: usize = 50;

/// Who judges what the case sees: by the protocol that holds, and by the same without the overlay.
pub(crate) struct CaseJudges {
    judges: JudgePair,
    /// How late this process is, where a monitor asks for times.
    lag: Option<(Arc<LoopLag>, LagMark)>,
    /// What a time scale allows for.
    slow: Duration,
}

impl CaseJudges {
    pub fn new(cx: &CaseContext<'_>) -> Self {
        // Who scales deadlines knows of delays.
        let scale = (cx.run.options.timing.scale - 1.0).clamp(0.0, 1000.0);
        let mut judges = cx.run.rules.judge(cx.run.options.limits.frame, &cx.loaded.case.suspend);
        judges.scaled(cx.run.options.timing.scale);
        let lag = cx.protocol.extension.is_timed().then(|| (Arc::clone(&cx.run.lag), cx.run.lag.mark()));
        Self { judges, lag, slow: SLOW.mul_f64(scale) }
    }

    /// Takes the next event.
    pub fn observe(&mut self, event: &Event) -> PairJudged<Judged> {
        if let Some((lag, mark)) = &self.lag {
            // The server shares the machine: it is as late again.
            self.judges.delayed(lag.since(*mark) * 2 + self.slow);
        }
        self.judges.observe(event)
    }

    /// As [`check::Judge::abandon`].
    pub fn abandon(&mut self, event: u64) {
        self.judges.abandon(event);
    }

    /// As [`check::Judge::is_owed`].
    pub fn is_owed(&self) -> bool {
        self.judges.is_owed()
    }

    /// Ends the case; `settled`: everything that the server had to say has been seen.
    pub fn finish(self, settled: bool) -> PairJudged<check::Outcome> {
        self.judges.finish(settled)
    }
}

/// What is found wrong with a case, and what was exercised.
#[derive(Default)]
pub(crate) struct CaseVerdict {
    failures: Vec<Failure>,
    /// How many more there are, each like one of them.
    unlisted: u64,
    exercised: BTreeMap<String, u64>,
    /// Deviations that the overlay excuses.
    excused: ExcusedList,
    /// Why the opening failed, if that ended the case.
    cause: Option<Cause>,
    /// A MUST is broken: a failure is `Failed`.
    broken: bool,
    /// What a frame has broken that no step has come to yet: the frames before it are looked at first, so that their order alone
    /// decides, and not how TCP cuts the stream.
    pending: Vec<Failure>,
    /// The case goes on behind a frame that broke a MUST: no step had built on it.
    aftermath: Option<Aftermath>,
    /// Nothing more is looked at once what is postponed has taken effect, or at all.
    ends: bool,
}

/// What is found behind a frame that broke a MUST. It may be a consequence, and is not reported; nor does it count as exercised.
#[derive(Default)]
struct Aftermath {
    unsure: BTreeSet<String>,
    found: usize,
    /// The failures themselves, where they are asked for.
    kept: Vec<Failure>,
}

impl CaseVerdict {
    /// Records a failure at a step, by its pointer; empty: at no step.
    pub fn record(&mut self, cx: &CaseContext<'_>, pointer: &str, mut failure: Failure) {
        failure.readings = readings::touched(&cx.protocol, cx.loaded, &failure);
        let step = (!pointer.is_empty()).then(|| {
            let (line, column, source) = cx.loaded.place(pointer);
            let (file, source) = (cx.loaded.file_of(pointer).to_owned(), source.trim().to_owned());
            StepPlace { file, line, column, source, pointer: pointer.to_owned() }
        });
        if let Some(aftermath) = &mut self.aftermath {
            aftermath.unsure.extend(failure.requirements.iter().cloned());
            aftermath.found += 1;
            if cx.options.retention == Retention::Trace && aftermath.kept.len() < AFTERMATH {
                aftermath.kept.push(failure.at_step(step));
            }
            return;
        }
        self.broken |= failure.verdict == Verdict::Failed;
        let alike = |other: &Failure| {
            other.verdict == failure.verdict
                && other.check == failure.check
                && other.requirements == failure.requirements
        };
        if self.failures.len() >= LISTED && self.failures.iter().any(alike) {
            self.unlisted += 1;
            return;
        }
        self.failures.push(failure.at_step(step));
    }

    /// Records what a judge has found.
    pub fn violated(&mut self, cx: &CaseContext<'_>, pointer: &str, violation: Violation) {
        let fails = !violation.warns && cx.protocol.requirements.fails(&violation.requirements);
        let verdict = if fails { Verdict::Failed } else { Verdict::Warned };
        let message = violation.description(&cx.protocol);
        let frames = violation.related.into_iter().chain(violation.event);
        let mut failure = Failure::new(violation.check, verdict, message)
            .breaking(&violation.requirements)
            .with_values(violation.expected, violation.actual)
            .shown_by(frames);
        failure.more = violation.more;
        if fails { self.postpone(failure) } else { self.record(cx, pointer, failure) }
    }

    /// Notes a failure that takes effect once everything that came before it has been looked at.
    pub fn postpone(&mut self, failure: Failure) {
        self.pending.push(failure);
    }

    /// The same, where nothing can be made of what follows: the case ends then.
    pub fn postpone_the_end(&mut self, failure: Failure) {
        self.postpone(failure);
        self.ends = true;
    }

    /// What breaks a MUST is what a step waits for, or may have been: the case ends.
    pub fn end(&mut self) {
        self.ends = true;
    }

    /// Whether a frame has come that breaks a MUST, and no step has come to it yet.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Records what was postponed, at a step: unless a step before it has failed, behind which nothing is judged. The case goes on,
    /// unless it cannot.
    pub fn take_effect(&mut self, cx: &CaseContext<'_>, pointer: &str) {
        if self.pending.is_empty() {
            return;
        }
        let was_over = self.broken && self.aftermath.is_none();
        for failure in std::mem::take(&mut self.pending).into_iter().filter(|_| !was_over) {
            self.record(cx, pointer, failure);
        }
        if self.broken && !was_over && !self.ends && cx.options.goes_on != GoesOn::Never {
            self.aftermath.get_or_insert_default();
        }
    }

    /// The steps have come to their end: what the case as a whole covers was held against the server, also behind a violation that
    /// no step had built on.
    pub fn complete(&mut self, covers: &[String]) {
        if self.aftermath.is_some() {
            let failed = |id: &String| self.failures.iter().any(|failure| failure.requirements.contains(id));
            let held: Vec<String> = covers.iter().filter(|id| !failed(id)).cloned().collect();
            self.exercise(&held);
        }
    }

    /// Records that a bound was reached, whatever else was found.
    pub fn limited(&mut self, limit: String) {
        self.failures.push(Failure::new(Check::Limit, Verdict::Warned, limit));
    }

    /// Notes what breaks the bare protocol and not the adapted one.
    pub fn excuse(&mut self, cx: &CaseContext<'_>, violations: Vec<Violation>) {
        for one in violations {
            let message = one.description(cx.run.bare.as_ref().unwrap_or(&cx.protocol));
            let place = cx.loaded.id.clone();
            self.excused.add(ExcusedDeviation { requirements: one.requirements, message, count: 1, place });
        }
    }

    pub fn exercise(&mut self, ids: &[String]) {
        ids.iter().for_each(|id| self.exercise_often(id, 1));
    }

    pub fn exercise_often(&mut self, id: &str, times: u64) {
        *self.exercised.entry(id.to_owned()).or_default() += times;
    }

    /// Whether something broke a MUST behind which nothing is judged any more.
    pub fn is_over(&self) -> bool {
        let goes_on = self.aftermath.as_ref().is_some_and(|aftermath| aftermath.found < AFTERMATH);
        self.broken && (!goes_on || self.ends)
    }

    /// How many failures there are.
    pub fn count(&self) -> usize {
        self.failures.len()
    }

    /// The first failure that was recorded after there were so many.
    pub fn first_since(&self, count: usize) -> Option<&Failure> {
        self.failures.get(count)
    }

    /// The first failure that was postponed.
    pub fn first_pending(&mut self) -> Option<&mut Failure> {
        self.pending.first_mut()
    }

    /// Keeps why the opening failed.
    pub fn opening_failed(&mut self, cause: Option<Cause>) {
        self.cause = self.cause.take().or(cause);
    }

    /// What it comes to.
    pub fn finish(self) -> CaseOutcome {
        let Self { mut failures, unlisted, mut exercised, excused, cause, aftermath, .. } = self;
        let mut consequences = Vec::new();
        if let Some(Aftermath { unsure, kept, .. }) = aftermath {
            exercised.retain(|id, _| !unsure.contains(id));
            consequences = kept;
        }
        if unlisted > 0 {
            let more = format!("{unlisted} more violations like those of this case are not listed");
            failures.push(Failure::new(Check::Limit, Verdict::Warned, more));
        }
        CaseOutcome { failures, consequences, exercised, excused, cause, ..CaseOutcome::default() }
    }
}
