//! A counter grows in arrival order.

use rustc_hash::FxHashMap;

use super::monitor::{Conn, Findings, Monitor, Seen, counter, key_text};
use super::monitors::Builder;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::invariant as rule;
use crate::source::Diagnostics;

/// Memory: one number a connection and key.
pub(super) struct Increasing {
    name: String,
    rule: rule::Increasing,
    on: Matcher,
    at: Pointer,
    restarts: Option<Matcher>,
    /// The ids of `repeat` that `order` has not.
    repeat_only: Vec<String>,
    newest: FxHashMap<(Conn, Option<String>), (i128, u64)>,
}

impl Increasing {
    pub fn new(rule: &rule::Increasing, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            name: b.name.clone(),
            on: b.pattern(&rule.on)?,
            at: rule.at.clone(),
            restarts: b.optional(rule.restarts.as_ref())?,
            repeat_only: rule.repeat.iter().filter(|id| !rule.order.contains(id)).cloned().collect(),
            rule: rule.clone(),
            newest: FxHashMap::default(),
        })
    }
}

impl Monitor for Increasing {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        let key = self.rule.key.as_ref().and_then(|at| at.get(seen.body)).map(key_text);
        if seen.is_any(self.restarts.as_ref()) {
            match &key {
                Some(_) => _ = self.newest.remove(&(seen.conn, key.clone())),
                None => self.newest.retain(|(conn, _), _| *conn != seen.conn),
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
            findings.broken(&self.name, &self.rule.order, seen.event, message);
            return;
        };
        let place = (seen.conn, key);
        let Some((newest, event)) = self.newest.get(&place).copied() else {
            self.newest.insert(place, (value, seen.event));
            return;
        };
        findings.exercise(&self.rule.order);
        findings.exercise(&self.repeat_only);
        let (ids, message) = if value == newest {
            (&self.rule.repeat, format!("{} {value} comes twice", self.at))
        } else if value < newest {
            (&self.rule.order, format!("{} {value} comes after {newest}", self.at))
        } else {
            self.newest.insert(place, (value, seen.event));
            return;
        };
        if let Some(violation) = findings.broken(&self.name, ids, seen.event, message) {
            violation.related = Some(event);
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Findings) {
        self.newest.retain(|(known, _), _| *known != conn);
    }
}
