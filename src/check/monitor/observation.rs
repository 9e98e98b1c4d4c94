//! What monitors see.

use std::time::Duration;

use serde_json::Value;

use crate::check::history::{History, Logged};
use crate::check::sessions::{Conn, SessionId};
use crate::protocol::Matcher;
use crate::trace::Direction;

/// One JSON message as monitors see it.
pub(crate) struct Observation<'a> {
    /// Index of the event in the trace.
    pub event: u64,
    /// Since the start of the trace.
    pub at: Duration,
    /// Times may be off by this much: whoever measured them was kept waiting.
    pub delays: Duration,
    /// Its connection.
    pub conn: Conn,
    /// The session of that connection as far as it is known.
    pub session: SessionId,
    /// The session may have been known before, and forgotten.
    pub forgotten: bool,
    /// The session went on while none of its connections was open: nobody knows what came then.
    pub unwatched: bool,
    /// Who sent it.
    pub dir: Direction,
    /// Index of its message in the protocol; `None` for one that the protocol does not know (a client may send
    /// such a thing on purpose).
    pub message: Option<usize>,
    /// The whole message.
    pub body: &'a Value,
    /// Its place in the session's log, if it is logged.
    pub logged: Option<Logged>,
    /// The sessions' logs before this message.
    pub history: &'a History,
}

impl Observation<'_> {
    /// Whether the message is one of the pattern's.
    pub fn is(&self, matcher: &Matcher) -> bool {
        matcher.matches(self.message, self.dir, self.body)
    }

    /// Whether it is one of the pattern's, if there is a pattern.
    pub fn is_any(&self, matcher: Option<&Matcher>) -> bool {
        matcher.is_some_and(|matcher| self.is(matcher))
    }
}

/// The end of a trace.
pub(crate) struct End<'a> {
    /// Everything that the server had to say has been received, so that duties still open are broken;
    /// otherwise they are not judged.
    pub settled: bool,
    /// When the newest message was seen.
    pub newest: Duration,
    /// The sessions' logs.
    pub history: &'a History,
}
