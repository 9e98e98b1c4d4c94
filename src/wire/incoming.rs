//! What connections hand over.

use std::time::Instant;

use super::room::Room;
use crate::trace::Payload;

/// Something that a connection received, or its end.
#[derive(Debug)]
pub struct Incoming {
    /// The connection's number, as given to [`Link::open`](super::Link::open).
    pub connection: u64,
    /// When it was received.
    pub at: Instant,
    /// What.
    pub payload: Payload,
    /// Of an end, why, in the words of the WebSocket layer.
    pub detail: Option<String>,
    /// More of the connection follows at once, which belongs to it: the bytes that broke the RFC, and the end.
    pub more: bool,
    /// Of a large message: its share of what may wait to be looked at.
    #[expect(dead_code, reason = "it is held, and no more")]
    pub(crate) room: Option<Room>,
}
