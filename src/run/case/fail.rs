//! What is wrong at a step, as the report will tell it.

use serde_json::Value;

use crate::check::{self, PairJudged, evidence};
use crate::results::Check;
use crate::results::cause::{Cause, Statement};
use crate::results::event::{Failure, Verdict, Window};
use crate::run::case::client::{ObservedEnd, Received};
use crate::run::case::context::Tolerance;
use crate::run::case::interpreter::{Abort, CaseOutcome, Interpreter};
use crate::run::case::outcome::{CaseRecord, ConnectionLoss};
use crate::trace::End;

/// What shows that something is wrong.
#[derive(Default)]
pub(crate) struct Evidence {
    pub expected: Option<Value>,
    pub actual: Option<Value>,
    /// Frames of the log.
    pub frames: Vec<u64>,
}

impl Interpreter<'_> {
    /// Records a failure at the current step.
    pub fn fail(&mut self, failure: Failure) {
        // What is wrong before a case begins is said by the cases that are about it.
        let is_preamble = self.cx.loaded.is_in_preamble(&self.step.pointer);
        let failure = if is_preamble { failure.breaking(&[]) } else { failure };
        self.verdict.record(self.cx, &self.step.pointer, failure);
    }

    /// Records that something did not come. Ends the case if that breaks a MUST.
    pub(crate) fn fail_step(
        &mut self,
        blame: &[String],
        what: impl Into<Statement>,
        instead: Option<&Received>,
        expected: Option<Value>,
    ) -> Result<(), Abort> {
        let actual = instead.map(|received| received.body.clone());
        let frames = instead.map(|received| received.event).into_iter().collect();
        self.fail_with(Check::Step, blame, what, Evidence { expected, actual, frames })
    }

    /// Records that a connection's end is what is wrong, with the frame that shows it. Ends the case if that breaks a MUST.
    pub(crate) fn fail_on_end(
        &mut self,
        check: Check,
        client: &str,
        blame: &[String],
        what: impl Into<Statement>,
    ) -> Result<(), Abort> {
        let shows = self.conns.get(client).and_then(|state| state.ended()?.event);
        self.fail_with(
            check,
            blame,
            what,
            Evidence { frames: shows.into_iter().collect(), ..Evidence::default() },
        )
    }

    /// Records what a check has found wrong at the current step, unless the step tolerates it. Ends the case if that breaks a MUST.
    pub(crate) fn fail_with(
        &mut self,
        check: Check,
        blame: &[String],
        what: impl Into<Statement>,
        Evidence { expected, actual, frames }: Evidence,
    ) -> Result<(), Abort> {
        self.step.failed.extend_from_slice(blame);
        let verdict = match self.step.tolerance {
            Tolerance::Allowed => return Ok(()),
            Tolerance::Full if self.cx.protocol.requirements.fails(blame) => Verdict::Failed,
            Tolerance::Full | Tolerance::Warns => Verdict::Warned,
        };
        let failure = Failure::new(check, verdict, what)
            .breaking(blame)
            .with_values(expected.as_ref().map(evidence), actual.as_ref().map(evidence))
            .shown_by(frames);
        self.fail(failure);
        if verdict == Verdict::Failed { Err(Abort::Failed) } else { Ok(()) }
    }

    /// The sentence about a connection that ended where the server had something else to do. Cases in which it ended in the same
    /// way behind the same kind of message fail for one reason, whatever each of them waited for.
    pub(crate) fn ended_instead(&self, client: &str, ended: &ObservedEnd, rest: &str) -> Statement {
        let cause = Cause::ConnectionEnded(ended.plainly(), self.last_request(client));
        Statement::because(ended.describe() + rest, cause)
    }

    /// Judges what was left open, and adds up what was exercised.
    pub fn finish(self) -> CaseOutcome {
        let Self { cx, conns, log, judges, mut verdict, settling, step, .. } = self;
        verdict.take_effect(cx, &step.pointer);
        let PairJudged { judged, excused } = judges.finish(settling.settled && !verdict.is_over());
        let check::Outcome { violations, exercised, limits } = judged;
        verdict.excuse(cx, excused);
        for violation in violations {
            verdict.violated(cx, "", violation);
        }
        verdict.take_effect(cx, "");
        for limit in limits {
            verdict.limited(limit.to_string());
        }
        exercised.into_iter().for_each(|(id, times)| verdict.exercise_often(&id, times));
        let losses = conns.all().filter_map(|client| client.ended()).map(|ended| match ended.how {
            Some(End::Dropped) => ConnectionLoss::None,
            Some(End::Eof | End::Reset) => ConnectionLoss::Cut,
            _ => ConnectionLoss::Closed,
        });
        let loss = losses.max().unwrap_or_default();
        let windows = settling.windows.iter().map(|((step, silence), window)| Window {
            line: (!step.is_empty()).then(|| cx.loaded.place(step).0),
            ms: u64::try_from(window.as_millis()).unwrap_or(u64::MAX),
            silence: *silence,
        });
        let record = CaseRecord { windows: windows.collect(), ..log.finish(&cx.protocol) };
        CaseOutcome { loss, record, ..verdict.finish() }
    }
}
