//! A value in a message is a share of another.

use std::sync::Arc;

use serde_json::Value;

use super::{Monitor, MonitorBuilder, Observation};
use crate::check::tally::Tally;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// A value is a share of another. Memory: none.
#[derive(Clone)]
pub(super) struct Proportion {
    check: Check,
    rule: Arc<rule::Proportion>,
    on: Matcher,
}

impl Proportion {
    pub fn new(rule: &rule::Proportion, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self { check: b.check.clone(), on: b.pattern(&rule.message)?, rule: Arc::new(rule.clone()) })
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
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        if !seen.is(&self.on) {
            return;
        }
        let Some((expected, shown)) = shares(&self.rule, seen.body) else { return };
        tally.exercise(&self.rule.decides);
        // What is written with one decimal is as far off as the tolerance only by the computer's arithmetic.
        if (expected - shown).abs() <= self.rule.tolerance + 1e-9 {
            return;
        }
        let message = format!("{} is {shown}, but the other numbers give {expected:.2}", self.rule.value);
        if let Some(violation) = tally.broken(&self.check, &self.rule.decides, seen.event, message) {
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
            let mut rule = json!({ "message": "m", "value": "/v", "part": "/p", "whole": "/w", "tolerance": 0.1, "decides": [] });
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
