//! What a reply is: told by the request that it answers.

use serde_json::Value;

use super::bounded::{BoundedMap, Memory};
use super::sessions::Conn;
use crate::protocol::Protocol;
use crate::trace::Direction;

/// The open requests of every connection. Memory: a window for each direction, and a number for each connection.
#[derive(Default)]
pub(super) struct Requests {
    open: [BoundedMap<String>; 2],
    /// How many messages that this side could not read as a request may still be answered.
    unread: [BoundedMap<u32>; 2],
}

/// What a message turned out to be.
pub(super) struct Identity {
    /// Index of the message, if it is one.
    pub message: Option<usize>,
    /// It is a reply, and whether it answers an open request (an error without an id answers any).
    pub answers: Option<bool>,
    /// It is a reply to a request that may have been forgotten.
    pub lost: bool,
    /// Of a reply, what its request said that it is.
    pub request: Option<String>,
}

impl Requests {
    /// Tells what a message is, and remembers it where it asks for a reply.
    pub fn identify(&mut self, protocol: &Protocol, conn: Conn, dir: Direction, body: &Value) -> Identity {
        let Some(replies) = &protocol.extension.replies else {
            return Identity {
                message: protocol.message_of(body, dir),
                answers: None,
                lost: false,
                request: None,
            };
        };
        let id = replies.id.get(body);
        if protocol.is_reply(body) {
            let open = &mut self.open[dir.other() as usize];
            let request = id.and_then(|id| open.remove(conn.0, Some(&id.to_string())));
            let unreadable = id.is_some_and(Value::is_null) && replies.error.get(body).is_some();
            let message = protocol.reply_of(body, dir, request.as_deref());
            let answered = request.is_some() || unreadable || self.answers_unread(conn, dir.other());
            // The request may be forgotten: it cannot be told what the reply is, nor that it is none.
            let lost = !answered && self.open[dir.other() as usize].may_have_forgotten(conn.0);
            if !answered && !lost {
                // The other side may take a reply to nothing for a bad request, and say so.
                self.unread(conn, dir);
            }
            return Identity { message, answers: (!lost).then_some(answered), lost, request };
        }
        if let Some(id) = id {
            // A client may leave out what the request is, on purpose: it is answered all the same.
            let name = protocol.type_of(body).unwrap_or_default().to_owned();
            let bytes = name.len();
            self.open[dir as usize].insert(conn.0, Some(&id.to_string()), name, bytes);
        }
        Identity { message: protocol.message_of(body, dir), answers: None, lost: false, request: None }
    }

    /// A message that cannot be read here went this way: whoever receives it may read a request in it, with whatever id, and answer
    /// it once.
    pub fn unread(&mut self, conn: Conn, dir: Direction) {
        let unread = &mut self.unread[dir as usize];
        match unread.get(conn.0, None) {
            Some(times) => *times = times.saturating_add(1),
            None => drop(unread.insert(conn.0, None, 1, 0)),
        }
    }

    fn answers_unread(&mut self, conn: Conn, dir: Direction) -> bool {
        let unread = self.unread[dir as usize].get(conn.0, None);
        unread.filter(|times| **times > 0).map(|times| *times -= 1).is_some()
    }

    /// A connection is gone, and its requests with it.
    pub fn closed(&mut self, conn: Conn) {
        self.open.iter_mut().for_each(|open| open.leave(conn.0));
        self.unread.iter_mut().for_each(|unread| unread.leave(conn.0));
    }

    /// What is remembered.
    pub fn memory(&self) -> Memory {
        let [sent, received] = &self.open;
        sent.memory() + received.memory()
    }
}
