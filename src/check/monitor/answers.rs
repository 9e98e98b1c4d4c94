//! Which of the requests of a connection have been answered.

use super::key::{Keys, Part};
use super::{MonitorBuilder, Observation};
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::sessions::Conn;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::source::Diagnostics;

/// Numbers the requests of each connection, and tells which one an answer answers. Memory: a window of the open requests that bear an id,
/// and a window of connections.
#[derive(Clone)]
pub(super) struct Answers {
    request: Matcher,
    reply: Matcher,
    ids: Keys,
    /// The numbers of open requests, by their ids.
    open: BoundedMap<u64>,
    conns: BoundedMap<Counted>,
}

/// How many requests there were on a connection, and how many answers to those without ids.
#[derive(Clone, Copy, Default)]
struct Counted {
    asked: u64,
    answered: u64,
}

impl Answers {
    pub fn new(rule: &rule::Answered, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            request: b.pattern(&rule.request)?,
            reply: b.pattern(&rule.reply)?,
            ids: Keys::new(rule.id.as_ref(), b)?,
            open: BoundedMap::default(),
            conns: BoundedMap::default(),
        })
    }

    /// How many requests have been sent on a connection.
    pub fn asked(&mut self, conn: Conn) -> u64 {
        self.conns.get(conn.0, None).map_or(0, |counted| counted.asked)
    }

    /// Takes the next message. If it answers a request: how many were sent before that one.
    pub fn observe(&mut self, seen: &Observation<'_>) -> Option<u64> {
        let (asks, replies) = (seen.is(&self.request), seen.is(&self.reply));
        let has_ids = self.ids.are_distinguished();
        let id = if has_ids { self.ids.id(seen, Part::begins(asks)) } else { None };
        let place = seen.conn.0;
        if asks {
            let mut counted = self.conns.remove(place, None).unwrap_or_default();
            if let Some(id) = &id {
                self.open.insert(place, Some(id), counted.asked, 0);
            }
            counted.asked += 1;
            self.conns.insert(place, None, counted, 0);
            return None;
        }
        if !replies {
            return None;
        }
        if has_ids {
            return id.and_then(|id| self.open.remove(place, Some(&id)));
        }
        let counted = self.conns.get(place, None)?;
        // One that comes unasked answers nothing.
        let answers = (counted.answered < counted.asked).then_some(counted.answered)?;
        counted.answered += 1;
        Some(answers)
    }

    pub fn closed(&mut self, conn: Conn) {
        self.ids.closed(conn);
        self.open.leave(conn.0);
        self.conns.leave(conn.0);
    }

    pub fn memory(&self) -> Memory {
        self.ids.memory() + self.open.memory() + self.conns.memory()
    }
}
