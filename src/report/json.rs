//! JSON lines: the events of a run as they are, from which every other report can be made again.

use std::io::BufRead;

use serde_json::Value;

use crate::results::event::RunEvent;
use crate::source;

/// One event as one line, without the line end.
pub fn line(event: &RunEvent) -> String {
    // Plain data with string keys and finite numbers, which always serialises.
    serde_json::to_string(event).unwrap_or_default()
}

/// Reads the events of a file that [`line()`] wrote.
///
/// # Errors
/// The first line that is no event, with its number.
pub fn read(input: impl BufRead) -> Result<Vec<RunEvent>, String> {
    let mut events = Vec::new();
    for (index, text) in input.lines().enumerate() {
        let text = text.map_err(|error| format!("line {}: {error}", index + 1))?;
        let text = text.strip_prefix('\u{feff}').filter(|_| index == 0).unwrap_or(&text);
        if text.trim().is_empty() {
            continue;
        }
        let wrong = |why: String| format!("line {} is not an event of a run: {why}", index + 1);
        let value: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        events.push(source::read(&value).map_err(|error| wrong(error.to_string()))?);
    }
    Ok(events)
}
