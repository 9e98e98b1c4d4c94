//! A message does not come in a scope.

use std::sync::Arc;

use super::answers::Answers;
use super::key::{Keys, Part};
use super::{Monitor, MonitorBuilder, Observation};
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::protocol::Matcher;
use crate::protocol::rules::{self as rule, Scope};
use crate::results::Check;
use crate::source::Diagnostics;

/// Memory: a window of scopes, by connection (or session) and key. One that is closed and of which nothing more is known
/// takes no memory.
#[derive(Clone)]
pub(super) struct Absence {
    check: Check,
    rule: Arc<rule::Absence>,
    of: Matcher,
    after: Matcher,
    until: Option<Matcher>,
    owed: Option<Matcher>,
    unless: Option<Matcher>,
    /// With `answered`: a scope begins with the answer to what was sent later.
    answers: Option<Answers>,
    keys: Keys,
    scopes: BoundedMap<Extent>,
    /// With `until-anywhere`: when the last `until` came in each session.
    ended: BoundedMap<u64>,
    /// Counts the messages.
    clock: u64,
}

#[derive(Clone, Default)]
struct Extent {
    /// The event that opened the scope, while it is open, and when that was.
    began: Option<(u64, u64)>,
    /// With `answered`: it begins once a request is answered before which at least so many were sent.
    waits: Option<u64>,
    /// How many `owed` have not had their `after`.
    owed: u32,
    /// The last `after` opened no scope, because another is owed.
    passed: bool,
    /// `unless` came.
    barred: bool,
    /// What came before may be forgotten: no scope opens.
    unsure: bool,
}

impl Extent {
    /// `owed`: this message asks for an `after` itself.
    fn until(&mut self, owed: bool) {
        self.began = None;
        self.waits = None;
        if std::mem::take(&mut self.passed) && !owed {
            self.owed = self.owed.saturating_add(1);
        }
    }

    /// Nothing is known of it that a new one would not know.
    fn is_blank(&self) -> bool {
        self.began.is_none() && self.owed == 0 && !self.passed && !self.barred
    }

    /// Whether a scope opens. `asked`: it begins only when a request is answered before which so many were sent.
    fn after(&mut self, event: u64, clock: u64, asked: Option<u64>) -> bool {
        self.owed = self.owed.saturating_sub(1);
        self.passed = self.owed > 0;
        if self.passed || self.barred || self.unsure {
            return false;
        }
        if asked.is_some() && self.began.is_some() {
            // The server has learned of the first one, or does so sooner.
            return false;
        }
        self.began = Some((event, clock));
        self.waits = asked;
        asked.is_none()
    }

    /// A request was answered before which so many were sent. Whether the scope begins.
    fn answered(&mut self, before: u64) -> bool {
        self.began.is_some() && self.waits.take_if(|asked| before >= *asked).is_some()
    }
}

impl Absence {
    pub fn new(rule: &rule::Absence, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            of: b.pattern(&rule.of)?,
            after: b.pattern(&rule.after)?,
            until: b.optional(rule.until.as_ref())?,
            owed: b.optional(rule.owed.as_ref())?,
            unless: b.optional(rule.unless.as_ref())?,
            answers: rule.answered.as_ref().map(|answered| Answers::new(answered, b)).transpose()?,
            keys: Keys::new(rule.key.as_ref(), b)?,
            rule: Arc::new(rule.clone()),
            scopes: BoundedMap::default(),
            ended: BoundedMap::default(),
            clock: 0,
        })
    }
}

impl Absence {
    /// The event that opened a scope which is open still.
    fn opened(&mut self, seen: &Observation<'_>, place: u32, key: Option<&str>) -> Option<u64> {
        let scope = self.scopes.get(place, key)?;
        let (event, clock) = scope.began.filter(|_| scope.waits.is_none())?;
        let session = seen.session.id.0;
        let ended = match self.ended.get(session, key) {
            Some(last) => *last > clock,
            None => {
                self.rule.until_anywhere
                    && (seen.session.gaps.forgotten || self.ended.may_have_forgotten(session))
            }
        };
        (!ended).then_some(event)
    }
}

impl Absence {
    /// Takes the next message, but for what it answers.
    fn take(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let place = match self.rule.scope {
            Scope::Connection => seen.conn.0,
            Scope::Session => seen.session.id.0,
        };
        let key = self.keys.of(seen, Part::begins(seen.is(&self.after)));
        if key.is_none() && self.keys.are_distinguished() {
            return;
        }
        let key = key.as_deref();
        let (of, after) = (seen.is(&self.of), seen.is(&self.after));
        let (until, owed) = (seen.is_any(self.until.as_ref()), seen.is_any(self.owed.as_ref()));
        let unless = seen.is_any(self.unless.as_ref());
        if !(of || after || until || owed || unless) {
            return;
        }
        self.clock += 1;
        if until && self.rule.until_anywhere {
            self.ended.insert(seen.session.id.0, key, self.clock, 0);
        }
        if until && let Some(scope) = self.scopes.get(place, key) {
            scope.until(owed);
            if scope.is_blank() {
                self.scopes.remove(place, key);
            }
        }
        if of && let Some(began) = self.opened(seen, place, key) {
            let message = "this message is not allowed here".to_owned();
            if let Some(violation) = tally.broken(&self.check, &self.rule.decides, seen.event, message) {
                violation.related = Some(began);
                violation.actual = Some(crate::check::evidence(seen.body));
            }
        }
        if !(after || owed || unless) {
            return;
        }
        let mut scope = self.scopes.remove(place, key).unwrap_or_else(|| {
            let counts = self.owed.is_some() || self.unless.is_some();
            let lost = seen.session.gaps.forgotten && self.rule.scope == Scope::Session;
            Extent { unsure: counts && (lost || self.scopes.may_have_forgotten(place)), ..Extent::default() }
        });
        scope.owed = scope.owed.saturating_add(u32::from(owed));
        scope.barred |= unless;
        let asked = self.answers.as_mut().map(|answers| answers.asked(seen.conn));
        if after && scope.after(seen.event, self.clock, asked) {
            tally.exercise(&self.rule.decides);
        }
        self.scopes.insert(place, key, scope, 0);
    }
}

impl Monitor for Absence {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let before = self.answers.as_mut().and_then(|answers| answers.observe(seen));
        self.take(seen, tally);
        if let Some(before) = before {
            let begun =
                self.scopes.each(seen.conn.0).map(|scope| scope.answered(before)).filter(|begun| *begun);
            begun.for_each(|_| tally.exercise(&self.rule.decides));
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.keys.closed(conn);
        self.answers.iter_mut().for_each(|answers| answers.closed(conn));
        if self.rule.scope == Scope::Connection {
            self.scopes.leave(conn.0);
        }
    }

    fn memory(&self) -> Memory {
        let answers = self.answers.as_ref().map(Answers::memory).unwrap_or_default();
        self.keys.memory() + answers + self.scopes.memory() + self.ended.memory()
    }
}
