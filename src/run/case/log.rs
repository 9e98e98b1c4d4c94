//! What a case has seen: one entry an event.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::check::Judged;
use crate::protocol::Protocol;
use crate::results::event::{FrameRecord, Way};
use crate::run::case::client::ObservedEnd;
use crate::run::case::context::CaseContext;
use crate::run::case::holding::{BLOCK, Bound, Holding, Share};
use crate::run::case::outcome::CaseRecord;
use crate::run::options::{Limits, Retention};
use crate::text::beginning;
use crate::trace::{Direction, End, Event, Payload};

/// How much of a frame the wire log keeps, in bytes.
const MAX_SHOWN: usize = 2048;

/// What a case has seen. The number of an entry is that of its event for the judge.
pub(crate) struct CaseLog {
    case: Arc<str>,
    entries: Vec<LogEntry>,
    /// What was received, whole: where a step of the case looks back.
    texts: Option<Vec<ReceivedText>>,
    /// Every event, where it is kept.
    trace: Option<Vec<Event>>,
    /// Where in the trace each step began, by its pointer.
    step_starts: Vec<(String, usize)>,
    /// When its clock began.
    start: Instant,
    /// The account of the case, and what all of this takes of it.
    holding: Holding,
    share: Share,
    /// The bound of memory that was passed first.
    passed: Option<Bound>,
    /// Received so far.
    frames: u64,
    bytes: u64,
}

/// One event, as the report shows it, with what it was found to be.
#[derive(Debug, Clone)]
pub(crate) struct LogEntry {
    pub line: FrameRecord,
    pub message: Option<usize>,
    /// Of a batch, the messages of its members.
    pub batch: Box<[Option<usize>]>,
    /// It asks or says something: what no library sends by itself.
    pub word: bool,
    /// The requests that were sent with it.
    pub asks: Vec<Request>,
    /// It begins a connection.
    pub connected: bool,
    /// The part of all its messages together; `None`: it has none.
    pub part: Option<Part>,
}

impl LogEntry {
    /// What it is, or each member of its batch; `None`: no message that is known.
    pub fn messages(&self) -> impl Iterator<Item = Option<usize>> {
        let one = self.batch.is_empty().then_some(self.message);
        one.into_iter().chain(self.batch.iter().copied())
    }
}

/// A request, by what its reply will be known.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The correlation id.
    pub id: Value,
    /// Its type.
    pub kind: Option<String>,
}

/// The part that a message plays in the conversation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Part {
    /// It ends a turn.
    pub ends_turn: bool,
    /// It refuses something.
    pub refuses: bool,
    /// It may come at any time.
    pub ambient: bool,
}

impl Part {
    /// What two messages of a frame are together: it may come at any time if both may.
    fn and(self, other: Self) -> Self {
        Self {
            ends_turn: self.ends_turn || other.ends_turn,
            refuses: self.refuses || other.refuses,
            ambient: self.ambient && other.ambient,
        }
    }
}

/// A text that a client received.
pub(crate) struct ReceivedText {
    pub index: u64,
    pub client: String,
    pub text: Arc<str>,
}

impl CaseLog {
    pub fn new(cx: &CaseContext<'_>) -> Self {
        let looks_back = cx.loaded.case.steps.iter().any(|step| step.looks_back());
        let holding = Holding::default();
        Self {
            case: cx.loaded.id.as_str().into(),
            entries: Vec::new(),
            texts: looks_back.then(Vec::new),
            trace: (cx.options.retention == Retention::Trace).then(Vec::new),
            step_starts: Vec::new(),
            start: Instant::now(),
            share: holding.share(0),
            holding,
            passed: None,
            frames: 0,
            bytes: 0,
        }
    }

    /// An event of this case that happens now, or happened at a time.
    pub fn event(&self, at: Option<Instant>, client: &str, dir: Direction, payload: Payload) -> Event {
        let at = at.map_or_else(|| self.elapsed(), |at| at.saturating_duration_since(self.start));
        Event { at, case: Some(Arc::clone(&self.case)), client: client.into(), dir, payload, why: None }
    }

    /// Takes in the next event, with what it was found to be, and its requests. The result is its number.
    pub fn push(&mut self, event: Event, judged: &Judged, asks: Vec<Request>) -> u64 {
        let index = self.next_index();
        let word = match event.payload {
            Payload::Text(_) | Payload::Binary(_) => true,
            Payload::Ping(_) => event.dir == Direction::Send,
            _ => false,
        };
        let connected = matches!(event.payload, Payload::Open { .. });
        let line = wire_line(index, &event);
        let batch: Box<[_]> = judged.batch.iter().map(|member| member.message).collect();
        self.share.grow(weight(&line, &event.payload) + size_of_val(&*batch));
        let message = judged.message;
        self.entries.push(LogEntry { line, message, batch, word, asks, connected, part: None });
        if self.passed.is_none() {
            self.keep(index, event);
        }
        index
    }

    /// Keeps an event whole for who looks back or wants the trace. Where that is too much, it is not kept: it may be the largest of all,
    /// and come in every case; nor is what follows.
    fn keep(&mut self, index: u64, event: Event) {
        if let (Some(texts), Payload::Text(text), Direction::Recv) =
            (&mut self.texts, &event.payload, event.dir)
        {
            self.share.grow(size_of::<ReceivedText>() + text.len() + BLOCK);
            texts.push(ReceivedText { index, client: event.client.to_string(), text: Arc::clone(text) });
        }
        let received = event.dir == Direction::Recv;
        let whole = size_of::<Event>() + event.payload.length() + BLOCK;
        if let Some(trace) = &mut self.trace {
            self.share.grow(whole);
            trace.push(event);
        }
        self.passed = if received { self.holding.passed() } else { None };
        if self.passed.is_some()
            && let Some(trace) = &mut self.trace
        {
            trace.pop();
            self.share.shrink(whole);
        }
    }

    /// Notes which part a message of this frame plays.
    pub fn classify(&mut self, index: u64, part: Part) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            let part = entry.part.map_or(part, |before| before.and(part));
            entry.part = Some(part);
            entry.line.ambient = part.ambient;
        }
    }

    /// Notes that a client sent an event by itself, or that it made a client do so. Of a batch, others may tell more.
    pub fn note_automatic(&mut self, index: u64) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            entry.line.automatic = entry.batch.is_empty() || entry.line.way == Way::ToServer;
        }
    }

    /// Shows an event in other words.
    pub fn describe(&mut self, index: u64, text: String) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            entry.line.text = text;
        }
    }

    /// Notes that a step begins, for whoever wants to know what came of it.
    pub fn begin_step(&mut self, pointer: &str) {
        if let Some(trace) = &self.trace {
            self.step_starts.push((pointer.to_owned(), trace.len()));
        }
    }

    /// Counts what is received, against the limits of a case: the sentence about the one that is passed.
    pub fn count(&mut self, payload: &Payload, limits: &Limits) -> Option<String> {
        self.frames += 1;
        self.bytes += match payload {
            Payload::Text(text) => text.len() as u64,
            Payload::Binary(bytes) | Payload::Raw(bytes) => bytes.len() as u64,
            _ => 0,
        };
        if self.frames > limits.frames {
            Some(format!("the server sent more than {} frames in one case", limits.frames))
        } else if self.bytes > limits.bytes {
            Some(format!("the server sent more than {} bytes in one case", limits.bytes))
        } else {
            None
        }
    }

    /// The bound of memory that was passed, if one was.
    pub fn passed_bound(&self) -> Option<Bound> {
        self.passed
    }

    /// The account of the case.
    pub fn holding(&self) -> &Holding {
        &self.holding
    }

    /// Since the case began.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The number of the event that comes next: as many there are.
    pub fn next_index(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The number of the newest event.
    pub fn last_index(&self) -> u64 {
        self.next_index().saturating_sub(1)
    }

    pub fn get(&self, index: u64) -> Option<&LogEntry> {
        self.entries.get(index as usize)
    }

    /// What a client did and saw, oldest first.
    pub fn of_client(&self, client: &str) -> impl DoubleEndedIterator<Item = &LogEntry> {
        self.entries.iter().filter(move |entry| entry.line.client == client)
    }

    /// The texts that a client has received, whole, if a step of the case looks back.
    pub fn texts_of(&self, client: &str) -> impl Iterator<Item = &ReceivedText> {
        self.texts.iter().flatten().filter(move |text| text.client == client)
    }

    /// Whether nothing has come to this client since it sent something last, but for what is automatic.
    pub fn awaits_answer(&self, client: &str) -> bool {
        let mut own = self.of_client(client).rev().map(|entry| &entry.line);
        let last = own.find(|line| !line.ambient && !line.automatic && line.way != Way::Connection);
        last.is_some_and(|line| line.way == Way::ToServer)
    }

    /// Whether a received frame is not the first that the client hears since it sent something.
    pub fn continues(&self, client: &str, index: u64) -> bool {
        let before = self.entries.iter().take(index as usize).rev();
        let mut own = before.filter(|entry| entry.line.client == client && entry.word && !entry.line.ambient);
        own.next().is_some_and(|entry| entry.line.way == Way::ToClient)
    }

    /// Whether the case has sent such a text itself, or may have.
    pub fn may_have_sent(&self, text: &str) -> bool {
        let mut lines = self.entries.iter().map(|entry| &entry.line);
        lines.any(|line| line.way != Way::ToClient && (line.cut > 0 || line.text.contains(text)))
    }

    /// What is kept of it.
    pub fn finish(self, protocol: &Protocol) -> CaseRecord {
        let mut batches = BTreeMap::new();
        let line = |entry: LogEntry| {
            if !entry.batch.is_empty() {
                batches.insert(entry.line.index, entry.batch);
            }
            let message = entry.message.and_then(|message| protocol.messages.get(message));
            FrameRecord { kind: message.map(|message| message.name.clone()), ..entry.line }
        };
        CaseRecord {
            wire: self.entries.into_iter().map(line).collect(),
            batches,
            trace: self.trace.unwrap_or_default(),
            step_starts: self.step_starts,
            began: Some(self.start),
            windows: Vec::new(),
            shares: vec![self.share],
            crowded_out: self.passed == Some(Bound::Together),
        }
    }
}

/// What an entry takes in memory, with what is noted of it later, in bytes; about.
fn weight(line: &FrameRecord, payload: &Payload) -> usize {
    // A pong waits for the step that looks for it, too.
    let pong = if matches!(payload, Payload::Pong(_)) { payload.length() + 2 * BLOCK } else { 0 };
    // A client's name, a text, and the name of the message.
    size_of::<LogEntry>() + line.client.len() + line.text.len() + 4 * BLOCK + pong
}

/// The first bytes of what is no text.
fn hex(bytes: &[u8]) -> String {
    let shown: Vec<String> = bytes.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
    shown.join(" ") + if bytes.len() > 32 { " …" } else { "" }
}

/// One line of the wire log.
pub(crate) fn wire_line(index: u64, event: &Event) -> FrameRecord {
    let plain = |text: String| Cow::<str>::Owned(text);
    let bytes = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => format!("{} bytes: {text}", bytes.len()),
        _ => format!("{} bytes: {}", bytes.len(), hex(bytes)),
    };
    let text = match &event.payload {
        Payload::Open { url } => plain(format!("connected to {url}")),
        Payload::End(End::Closed) if event.dir == Direction::Send => {
            Cow::Borrowed("the connection was closed by this client")
        }
        Payload::End(how) => plain(ObservedEnd::by(*how).describe()),
        Payload::Close { code, reason } => {
            let code = code.map_or_else(String::new, |code| format!(" {code}"));
            plain(format!("close{code} {reason}").trim_end().to_owned())
        }
        Payload::Text(text) => Cow::Borrowed(&**text),
        Payload::Binary(data) => plain(format!("binary, {}", bytes(data))),
        Payload::Raw(data) => plain(format!("raw, {} bytes: {}", data.len(), hex(data))),
        Payload::Ping(data) => plain(format!("ping, {}", bytes(data))),
        Payload::Pong(data) => plain(format!("pong, {}", bytes(data))),
    };
    let way = match (&event.payload, event.dir) {
        (Payload::Open { .. } | Payload::End(_), _) => Way::Connection,
        (_, Direction::Send) => Way::ToServer,
        (_, Direction::Recv) => Way::ToClient,
    };
    let shown = beginning(&text, MAX_SHOWN);
    FrameRecord {
        index,
        ms: event.at.as_secs_f64() * 1e3,
        client: event.client.to_string(),
        way,
        kind: None,
        ambient: false,
        automatic: false,
        cut: text.len() - shown.len(),
        states: Vec::new(),
        text: shown.to_owned(),
    }
}
