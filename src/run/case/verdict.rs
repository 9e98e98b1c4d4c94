//! What is wrong, as the report will tell it.

use serde_json::Value;

use crate::check::{Violation, evidence, excused};
use crate::protocol::ReadingName;
use crate::results::Check;
use crate::results::cause::Statement;
use crate::results::event::{Failure, StepPlace, Verdict};
use crate::results::excused::Excused;
use crate::run::case::client::Received;
use crate::run::case::interpreter::{Abort, CaseOutcome, Interpreter};
use crate::trace::End;

impl Interpreter<'_> {
    pub(crate) fn violated(&mut self, violation: Violation) {
        let fails = !violation.warns && self.cx.protocol.requirements.fails(&violation.requirements);
        let verdict = if fails { Verdict::Failed } else { Verdict::Warned };
        self.verdict.broken |= fails;
        let message = violation.told(&self.cx.protocol);
        let frames = violation.related.into_iter().chain(violation.event);
        let failure = Failure::new(violation.check, verdict, message)
            .breaking(&violation.requirements)
            .with_values(violation.expected, violation.actual)
            .shown_by(frames);
        self.fail(failure);
    }

    /// Judges what was left open, and adds up what was exercised.
    pub fn finish_judge(mut self) -> CaseOutcome {
        let settled = self.settling.settled && !self.verdict.broken;
        self.step.pointer.clear();
        if let Some(judge) = self.verdict.judge.take() {
            let crate::check::Outcome { violations, exercised, limits } = judge.finish(settled);
            if let Some(shadow) = self.verdict.shadow.take() {
                self.excuse(shadow.finish(settled).violations, &violations);
            }
            for violation in violations {
                self.violated(violation);
            }
            for limit in limits {
                self.fail(Failure::new(Check::Limit, Verdict::Warned, limit.to_string()));
            }
            for (id, count) in exercised {
                *self.verdict.exercised.entry(id).or_default() += count;
            }
        }
        let ends = || self.conns.clients.values().filter_map(|client| client.ended.as_ref());
        CaseOutcome {
            lost: ends().any(|ended| ended.how != Some(End::Dropped)),
            cut: ends().any(|ended| matches!(ended.how, Some(End::Eof | End::Reset))),
            failures: self.verdict.failures,
            failed_at: self.verdict.failed_at,
            exercised: self.verdict.exercised,
            excused: self.verdict.excused,
            cause: self.verdict.cause,
            wire: self.log.wire,
            trace: self.log.trace,
            marks: self.log.step_starts,
            began: Some(self.log.start),
            ..CaseOutcome::default()
        }
    }

    /// Records a failure at the current step.
    pub fn fail(&mut self, failure: Failure) {
        let step = (!self.step.pointer.is_empty()).then(|| {
            let (line, column, source) = self.cx.loaded.place(&self.step.pointer);
            StepPlace { file: self.cx.loaded.file.clone(), line, column, source: source.trim().to_owned() }
        });
        self.verdict.failed_at.push(self.step.pointer.clone());
        self.verdict.failures.push(failure.at_step(step));
    }

    pub fn exercise(&mut self, ids: &[String]) {
        for id in ids {
            *self.verdict.exercised.entry(id.clone()).or_default() += 1;
        }
    }

    /// Whether something broke a MUST.
    pub fn is_broken(&self) -> bool {
        self.verdict.broken
    }

    pub fn set_broken(&mut self) {
        self.verdict.broken = true;
    }

    /// Records that something did not come. Ends the case if that breaks a MUST.
    pub(crate) fn fail_step(
        &mut self,
        blame: &[String],
        what: impl Into<Statement>,
        instead: Option<&Received>,
        expected: Option<Value>,
    ) -> Result<(), Abort> {
        self.failed_by(Check::Step, blame, what, instead, expected)
    }

    /// As [`Interpreter::fail_step`], found by another check.
    pub(crate) fn failed_by(
        &mut self,
        check: Check,
        blame: &[String],
        what: impl Into<Statement>,
        instead: Option<&Received>,
        expected: Option<Value>,
    ) -> Result<(), Abort> {
        if self.step.tolerated == Some(ReadingName::Lenient) {
            return Ok(());
        }
        let tolerated = self.step.tolerated == Some(ReadingName::Default);
        let fails = self.cx.protocol.requirements.fails(blame) && !tolerated && !self.step.warns;
        let verdict = if fails { Verdict::Failed } else { Verdict::Warned };
        let actual = instead.map(|received| evidence(&received.body));
        let failure = Failure::new(check, verdict, what)
            .breaking(blame)
            .with_values(expected.as_ref().map(evidence), actual)
            .shown_by(instead.map(|received| received.event));
        self.fail(failure);
        if fails {
            self.set_broken();
            return Err(Abort::Failed);
        }
        Ok(())
    }

    /// Notes what breaks the bare protocol and not the adapted one.
    pub(crate) fn excuse(&mut self, bare: Vec<Violation>, judged: &[Violation]) {
        for one in excused(bare, judged) {
            let message = one.told(self.cx.run.bare.as_ref().unwrap_or(&self.cx.protocol));
            let place = self.cx.loaded.id.clone();
            self.verdict.excused.add(Excused { requirements: one.requirements, message, count: 1, place });
        }
    }
}
