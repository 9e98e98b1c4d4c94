//! A message does not come in a scope.

use rustc_hash::FxHashMap;

use super::monitor::{Conn, Findings, Monitor, Seen, key_text};
use super::monitors::Builder;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::invariant::{self as rule, Scope};
use crate::source::Diagnostics;

/// Memory: a scope a connection (or session) and key.
pub(super) struct Absence {
    name: String,
    rule: rule::Absence,
    of: Matcher,
    after: Matcher,
    until: Option<Matcher>,
    owed: Option<Matcher>,
    unless: Option<Matcher>,
    key: Option<Pointer>,
    scopes: FxHashMap<(u32, Option<String>), Extent>,
}

#[derive(Default)]
struct Extent {
    session: u32,
    /// The event that opened the scope, while it is open.
    began: Option<u64>,
    /// How many `owed` have not had their `after`.
    owed: u32,
    /// The last `after` opened no scope, because another is owed.
    passed: bool,
    /// `unless` came.
    barred: bool,
}

impl Extent {
    /// `owed`: this message asks for an `after` itself.
    fn until(&mut self, owed: bool) {
        self.began = None;
        if std::mem::take(&mut self.passed) && !owed {
            self.owed = self.owed.saturating_add(1);
        }
    }

    /// Whether a scope opens.
    fn after(&mut self, event: u64) -> bool {
        self.owed = self.owed.saturating_sub(1);
        self.passed = self.owed > 0;
        if self.passed || self.barred {
            return false;
        }
        self.began = Some(event);
        true
    }
}

impl Absence {
    pub fn new(rule: &rule::Absence, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            name: b.name.clone(),
            of: b.pattern(&rule.of)?,
            after: b.pattern(&rule.after)?,
            until: b.optional(rule.until.as_ref())?,
            owed: b.optional(rule.owed.as_ref())?,
            unless: b.optional(rule.unless.as_ref())?,
            key: rule.key.clone(),
            rule: rule.clone(),
            scopes: FxHashMap::default(),
        })
    }
}

impl Monitor for Absence {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        let place = match self.rule.scope {
            Scope::Connection => seen.conn.0,
            Scope::Session => seen.session.0,
        };
        let key = match &self.key {
            None => None,
            Some(at) => match at.get(seen.body) {
                Some(key) => Some(key_text(key)),
                None => return,
            },
        };
        let (of, after) = (seen.is(&self.of), seen.is(&self.after));
        let (until, owed) = (seen.is_any(self.until.as_ref()), seen.is_any(self.owed.as_ref()));
        let unless = seen.is_any(self.unless.as_ref());
        if !(of || after || until || owed || unless) {
            return;
        }
        if until && self.rule.until_anywhere {
            let same = |known: &Option<String>| *known == key;
            for (_, scope) in self
                .scopes
                .iter_mut()
                .filter(|((_, known), scope)| same(known) && scope.session == seen.session.0)
            {
                scope.until(owed);
            }
        }
        let id = (place, key);
        if let Some(scope) = self.scopes.get_mut(&id).filter(|_| until && !self.rule.until_anywhere) {
            scope.until(owed);
        }
        if of && let Some(began) = self.scopes.get(&id).and_then(|scope| scope.began) {
            let message = "this must not come here".to_owned();
            if let Some(violation) = findings.broken(&self.name, &self.rule.decides, seen.event, message) {
                violation.related = Some(began);
                violation.actual = Some(seen.body.clone());
            }
        }
        if !(after || owed || unless) {
            return;
        }
        let scope = self.scopes.entry(id).or_default();
        scope.session = seen.session.0;
        scope.owed = scope.owed.saturating_add(u32::from(owed));
        scope.barred |= unless;
        if after && scope.after(seen.event) {
            findings.exercise(&self.rule.decides);
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Findings) {
        if self.rule.scope == Scope::Connection {
            self.scopes.retain(|(place, _), _| *place != conn.0);
        }
    }
}
