//! A message is followed by another.

use std::sync::Arc;
use std::time::Duration;

use super::key::{Keys, Part};
use super::{End, Monitor, MonitorBuilder, Observation};
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
    check: Check,
    rule: Arc<rule::Response>,
    first: Matcher,
    then: Matcher,
    unless: Option<Matcher>,
    before: Option<Matcher>,
    keys: Keys,
    open: BoundedMap<(u64, Duration)>,
    /// Keys that `unless` came for: no later `first` of theirs owes anything.
    released: BoundedMap<()>,
}

impl Response {
    pub fn new(rule: &rule::Response, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            first: b.pattern(&rule.first)?,
            then: b.pattern(&rule.then)?,
            unless: b.optional(rule.unless.as_ref())?,
            before: b.optional(rule.before.as_ref())?,
            keys: Keys::new(rule.key.as_ref(), b)?,
            rule: Arc::new(rule.clone()),
            open: BoundedMap::default(),
            released: BoundedMap::default(),
        })
    }
}

impl Monitor for Response {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let key = self.keys.of(seen, Part::begins(seen.is(&self.first)));
        let (place, key) = (seen.conn.0, key.as_deref());
        if seen.is(&self.then) && self.open.remove(place, key).is_some() {
            tally.exercise(&self.rule.decides);
        }
        if seen.is_any(self.unless.as_ref()) {
            match key {
                Some(_) => {
                    self.open.remove(place, key);
                    self.released.insert(place, key, (), 0);
                }
                None => self.open.leave(place),
            }
        }
        if seen.is_any(self.before.as_ref()) {
            for (key, (event, _)) in self.open.take(place) {
                tally.exercise(&self.rule.decides);
                let of = key.map(|key| format!(" ({key})")).unwrap_or_default();
                let message = format!("the required message{of} did not come before this");
                if let Some(violation) = tally.broken(&self.check, &self.rule.decides, seen.event, message) {
                    violation.related = Some(event);
                }
            }
        }
        if seen.is(&self.first) && (key.is_none() || self.released.get(place, key).is_none()) {
            self.open.insert(place, key, (seen.event, seen.at), 0);
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

    fn finish(&mut self, end: &End<'_>, tally: &mut Tally) {
        if !end.settled || self.before.is_some() {
            return;
        }
        let lasting = Duration::from_millis(self.rule.lasting_ms);
        let old = |since: Duration| end.newest.saturating_sub(since) >= lasting;
        for (_, key, (event, _)) in self.open.iter().filter(|(.., (_, since))| old(*since)) {
            tally.exercise(&self.rule.decides);
            let of = key.map(|key| format!(" ({key})")).unwrap_or_default();
            let message = format!("the required message after this{of} never came");
            tally.push(Violation {
                event: Some(*event),
                ..Violation::new(&self.check, &self.rule.decides, message)
            });
        }
    }
}
