//! JSON lines: the events of a run as they are, from which every other report can be made again.

use std::borrow::Cow;
use std::io::{BufRead, Read, Write};

use serde::Deserialize;
use serde_json::Value;

use super::escape;
use crate::results::event::RunEvent;
use crate::results::kept::KeptEvents;
use crate::results::recorded::Recorded;
use crate::shortage;
use crate::source;

/// One event as one line, without the line end.
pub fn line(event: &RunEvent) -> String {
    // Plain data with string keys and finite numbers, which always serialises.
    let line = serde_json::to_string(event).unwrap_or_default();
    match escape::json(&line) {
        Cow::Borrowed(_) => line,
        Cow::Owned(escaped) => escaped,
    }
}

/// All of them, a line each.
pub fn render(events: &[RunEvent]) -> String {
    events.iter().map(|event| line(event) + "\n").collect()
}

/// Writes all of them, a line each.
///
/// # Errors
/// That of the events, or of `out`.
pub fn write(events: &(impl Recorded + ?Sized), out: &mut dyn Write) -> Result<(), String> {
    for at in 0..events.count() {
        let line = line(&*events.event(at)?) + "\n";
        out.write_all(line.as_bytes()).map_err(|error| shortage::describe(&error))?;
    }
    Ok(())
}

/// Longest line that is read, in bytes.
const MAX_LINE: u64 = 64 << 20;

/// Reads the events of a file that [`line()`] wrote, as far as reports need them.
///
/// # Errors
/// The first line that is no event, with its number.
pub fn read(input: impl BufRead) -> Result<Vec<RunEvent>, String> {
    let mut events = KeptEvents::default();
    each(input, |_, _, event| events.push(event))?;
    Ok(events.into_events())
}

/// Reads events one by one. `take`: gets the place of its line in bytes from the beginning, the length of that, and the event.
///
/// # Errors
/// As [`read`].
pub(super) fn each(
    mut input: impl BufRead,
    mut take: impl FnMut(u64, usize, RunEvent),
) -> Result<(), String> {
    let mut from = 0;
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let read = Read::take(&mut input, MAX_LINE + 1).read_until(b'\n', &mut bytes);
        let length = read.map_err(|error| format!("line {number}: {error}"))?;
        if length == 0 {
            break;
        }
        if length as u64 > MAX_LINE {
            return Err(format!("line {number} is longer than {} MiB", MAX_LINE >> 20));
        }
        let mark = if number == 1 && bytes.starts_with(MARK) { MARK.len() } else { 0 };
        let (own, length) = (from + mark as u64, length - mark);
        from = own + length as u64;
        let line = &bytes[mark..];
        if std::str::from_utf8(line).is_ok_and(|text| text.trim().is_empty()) {
            continue;
        }
        let event = event(line).map_err(|wrong| match wrong {
            None => format!("line {number} is not UTF-8"),
            Some(why) => format!("line {number} is not an event of a run: {why}"),
        })?;
        take(own, length, event);
    }
    Ok(())
}

/// A byte order mark, which editors put at the beginning of files.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// The event of a line.
///
/// # Errors
/// Why it is none; nothing: it is not UTF-8.
pub(super) fn event(line: &[u8]) -> Result<RunEvent, Option<String>> {
    let text = std::str::from_utf8(line).map_err(|_| None)?;
    directly(text).or_else(|error| {
        if text.len() > EXPLAINED {
            return Err(Some(error.to_string()));
        }
        let value: Value = serde_json::from_str(text).map_err(|error| Some(error.to_string()))?;
        source::read(&value).map_err(|error| Some(error.to_string()))
    })
}

/// Lines up to this length are read once more to tell better what is wrong with them, in bytes.
const EXPLAINED: usize = 64 << 10;

/// Reads an event without making a value of the whole line first, which takes many times the memory of a long list.
fn directly(text: &str) -> serde_json::Result<RunEvent> {
    #[derive(Deserialize)]
    struct Tagged<'t> {
        #[serde(borrow)]
        event: Cow<'t, str>,
    }
    #[derive(Deserialize)]
    struct Begun {
        case: String,
        attempt: u32,
    }
    let Tagged { event } = serde_json::from_str(text)?;
    Ok(match &*event {
        "run-started" => RunEvent::RunStarted(serde_json::from_str(text)?),
        "case-started" => {
            let Begun { case, attempt } = serde_json::from_str(text)?;
            RunEvent::CaseStarted { case, attempt }
        }
        "case-finished" => RunEvent::CaseFinished(serde_json::from_str(text)?),
        "run-finished" => RunEvent::RunFinished(serde_json::from_str(text)?),
        other => return Err(serde::de::Error::custom(format!("there is no event `{other}`"))),
    })
}
