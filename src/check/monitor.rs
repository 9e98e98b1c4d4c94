//! What every monitor has in common.

use std::time::Duration;

use serde_json::Value;

use super::{Exercised, Violation};
use crate::trace::Direction;

/// A connection of the trace, numbered from 0 in the order of opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Conn(pub u32);

/// A session of the trace, numbered from 0. Connections that told the same session id share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionNo(pub u32);

/// One JSON message as monitors see it.
pub(crate) struct Seen<'a> {
    /// Index of the event in the trace.
    pub event: u64,
    /// Since the start of the trace.
    pub at: Duration,
    /// Its connection.
    pub conn: Conn,
    /// The session of that connection as far as it is known.
    pub session: SessionNo,
    /// Who sent it.
    pub dir: Direction,
    /// Index of its message in [`Protocol::messages`](crate::protocol::Protocol::messages); `None` for one
    /// that the protocol does not know (a client may send such a thing on purpose).
    pub message: Option<usize>,
    /// The whole message.
    pub body: &'a Value,
}

/// Where monitors report.
#[derive(Default)]
pub(crate) struct Findings {
    pub violations: Vec<Violation>,
    pub exercised: Exercised,
}

/// A property that is checked event by event.
pub(crate) trait Monitor: Send {
    /// Takes the next message of a type that the monitor asked for.
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings);
    /// A connection is gone: its state can be dropped, unless the session still needs it.
    fn closed(&mut self, _conn: Conn) {}
    /// The trace has ended. `settled`: everything that the server had to say has been received, so that
    /// duties still open are broken; otherwise they are not judged.
    fn finish(&mut self, _settled: bool, _findings: &mut Findings) {}
}
