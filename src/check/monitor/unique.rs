//! An id is used for one thing only.

use super::{Monitor, MonitorBuilder, Observation};
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::check::values::key_text;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// Memory: a window of values, by session or connection.
#[derive(Clone)]
pub(super) struct Unique {
    check: Check,
    decides: Vec<String>,
    on: Matcher,
    at: Pointer,
    identity: Option<Pointer>,
    values: BoundedMap<(String, u64)>,
}

impl Unique {
    pub fn new(rule: &rule::Unique, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            decides: rule.decides.clone(),
            on: b.pattern(&rule.on)?,
            at: rule.at.clone(),
            identity: rule.identity.clone(),
            values: BoundedMap::default(),
        })
    }
}

impl Monitor for Unique {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        if !seen.is(&self.on) {
            return;
        }
        let Some(value) = self.at.get(seen.body).filter(|value| !value.is_null()).map(key_text) else {
            return;
        };
        let (place, identity) = match &self.identity {
            Some(at) => match at.get(seen.body) {
                Some(identity) => (seen.session.0, key_text(identity)),
                None => return,
            },
            None => (seen.conn.0, seen.event.to_string().into()),
        };
        let known = self.values.get(place, Some(&value));
        let known = known.map(|(first, event)| (*first == identity, *event));
        if known.is_some()
            || !(self.values.may_have_forgotten(place) || (seen.forgotten && self.identity.is_some()))
        {
            tally.exercise(&self.decides);
        }
        match known {
            Some((false, event)) => {
                let message = format!("{} {value:?} is used a second time", self.at);
                if let Some(violation) = tally.broken(&self.check, &self.decides, seen.event, message) {
                    violation.related = Some(event);
                }
            }
            Some(_) => {}
            None => {
                let bytes = identity.len();
                self.values.insert(place, Some(&value), (identity.into_owned(), seen.event), bytes);
            }
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        if self.identity.is_none() {
            self.values.leave(conn.0);
        }
    }

    fn memory(&self) -> Memory {
        self.values.memory()
    }
}
