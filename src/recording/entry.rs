//! What was said in a recording, as far as it is compared.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::ids::skeleton;
use super::places::Places;
use crate::check::{JudgePair, Member, RulesetPair};
use crate::frame::Limits;
use crate::protocol::Protocol;
use crate::results::event::Way;
use crate::trace::{Direction, Event, Payload, Reader, TraceError};

/// Frames of a recording, and bytes in them.
const FRAMES: u64 = 200_000;
const BYTES: usize = 256 << 20;
/// Frames of one client of a case: finding what belongs together takes the square of it, where nothing does.
const OF_A_CLIENT: usize = 20_000;
/// Cases that are read side by side.
const OPEN: usize = 64;

/// One thing that a client sent, received or did.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Since the start of the recording.
    pub at: Duration,
    /// Where it went.
    pub way: Way,
    /// The message's type, or what it is besides: `open`, `close`, `text`.
    pub kind: String,
    /// What: pieces of a text are put together.
    pub body: Value,
    /// Of how many frames it is made.
    pub pieces: usize,
    /// Which connection of the client it belongs to.
    pub connection: usize,
    /// Without what differs from run to run.
    pub skeleton: String,
}

/// What a client said and heard, in order.
pub type Stream = Vec<Arc<Entry>>;

/// The clients of a case, in the order in which they begin.
pub type Clients = Vec<(Arc<str>, Stream)>;

/// A recording, as far as it is compared.
#[derive(Debug, Default)]
pub struct Recording {
    /// By case (none: a plain recording), in the order in which they begin; by client, likewise.
    pub cases: Vec<(Option<Arc<str>>, Clients)>,
    /// Requirements that it breaks, and how often.
    pub broken: BTreeMap<String, u64>,
    /// Texts that are JSON objects or batches, and those of them that are messages of the protocol.
    pub known: (u64, u64),
    /// When its last frame came.
    pub last: Duration,
    /// Frames that may come at any time, which are not compared.
    pub ambient: u64,
}

/// Why a recording cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A line is no event.
    #[error("{0}")]
    Line(#[from] TraceError),
    /// There is none.
    #[error("{0} is empty: there is no frame in it")]
    Empty(String),
    /// There is too much.
    #[error("{name}:{frame}: {what}")]
    TooLong {
        /// The recording's name.
        name: String,
        /// The frame that is too much.
        frame: u64,
        /// Which bound was reached.
        what: String,
    },
}

/// What recordings are read by.
pub struct Reading<'p> {
    /// Their protocol.
    pub protocol: &'p Protocol,
    /// Its monitors.
    pub rules: &'p RulesetPair,
    /// Where values differ from run to run.
    pub places: &'p Places,
    /// Monitors that a case suspends.
    pub suspended: &'p dyn Fn(&str) -> Vec<String>,
}

impl Reading<'_> {
    /// Reads a recording. `name` is what errors call it.
    ///
    /// # Errors
    /// A line that is no event, nothing at all, or more than is compared.
    pub fn read(&self, name: &str, input: impl BufRead) -> Result<Recording, ReadError> {
        let mut recording = Recording::default();
        let mut judges: Vec<(Option<Arc<str>>, JudgePair)> = Vec::new();
        let (mut frame, mut bytes) = (0, 0);
        let long = |frame, what: String| ReadError::TooLong { name: name.to_owned(), frame, what };
        for event in Reader::new(name, input) {
            let event = event?;
            frame += 1;
            bytes += event.payload.length();
            if frame > FRAMES || bytes > BYTES {
                let what = format!("recordings are compared up to {FRAMES} frames and {} MiB", BYTES >> 20);
                return Err(long(frame, what));
            }
            if judges.last().is_none_or(|(case, _)| *case != event.case) {
                let known = judges.iter().position(|(case, _)| *case == event.case);
                let next = known.map(|known| judges.remove(known)).unwrap_or_else(|| {
                    let suspended = event.case.as_deref().map(self.suspended).unwrap_or_default();
                    (event.case.clone(), self.rules.judge(Limits::default(), &suspended))
                });
                if judges.len() >= OPEN {
                    recording.broke(judges.remove(0).1.finish(false).judged.violations);
                }
                judges.push(next);
            }
            let Some((_, judge)) = judges.last_mut() else { continue };
            let judged = judge.observe(&event).judged;
            recording.known.0 += u64::from(judged.body.is_some() || !judged.batch.is_empty());
            recording.known.1 += u64::from(judged.is_known());
            recording.broke(judged.violations);
            recording.last = recording.last.max(event.at);
            let mut length = 0;
            if judged.batch.is_empty() {
                length = self.add(&mut recording, &event, judged.message, judged.body);
            }
            for Member { body, message } in judged.batch {
                length = length.max(self.add(&mut recording, &event, message, Some(body)));
            }
            if length > OF_A_CLIENT {
                return Err(long(
                    frame,
                    format!("more than {OF_A_CLIENT} frames of one client are not compared"),
                ));
            }
        }
        judges.into_iter().for_each(|(_, judge)| recording.broke(judge.finish(false).judged.violations));
        if frame == 0 { Err(ReadError::Empty(name.to_owned())) } else { Ok(recording) }
    }

    /// Adds what was said; returns how much there is of its client.
    fn add(
        &self,
        recording: &mut Recording,
        event: &Event,
        message: Option<usize>,
        body: Option<Value>,
    ) -> usize {
        let is_ambient = message.is_some_and(|message| self.protocol.is_ambient(message));
        // Whoever pings, libraries answer.
        let is_upkeep = matches!(
            (&event.payload, event.dir),
            (Payload::Ping(_), Direction::Recv) | (Payload::Pong(_), Direction::Send)
        );
        if is_ambient || is_upkeep {
            recording.ambient += 1;
            return 0;
        }
        let (kind, body) = self.what(event, message, body);
        let stream = recording.stream(event);
        let before = stream.last().map_or(0, |said| said.connection);
        let said = Entry {
            at: event.at,
            way: match (&event.payload, event.dir) {
                (Payload::Open { .. } | Payload::End(_), _) => Way::Connection,
                (_, Direction::Send) => Way::ToServer,
                (_, Direction::Recv) => Way::ToClient,
            },
            connection: before + usize::from(matches!(event.payload, Payload::Open { .. })),
            skeleton: String::new(),
            kind,
            body,
            pieces: 1,
        };
        self.push(stream, said);
        stream.len()
    }

    /// What it is called, and what is compared of it.
    fn what(&self, event: &Event, message: Option<usize>, body: Option<Value>) -> (String, Value) {
        let bytes = |bytes: &[u8]| json!({ "base64": STANDARD.encode(bytes) });
        let (kind, own) = match &event.payload {
            Payload::Open { url } => ("open", json!({ "url": path_of(url) })),
            Payload::Text(text) => ("text", Value::from(&**text)),
            Payload::Binary(data) => ("binary", bytes(data)),
            Payload::Raw(data) => ("raw", bytes(data)),
            Payload::Ping(data) => ("ping", bytes(data)),
            Payload::Pong(data) => ("pong", bytes(data)),
            Payload::Close { code, reason } => ("close", json!({ "code": code, "reason": &**reason })),
            Payload::End(how) => ("end", json!({ "how": format!("{how:?}").to_lowercase() })),
        };
        let known = message.and_then(|message| self.protocol.messages.get(message));
        let named = || body.as_ref().and_then(|body| self.protocol.type_of(body)).map(str::to_owned);
        let kind = known.map(|known| known.name.clone()).or_else(named).unwrap_or_else(|| kind.to_owned());
        (kind, body.unwrap_or(own))
    }

    /// Puts pieces of a text together: where a server cuts is no difference.
    fn push(&self, stream: &mut Stream, mut said: Entry) {
        if let Some(at) = self.places.piece_of(&said.kind).filter(|_| said.way == Way::ToClient) {
            let text = at.get(&said.body).and_then(Value::as_str).unwrap_or_default().to_owned();
            let mut rest = said.body.clone();
            at.put(&mut rest, Value::from(""));
            said.skeleton = skeleton(&rest, self.places);
            if let Some(last) = stream.last_mut()
                && (last.way, &last.kind, last.connection) == (said.way, &said.kind, said.connection)
                && last.skeleton == said.skeleton
            {
                let last = Arc::make_mut(last);
                let whole = at.get(&last.body).and_then(Value::as_str).unwrap_or_default().to_owned() + &text;
                at.put(&mut last.body, Value::from(whole));
                last.pieces += 1;
                return;
            }
        } else {
            said.skeleton = skeleton(&said.body, self.places);
        }
        stream.push(Arc::new(said));
    }
}

impl Recording {
    fn broke(&mut self, violations: Vec<crate::check::Violation>) {
        for violation in violations {
            violation.requirements.into_iter().for_each(|id| *self.broken.entry(id).or_default() += 1);
        }
    }

    fn stream(&mut self, event: &Event) -> &mut Stream {
        let place = self.cases.iter().rposition(|(case, _)| *case == event.case).unwrap_or_else(|| {
            self.cases.push((event.case.clone(), Vec::new()));
            self.cases.len() - 1
        });
        let clients = &mut self.cases[place].1;
        let place = clients.iter().position(|(client, _)| *client == event.client).unwrap_or_else(|| {
            clients.push((Arc::clone(&event.client), Vec::new()));
            clients.len() - 1
        });
        &mut clients[place].1
    }
}

/// A URL without scheme, host and port: they are the server's address, and not what was asked of it.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}
