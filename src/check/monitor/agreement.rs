//! All clients of a session see the same content under the same id.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{End, Monitor, MonitorBuilder, Observation};
use crate::check::Violation;
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::history::{First, Logged};
use crate::check::sessions::{Conn, SessionId};
use crate::check::tally::Tally;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// How many gaps in the ids of a connection are remembered; past that the lowest ids are forgotten.
const GAPS: usize = 1024;

/// Memory: a window of the ids of each connection, those that are gone included. Ids in a row take no more than one.
#[derive(Clone)]
pub(super) struct Agreement {
    check: Check,
    rule: Arc<rule::Agreement>,
    conns: BoundedMap<Span>,
    /// Ids that a connection with many gaps made it forget.
    forgotten: u64,
}

/// The ids that a connection has received.
#[derive(Clone)]
struct Span {
    session: SessionId,
    first: i128,
    ids: Ids,
}

/// A set of numbers, as rows: the first and last of each.
#[derive(Clone, Default)]
struct Ids(BTreeMap<i128, i128>);

impl Ids {
    fn has(&self, id: i128) -> bool {
        self.0.range(..=id).next_back().is_some_and(|(_, last)| id <= *last)
    }

    /// Whether it is new.
    fn insert(&mut self, id: i128) -> bool {
        // Most ids are the next ones.
        if let Some(mut newest) = self.0.last_entry()
            && newest.get().checked_add(1) == Some(id)
        {
            *newest.get_mut() = id;
            return true;
        }
        if self.has(id) {
            return false;
        }
        let last = id.checked_add(1).and_then(|next| self.0.remove(&next)).unwrap_or(id);
        match self.0.range_mut(..id).next_back().filter(|(_, end)| end.checked_add(1) == Some(id)) {
            Some((_, end)) => *end = last,
            None => _ = self.0.insert(id, last),
        }
        true
    }

    fn last(&self) -> Option<i128> {
        self.0.last_key_value().map(|(_, last)| *last)
    }
}

impl Agreement {
    pub fn new(rule: &rule::Agreement, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        b.log()?;
        Ok(Self {
            check: b.check.clone(),
            rule: Arc::new(rule.clone()),
            conns: BoundedMap::default(),
            forgotten: 0,
        })
    }

    /// Judges the content of an event against what another client saw under the same id.
    fn compare(&self, seen: &Observation<'_>, id: i128, hash: u64, tally: &mut Tally) {
        let first = seen.history.of(seen.session.id).get(id);
        let Some(first) = first.filter(|first| first.conn != seen.conn) else { return };
        tally.exercise(&self.rule.content);
        if first.hash != hash {
            let message = format!("two clients received different contents of event {id}");
            if let Some(violation) = tally.broken(&self.check, &self.rule.content, seen.event, message) {
                violation.related = Some(first.event);
                violation.actual = Some(crate::check::evidence(seen.body));
            }
        }
    }
}

impl Monitor for Agreement {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let Some(Logged { id, hash, .. }) = seen.logged else { return };
        let place = seen.conn.0;
        let Some(span) = self.conns.get(place, None) else {
            let ids = Ids(BTreeMap::from([(id, id)]));
            let span = Span { session: seen.session.id, first: id, ids };
            self.conns.insert(place, None, span, size_of::<Span>());
            self.compare(seen, id, hash, tally);
            return;
        };
        span.session = seen.session.id;
        let rows = span.ids.0.len();
        let new = span.ids.insert(id);
        if span.ids.0.len() > GAPS {
            let lowest = span.ids.0.pop_first();
            self.forgotten += u64::from(lowest.is_some());
            span.first = span.ids.0.first_key_value().map_or(id, |(first, _)| *first);
        } else if span.ids.0.len() > rows {
            self.conns.grow(place, None, size_of::<(i128, i128)>());
        }
        if !new {
            // An id that comes twice on one connection is another matter.
            return;
        }
        self.compare(seen, id, hash, tally);
    }

    fn finish(&mut self, end: &End<'_>, tally: &mut Tally) {
        if !end.settled {
            return;
        }
        for (conn, _, span) in self.conns.iter() {
            let Some(last) = span.ids.last().filter(|last| span.first <= *last) else { continue };
            let known = end.history.of(span.session);
            let others = known.lowest(span.first, last, |_, first| first.conn != Conn(conn)).is_some();
            let lacks = |id, first: &First| first.conn != Conn(conn) && !span.ids.has(id);
            if let Some((id, first)) = known.lowest(span.first, last, lacks) {
                let message =
                    format!("a client of the session never received event {id}, which others received");
                tally.push(Violation {
                    related: Some(first.event),
                    ..Violation::new(&self.check, &self.rule.complete, message)
                });
            }
            if others {
                tally.exercise(&self.rule.complete);
            }
        }
    }

    fn memory(&self) -> Memory {
        let known = self.conns.memory();
        Memory { forgotten: known.forgotten + self.forgotten, ..known }
    }
}
