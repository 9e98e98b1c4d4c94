//! One message comes only after another.

use std::borrow::Cow;

use super::key::{Keys, Part};
use super::{Monitor, MonitorBuilder, Observation};
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::check::values::key_text;
use crate::frame::Pointer;
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
    known: Option<Known>,
}

/// What a connection must have got before it is judged: messages that tell a value, where `then` has that value, and the values that
/// came, by connection.
#[derive(Clone)]
struct Known {
    told: (Matcher, Pointer),
    named: Pointer,
    values: BoundedMap<()>,
}

impl Known {
    fn new(rule: &rule::Known, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        let told = (b.pattern(&rule.by)?, rule.at.clone());
        Ok(Self { told, named: rule.named.clone(), values: BoundedMap::default() })
    }

    fn observe(&mut self, seen: &Observation<'_>) {
        let (on, at) = &self.told;
        if seen.is(on)
            && let Some(value) = at.get(seen.body)
        {
            self.values.insert(seen.conn.0, Some(&key_text(value)), (), 0);
        }
    }

    fn has(&mut self, seen: &Observation<'_>) -> bool {
        let named = self.named.get(seen.body);
        named.is_some_and(|named| self.values.has(seen.conn.0, Some(&key_text(named))))
    }
}

impl Precedence {
    pub fn new(rule: &rule::Precedence, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        let keys = Keys::new(rule.key.as_ref(), b)?;
        let known = rule.known.as_ref().map(|known| Known::new(known, b)).transpose()?;
        Ok(Self {
            check: b.check.clone(),
            decides: rule.decides.clone(),
            first: b.pattern(&rule.first)?,
            then: b.pattern(&rule.then)?,
            // Keys are unique in a session, so what another connection saw counts.
            scope: if keys.are_distinguished() { Scope::Session } else { rule.scope },
            keys,
            seen: BoundedMap::default(),
            known,
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
        if let Some(known) = &mut self.known {
            known.observe(seen);
        }
        let (first, then) = (self.key(seen, Part::Begins), self.key(seen, Part::Follows));
        if seen.is(&self.then)
            && self.known.as_mut().is_none_or(|known| known.has(seen))
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
        if let Some(known) = &mut self.known {
            known.values.leave(conn.0);
        }
        if self.scope == Scope::Connection {
            self.seen.leave(conn.0);
        }
    }

    fn memory(&self) -> Memory {
        let known = self.known.as_ref().map(|known| known.values.memory()).unwrap_or_default();
        self.seen.memory() + self.keys.memory() + known
    }
}
