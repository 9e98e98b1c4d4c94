//! A field follows a state machine.

use rustc_hash::{FxHashMap, FxHashSet};

use super::monitor::{Conn, Findings, Monitor, Seen, SessionNo, key_text};
use super::monitors::Builder;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::invariant as rule;
use crate::source::Diagnostics;

/// Memory: a state for each key of each connection, and the keys of each session.
pub(super) struct States {
    name: String,
    rule: rule::States,
    on: Matcher,
    known: Vec<(Matcher, Pointer)>,
    states: FxHashMap<Conn, FxHashMap<String, (String, u64)>>,
    /// Keys that a session has shown before.
    seen_keys: FxHashMap<SessionNo, FxHashSet<String>>,
    /// The key of a connection that is not terminal.
    active: FxHashMap<Conn, String>,
}

impl States {
    pub fn new(rule: &rule::States, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            name: b.name.clone(),
            on: b.pattern(&rule.on)?,
            known: b.places(&rule.known)?,
            rule: rule.clone(),
            states: FxHashMap::default(),
            seen_keys: FxHashMap::default(),
            active: FxHashMap::default(),
        })
    }

    fn is_terminal(&self, state: &str) -> bool {
        self.rule.transitions.get(state).is_some_and(Vec::is_empty)
    }

    fn begins(&mut self, seen: &Seen<'_>, key: &str, state: &str, findings: &mut Findings) {
        let known = self.seen_keys.entry(seen.session).or_default();
        if !known.insert(key.to_owned()) {
            return;
        }
        findings.exercise(&self.rule.start);
        if !self.rule.initial.as_slice().iter().any(|initial| initial == state) {
            let expected = self.rule.initial.as_slice().join(" or ");
            let message = format!("{key} begins with {state:?}, not {expected:?}");
            findings.broken(&self.name, &self.rule.start, seen.event, message);
        }
        if let Some(other) = self.active.get(&seen.conn).filter(|other| *other != key) {
            let message = format!("{key} begins while {other} is still under way");
            findings.broken(&self.name, &self.rule.overlap, seen.event, message);
        }
        findings.exercise(&self.rule.overlap);
    }
}

impl Monitor for States {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        for (on, at) in &self.known {
            if seen.is(on)
                && let Some(key) = at.get(seen.body).filter(|key| !key.is_null())
            {
                self.seen_keys.entry(seen.session).or_default().insert(key_text(key));
            }
        }
        if !seen.is(&self.on) {
            return;
        }
        let (Some(key), Some(state)) =
            (self.rule.key.get(seen.body), self.rule.at.get(seen.body).and_then(|state| state.as_str()))
        else {
            return;
        };
        let key = key_text(key);
        let previous =
            self.states.entry(seen.conn).or_default().insert(key.clone(), (state.to_owned(), seen.event));
        match previous {
            None => self.begins(seen, &key, state, findings),
            Some((previous, event)) => {
                findings.exercise(&self.rule.transition);
                findings.exercise(&self.rule.terminal);
                let broken = if self.is_terminal(&previous) && self.is_terminal(state) {
                    Some((
                        &self.rule.terminal,
                        format!("{key} ends a second time, with {state:?} after {previous:?}"),
                    ))
                } else if previous != state
                    && !self
                        .rule
                        .transitions
                        .get(&previous)
                        .is_some_and(|next| next.iter().any(|next| next == state))
                {
                    Some((&self.rule.transition, format!("{key} goes from {previous:?} to {state:?}")))
                } else {
                    None
                };
                if let Some((ids, message)) = broken
                    && let Some(violation) = findings.broken(&self.name, ids, seen.event, message)
                {
                    violation.related = Some(event);
                }
            }
        }
        if self.is_terminal(state) {
            self.active.remove(&seen.conn);
        } else {
            self.active.insert(seen.conn, key);
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Findings) {
        self.states.remove(&conn);
        self.active.remove(&conn);
    }
}
