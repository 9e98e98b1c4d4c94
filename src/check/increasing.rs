//! A counter grows in arrival order.

use super::monitor::{Conn, Findings, Monitor, Seen, counter, key_text};
use super::monitors::Builder;
use super::window::{Memory, Window};
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::invariant as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// Memory: a window of numbers, by connection and key.
pub(super) struct Increasing {
    check: Check,
    rule: rule::Increasing,
    on: Matcher,
    at: Pointer,
    restarts: Option<Matcher>,
    /// The ids of `repeat` that `order` has not.
    repeat_only: Vec<String>,
    newest: Window<(i128, u64)>,
}

impl Increasing {
    pub fn new(rule: &rule::Increasing, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            on: b.pattern(&rule.on)?,
            at: rule.at.clone(),
            restarts: b.optional(rule.restarts.as_ref())?,
            repeat_only: rule.repeat.iter().filter(|id| !rule.order.contains(id)).cloned().collect(),
            rule: rule.clone(),
            newest: Window::default(),
        })
    }
}

impl Monitor for Increasing {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        let key = self.rule.key.as_ref().and_then(|at| at.get(seen.body)).map(key_text);
        let key = key.as_deref();
        if seen.is_any(self.restarts.as_ref()) {
            match key {
                Some(_) => _ = self.newest.remove(seen.conn.0, key),
                None => self.newest.leave(seen.conn.0),
            }
        }
        if !seen.is(&self.on) {
            return;
        }
        // What is no number breaks its schema; 1.5 and 1e40 may fit one.
        let Some(shown) = self.at.get(seen.body).filter(|shown| shown.is_number()) else { return };
        let Some(value) = counter(shown) else {
            findings.exercise(&self.rule.order);
            let message = format!("{} {shown} is no whole number that can be compared", self.at);
            findings.broken(&self.check, &self.rule.order, seen.event, message);
            return;
        };
        let Some(known) = self.newest.get(seen.conn.0, key) else {
            self.newest.insert(seen.conn.0, key, (value, seen.event), 0);
            return;
        };
        let (newest, event) = *known;
        if value > newest {
            *known = (value, seen.event);
        }
        findings.exercise(&self.rule.order);
        findings.exercise(&self.repeat_only);
        let (ids, message) = if value == newest {
            (&self.rule.repeat, format!("{} {value} comes twice", self.at))
        } else if value < newest {
            (&self.rule.order, format!("{} {value} comes after {newest}", self.at))
        } else {
            return;
        };
        if let Some(violation) = findings.broken(&self.check, ids, seen.event, message) {
            violation.related = Some(event);
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Findings) {
        self.newest.leave(conn.0);
    }

    fn memory(&self) -> Memory {
        self.newest.memory()
    }
}
