//! NDJSON out.

use super::Event;

/// Appends one event as one line (with its newline) to `out`.
pub fn write_line(_event: &Event, _out: &mut Vec<u8>) {
    todo!()
}
