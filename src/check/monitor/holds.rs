//! Conditions on a single message: a schema, two values that relate, a share of a whole.

use serde_json::Value;

use super::{Monitor, MonitorBuilder, Observation};
use crate::check::tally::Tally;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::schema::{Problem, Schema, Violation as SchemaViolation};
use crate::source::{Diagnostic, Diagnostics};

/// Most undeclared properties that a message names.
const MAX_NAMES: usize = 8;

/// Every message of a pattern satisfies a JSON Schema. Memory: none.
#[derive(Clone)]
pub(super) struct Holds {
    check: Check,
    decides: Vec<String>,
    on: Matcher,
    schema: Schema,
    json: Option<Pointer>,
}

impl Holds {
    pub fn new(rule: &rule::Holds, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        let schema = b.protocol.schema(&rule.schema).map_err(|error| {
            Diagnostic::new(format!("invariant `{}`: no JSON Schema: {error}", b.check.name()))
        })?;
        let (decides, json) = (rule.decides.clone(), rule.json.clone());
        Ok(Self { check: b.check.clone(), decides, on: b.pattern(&rule.on)?, schema, json })
    }
}

impl Monitor for Holds {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        if !seen.is(&self.on) {
            return;
        }
        let held;
        let mut body = seen.body;
        if let Some(at) = &self.json {
            let Some(text) = at.get(seen.body).and_then(Value::as_str) else { return };
            // What is no JSON is shown as the text that it is.
            held = crate::frame::parse_within(text).unwrap_or_else(|_| Value::from(text));
            body = &held;
        }
        tally.exercise(&self.decides);
        if self.schema.is_valid(body) {
            return;
        }
        let violations = self.schema.violations_within(body);
        let message = violations.first().map_or_else(String::new, |violation| {
            let shown = body.pointer(&violation.at).map(crate::protocol::shorten).unwrap_or_default();
            let place = self.json.as_ref().map(ToString::to_string).unwrap_or_default();
            let problem = told(violation, &violations);
            match format!("{place}{}", violation.at).as_str() {
                "" => format!("{shown}: {problem}"),
                at => format!("{at}: {shown} {problem}"),
            }
        });
        if let Some(violation) = tally.broken(&self.check, &self.decides, seen.event, message) {
            violation.actual = Some(crate::check::evidence(seen.body));
        }
    }
}

/// What is wrong at a place; all of its undeclared properties.
fn told(first: &SchemaViolation, all: &[SchemaViolation]) -> String {
    let undeclared =
        all.iter().filter(|other| other.at == first.at).filter_map(|other| match &other.problem {
            Problem::Undeclared(name) => Some(format!("`{name}`")),
            _ => None,
        });
    let names: Vec<String> = undeclared.take(MAX_NAMES).collect();
    match (&first.problem, names.len()) {
        (Problem::Undeclared(_), 2..) => format!("{} are not declared", names.join(", ")),
        (problem, _) => problem.to_string(),
    }
}
