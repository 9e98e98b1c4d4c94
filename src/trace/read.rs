//! NDJSON in.

use std::borrow::Cow;
use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::{Direction, End, Event, Payload};

/// Longest line, in bytes.
const MAX_LINE: u64 = 64 << 20;

/// UTF-8's byte order mark, which some editors write.
const BOM: &[u8] = "\u{feff}".as_bytes();

/// One line of a trace. `frameproof schema trace` publishes its schema.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Line<'a> {
    /// Milliseconds since the start of the trace.
    pub t_ms: f64,
    /// The case it belongs to; none in a plain recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The client's name.
    pub client: String,
    /// `send` (by the client) or `recv`.
    pub dir: String,
    /// `text` (the default), `binary`, `ping`, `pong`, `close`, `open`, `end`, or `raw`: bytes below the messages, which no
    /// monitor sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The text of a text frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// The bytes of a binary, ping or pong frame, or raw bytes, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Close code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// Close reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where a connection was opened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How a connection ended: `closed`, `eof`, `reset`, `protocol`, `too-long` or `dropped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// Why it ended so, where there is more to say: what the bytes broke that are no WebSocket frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The names of the ways in which a connection ends.
pub(super) const ENDS: [(End, &str); 6] = [
    (End::Closed, "closed"),
    (End::Eof, "eof"),
    (End::Reset, "reset"),
    (End::Protocol, "protocol"),
    (End::TooLong, "too-long"),
    (End::Dropped, "dropped"),
];

/// Why a line is no event.
#[derive(Debug, thiserror::Error)]
#[error("{name}:{line}: {message}")]
pub struct TraceError {
    /// The trace's name.
    pub name: String,
    /// Line from 1.
    pub line: usize,
    /// What is wrong, and what is expected.
    pub message: String,
}

/// Reads a trace line by line, in bounded memory. Blank lines are passed over.
pub struct Reader<R> {
    name: String,
    input: R,
    line: usize,
    done: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads from `input`; `name` is what errors call it.
    pub fn new(name: &str, input: R) -> Self {
        Self { name: name.to_owned(), input, line: 0, done: false }
    }

    fn fail(&mut self, message: String) -> TraceError {
        self.done = true;
        TraceError { name: self.name.clone(), line: self.line, message }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Event, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            self.line += 1;
            let mut bytes = Vec::new();
            let read = std::io::Read::take(&mut self.input, MAX_LINE + 1).read_until(b'\n', &mut bytes);
            match read {
                Err(error) => return Some(Err(self.fail(format!("cannot be read: {error}")))),
                Ok(0) => return None,
                Ok(length) if length as u64 > MAX_LINE => {
                    return Some(Err(self.fail(format!("the line is longer than {MAX_LINE} bytes"))));
                }
                Ok(_) => {}
            }
            if self.line == 1 && bytes.starts_with(BOM) {
                bytes.drain(..BOM.len());
            }
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let event = serde_json::from_slice::<Line<'_>>(&bytes)
                .map_err(|error| {
                    let hint = r#"expected a JSON object such as {"t_ms":1.5,"client":"c1","dir":"recv","text":"…"}"#;
                    format!("not an event of a trace: {error}; {hint}")
                })
                .and_then(Line::into_event);
            return Some(event.map_err(|message| self.fail(message)));
        }
        None
    }
}

impl Line<'_> {
    fn into_event(self) -> Result<Event, String> {
        let dir = match self.dir.as_str() {
            "send" => Direction::Send,
            "recv" => Direction::Recv,
            other => return Err(format!("`dir` is {other:?}; expected \"send\" or \"recv\"")),
        };
        let bytes = |field: Option<String>| -> Result<Arc<[u8]>, String> {
            let text = field.unwrap_or_default();
            STANDARD.decode(text).map(Arc::from).map_err(|error| format!("`base64`: {error}"))
        };
        let payload = match self.kind.as_deref().unwrap_or("text") {
            "text" => Payload::Text(self.text.ok_or("a text frame needs `text`")?.into()),
            "binary" => Payload::Binary(bytes(self.base64)?),
            "raw" => Payload::Raw(bytes(self.base64)?),
            "ping" => Payload::Ping(bytes(self.base64)?),
            "pong" => Payload::Pong(bytes(self.base64)?),
            "close" => Payload::Close { code: self.code, reason: self.reason.unwrap_or_default().into() },
            "open" => Payload::Open { url: self.url.unwrap_or_default().into() },
            "end" => {
                let how = self.how.unwrap_or_default();
                let end = ENDS.iter().find(|(_, name)| *name == how).map(|(end, _)| *end);
                Payload::End(end.ok_or_else(|| {
                    format!("`how` is {how:?}; expected closed, eof, reset, protocol, too-long or dropped")
                })?)
            }
            other => {
                return Err(format!(
                    "`kind` is {other:?}; expected text, binary, ping, pong, close, open, end or raw"
                ));
            }
        };
        if !self.t_ms.is_finite() || !(0.0..=1e15).contains(&self.t_ms) {
            return Err("`t_ms` is not a time: milliseconds since the start of the trace are expected".into());
        }
        Ok(Event {
            at: Duration::from_nanos((self.t_ms * 1e6).round() as u64),
            case: self.case.map(Into::into),
            client: self.client.into(),
            dir,
            payload,
            why: self.why.map(Into::into),
        })
    }
}
