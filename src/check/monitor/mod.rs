//! Monitors: one property of a trace each, checked event by event. One file a kind; `registry` says which there are.

mod absence;
mod agreement;
mod answers;
mod asked;
mod bracket;
mod builder;
mod cadence;
mod concatenation;
mod constant;
mod correlation;
mod cued;
mod dialogue;
mod echo;
mod existence;
mod holds;
mod increasing;
mod increments;
mod items;
mod key;
mod observation;
mod precedence;
mod projection;
mod proportion;
pub(super) mod registry;
mod relation;
mod replay;
mod response;
mod series;
mod server_requests;
mod states;
mod unique;

use super::bounded::Memory;
use super::sessions::Conn;
use super::tally::Tally;

pub(super) use builder::MonitorBuilder;
pub(super) use observation::{End, Observation, Pace};

/// A property that is checked event by event.
pub(crate) trait Monitor: Fresh + Send + Sync {
    /// Takes the next message of a type that the monitor asked for.
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally);
    /// A connection is gone: its state can be dropped, unless the session still needs it.
    fn closed(&mut self, _conn: Conn, _tally: &mut Tally) {}
    /// Whether something is owed that may still come: at the trace's end it would be a violation.
    fn is_owed(&self, _end: &End<'_>) -> bool {
        false
    }
    /// The trace has ended.
    fn finish(&mut self, _end: &End<'_>, _tally: &mut Tally) {}
    /// What it remembers. Of a monitor with a few numbers a connection: nothing.
    fn memory(&self) -> Memory {
        Memory::default()
    }
}

/// How a monitor is made from one that has seen nothing.
pub(crate) trait Fresh {
    /// Another one that has seen nothing. What does not change while it judges is shared.
    fn fresh(&self) -> Box<dyn Monitor>;
}

impl<M: Monitor + Clone + 'static> Fresh for M {
    fn fresh(&self) -> Box<dyn Monitor> {
        Box::new(self.clone())
    }
}
