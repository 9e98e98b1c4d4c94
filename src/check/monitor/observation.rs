//! What monitors see.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::check::history::{History, Logged};
use crate::check::sessions::{Conn, Joined};
use crate::protocol::Matcher;
use crate::trace::Direction;

/// One JSON message as monitors see it.
pub(crate) struct Observation<'a> {
    /// Index of the event in the trace.
    pub event: u64,
    /// Since the start of the trace.
    pub at: Duration,
    /// How exactly times are known, and how long they may be.
    pub pace: Pace,
    /// Its connection.
    pub conn: Conn,
    /// How many connections had been opened when it was seen.
    pub opened: u32,
    /// The session of that connection as far as it is known, and what may be missing of it.
    pub session: Joined,
    /// Who sent it.
    pub dir: Direction,
    /// It is a member of a batch: all members have one `event`.
    pub batched: bool,
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

/// Most that measured delays add to a time: what is later than that is late on any machine.
const MOST_DELAYS: Duration = Duration::from_millis(1250);

/// How times are judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// They may be off by this much: whoever measured them was kept waiting.
    pub delays: Duration,
    /// The factor that a slow machine is given.
    pub scale: f64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { delays: Duration::ZERO, scale: 1.0 }
    }
}

impl Pace {
    /// What measured delays add to a time.
    pub fn slack(self) -> Duration {
        self.delays.min(MOST_DELAYS)
    }

    /// A time that the protocol names: what is later than the first is late for sure, what is not later than the second is not.
    pub fn late_after(self, time: Duration) -> (Duration, Duration) {
        let time = Duration::try_from_secs_f64(time.as_secs_f64() * self.scale).unwrap_or(Duration::MAX);
        (time.saturating_add(self.slack()), time.saturating_sub(self.slack()))
    }
}

/// The end of a trace.
pub(crate) struct End<'a> {
    /// Everything that the server had to say has been received, so that duties still open are broken;
    /// otherwise they are not judged.
    pub settled: bool,
    /// When the newest message was seen.
    pub newest: Duration,
    /// How times are judged.
    pub pace: Pace,
    /// The sessions' logs.
    pub history: &'a History,
    /// Events whose consequences nobody waits for.
    pub abandoned: &'a BTreeSet<u64>,
}

impl End<'_> {
    /// Whether what began with this event is still owed.
    pub fn owes(&self, event: u64) -> bool {
        !self.abandoned.contains(&event)
    }
}
