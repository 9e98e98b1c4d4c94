//! One event of a trace.

use std::sync::Arc;
use std::time::Duration;

/// Who sent a frame, seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Client to server.
    Send,
    /// Server to client.
    Recv,
}

impl Direction {
    /// The opposite one.
    pub fn other(self) -> Self {
        match self {
            Self::Send => Self::Recv,
            Self::Recv => Self::Send,
        }
    }
}

/// How a connection ended without a further frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The closing handshake was completed.
    Closed,
    /// End of the TCP stream without a close frame.
    Eof,
    /// TCP reset, or another I/O error.
    Reset,
    /// Bytes that are no WebSocket frame.
    Protocol,
    /// A message longer than this client takes.
    TooLong,
    /// The client itself cut the connection.
    Dropped,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// A connection was opened (the upgrade succeeded); `url` with secrets redacted.
    Open {
        /// Where to.
        url: Arc<str>,
    },
    /// A text message.
    Text(Arc<str>),
    /// A binary message, or text that is not UTF-8.
    Binary(Arc<[u8]>),
    /// Bytes below the messages: what a client wrote as they are (the messages that they complete follow as events of
    /// their own), or what a server sent that is no frame.
    Raw(Arc<[u8]>),
    /// A ping frame.
    Ping(Arc<[u8]>),
    /// A pong frame.
    Pong(Arc<[u8]>),
    /// A close frame; `code` is absent where its body was empty.
    Close {
        /// RFC 6455 close code.
        code: Option<u16>,
        /// Close reason.
        reason: Arc<str>,
    },
    /// The connection is gone.
    End(End),
}

/// Whether RFC 6455 (7.4) lets a close frame have a code: one that is assigned, or of a library or an application.
pub(crate) fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

impl Payload {
    /// How long what it holds is, in bytes.
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Text(text) | Self::Close { reason: text, .. } | Self::Open { url: text } => text.len(),
            Self::Binary(bytes) | Self::Raw(bytes) | Self::Ping(bytes) | Self::Pong(bytes) => bytes.len(),
            Self::End(_) => 0,
        }
    }
}

/// One thing seen at one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Time since the start of the trace.
    pub at: Duration,
    /// The case it belongs to; `None` in a plain recording. Different cases are judged apart.
    pub case: Option<Arc<str>>,
    /// The client's name. A client that reconnects keeps its name; an `Open` starts a new connection.
    pub client: Arc<str>,
    /// From or to the server. `Open` and `End` use the side that acted.
    pub dir: Direction,
    /// What happened.
    pub payload: Payload,
    /// Of an end, why, where there is more to say: what the bytes broke that are no WebSocket frame.
    pub why: Option<Arc<str>>,
}
