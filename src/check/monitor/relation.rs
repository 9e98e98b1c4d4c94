//! Two values in one message relate to each other.

use std::sync::Arc;

use serde_json::Value;

use super::{Monitor, MonitorBuilder, Observation};
use crate::check::tally::Tally;
use crate::check::values::same;
use crate::protocol::Matcher;
use crate::protocol::rules::{self as rule, Comparison, Spot};
use crate::results::Check;
use crate::source::Diagnostics;

/// Two values of a message relate. Memory: none.
#[derive(Clone)]
pub(super) struct Relation {
    check: Check,
    rule: Arc<rule::Relation>,
    on: Matcher,
}

impl Relation {
    pub fn new(rule: &rule::Relation, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self { check: b.check.clone(), on: b.pattern(&rule.message)?, rule: Arc::new(rule.clone()) })
    }
}

/// Whether the values relate; `None` where they cannot be compared (the schema judges that).
fn relates(left: &Value, is: Comparison, right: &Value) -> Option<bool> {
    match is {
        Comparison::Equal => Some(same(left, right)),
        Comparison::AtMost => Some(left.as_f64()? <= right.as_f64()?),
        Comparison::NotLater => {
            let time = |value: &Value| value.as_str()?.parse::<jiff::Timestamp>().ok();
            Some(time(left)? <= time(right)?)
        }
    }
}

impl Monitor for Relation {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        if !seen.is(&self.on) {
            return;
        }
        let value = |at: &Spot| at.get(seen.body).filter(|value| !value.is_null());
        let (Some(left), Some(right)) = (value(&self.rule.left), value(&self.rule.right)) else { return };
        let Some(holds) = relates(&left, self.rule.is, &right) else { return };
        tally.exercise(&self.rule.decides);
        if !holds {
            let how = match self.rule.is {
                Comparison::Equal => "equal to",
                Comparison::AtMost => "at most",
                Comparison::NotLater => "not later than",
            };
            let message = format!("{} {left} must be {how} {} {right}", self.rule.left, self.rule.right);
            if let Some(violation) = tally.broken(&self.check, &self.rule.decides, seen.event, message) {
                violation.expected = Some(right.into_owned());
                violation.actual = Some(left.into_owned());
            }
        }
    }
}
