//! What was seen on the wire, one event at a time, and its NDJSON form.
//!
//! A trace is what every judgement and every report is made from: a live run, a recording and
//! proxied traffic give the same [`Event`]s.

mod event;
mod file;
mod read;
mod write;

pub(crate) use event::may_be_sent;
pub use event::{Direction, End, Event, Payload};
pub use file::TraceFile;
pub use read::{Line, Reader, TraceError};
pub use write::write_line;
