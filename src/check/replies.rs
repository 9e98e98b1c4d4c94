//! What a reply is: told by the request that it answers.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::monitor::Conn;
use crate::protocol::Protocol;
use crate::trace::Direction;

/// The open requests of every connection. Memory: one entry an open request.
#[derive(Default)]
pub(super) struct Requests(FxHashMap<Conn, FxHashMap<(Direction, String), String>>);

/// What a message turned out to be.
pub(super) struct Identity {
    /// Index of the message, if it is one.
    pub message: Option<usize>,
    /// It is a reply, and whether it answers an open request (an error without an id answers any).
    pub answers: Option<bool>,
}

impl Requests {
    /// Tells what a message is, and remembers it where it asks for a reply.
    pub fn identify(&mut self, protocol: &Protocol, conn: Conn, dir: Direction, body: &Value) -> Identity {
        let Some(replies) = &protocol.extension.replies else {
            return Identity { message: protocol.message_of(body, dir), answers: None };
        };
        let id = replies.id.get(body);
        if protocol.is_reply(body) {
            let open = self.0.entry(conn).or_default();
            let request = id.and_then(|id| open.remove(&(dir.other(), id.to_string())));
            let unreadable = id.is_some_and(Value::is_null) && replies.error.get(body).is_some();
            let message = protocol.reply_of(body, dir, request.as_deref());
            return Identity { message, answers: Some(request.is_some() || unreadable) };
        }
        if let Some(id) = id {
            // A client may leave out what the request is, on purpose: it is answered all the same.
            let name = protocol.type_of(body).unwrap_or_default().to_owned();
            self.0.entry(conn).or_default().insert((dir, id.to_string()), name);
        }
        Identity { message: protocol.message_of(body, dir), answers: None }
    }

    /// A connection is gone, and its requests with it.
    pub fn closed(&mut self, conn: Conn) {
        self.0.remove(&conn);
    }
}
