//! One message comes only after another.

use rustc_hash::FxHashSet;

use super::monitor::{Conn, Findings, Monitor, Seen, key_text};
use super::monitors::Builder;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::invariant::{self as rule, Key, Scope};
use crate::source::Diagnostics;

/// Memory: the keys of `first` of each connection or session.
///
/// A connection that joins late has missed the beginning: with a key, a `first` seen on another connection of the
/// session counts too.
pub(super) struct Precedence {
    name: String,
    decides: Vec<String>,
    first: Matcher,
    then: Matcher,
    keys: Option<(Pointer, Pointer)>,
    scope: Scope,
    seen: FxHashSet<(u32, Option<String>)>,
}

impl Precedence {
    pub fn new(rule: &rule::Precedence, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        let keys = rule.key.as_ref().map(|key| match key {
            Key::Same(at) => (at.clone(), at.clone()),
            Key::Each(first, then) => (first.clone(), then.clone()),
        });
        Ok(Self {
            name: b.name.clone(),
            decides: rule.decides.clone(),
            first: b.pattern(&rule.first)?,
            then: b.pattern(&rule.then)?,
            // Keys are unique in a session, so what another connection saw counts.
            scope: if keys.is_some() { Scope::Session } else { rule.scope },
            keys,
            seen: FxHashSet::default(),
        })
    }

    fn place(&self, seen: &Seen<'_>) -> u32 {
        match self.scope {
            Scope::Connection => seen.conn.0,
            Scope::Session => seen.session.0,
        }
    }

    /// The key of a message: `None`, one is needed and lacks; `Some(None)`, none is needed.
    fn key(&self, seen: &Seen<'_>, first: bool) -> Option<Option<String>> {
        let Some((of_first, of_then)) = &self.keys else { return Some(None) };
        let at = if first { of_first } else { of_then };
        at.get(seen.body).map(|key| Some(key_text(key)))
    }
}

impl Monitor for Precedence {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        if seen.is(&self.then)
            && let Some(key) = self.key(seen, false)
        {
            findings.exercise(&self.decides);
            if !self.seen.contains(&(self.place(seen), key.clone())) {
                let of = key.map(|key| format!(" ({key})")).unwrap_or_default();
                let message = format!("this came{of} before what must come first");
                findings.broken(&self.name, &self.decides, seen.event, message);
            }
        }
        if seen.is(&self.first)
            && let Some(key) = self.key(seen, true)
        {
            self.seen.insert((self.place(seen), key));
        }
    }

    fn closed(&mut self, conn: Conn) {
        if self.scope == Scope::Connection {
            self.seen.retain(|(place, _)| *place != conn.0);
        }
    }
}
