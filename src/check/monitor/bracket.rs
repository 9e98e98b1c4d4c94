//! Messages lie between an opening and a closing one.

use std::sync::Arc;

use rustc_hash::FxHashMap;

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

/// Memory: one state a connection, and a window of the exempt keys.
#[derive(Clone)]
pub(super) struct Bracket {
    check: Check,
    rule: Arc<rule::Bracket>,
    open: Matcher,
    close: Matcher,
    inside: Matcher,
    joined: Vec<(Matcher, Pointer)>,
    middle: Option<Matcher>,
    exempt: Option<(Matcher, Pointer)>,
    free: BoundedMap<()>,
    states: FxHashMap<Conn, Where>,
}

#[derive(Clone, Copy)]
enum Where {
    /// A scope is open, or may be: the connection joined in the middle. So many more wait.
    Inside(u32),
    /// A scope was closed by this event.
    After(u64),
}

impl Bracket {
    pub fn new(rule: &rule::Bracket, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            open: b.pattern(&rule.open)?,
            close: b.pattern(&rule.close)?,
            inside: b.pattern(&rule.inside)?,
            joined: b.places(&rule.joined)?,
            middle: b.optional(rule.middle.as_ref())?,
            exempt: rule.exempt.as_ref().map(|place| b.place(place)).transpose()?,
            rule: Arc::new(rule.clone()),
            free: BoundedMap::default(),
            states: FxHashMap::default(),
        })
    }
}

impl Monitor for Bracket {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        for (on, at) in &self.joined {
            if seen.is(on) && at.get(seen.body).is_some_and(|value| !value.is_null()) {
                self.states.entry(seen.conn).or_insert(Where::Inside(0));
            }
        }
        if let Some((on, at)) = &self.exempt
            && let Some(key) = at.get(seen.body).map(key_text)
        {
            if seen.is(on) {
                self.free.insert(seen.conn.0, Some(&key), (), 0);
            } else if seen.is(&self.inside)
                && (self.free.has(seen.conn.0, Some(&key)) || self.free.may_have_forgotten(seen.conn.0))
            {
                return;
            }
        }
        let waiting = match self.states.get(&seen.conn) {
            Some(Where::Inside(waiting)) if self.rule.counted => Some(*waiting),
            _ => None,
        };
        if seen.is_any(self.middle.as_ref()) {
            self.states.insert(seen.conn, Where::Inside(0));
        }
        if seen.is(&self.open) {
            let more = waiting.map_or(0, |waiting| waiting.saturating_add(1));
            self.states.insert(seen.conn, Where::Inside(more));
        } else if seen.is(&self.close) {
            let next = match waiting {
                Some(waiting @ 1..) => Where::Inside(waiting - 1),
                _ => Where::After(seen.event),
            };
            self.states.insert(seen.conn, next);
            tally.exercise(&self.rule.after);
        } else if seen.is(&self.inside) {
            tally.exercise(&self.rule.before);
            match self.states.get(&seen.conn).copied() {
                Some(Where::Inside(_)) => {}
                None => {
                    let message = "this came before its scope was opened".to_owned();
                    tally.broken(&self.check, &self.rule.before, seen.event, message);
                }
                Some(Where::After(closed)) => {
                    let message = "this came after its scope was closed".to_owned();
                    if let Some(violation) = tally.broken(&self.check, &self.rule.after, seen.event, message)
                    {
                        violation.related = Some(closed);
                    }
                }
            }
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.states.remove(&conn);
        self.free.leave(conn.0);
    }

    fn memory(&self) -> Memory {
        self.free.memory()
    }
}
