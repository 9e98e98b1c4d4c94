//! What a reply is: told by the request that it answers.

use serde_json::Value;

use super::bounded::{BoundedMap, Memory};
use super::sessions::Conn;
use crate::protocol::Protocol;
use crate::trace::Direction;

/// The open requests of every connection. Memory: a window for each direction.
#[derive(Default)]
pub(super) struct Requests([BoundedMap<String>; 2]);

/// What a message turned out to be.
pub(super) struct Identity {
    /// Index of the message, if it is one.
    pub message: Option<usize>,
    /// It is a reply, and whether it answers an open request (an error without an id answers any).
    pub answers: Option<bool>,
    /// It is a reply to a request that may have been forgotten.
    pub lost: bool,
}

impl Requests {
    /// Tells what a message is, and remembers it where it asks for a reply.
    pub fn identify(&mut self, protocol: &Protocol, conn: Conn, dir: Direction, body: &Value) -> Identity {
        let Some(replies) = &protocol.extension.replies else {
            return Identity { message: protocol.message_of(body, dir), answers: None, lost: false };
        };
        let id = replies.id.get(body);
        if protocol.is_reply(body) {
            let open = &mut self.0[dir.other() as usize];
            let request = id.and_then(|id| open.remove(conn.0, Some(&id.to_string())));
            let unreadable = id.is_some_and(Value::is_null) && replies.error.get(body).is_some();
            let message = protocol.reply_of(body, dir, request.as_deref());
            // The request may be forgotten: it cannot be told what the reply is, nor that it is none.
            let lost = request.is_none() && !unreadable && open.may_have_forgotten(conn.0);
            let answers = (!lost).then_some(request.is_some() || unreadable);
            return Identity { message, answers, lost };
        }
        if let Some(id) = id {
            // A client may leave out what the request is, on purpose: it is answered all the same.
            let name = protocol.type_of(body).unwrap_or_default().to_owned();
            let bytes = name.len();
            self.0[dir as usize].insert(conn.0, Some(&id.to_string()), name, bytes);
        }
        Identity { message: protocol.message_of(body, dir), answers: None, lost: false }
    }

    /// A connection is gone, and its requests with it.
    pub fn closed(&mut self, conn: Conn) {
        self.0.iter_mut().for_each(|open| open.leave(conn.0));
    }

    /// What is remembered.
    pub fn memory(&self) -> Memory {
        self.0[0].memory() + self.0[1].memory()
    }
}
