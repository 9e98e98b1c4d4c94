//! One thing that is wrong, as a report tells it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::results::Check;
use crate::results::bounded_value;
use crate::results::cause::{Cause, Statement};
use crate::results::event::{RequirementText, Verdict};

/// One thing that is wrong.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Failure {
    /// The requirements that it breaks. Empty: the case's own expectation, no requirement.
    pub requirements: Vec<String>,
    /// Failed, Warned or Error.
    pub verdict: Verdict,
    /// What found it.
    pub check: Check,
    /// One sentence.
    pub message: String,
    /// Where in the scenario: the step's line and its source text.
    pub step: Option<StepPlace>,
    /// What was expected, as pretty JSON or text.
    #[serde(default, deserialize_with = "bounded_value::read")]
    pub expected: Option<Value>,
    /// What came instead.
    #[serde(default, deserialize_with = "bounded_value::read")]
    pub actual: Option<Value>,
    /// Indices into the case's whole wire log (not counting omissions) of the frames that show it.
    pub frames: Vec<u64>,
    /// The answers to ambiguities of the document that it depends on, by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<String>,
    /// So many more like it were found together with it, which are not listed; the message says so.
    #[serde(default, skip_serializing_if = "is_none")]
    pub more: u64,
    /// Why, where that is known. Not written.
    #[serde(skip)]
    pub cause: Option<Cause>,
    /// The message without what the server did meanwhile and without the round of a sweep; none: the message has neither. Not written.
    #[serde(skip)]
    pub(crate) core: Option<String>,
}

/// Whether a count says nothing, and need not be written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's way")]
pub(super) fn is_none(count: &u64) -> bool {
    *count == 0
}

/// A step in a scenario file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StepPlace {
    /// The file.
    pub file: String,
    /// Line from 1.
    pub line: usize,
    /// Column from 1.
    pub column: usize,
    /// The source line.
    pub source: String,
    /// Its JSON Pointer below the case. Not written.
    #[serde(skip)]
    pub pointer: String,
}

impl Failure {
    /// Something is wrong that breaks no requirement.
    pub fn new(check: Check, verdict: Verdict, what: impl Into<Statement>) -> Self {
        let Statement { message, cause, core } = what.into();
        Self {
            requirements: Vec::new(),
            verdict,
            check,
            message,
            step: None,
            expected: None,
            actual: None,
            frames: Vec::new(),
            readings: Vec::new(),
            more: 0,
            cause,
            core,
        }
    }

    /// The reading of one of its requirements, as a report quotes it, if the failure depends on it.
    pub fn reading<'r>(&self, requirement: &'r RequirementText) -> Option<&'r str> {
        let quoted = requirement.reading.as_deref()?;
        let is_quoted =
            |id: &String| quoted.strip_prefix(id.as_str()).is_some_and(|rest| rest.starts_with(':'));
        self.readings.iter().any(is_quoted).then_some(quoted)
    }

    /// Whether it says only that a bound was reached (there are more violations than are listed): nothing wrong of its own.
    pub(crate) fn is_note(&self) -> bool {
        self.check == Check::Limit && self.verdict == Verdict::Warned && self.requirements.is_empty()
    }

    /// It breaks these requirements.
    #[must_use]
    pub fn breaking(self, requirements: &[String]) -> Self {
        Self { requirements: requirements.to_vec(), ..self }
    }

    /// What should have been, and what was.
    #[must_use]
    pub fn with_values(self, expected: Option<Value>, actual: Option<Value>) -> Self {
        Self { expected, actual, ..self }
    }

    /// These frames of the wire log show it.
    #[must_use]
    pub fn shown_by(self, frames: impl IntoIterator<Item = u64>) -> Self {
        Self { frames: frames.into_iter().collect(), ..self }
    }

    /// It was found at this step.
    #[must_use]
    pub fn at_step(self, step: Option<StepPlace>) -> Self {
        Self { step, ..self }
    }

    /// The message without what may differ each time the same thing is wrong: what the server did meanwhile, the round of a sweep.
    pub fn core(&self) -> &str {
        self.core.as_deref().unwrap_or(&self.message)
    }

    /// Adds to the message in which round of a sweep over `name` it came.
    pub(crate) fn in_round(&mut self, name: &str, round: u32) {
        self.core.get_or_insert_with(|| self.message.clone());
        self.message += &format!(" (with {name} = {round})");
    }

    /// Its cause and core again, after it was written and read.
    pub(crate) fn restore(&mut self, from: &Self, mask: &impl Fn(String) -> String) {
        self.cause = from.cause.clone().map(|cause| cause.masked(mask));
        self.core = from.core.clone().map(mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_is_no_part_of_what_is_wrong() {
        let mut failure = Failure::new(Check::Step, Verdict::Failed, "out of order");
        failure.in_round("k", 3);
        assert_eq!(failure.message, "out of order (with k = 3)");
        assert_eq!(failure.core(), "out of order");
    }
}
