//! The connections and sessions of a trace.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::bounded::{BoundedMap, Memory};
use crate::trace::{Direction, Event, Payload};

/// A connection of the trace, numbered from 0 in the order of opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Conn(pub u32);

/// A session of the trace. Connections that were told the same session id share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionId(pub u32);

/// An open connection.
#[derive(Clone, Copy)]
pub(super) struct Opened {
    pub conn: Conn,
    pub session: Joined,
    pub closing: Closing,
    /// A turn of the session goes on, as far as this connection has been told.
    pub in_turn: bool,
}

/// Which sides have been seen to close a connection.
#[derive(Clone, Copy, Default)]
pub(super) struct Closing {
    pub client: bool,
    pub server: bool,
    /// The server's close frame has come, and nothing but a close frame was sent since.
    pub over: bool,
}

/// A session as a connection knows it.
#[derive(Clone, Copy)]
pub(crate) struct Joined {
    pub id: SessionId,
    pub gaps: Gaps,
}

/// Why there may be more of a session than is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gaps {
    /// It may have been known before, and forgotten.
    pub forgotten: bool,
    /// It went on while none of its connections was open: nobody knows what came then.
    pub unwatched: bool,
    /// The connection came in the midst of a turn that has not ended for it. What was sent before may be under way to others.
    pub late: bool,
}

impl Gaps {
    /// Whether there may be more of the session than is known.
    pub fn are_any(self) -> bool {
        self.forgotten || self.unwatched
    }

    /// Whether there may be more of the session than has been received so far.
    pub fn may_be_filled(self) -> bool {
        self.are_any() || self.late
    }
}

/// Which connections are open, and which session each is in.
#[derive(Default)]
pub(super) struct Sessions {
    open: FxHashMap<Arc<str>, Opened>,
    known: BoundedMap<Joined>,
    next_conn: u32,
}

impl Sessions {
    /// The client's connection; its first frame opens one where no `Open` did.
    pub fn connection(&mut self, client: &Arc<str>) -> Opened {
        if let Some(opened) = self.open.get(client) {
            return *opened;
        }
        let (conn, id) = (Conn(self.next_conn), SessionId(self.next_conn));
        self.next_conn += 1;
        let session = Joined { id, gaps: Gaps::default() };
        let opened = Opened { conn, session, closing: Closing::default(), in_turn: false };
        self.open.insert(Arc::clone(client), opened);
        opened
    }

    /// A side closes the client's connection. The result is the connection as it was before, if that is new of the side.
    pub fn closes(&mut self, client: &str, dir: Direction) -> Option<Opened> {
        let opened = self.open.get_mut(client)?;
        let before = *opened;
        let closing = &mut opened.closing;
        let side = if dir == Direction::Send { &mut closing.client } else { &mut closing.server };
        (!std::mem::replace(side, true)).then_some(before)
    }

    /// A client begins a turn: it goes on for all connections of the session.
    pub fn begins_turn(&mut self, session: SessionId) {
        let of_session = self.open.values_mut().filter(|other| other.session.id == session);
        of_session.for_each(|other| other.in_turn = true);
    }

    /// The client is told the end of a turn.
    pub fn ends_turn(&mut self, client: &str) {
        if let Some(opened) = self.open.get_mut(client) {
            opened.in_turn = false;
            opened.session.gaps.late = false;
        }
    }

    /// How many connections have been opened so far.
    pub fn opened(&self) -> u32 {
        self.next_conn
    }

    /// Whether a server sends this behind its close frame. Not where the client has sent something in between: in a recording without
    /// the beginnings of connections it may be another connection.
    pub fn is_behind_close(&mut self, event: &Event) -> bool {
        let is_data = matches!(event.payload, Payload::Text(_) | Payload::Binary(_));
        let is_close = matches!(event.payload, Payload::Close { .. });
        if !is_data && !is_close {
            return false;
        }
        self.connection(&event.client);
        let Some(opened) = self.open.get_mut(&event.client) else { return false };
        match event.dir {
            Direction::Recv => {
                let over = opened.closing.over;
                opened.closing.over |= is_close;
                over
            }
            Direction::Send => {
                opened.closing.over &= is_close;
                false
            }
        }
    }

    /// The client's connection is gone.
    pub fn close(&mut self, client: &str) -> Option<Conn> {
        self.open.remove(client).map(|opened| opened.conn)
    }

    /// The client's connection is in the session of this id. Connections that were told the same id share one.
    pub fn join(&mut self, client: &Arc<str>, id: &str) -> Option<Opened> {
        let Opened { session: own, in_turn, .. } = *self.open.get(client)?;
        let is_watched = |session| self.open.values().any(|other| other.session.id == session);
        let session = match self.known.get(0, Some(id)) {
            Some(known) => {
                // A session may be told by several ids; this one then knows no less than the connection.
                let same = known.id == own.id;
                known.gaps.unwatched |= if same { own.gaps.unwatched } else { !is_watched(known.id) };
                *known
            }
            None => {
                // Nothing was forgotten of a session that is new; whether it is, nobody can tell once some were.
                let gaps = Gaps { forgotten: self.known.may_have_forgotten(0), late: false, ..own.gaps };
                let new = Joined { gaps, ..own };
                self.known.insert(0, Some(id), new, size_of::<SessionId>());
                new
            }
        };
        // Most messages tell the session again: only a new one is looked at.
        let (in_turn, late) = if session.id == own.id {
            (in_turn, own.gaps.late)
        } else {
            let goes_on = self.open.values().any(|other| other.session.id == session.id && other.in_turn);
            (goes_on, goes_on)
        };
        let opened = self.open.get_mut(client)?;
        opened.in_turn = in_turn;
        opened.session = Joined { gaps: Gaps { late, ..session.gaps }, ..session };
        Some(*opened)
    }

    /// No connection is open.
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// The ids of sessions that are remembered.
    pub fn memory(&self) -> Memory {
        self.known.memory()
    }
}
