//! JSON lines: the events of a run as they are, from which every other report can be made again.

use std::io::BufRead;

use serde_json::Value;

use crate::results::event::RunEvent;
use crate::results::kept::KeptEvents;
use crate::source;

/// One event as one line, without the line end.
pub fn line(event: &RunEvent) -> String {
    // Plain data with string keys and finite numbers, which always serialises.
    serde_json::to_string(event).unwrap_or_default()
}

/// All of them, a line each.
pub fn render(events: &[RunEvent]) -> String {
    events.iter().map(|event| line(event) + "\n").collect()
}

/// Longest line that is read, in bytes.
const MAX_LINE: u64 = 64 << 20;

/// Reads the events of a file that [`line()`] wrote, as far as reports need them.
///
/// # Errors
/// The first line that is no event, with its number.
pub fn read(mut input: impl BufRead) -> Result<Vec<RunEvent>, String> {
    let mut events = KeptEvents::default();
    for number in 1.. {
        let mut bytes = Vec::new();
        let read = std::io::Read::take(&mut input, MAX_LINE + 1).read_until(b'\n', &mut bytes);
        let length = read.map_err(|error| format!("line {number}: {error}"))?;
        if length == 0 {
            break;
        }
        if length as u64 > MAX_LINE {
            return Err(format!("line {number} is longer than {} MiB", MAX_LINE >> 20));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| format!("line {number} is not UTF-8"))?;
        let text = text.strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(text);
        if text.trim().is_empty() {
            continue;
        }
        let wrong = |why: String| format!("line {number} is not an event of a run: {why}");
        let value: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        events.push(source::read(&value).map_err(|error| wrong(error.to_string()))?);
    }
    Ok(events.into_events())
}
