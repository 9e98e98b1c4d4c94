//! Conditions on a single message: a schema, and two values that relate.

use serde_json::Value;

use super::monitor::{Findings, Monitor, Seen};
use super::monitors::Builder;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::invariant::{self as rule, Comparison};
use crate::source::schema::Schema;
use crate::source::{Diagnostic, Diagnostics};

/// Every message of a pattern satisfies a JSON Schema. Memory: none.
pub(super) struct Holds {
    name: String,
    decides: Vec<String>,
    on: Matcher,
    schema: Schema,
}

impl Holds {
    pub fn new(rule: &rule::Holds, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        let schema = Schema::new(&rule.schema)
            .map_err(|error| Diagnostic::new(format!("invariant `{}`: no JSON Schema: {error}", b.name)))?;
        Ok(Self { name: b.name.clone(), decides: rule.decides.clone(), on: b.pattern(&rule.on)?, schema })
    }
}

impl Monitor for Holds {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        if !seen.is(&self.on) {
            return;
        }
        findings.exercise(&self.decides);
        if self.schema.is_valid(seen.body) {
            return;
        }
        let violations = self.schema.violations(seen.body);
        let message = violations.first().map_or_else(String::new, |violation| {
            let shown = seen.body.pointer(&violation.at).map(crate::protocol::shorten).unwrap_or_default();
            format!("{}: {shown} {}", violation.at, violation.problem)
        });
        if let Some(violation) = findings.broken(&self.name, &self.decides, seen.event, message) {
            violation.actual = Some(seen.body.clone());
        }
    }
}

/// Two values of a message relate. Memory: none.
pub(super) struct Relation {
    name: String,
    rule: rule::Relation,
    on: Matcher,
}

impl Relation {
    pub fn new(rule: &rule::Relation, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self { name: b.name.clone(), on: b.pattern(&rule.on)?, rule: rule.clone() })
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
            if let Some(violation) = findings.broken(&self.name, &self.rule.decides, seen.event, message) {
                violation.expected = Some(right.clone());
                violation.actual = Some(left.clone());
            }
        }
    }
}
