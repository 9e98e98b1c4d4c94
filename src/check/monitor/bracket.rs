//! Messages lie between an opening and a closing one.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{End, Monitor, MonitorBuilder, Observation};
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
    /// A scope was opened after a `close`, and nothing came inside it yet: a `close` may be the former one, repeated.
    Reopened,
    /// A scope was closed by this event.
    After(u64),
    /// An empty scope was closed by this event, or so it seems; and the first that came inside all the same.
    Doubtful(u64, Option<u64>),
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

    /// This event is outside the scope that the other one closed.
    #[cold]
    fn outside(&self, event: u64, closed: u64, tally: &mut Tally) {
        let message = "this came after its scope was closed".to_owned();
        if let Some(violation) = tally.broken(&self.check, &self.rule.after, event, message) {
            violation.related = Some(closed);
        }
    }

    /// No further `close` came: what was doubtful was the scope's own.
    fn report_doubtful(&self, state: Option<Where>, tally: &mut Tally) {
        if let Some(Where::Doubtful(closed, Some(event))) = state {
            self.outside(event, closed, tally);
        }
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
        let state = self.states.get(&seen.conn).copied();
        if seen.is(&self.open) {
            self.report_doubtful(state, tally);
            let next = match (waiting, state) {
                (Some(waiting), _) => Where::Inside(waiting.saturating_add(1)),
                (_, Some(Where::Reopened)) => Where::Inside(1),
                (_, Some(Where::After(_) | Where::Doubtful(..))) if self.rule.counted => Where::Reopened,
                _ => Where::Inside(0),
            };
            self.states.insert(seen.conn, next);
        } else if seen.is(&self.close) {
            let next = match (waiting, state) {
                (Some(waiting @ 1..), _) => Where::Inside(waiting - 1),
                (_, Some(Where::Reopened)) => Where::Doubtful(seen.event, None),
                // The former close was one too many, or this one is: that is another rule's matter.
                _ => Where::After(seen.event),
            };
            self.states.insert(seen.conn, next);
            tally.exercise(&self.rule.after);
        } else if seen.is(&self.inside) {
            tally.exercise(&self.rule.before);
            match state {
                Some(Where::Inside(_)) => {}
                Some(Where::Reopened) => {
                    self.states.insert(seen.conn, Where::Inside(0));
                }
                None => {
                    let message = "this came before its scope was opened".to_owned();
                    tally.broken(&self.check, &self.rule.before, seen.event, message);
                }
                Some(Where::After(closed)) => self.outside(seen.event, closed, tally),
                Some(Where::Doubtful(closed, first)) => {
                    self.states.insert(seen.conn, Where::Doubtful(closed, first.or(Some(seen.event))));
                }
            }
        }
    }

    fn closed(&mut self, conn: Conn, tally: &mut Tally) {
        let state = self.states.remove(&conn);
        self.report_doubtful(state, tally);
        self.free.leave(conn.0);
    }

    fn finish(&mut self, end: &End<'_>, tally: &mut Tally) {
        // Otherwise the next `close` may be on its way.
        if !end.settled {
            return;
        }
        for state in self.states.values() {
            self.report_doubtful(Some(*state), tally);
        }
    }

    fn memory(&self) -> Memory {
        self.free.memory()
    }
}
