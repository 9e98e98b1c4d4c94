//! A counter grows in arrival order.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Number, Value};

use super::key::{Keys, Part};
use super::{Monitor, MonitorBuilder, Observation};
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::check::values::{compared, whole_number};
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// Memory: a window of numbers, by connection and key.
#[derive(Clone)]
pub(super) struct Increasing {
    check: Check,
    rule: Arc<rule::Increasing>,
    on: Matcher,
    at: Pointer,
    restarts: Option<Matcher>,
    keys: Keys,
    /// The ids of `repeat` that `order` has not.
    repeat_only: Vec<String>,
    newest: BoundedMap<(Number, u64)>,
}

impl Increasing {
    pub fn new(rule: &rule::Increasing, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            on: b.pattern(&rule.message)?,
            at: rule.at.clone(),
            keys: Keys::new(rule.key.as_ref(), b)?,
            restarts: b.optional(rule.restarts.as_ref())?,
            repeat_only: rule.repeat.iter().filter(|id| !rule.order.contains(id)).cloned().collect(),
            rule: Arc::new(rule.clone()),
            newest: BoundedMap::default(),
        })
    }
}

impl Monitor for Increasing {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let key = self.keys.of(seen, Part::Follows);
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
        // What is no number breaks its schema.
        let Some(value) = self.at.get(seen.body).and_then(Value::as_number) else { return };
        tally.exercise(&self.rule.written);
        if value.is_f64() && whole_number(value).is_some() {
            let message = format!("{} {value} is not written as an integer", self.at);
            tally.broken(&self.check, &self.rule.written, seen.event, message);
        }
        let Some(known) = self.newest.get(seen.conn.0, key) else {
            self.newest.insert(seen.conn.0, key, (value.clone(), seen.event), 0);
            return;
        };
        let (newest, event) = known.clone();
        let ordering = compared(value, &newest);
        if ordering == Some(Ordering::Greater) {
            *known = (value.clone(), seen.event);
        }
        tally.exercise(&self.rule.order);
        tally.exercise(&self.repeat_only);
        let (ids, message) = match ordering {
            Some(Ordering::Equal) => (&self.rule.repeat, format!("{} {value} comes twice", self.at)),
            Some(Ordering::Less) => (&self.rule.order, format!("{} {value} comes after {newest}", self.at)),
            Some(Ordering::Greater) | None => return,
        };
        if let Some(violation) = tally.broken(&self.check, ids, seen.event, message) {
            violation.related = Some(event);
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.newest.leave(conn.0);
        self.keys.closed(conn);
    }

    fn memory(&self) -> Memory {
        self.newest.memory() + self.keys.memory()
    }
}
