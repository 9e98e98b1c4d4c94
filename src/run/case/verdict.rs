//! What is wrong, as the report will tell it.

use serde_json::Value;

use crate::check::{Violation, evidence, excused, same};
use crate::protocol::ReadingName;
use crate::results::event::{Excused, Failure, StepPlace, Verdict};
use crate::run::case::client::Received;
use crate::run::case::diagnose::SERVER;
use crate::run::case::interpreter::{Outcome, Runner, Stop};
use crate::trace::End;

/// A message without the silence that a wait in vain ended in.
pub(crate) fn without_silence(message: &str) -> &str {
    let at = message.rmatch_indices(SERVER).find(|(at, _)| message[at + SERVER.len()..].starts_with("has "));
    at.map_or(message, |(at, _)| &message[..at])
}

impl Runner<'_> {
    pub(crate) fn violated(&mut self, violation: Violation) {
        let fails = !violation.warns && self.protocol.requirements.fails(&violation.requirements);
        let verdict = if fails { Verdict::Failed } else { Verdict::Warned };
        self.broken |= fails;
        let message = violation.told(&self.protocol);
        let frames = violation.related.into_iter().chain(violation.event).collect();
        let (expected, actual) = (violation.expected, violation.actual);
        self.fail(verdict, &violation.check, &violation.requirements, message, expected, actual, frames);
    }

    /// Judges what was left open, and adds up what was exercised.
    pub fn finish_judge(self) -> Outcome {
        let mut runner = self;
        for ended in runner.clients.values().filter_map(|client| client.ended.as_ref()) {
            runner.outcome.lost |= ended.how != Some(End::Dropped);
            runner.outcome.cut |= matches!(ended.how, Some(End::Eof | End::Reset));
        }
        let Some(judge) = runner.judge.take() else { return runner.outcome };
        let settled = runner.settled && !runner.broken;
        let crate::check::Outcome { violations, exercised, limits } = judge.finish(settled);
        if let Some(shadow) = runner.shadow.take() {
            runner.excuse(shadow.finish(settled).violations, &violations);
        }
        runner.step.clear();
        for violation in violations {
            runner.violated(violation);
        }
        for limit in limits {
            runner.fail(Verdict::Warned, "limit", &[], limit.to_string(), None, None, Vec::new());
        }
        for (id, count) in exercised {
            *runner.outcome.exercised.entry(id).or_default() += count;
        }
        runner.outcome
    }

    /// Records a failure at the current step.
    #[allow(clippy::too_many_arguments, reason = "the parts of a failure, each named at its one place")]
    pub fn fail(
        &mut self,
        verdict: Verdict,
        check: &str,
        requirements: &[String],
        message: String,
        expected: Option<Value>,
        actual: Option<Value>,
        frames: Vec<u64>,
    ) {
        let step = (!self.step.is_empty()).then(|| {
            let (line, column, source) = self.loaded.place(&self.step);
            StepPlace { file: self.loaded.file.clone(), line, column, source: source.trim().to_owned() }
        });
        self.outcome.failed_at.push(self.step.clone());
        self.outcome.failures.push(Failure {
            requirements: requirements.to_vec(),
            verdict,
            check: check.to_owned(),
            message,
            step,
            expected,
            actual,
            frames,
        });
    }

    pub fn exercise(&mut self, ids: &[String]) {
        for id in ids {
            *self.outcome.exercised.entry(id.clone()).or_default() += 1;
        }
    }

    /// Whether something broke a MUST.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    pub fn set_broken(&mut self) {
        self.broken = true;
    }

    /// Records that something did not come. Ends the case if that breaks a MUST.
    pub(crate) fn missed(
        &mut self,
        blame: &[String],
        message: String,
        instead: Option<&Received>,
        expected: Option<Value>,
    ) -> Result<(), Stop> {
        self.failed_by("step", blame, message, instead, expected)
    }

    /// As [`Runner::missed`], under another name.
    pub(crate) fn failed_by(
        &mut self,
        check: &str,
        blame: &[String],
        message: String,
        instead: Option<&Received>,
        expected: Option<Value>,
    ) -> Result<(), Stop> {
        if self.tolerated == Some(ReadingName::Lenient) {
            return Ok(());
        }
        let tolerated = self.tolerated == Some(ReadingName::Default);
        let fails = self.protocol.requirements.fails(blame) && !tolerated && !self.warns;
        let verdict = if fails { Verdict::Failed } else { Verdict::Warned };
        let frames = instead.map(|received| received.event).into_iter().collect();
        let actual = instead.map(|received| evidence(&received.body));
        let expected = expected.as_ref().map(evidence);
        self.fail(verdict, check, blame, message, expected, actual, frames);
        if fails {
            self.set_broken();
            return Err(Stop::Failed);
        }
        Ok(())
    }

    /// Notes what breaks the bare protocol and not the adapted one.
    pub(crate) fn excuse(&mut self, bare: Vec<Violation>, judged: &[Violation]) {
        for one in excused(bare, judged) {
            let message = one.told(self.options.bare.as_ref().unwrap_or(&self.protocol));
            let listed = &mut self.outcome.excused;
            let known = listed
                .iter_mut()
                .find(|known| known.requirements == one.requirements && same(&known.message, &message));
            match known {
                Some(known) => known.count += 1,
                None => listed.push(Excused {
                    requirements: one.requirements,
                    message,
                    count: 1,
                    case: self.loaded.id.clone(),
                }),
            }
        }
    }
}
