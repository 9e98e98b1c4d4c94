//! A message is followed by another.

use std::sync::Arc;
use std::time::Duration;

use super::key::{Keys, Part};
use super::{End, Monitor, MonitorBuilder, Observation, Pace};
use crate::check::Violation;
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// Memory: a window of the open duties, and of those that were released before they began.
#[derive(Clone)]
pub(super) struct Response {
    duty: Duty,
    first: Matcher,
    then: Matcher,
    unless: Option<Matcher>,
    before: Option<Matcher>,
    keys: Keys,
    open: BoundedMap<Owed>,
    /// Keys that `unless` came for: no later `first` of theirs owes anything.
    released: BoundedMap<()>,
}

/// What is owed, by which rule.
#[derive(Clone)]
struct Duty {
    check: Check,
    rule: Arc<rule::Response>,
    within: Option<Duration>,
    /// With `within`: the end of a connection.
    ends: Option<[Matcher; 2]>,
}

/// Since when it is owed: the event, and its time.
#[derive(Clone, Copy)]
struct Owed {
    event: u64,
    since: Duration,
}

impl Response {
    pub fn new(rule: &rule::Response, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        let within = b.time(rule.within.as_ref())?;
        let ends = within.map(|_| b.end());
        Ok(Self {
            duty: Duty { check: b.check.clone(), rule: Arc::new(rule.clone()), within, ends },
            first: b.pattern(&rule.first)?,
            then: b.pattern(&rule.then)?,
            unless: b.optional(rule.unless.as_ref())?,
            before: b.optional(rule.before.as_ref())?,
            keys: Keys::new(rule.key.as_ref(), b)?,
            open: BoundedMap::default(),
            released: BoundedMap::default(),
        })
    }

    /// The duties that are still open, with their keys, but for those whose consequences nobody waits for.
    fn owed(&self, end: &End<'_>) -> impl Iterator<Item = (Option<&str>, Owed)> {
        let open = self.open.iter().map(|(_, key, owed)| (key, *owed));
        open.filter(|(_, owed)| end.owes(owed.event))
    }
}

impl Duty {
    /// How late it is for what is owed, if it is too late.
    fn late(&self, owed: Owed, now: Duration, pace: Pace) -> Option<Duration> {
        let (longest, _) = pace.late_after(self.within?);
        let passed = now.saturating_sub(owed.since);
        (passed > longest).then_some(passed)
    }

    /// The duty is met, by an event.
    fn meet(&self, owed: Owed, seen: &Observation<'_>, tally: &mut Tally) {
        tally.exercise(&self.rule.decides);
        let (Some(late), Some(within)) = (self.late(owed, seen.at, seen.pace), self.within) else { return };
        let message = format!("this came {late:.0?} after what it must follow within {within:?}");
        if let Some(violation) = tally.broken(&self.check, &self.rule.decides, seen.event, message) {
            violation.related = Some(owed.event);
        }
    }

    /// The duty is no more; what was too late by then is broken.
    fn give_up(&self, key: Option<&str>, owed: Owed, (now, pace): (Duration, Pace), tally: &mut Tally) {
        if self.late(owed, now, pace).is_some()
            && let Some(within) = self.within
        {
            self.never(key, owed, &format!("did not come within {within:?}"), tally);
        }
    }

    /// Whether it is a violation at this end of the trace that this did not come.
    fn is_broken(&self, owed: Owed, end: &End<'_>) -> bool {
        let lasting = Duration::from_millis(self.rule.lasting_ms);
        end.settled && self.rule.before.is_none() && end.newest.saturating_sub(owed.since) >= lasting
    }

    fn never(&self, key: Option<&str>, owed: Owed, how: &str, tally: &mut Tally) {
        tally.exercise(&self.rule.decides);
        let of = key.map(|key| format!(" ({key})")).unwrap_or_default();
        let message = format!("the required message after this{of} {how}");
        let violation = Violation::new(&self.check, &self.rule.decides, message);
        tally.push(Violation { event: Some(owed.event), ..violation });
    }
}

impl Monitor for Response {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let key = self.keys.of(seen, Part::begins(seen.is(&self.first)));
        let (place, key) = (seen.conn.0, key.as_deref());
        let now = (seen.at, seen.pace);
        if seen.is(&self.then)
            && let Some(owed) = self.open.remove(place, key)
        {
            self.duty.meet(owed, seen, tally);
        }
        if seen.is_any(self.unless.as_ref()) {
            let released: Vec<_> = match key {
                Some(_) => {
                    self.released.insert(place, key, (), 0);
                    self.open.remove(place, key).map(|owed| (key.map(Box::from), owed)).into_iter().collect()
                }
                None => self.open.take(place).collect(),
            };
            released.iter().for_each(|(key, owed)| self.duty.give_up(key.as_deref(), *owed, now, tally));
        }
        if seen.is_any(self.before.as_ref()) {
            for (key, Owed { event, .. }) in self.open.take(place) {
                tally.exercise(&self.duty.rule.decides);
                let of = key.map(|key| format!(" ({key})")).unwrap_or_default();
                let message = format!("the required message{of} did not come before this");
                let broken = tally.broken(&self.duty.check, &self.duty.rule.decides, seen.event, message);
                if let Some(violation) = broken {
                    violation.related = Some(event);
                }
            }
        }
        if self.duty.ends.iter().flatten().any(|end| seen.is(end)) {
            for (key, owed) in self.open.take(place) {
                self.duty.give_up(key.as_deref(), owed, now, tally);
            }
        }
        if seen.is(&self.first) && (key.is_none() || self.released.get(place, key).is_none()) {
            let owed = Owed { event: seen.event, since: seen.at };
            if let Some(last) = self.open.insert(place, key, owed, 0) {
                self.duty.give_up(key, last, now, tally);
            }
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.keys.closed(conn);
        self.open.leave(conn.0);
        self.released.leave(conn.0);
    }

    fn memory(&self) -> Memory {
        self.keys.memory() + self.open.memory() + self.released.memory()
    }

    fn is_owed(&self, end: &End<'_>) -> bool {
        self.duty.within.is_none() && self.owed(end).any(|(_, owed)| self.duty.is_broken(owed, end))
    }

    fn finish(&mut self, end: &End<'_>, tally: &mut Tally) {
        for (key, owed) in self.owed(end) {
            if self.duty.within.is_some() {
                self.duty.give_up(key, owed, (end.newest, end.pace), tally);
            } else if self.duty.is_broken(owed, end) {
                self.duty.never(key, owed, "never came", tally);
            }
        }
    }
}
