//! A message does not come in a scope.

use rustc_hash::FxHashMap;

use super::monitor::{Conn, Findings, Monitor, Seen, key_text};
use super::monitors::Builder;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::invariant::{self as rule, Scope};
use crate::source::Diagnostics;

/// Memory: the open scopes, by connection or session and key.
pub(super) struct Absence {
    name: String,
    rule: rule::Absence,
    of: Matcher,
    after: Matcher,
    until: Option<Matcher>,
    key: Option<Pointer>,
    open: FxHashMap<(u32, Option<String>), u64>,
}

impl Absence {
    pub fn new(rule: &rule::Absence, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            name: b.name.clone(),
            of: b.pattern(&rule.of)?,
            after: b.pattern(&rule.after)?,
            until: b.optional(rule.until.as_ref())?,
            key: rule.key.clone(),
            rule: rule.clone(),
            open: FxHashMap::default(),
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
        let scope = (place, key);
        if seen.is_any(self.until.as_ref()) {
            self.open.remove(&scope);
        }
        if seen.is(&self.of)
            && let Some(began) = self.open.get(&scope).copied()
        {
            let message = "this must not come here".to_owned();
            if let Some(violation) = findings.broken(&self.name, &self.rule.decides, seen.event, message) {
                violation.related = Some(began);
                violation.actual = Some(seen.body.clone());
            }
        }
        if seen.is(&self.after) {
            findings.exercise(&self.rule.decides);
            self.open.insert(scope, seen.event);
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Findings) {
        if self.rule.scope == Scope::Connection {
            self.open.retain(|(place, _), _| *place != conn.0);
        }
    }
}
