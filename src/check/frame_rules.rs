//! Conditions on a single message: a schema, two values that relate, a share of a whole.

use serde_json::Value;

use super::monitor::{Findings, Monitor, Seen};
use super::monitors::Builder;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::invariant::{self as rule, Comparison};
use crate::results::Check;
use crate::source::schema::{Problem, Schema, Violation as SchemaViolation};
use crate::source::{Diagnostic, Diagnostics};

/// Most undeclared properties that a message names.
const MAX_NAMES: usize = 8;

/// Every message of a pattern satisfies a JSON Schema. Memory: none.
pub(super) struct Holds {
    check: Check,
    decides: Vec<String>,
    on: Matcher,
    schema: Schema,
    json: Option<Pointer>,
}

impl Holds {
    pub fn new(rule: &rule::Holds, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        let schema = b.protocol.schema(&rule.schema).map_err(|error| {
            Diagnostic::new(format!("invariant `{}`: no JSON Schema: {error}", b.check.name()))
        })?;
        let (decides, json) = (rule.decides.clone(), rule.json.clone());
        Ok(Self { check: b.check.clone(), decides, on: b.pattern(&rule.on)?, schema, json })
    }
}

impl Monitor for Holds {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        if !seen.is(&self.on) {
            return;
        }
        let held;
        let mut body = seen.body;
        if let Some(at) = &self.json {
            let Some(text) = at.get(seen.body).and_then(Value::as_str) else { return };
            // What is no JSON is shown as the text that it is.
            held = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
            body = &held;
        }
        findings.exercise(&self.decides);
        if self.schema.is_valid(body) {
            return;
        }
        let violations = self.schema.violations(body);
        let message = violations.first().map_or_else(String::new, |violation| {
            let shown = body.pointer(&violation.at).map(crate::protocol::shorten).unwrap_or_default();
            let place = self.json.as_ref().map(ToString::to_string).unwrap_or_default();
            let problem = told(violation, &violations);
            match format!("{place}{}", violation.at).as_str() {
                "" => format!("{shown}: {problem}"),
                at => format!("{at}: {shown} {problem}"),
            }
        });
        if let Some(violation) = findings.broken(&self.check, &self.decides, seen.event, message) {
            violation.actual = Some(seen.body.clone());
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

/// Two values of a message relate. Memory: none.
pub(super) struct Relation {
    check: Check,
    rule: rule::Relation,
    on: Matcher,
}

impl Relation {
    pub fn new(rule: &rule::Relation, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self { check: b.check.clone(), on: b.pattern(&rule.on)?, rule: rule.clone() })
    }
}

/// Whether the values relate; `None` where they cannot be compared (the schema judges that).
fn relates(left: &Value, is: Comparison, right: &Value) -> Option<bool> {
    match is {
        Comparison::Equal => Some(left == right),
        Comparison::AtMost => Some(left.as_f64()? <= right.as_f64()?),
        Comparison::NotLater => {
            let time = |value: &Value| value.as_str()?.parse::<jiff::Timestamp>().ok();
            Some(time(left)? <= time(right)?)
        }
    }
}

impl Monitor for Relation {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        if !seen.is(&self.on) {
            return;
        }
        let value = |at: &Pointer| at.get(seen.body).filter(|value| !value.is_null());
        let (Some(left), Some(right)) = (value(&self.rule.left), value(&self.rule.right)) else { return };
        let Some(holds) = relates(left, self.rule.is, right) else { return };
        findings.exercise(&self.rule.decides);
        if !holds {
            let how = match self.rule.is {
                Comparison::Equal => "equal to",
                Comparison::AtMost => "at most",
                Comparison::NotLater => "not later than",
            };
            let message = format!("{} {left} must be {how} {} {right}", self.rule.left, self.rule.right);
            if let Some(violation) = findings.broken(&self.check, &self.rule.decides, seen.event, message) {
                violation.expected = Some(right.clone());
                violation.actual = Some(left.clone());
            }
        }
    }
}

/// A value is a share of another. Memory: none.
pub(super) struct Proportion {
    check: Check,
    rule: rule::Proportion,
    on: Matcher,
}

impl Proportion {
    pub fn new(rule: &rule::Proportion, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self { check: b.check.clone(), on: b.pattern(&rule.on)?, rule: rule.clone() })
    }
}

/// The share that follows from the other numbers of a message, and the one that it shows.
fn shares(rule: &rule::Proportion, body: &Value) -> Option<(f64, f64)> {
    let number = |at: &Pointer| at.get(body).and_then(Value::as_f64);
    let minus = match &rule.minus {
        Some(at) => number(at)?,
        None => 0.0,
    };
    let whole = number(&rule.whole).filter(|whole| *whole != 0.0)?;
    Some((rule.factor * (number(&rule.part)? - minus) / whole, number(&rule.value)?))
}

impl Monitor for Proportion {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        if !seen.is(&self.on) {
            return;
        }
        let Some((expected, shown)) = shares(&self.rule, seen.body) else { return };
        findings.exercise(&self.rule.decides);
        // What is written with one decimal is as far off as the tolerance only by the computer's arithmetic.
        if (expected - shown).abs() <= self.rule.tolerance + 1e-9 {
            return;
        }
        let message = format!("{} is {shown}, but the other numbers give {expected:.2}", self.rule.value);
        if let Some(violation) = findings.broken(&self.check, &self.rule.decides, seen.event, message) {
            violation.expected = Some(expected.into());
            violation.actual = Some(shown.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shares_follow_from_the_other_numbers() {
        let rule = |minus: Option<&str>| {
            let mut rule = json!({ "on": "m", "value": "/v", "part": "/p", "whole": "/w", "tolerance": 0.1, "decides": [] });
            if let Some(minus) = minus {
                rule["minus"] = json!(minus);
            }
            serde_json::from_value::<rule::Proportion>(rule).expect("a rule")
        };
        for (minus, body, expected) in [
            (None, json!({ "v": 35.4, "p": 1, "w": 4 }), Some((25.0, 35.4))),
            (Some("/m"), json!({ "v": 50, "p": 8, "m": 4, "w": 8 }), Some((50.0, 50.0))),
            (Some("/m"), json!({ "v": 50, "p": 8, "w": 8 }), None),
            (None, json!({ "v": 0, "p": 0, "w": 0 }), None),
            (None, json!({ "v": "35", "p": 1, "w": 4 }), None),
        ] {
            assert_eq!(shares(&rule(minus), &body), expected, "{body}");
        }
    }
}
