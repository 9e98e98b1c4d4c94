//! One message comes only after another.

use std::borrow::Cow;

use super::key::{Keys, Part};
use super::{Monitor, MonitorBuilder, Observation};
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::protocol::Matcher;
use crate::protocol::rules::{self as rule, Scope};
use crate::results::Check;
use crate::source::Diagnostics;

/// Memory: a window of the keys of `first`, by connection or session. What may have come before and be forgotten is not
/// missed.
///
/// A connection that joins late has missed the beginning: with a key, a `first` seen on another connection of the
/// session counts too. Until the end of the turn in whose midst it joined, a `first` that nobody has seen may be under way to others.
#[derive(Clone)]
pub(super) struct Precedence {
    check: Check,
    decides: Vec<String>,
    first: Matcher,
    then: Matcher,
    keys: Keys,
    scope: Scope,
    seen: BoundedMap<()>,
}

impl Precedence {
    pub fn new(rule: &rule::Precedence, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        let keys = Keys::new(rule.key.as_ref(), b)?;
        Ok(Self {
            check: b.check.clone(),
            decides: rule.decides.clone(),
            first: b.pattern(&rule.first)?,
            then: b.pattern(&rule.then)?,
            // Keys are unique in a session, so what another connection saw counts.
            scope: if keys.are_distinguished() { Scope::Session } else { rule.scope },
            keys,
            seen: BoundedMap::default(),
        })
    }

    fn place(&self, seen: &Observation<'_>) -> u32 {
        match self.scope {
            Scope::Connection => seen.conn.0,
            Scope::Session => seen.session.id.0,
        }
    }

    /// The key of a message, empty where none is needed; `None`: one is needed and lacks.
    fn key<'v>(&mut self, seen: &Observation<'v>, part: Part) -> Option<Cow<'v, str>> {
        if self.keys.are_distinguished() { self.keys.of(seen, part) } else { Some(Cow::Borrowed("")) }
    }
}

impl Monitor for Precedence {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let place = self.place(seen);
        let (first, then) = (self.key(seen, Part::Begins), self.key(seen, Part::Follows));
        if seen.is(&self.then)
            && let Some(key) = then
        {
            let came = self.seen.has(place, Some(&key));
            let lost = self.seen.may_have_forgotten(place)
                || (self.scope == Scope::Session && seen.session.gaps.may_be_filled());
            if came || !lost {
                tally.exercise(&self.decides);
            }
            if !came && !lost {
                let of = if key.is_empty() { String::new() } else { format!(" ({key})") };
                let message = format!("this came{of} before the message that must precede it");
                tally.broken(&self.check, &self.decides, seen.event, message);
            }
        }
        if seen.is(&self.first)
            && let Some(key) = first
        {
            self.seen.insert(place, Some(&key), (), 0);
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.keys.closed(conn);
        if self.scope == Scope::Connection {
            self.seen.leave(conn.0);
        }
    }

    fn memory(&self) -> Memory {
        self.seen.memory() + self.keys.memory()
    }
}
