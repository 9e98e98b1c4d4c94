//! A field follows a state machine.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::key::{Keys, Part};
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

/// Memory: windows of states by connection and key, and of the keys of sessions. What may have begun before and be
/// forgotten is not taken for new, nor is what a connection shows first that joined in the midst of a turn.
#[derive(Clone)]
pub(super) struct States {
    check: Check,
    rule: Arc<rule::States>,
    on: Matcher,
    known: Vec<(Matcher, Pointer)>,
    keys: Keys,
    states: BoundedMap<(String, u64)>,
    /// Keys that a session has shown before.
    seen_keys: BoundedMap<()>,
    /// The key of a connection that is not terminal.
    active: FxHashMap<Conn, String>,
}

impl States {
    pub fn new(rule: &rule::States, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            on: b.pattern(&rule.message)?,
            known: b.places(&rule.known)?,
            keys: Keys::new(Some(&rule.key), b)?,
            rule: Arc::new(rule.clone()),
            states: BoundedMap::default(),
            seen_keys: BoundedMap::default(),
            active: FxHashMap::default(),
        })
    }

    fn is_terminal(&self, state: &str) -> bool {
        self.rule.transitions.get(state).is_some_and(Vec::is_empty)
    }

    fn begins(&mut self, seen: &Observation<'_>, key: &str, state: &str, tally: &mut Tally) {
        let session = seen.session.id.0;
        let lost = self.seen_keys.may_have_forgotten(session) || seen.session.gaps.may_be_filled();
        if self.seen_keys.has(session, Some(key)) || lost {
            return;
        }
        self.seen_keys.insert(session, Some(key), (), 0);
        tally.exercise(&self.rule.start);
        if !self.rule.initial.as_slice().iter().any(|initial| initial == state) {
            let expected = self.rule.initial.as_slice().join(" or ");
            let message = format!("{key} begins with {state:?}, not {expected:?}");
            tally.broken(&self.check, &self.rule.start, seen.event, message);
        }
        if let Some(other) = self.active.get(&seen.conn).filter(|other| *other != key) {
            let message = format!("{key} starts while {other} is still active");
            tally.broken(&self.check, &self.rule.overlap, seen.event, message);
        }
        tally.exercise(&self.rule.overlap);
    }
}

impl Monitor for States {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let key = self.keys.of(seen, Part::Follows);
        for (on, at) in &self.known {
            if seen.is(on)
                && let Some(key) = at.get(seen.body).filter(|key| !key.is_null())
            {
                self.seen_keys.insert(seen.session.id.0, Some(&key_text(key)), (), 0);
            }
        }
        if !seen.is(&self.on) {
            return;
        }
        let state = self.rule.at.get(seen.body).and_then(|state| state.as_str());
        let (Some(key), Some(state)) = (key, state) else { return };
        let next = (state.to_owned(), seen.event);
        let previous = self.states.insert(seen.conn.0, Some(&key), next, state.len());
        match previous {
            None => self.begins(seen, &key, state, tally),
            Some((previous, event)) => {
                tally.exercise(&self.rule.transition);
                tally.exercise(&self.rule.terminal);
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
                    && let Some(violation) = tally.broken(&self.check, ids, seen.event, message)
                {
                    violation.related = Some(event);
                }
            }
        }
        if self.is_terminal(state) {
            self.active.remove(&seen.conn);
        } else {
            self.active.insert(seen.conn, key.into_owned());
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.keys.closed(conn);
        self.states.leave(conn.0);
        self.active.remove(&conn);
    }

    fn memory(&self) -> Memory {
        self.keys.memory() + self.states.memory() + self.seen_keys.memory()
    }
}
