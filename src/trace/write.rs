//! NDJSON out.

use std::borrow::Cow;
use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize as _;
use serde_json::ser::{Formatter, Serializer};

use super::read::{ENDS, Line};
use super::{Direction, Event, Payload};
use crate::text::safe;

/// Writes one event as one line, with its newline. A long text is not copied for it.
///
/// # Errors
/// The writer's.
pub fn write_line(event: &Event, mut out: impl Write) -> std::io::Result<()> {
    let mut line = Line {
        t_ms: event.at.as_nanos() as f64 / 1e6,
        case: event.case.as_deref().map(str::to_owned),
        client: event.client.to_string(),
        dir: if event.dir == Direction::Send { "send" } else { "recv" }.to_owned(),
        why: event.why.as_deref().map(str::to_owned),
        ..Line::default()
    };
    let mut kind = |name: &str| line.kind = Some(name.to_owned());
    match &event.payload {
        Payload::Text(_) => {}
        Payload::Binary(_) => kind("binary"),
        Payload::Raw(_) => kind("raw"),
        Payload::Ping(_) => kind("ping"),
        Payload::Pong(_) => kind("pong"),
        Payload::Close { .. } => kind("close"),
        Payload::Open { .. } => kind("open"),
        Payload::End(_) => kind("end"),
    }
    match &event.payload {
        Payload::Text(text) => line.text = Some(Cow::Borrowed(text)),
        Payload::Binary(bytes) | Payload::Raw(bytes) | Payload::Ping(bytes) | Payload::Pong(bytes) => {
            line.base64 = Some(STANDARD.encode(bytes));
        }
        Payload::Close { code, reason } => {
            line.code = *code;
            line.reason = (!reason.is_empty()).then(|| reason.to_string());
        }
        Payload::Open { url } => line.url = Some(url.to_string()),
        Payload::End(end) => {
            line.how = ENDS.iter().find(|(known, _)| known == end).map(|(_, name)| (*name).to_owned());
        }
    }
    // A line has only strings and finite numbers: what fails is the writer.
    line.serialize(&mut Serializer::with_formatter(&mut out, Shown))?;
    out.write_all(b"\n")
}

/// JSON in one line that can be shown as it stands: a trace is looked at, too.
struct Shown;

impl Formatter for Shown {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> std::io::Result<()> {
        safe::write_json(fragment, out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{End, Reader};
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_written_is_read_again() {
        let events: Vec<Event> = [
            Payload::Open { url: "ws://127.0.0.1:1/ws".into() },
            Payload::Text("{\"a\":\"\u{1b}\n\"}".into()),
            Payload::Text("\u{202e}\u{e0041}##[error]x\n::error::y".into()),
            Payload::Binary([0u8, 255, 10].as_slice().into()),
            Payload::Raw([0x81u8, 0x7f].as_slice().into()),
            Payload::Ping([1u8].as_slice().into()),
            Payload::Pong([].as_slice().into()),
            Payload::Close { code: Some(1000), reason: "bye".into() },
            Payload::Close { code: None, reason: "".into() },
            Payload::End(End::Reset),
        ]
        .into_iter()
        .enumerate()
        .map(|(index, payload)| Event {
            at: Duration::from_micros(1500 * index as u64),
            case: (index % 2 == 0).then(|| "family/case".into()),
            client: "c1".into(),
            dir: if index % 3 == 0 { Direction::Send } else { Direction::Recv },
            payload,
            why: (index % 4 == 0).then(|| "the opcode 3 is reserved".into()),
        })
        .collect();
        let mut text = Vec::new();
        events.iter().for_each(|event| write_line(event, &mut text).expect("written"));
        let shown = String::from_utf8(text.clone()).expect("text");
        assert_eq!(safe::lines(&shown), shown, "it can be shown as it stands");
        let read: Vec<Event> = Reader::new("t", &text[..]).map(|event| event.expect("valid")).collect();
        assert_eq!(read, events);
    }

    #[test]
    fn bad_lines_are_named() {
        for (line, expected) in [
            ("{oops", "t:2: not an event of a trace"),
            (r#"{"t_ms":1,"client":"c","dir":"up","text":"x"}"#, "`dir` is \"up\""),
            (r#"{"t_ms":1,"client":"c","dir":"recv"}"#, "needs `text`"),
            (r#"{"t_ms":1,"client":"c","dir":"recv","kind":"flag"}"#, "`kind` is \"flag\""),
            (r#"{"t_ms":-1,"client":"c","dir":"recv","text":"x"}"#, "`t_ms` is not a time"),
            (r#"{"t_ms":1,"client":"c","dir":"recv","txt":"x"}"#, "unknown field `txt`"),
        ] {
            let text = format!("\n{line}\n");
            let error = Reader::new("t", text.as_bytes()).next().expect("one").expect_err(line).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
