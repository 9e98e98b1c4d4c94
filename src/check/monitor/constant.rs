//! A value stays the same.

use std::sync::Arc;

use super::key::{Keys, Part};
use super::{Monitor, MonitorBuilder, Observation};
use crate::check::bounded::{BoundedMap, Memory, bytes_of};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::check::values::same;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules::{self as rule, Scope};
use crate::results::Check;
use crate::source::Diagnostics;

/// Memory: a window of values, by connection (or session) and key.
#[derive(Clone)]
pub(super) struct Constant {
    check: Check,
    rule: Arc<rule::Constant>,
    places: Vec<(Matcher, Pointer)>,
    restarts: Option<Matcher>,
    keys: Keys,
    values: BoundedMap<(serde_json::Value, u64)>,
}

impl Constant {
    pub fn new(rule: &rule::Constant, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            places: b.places(&rule.values)?,
            keys: Keys::new(rule.key.as_ref(), b)?,
            restarts: b.optional(rule.restarts.as_ref())?,
            rule: Arc::new(rule.clone()),
            values: BoundedMap::default(),
        })
    }
}

impl Monitor for Constant {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let place = match self.rule.scope {
            Scope::Connection => seen.conn.0,
            Scope::Session => seen.session.id.0,
        };
        let key = self.keys.of(seen, Part::Follows);
        if seen.is_any(self.restarts.as_ref()) {
            self.values.leave(place);
        }
        for (on, at) in &self.places {
            if !seen.is(on) {
                continue;
            }
            let Some(value) = at.get(seen.body).filter(|value| !value.is_null()) else { continue };
            let key = match &key {
                None if self.keys.are_distinguished() => return,
                key => key.as_deref().unwrap_or_default(),
            };
            match self.values.get(place, Some(key)) {
                None => {
                    self.values.insert(place, Some(key), (value.clone(), seen.event), bytes_of(value));
                }
                Some((first, event)) => {
                    tally.exercise(&self.rule.decides);
                    if !same(first, value) {
                        let message = format!("{at} is {value}, but was {first}");
                        let (first, event) = (first.clone(), *event);
                        if let Some(violation) =
                            tally.broken(&self.check, &self.rule.decides, seen.event, message)
                        {
                            violation.related = Some(event);
                            violation.expected = Some(first);
                            violation.actual = Some(value.clone());
                        }
                    }
                }
            }
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.keys.closed(conn);
        if self.rule.scope == Scope::Connection {
            self.values.leave(conn.0);
        }
    }

    fn memory(&self) -> Memory {
        self.values.memory() + self.keys.memory()
    }
}
