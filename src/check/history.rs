//! The event log of each session, as far as any of its clients has seen it.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::bounded::{ENTRIES, Memory};
use super::hashing::{Fields, Volatile};
use super::sessions::{Conn, SessionId};
use super::values::counter;
use crate::frame::Pointer;
use crate::protocol::{Matcher, Protocol};
use crate::trace::Direction;

/// The first delivery of a logged event.
#[derive(Clone)]
pub(crate) struct First {
    /// A hash of its content.
    pub hash: u64,
    /// Its event in the trace.
    pub event: u64,
    /// The connection that it came on.
    pub conn: Conn,
}

/// A logged event's id and the hash of its content, without what may differ between two deliveries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Logged {
    pub id: i128,
    pub hash: u64,
}

/// What was seen of a session, by id.
#[derive(Clone, Default)]
pub(crate) struct Known {
    /// Ids that were each greater than the one before, as most are.
    ascending: VecDeque<(i128, First)>,
    /// The others.
    late: BTreeMap<i128, First>,
}

impl Known {
    /// The first delivery of an event.
    pub fn get(&self, id: i128) -> Option<&First> {
        let may_ascend = self.ascending.back().is_some_and(|(newest, _)| id <= *newest);
        let at = may_ascend.then(|| self.ascending.binary_search_by_key(&id, |(id, _)| *id).ok());
        match at.flatten() {
            Some(at) => self.ascending.get(at).map(|(_, first)| first),
            None => self.late.get(&id),
        }
    }

    /// The lowest id of a range, its ends included, whose event fits.
    pub fn lowest(
        &self,
        from: i128,
        to: i128,
        fits: impl Fn(i128, &First) -> bool,
    ) -> Option<(i128, &First)> {
        if from > to {
            return None;
        }
        let begin = self.ascending.partition_point(|(id, _)| *id < from);
        let ascending = self.ascending.range(begin..).take_while(|(id, _)| *id <= to);
        let ascending = ascending.map(|(id, first)| (*id, first)).find(|(id, first)| fits(*id, first));
        let late = self.late.range(from..=to).map(|(id, first)| (*id, first));
        let mut late = late.take_while(|(id, _)| ascending.is_none_or(|(lowest, _)| *id < lowest));
        late.find(|(id, first)| fits(*id, first)).or(ascending)
    }

    /// The greatest id of those that came before an event of the trace.
    pub fn newest_before(&self, event: u64) -> Option<i128> {
        let before = |(_, first): &(i128, &First)| first.event < event;
        let ascending = self.ascending.iter().rev().map(|(id, first)| (*id, first)).find(before);
        let late = self.late.iter().rev().map(|(id, first)| (*id, first)).find(before);
        let ids = ascending.map(|(id, _)| id).into_iter().chain(late.map(|(id, _)| id));
        ids.max()
    }

    /// Whether it is new.
    fn insert(&mut self, id: i128, first: First) -> bool {
        if self.ascending.back().is_none_or(|(newest, _)| *newest < id) && !self.late.contains_key(&id) {
            self.ascending.push_back((id, first));
            return true;
        }
        let new = self.get(id).is_none();
        if new {
            self.late.insert(id, first);
        }
        new
    }

    /// Forgets an id of which no older one is known.
    fn remove(&mut self, id: i128) {
        // What ascends is in the order in which it came.
        match self.ascending.front() {
            Some((oldest, _)) if *oldest == id => _ = self.ascending.pop_front(),
            _ => _ = self.late.remove(&id),
        }
    }

    fn is_empty(&self) -> bool {
        self.ascending.is_empty() && self.late.is_empty()
    }
}

/// Memory: a hash and two numbers for each of the last [`ENTRIES`] ids of all sessions; older ones are forgotten and no
/// longer compared.
#[derive(Clone, Default)]
pub(crate) struct History {
    log: Option<Log>,
    sessions: FxHashMap<SessionId, Known>,
    none: Known,
    /// The ids in the order of their first delivery.
    order: VecDeque<(SessionId, i128)>,
    forgotten: u64,
    /// Of the message that was found to be logged last.
    fields: Fields,
}

/// The protocol's log, compiled.
#[derive(Clone)]
struct Log {
    on: Matcher,
    id: Pointer,
    /// What may differ between two deliveries.
    volatile: Volatile,
}

impl History {
    pub fn new(protocol: &Protocol) -> Self {
        let declared = protocol.extension.log.as_ref().zip(protocol.roles().log.as_ref());
        let log = declared.map(|(log, (on, id))| Log {
            on: on.clone(),
            id: id.clone(),
            volatile: Volatile::new(&log.volatile),
        });
        Self { log, ..Self::default() }
    }

    /// The id and content of a message of the log; `None`: it is none.
    pub fn logged(&mut self, message: Option<usize>, dir: Direction, body: &Value) -> Option<Logged> {
        let log = self.log.as_mut().filter(|log| log.on.matches(message, dir, body))?;
        let id = counter(log.id.get(body)?)?;
        self.fields.read(body);
        Some(Logged { id, hash: log.volatile.hash_without(&self.fields, body) })
    }

    /// The fields of the message that was found to be [logged](Self::logged) last.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// What was seen of a session so far.
    pub fn of(&self, session: SessionId) -> &Known {
        self.sessions.get(&session).unwrap_or(&self.none)
    }

    /// Remembers an event, once all monitors have looked at it.
    pub fn record(&mut self, session: SessionId, logged: Logged, event: u64, conn: Conn) {
        let first = First { hash: logged.hash, event, conn };
        if !self.sessions.entry(session).or_default().insert(logged.id, first) {
            return;
        }
        self.order.push_back((session, logged.id));
        while self.order.len() > ENTRIES {
            let Some((oldest, id)) = self.order.pop_front() else { return };
            self.forgotten += 1;
            if let Some(known) = self.sessions.get_mut(&oldest) {
                known.remove(id);
                if known.is_empty() {
                    self.sessions.remove(&oldest);
                }
            }
        }
    }

    /// What is remembered.
    pub fn memory(&self) -> Memory {
        Memory { entries: self.order.len(), forgotten: self.forgotten }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_whatever_their_order() {
        let ids = [5, 3, 9, 7, 9, 10, -2, 3];
        let mut known = Known::default();
        let mut naive: BTreeMap<i128, u64> = BTreeMap::new();
        let mut order = Vec::new();
        for (event, id) in (0..).zip(ids) {
            let new = known.insert(id, First { hash: 0, event, conn: Conn(event as u32 % 3) });
            assert_eq!(new, !naive.contains_key(&id), "{id}");
            if new {
                naive.insert(id, event);
                order.push(id);
            }
        }
        for forgotten in order {
            for at in -4..13 {
                assert_eq!(known.get(at).map(|first| first.event), naive.get(&at).copied(), "{at}");
                let before = naive.iter().rev().find(|(_, event)| **event < at.max(0) as u64);
                assert_eq!(known.newest_before(at.max(0) as u64), before.map(|(id, _)| *id), "{at}");
                for to in -4..13 {
                    let fits = |event: u64| event.is_multiple_of(3);
                    let lowest = known.lowest(at, to, |_, first| fits(first.event)).map(|(id, _)| id);
                    let mut expected =
                        naive.iter().filter(|(id, event)| **id >= at && **id <= to && fits(**event));
                    assert_eq!(lowest, expected.next().map(|(id, _)| *id), "{at} to {to}");
                }
            }
            known.remove(forgotten);
            naive.remove(&forgotten);
        }
        assert!(known.is_empty());
    }
}
