//! An id is used for one thing only.

use rustc_hash::FxHashSet;

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

/// Memory: a window of values, by session or connection; and the values of the newest list, no longer than a message.
#[derive(Clone)]
pub(super) struct Unique {
    check: Check,
    decides: Vec<String>,
    on: Matcher,
    at: Pointer,
    identity: Option<Pointer>,
    values: BoundedMap<(String, u64)>,
    /// Indices from here on are those of parts of messages.
    parts_of_messages: std::ops::Range<usize>,
    within: Option<rule::Within>,
    /// How many parts were looked at: each is one of its own.
    parts: u64,
    list: List,
}

/// The values of one message's parts.
#[derive(Clone, Default)]
struct List {
    event: u64,
    values: FxHashSet<String>,
}

impl Unique {
    pub fn new(rule: &rule::Unique, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        let first_part = b.protocol.messages.len();
        Ok(Self {
            check: b.check.clone(),
            decides: rule.decides.clone(),
            on: b.pattern(&rule.message)?,
            at: rule.at.clone(),
            identity: rule.identity.clone(),
            values: BoundedMap::default(),
            parts_of_messages: first_part..first_part + b.protocol.parts().len(),
            within: rule.within,
            parts: 0,
            list: List::default(),
        })
    }

    /// A value in a list is compared with the others of the same message: the next message may list it again.
    fn listed(&mut self, value: &str, event: u64, tally: &mut Tally) {
        if self.list.event != event {
            self.list = List { event, values: FxHashSet::default() };
        }
        if !self.list.values.is_empty() {
            tally.exercise(&self.decides);
        }
        if !self.list.values.insert(value.to_owned()) {
            let message = format!("{} {value:?} is listed twice", self.at);
            tally.broken(&self.check, &self.decides, event, message);
        }
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
        let is_part = seen.message.is_some_and(|message| self.parts_of_messages.contains(&message));
        let in_message = self.within.map_or(is_part, |within| within == rule::Within::Message);
        if self.identity.is_none() && in_message {
            self.listed(&value, seen.event, tally);
            return;
        }
        self.parts += u64::from(is_part);
        let (place, identity) = match &self.identity {
            Some(at) => match at.get(seen.body) {
                Some(identity) => (seen.session.id.0, key_text(identity)),
                None => return,
            },
            None if is_part => (seen.conn.0, format!("{}.{}", seen.event, self.parts).into()),
            None => (seen.conn.0, seen.event.to_string().into()),
        };
        let known = self.values.get(place, Some(&value));
        let known = known.map(|(first, event)| (*first == identity, *event));
        if known.is_some()
            || !(self.values.may_have_forgotten(place)
                || (seen.session.gaps.forgotten && self.identity.is_some()))
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
