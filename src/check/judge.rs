//! Frames in, verdicts out.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::evidence::{clipped, evidence};
use super::history::{History, Logged};
use super::monitor::{Conn, End, Findings, Monitor, Seen, SessionNo};
use super::replies::{Identity, Requests};
use super::window::{Memory, Window};
use super::{Limit, Outcome, Violation, monitors};
use crate::frame::{self, Limits};
use crate::protocol::{Counts, Matcher, Protocol};
use crate::results::Check;
use crate::source::Diagnostics;
use crate::trace::{self, Direction, Event, Payload};

/// Judges one case or one recording. Events go in in the order in which they were seen.
///
/// Memory is bounded, whatever the length of the trace: a frame is dropped when it has been looked at, and most monitors
/// keep a window of 65,536 entries and 16 MiB at most (`series` 64 MiB; each file says of what). `dialogue`, `correlation`
/// and `projection` keep about 1 MiB for each open connection (a projection: for each of its lists), so that memory grows
/// with the number of connections that are open at once. What depends on what was forgotten is not judged,
/// and [`Outcome::limits`] says so.
pub struct Judge {
    protocol: Arc<Protocol>,
    limits: Limits,
    monitors: Vec<Box<dyn Monitor>>,
    /// Their names.
    names: Vec<String>,
    /// For each message of the protocol, the monitors that want it.
    by_message: Vec<Vec<usize>>,
    /// The monitors that want messages of a direction that the protocol does not know.
    by_direction: [Vec<usize>; 2],
    session_ids: Vec<(Matcher, frame::Pointer)>,
    open: FxHashMap<Arc<str>, Opened>,
    sessions: Window<Joined>,
    next_conn: u32,
    history: History,
    requests: Requests,
    next_event: u64,
    /// The longest of the delays that were told.
    delays: Duration,
    findings: Findings,
    /// For each message of the protocol, what it gave an occasion to break.
    counts: Vec<Counts>,
}

/// An open connection.
#[derive(Clone, Copy)]
struct Opened {
    conn: Conn,
    session: Joined,
}

impl Opened {
    /// A message of the connection, not logged, that came with an event of the trace.
    fn seen<'a>(
        self,
        (event, index): (&Event, u64),
        delays: Duration,
        message: Option<usize>,
        body: &'a Value,
        history: &'a History,
    ) -> Seen<'a> {
        let Self { conn, session: Joined { number: session, forgotten, unwatched } } = self;
        let (at, dir) = (event.at, event.dir);
        Seen {
            event: index,
            at,
            delays,
            conn,
            session,
            forgotten,
            unwatched,
            dir,
            message,
            body,
            logged: None,
            history,
        }
    }
}

/// A session as its connections know it.
#[derive(Clone, Copy)]
struct Joined {
    number: SessionNo,
    /// It may have been known before, and forgotten.
    forgotten: bool,
    /// It went on while none of its connections was open.
    unwatched: bool,
}

/// What one event turned out to be.
#[derive(Debug, Default)]
pub struct Judged {
    /// The JSON object of a text frame, sent or received, if it is one.
    pub body: Option<Value>,
    /// Its message (index in [`Protocol::messages`]), if it is one.
    pub message: Option<usize>,
    /// What this event broke.
    pub violations: Vec<Violation>,
}

impl Judge {
    /// A judge with the monitors of the protocol, except those named in `suspended`.
    ///
    /// # Errors
    /// An invariant whose pattern does not compile (found when the protocol is loaded, too).
    pub fn new(protocol: Arc<Protocol>, limits: Limits, suspended: &[String]) -> Result<Self, Diagnostics> {
        let (mut built, mut names) = (Vec::new(), Vec::new());
        for (name, invariant) in &protocol.extension.invariants {
            if !suspended.contains(name) {
                built.push(monitors::build(name, invariant, &protocol)?);
                names.push(name.clone());
            }
        }
        let mut by_message = vec![Vec::new(); protocol.messages.len() + protocol.parts.len()];
        let mut by_direction = [Vec::new(), Vec::new()];
        let mut boxed = Vec::new();
        for (index, built) in built.into_iter().enumerate() {
            for interest in &built.interests {
                match interest.messages() {
                    Some(messages) => messages.iter().for_each(|message| by_message[*message].push(index)),
                    None => {
                        let dir = interest.direction();
                        by_direction[dir as usize].push(index);
                        let all =
                            protocol.messages.iter().enumerate().filter(|(_, message)| message.dir == dir);
                        all.for_each(|(message, _)| by_message[message].push(index));
                    }
                }
            }
            boxed.push(built.monitor);
        }
        for list in by_message.iter_mut().chain(&mut by_direction) {
            list.sort_unstable();
            list.dedup();
        }
        let session_ids = protocol.extension.session.id.iter();
        let session_ids = session_ids
            .map(|place| Ok((Matcher::new(&place.on, &protocol)?, place.at.clone())))
            .collect::<Result<Vec<_>, Diagnostics>>()?;
        let history = History::new(&protocol)?;
        let counts = protocol.messages.iter().map(|_| Counts::default()).collect();
        Ok(Self {
            protocol,
            limits,
            monitors: boxed,
            names,
            by_message,
            by_direction,
            session_ids,
            open: FxHashMap::default(),
            sessions: Window::default(),
            next_conn: 0,
            history,
            requests: Requests::default(),
            next_event: 0,
            delays: Duration::ZERO,
            findings: Findings::default(),
            counts,
        })
    }

    /// Takes the next event.
    pub fn observe(&mut self, event: &Event) -> Judged {
        let index = self.next_event;
        self.next_event += 1;
        let mut judged = Judged::default();
        match &event.payload {
            Payload::Open { url } => {
                self.disconnect(&event.client);
                self.connection(&event.client);
                if let Some(id) = Arc::clone(&self.protocol).session_in(url) {
                    self.in_session(&event.client, id);
                }
            }
            Payload::End(how) => {
                let ids = &self.protocol.extension.frames.object;
                let broken = match how {
                    trace::End::Protocol => Some("the server sent bytes that are no WebSocket frame"),
                    trace::End::TooLong => Some("the server sent a message beyond the length limit"),
                    _ => None,
                };
                if let Some(message) = broken.filter(|_| event.dir == Direction::Recv) {
                    self.findings.broken(&Check::Frame, ids, index, message.to_owned());
                }
                self.disconnect(&event.client);
            }
            Payload::Text(text) => judged = self.text(event, index, text),
            Payload::Binary(_) if event.dir == Direction::Recv => {
                self.connection(&event.client);
                let ids = self.protocol.extension.frames.object.clone();
                self.findings.broken(&Check::Frame, &ids, index, "the frame is binary, not text".to_owned());
            }
            // Whether a client's binary message counts is the server's affair: a request, of no known kind.
            Payload::Binary(_) => {
                let conn = self.connection(&event.client);
                self.show(event, index, conn, (None, None), &Value::Null);
            }
            Payload::Raw(_) | Payload::Ping(_) | Payload::Pong(_) | Payload::Close { .. } => {
                self.connection(&event.client);
            }
        }
        judged.violations = self.take_violations();
        judged
    }

    /// Tells that the times of events may be off by this much from now on: whoever measures them was kept waiting.
    pub fn delayed(&mut self, delays: Duration) {
        self.delays = self.delays.max(delays);
    }

    fn text(&mut self, event: &Event, index: u64, text: &str) -> Judged {
        let conn = self.connection(&event.client);
        let protocol = Arc::clone(&self.protocol);
        let frames = &protocol.extension.frames;
        let received = event.dir == Direction::Recv;
        if received {
            self.findings.exercise(&frames.object);
        }
        let mut body = match frame::parse_text(text, &self.limits) {
            Ok(body) => body,
            Err(error) => {
                if received {
                    self.findings.broken(&Check::Frame, &frames.object, index, error.to_string());
                    return Judged::default();
                }
                // A client may send rubbish on purpose: it is a request all the same, of no known kind.
                self.show(event, index, conn, (None, None), &Value::Null);
                return Judged::default();
            }
        };
        let Identity { message, answers, lost } =
            self.requests.identify(&protocol, conn.conn, event.dir, &body);
        protocol.read_spelling(message, &mut body);
        let logged = self.history.logged(message, event.dir, &body);
        if received {
            self.findings.exercise(&frames.message);
            match (message, answers) {
                (_, Some(false)) => self.unmatched(&protocol, &body, index),
                (Some(message), _) => self.validate(&protocol, message, &body, logged, index),
                // The result of a request that the protocol does not know.
                (None, Some(true)) => {}
                (None, None) if lost => {}
                (None, None) => self.unknown(&protocol, &body, index),
            }
            if answers == Some(true) {
                self.findings.exercise(protocol.unmatched());
            }
        }
        let conn = self.learn_session(event, conn, message, &body);
        self.show(event, index, conn, (message, logged), &body);
        Judged { body: Some(body), message, violations: Vec::new() }
    }

    fn take_violations(&mut self) -> Vec<Violation> {
        let mut violations = std::mem::take(&mut self.findings.violations);
        for violation in &mut violations {
            let invariant = violation.invariant(&self.protocol);
            violation.warns = invariant.is_some_and(|invariant| invariant.warns);
        }
        violations
    }

    /// Shows a message to the monitors that want it.
    fn show(
        &mut self,
        event: &Event,
        index: u64,
        on: Opened,
        (message, logged): (Option<usize>, Option<Logged>),
        body: &Value,
    ) {
        let (delays, session) = (self.delays, on.session.number);
        let whole = Seen { logged, ..on.seen((event, index), delays, message, body, &self.history) };
        let wanted = match message {
            Some(message) => &self.by_message[message],
            None => &self.by_direction[event.dir as usize],
        };
        for monitor in wanted {
            self.monitors[*monitor].observe(&whole, &mut self.findings);
        }
        if let Some(logged) = logged {
            self.history.record(session, logged, index, on.conn);
        }
        let Some(message) = message else { return };
        for (number, part) in self.protocol.parts.iter().enumerate() {
            let number = self.protocol.messages.len() + number;
            let wanted = &self.by_message[number];
            if wanted.is_empty() || !part.of.contains(&message) {
                continue;
            }
            for element in part.elements(body) {
                let seen = on.seen((event, index), delays, Some(number), &element, &self.history);
                for monitor in wanted {
                    self.monitors[*monitor].observe(&seen, &mut self.findings);
                }
            }
        }
    }

    fn validate(
        &mut self,
        protocol: &Protocol,
        message: usize,
        body: &Value,
        logged: Option<Logged>,
        index: u64,
    ) {
        self.findings.exercise(&protocol.extension.frames.schema);
        let counts = &mut self.counts[message];
        let message = &protocol.messages[message];
        message.count(body, logged.map(|_| self.history.fields().layout), counts);
        for finding in message.validate(body) {
            let mut violation = Violation::new(&Check::Schema, &finding.requirements, finding.message);
            violation.event = Some(index);
            violation.actual = Some(evidence(body));
            self.findings.violations.push(violation);
        }
    }

    fn unmatched(&mut self, protocol: &Protocol, body: &Value, index: u64) {
        let message = "a reply to no open request of this connection".to_owned();
        if let Some(violation) = self.findings.broken(&Check::Reply, protocol.unmatched(), index, message) {
            violation.actual = Some(evidence(body));
        }
    }

    fn unknown(&mut self, protocol: &Protocol, body: &Value, index: u64) {
        let at = &protocol.extension.discriminator;
        let message = match at.get(body) {
            None => format!("{at} is missing: the frame says not what it is"),
            Some(Value::String(name)) => {
                format!("the server may not send a message `{}`", clipped(name.clone()))
            }
            Some(other) => format!("{at} must be a string, not {}", clipped(other.to_string())),
        };
        self.findings.broken(&Check::Message, &protocol.extension.frames.message, index, message);
        if let Some(last) = self.findings.violations.last_mut() {
            last.actual = Some(evidence(body));
        }
    }

    /// The client's connection; its first frame opens one where no `Open` did.
    fn connection(&mut self, client: &Arc<str>) -> Opened {
        if let Some(opened) = self.open.get(client) {
            return *opened;
        }
        let (conn, session) = (Conn(self.next_conn), SessionNo(self.next_conn));
        self.next_conn += 1;
        let session = Joined { number: session, forgotten: false, unwatched: false };
        let opened = Opened { conn, session };
        self.open.insert(Arc::clone(client), opened);
        opened
    }

    pub(super) fn disconnect(&mut self, client: &str) {
        if let Some(Opened { conn, .. }) = self.open.remove(client) {
            self.requests.closed(conn);
            for monitor in &mut self.monitors {
                monitor.closed(conn, &mut self.findings);
            }
        }
    }

    /// Connections that were told the same session id are in the same session.
    fn learn_session(&mut self, event: &Event, on: Opened, message: Option<usize>, body: &Value) -> Opened {
        let told = self.session_ids.iter().find(|(on, _)| on.matches(message, event.dir, body));
        match told.and_then(|(_, at)| at.get(body)).and_then(Value::as_str) {
            Some(id) => self.in_session(&event.client, id).unwrap_or(on),
            None => on,
        }
    }

    fn in_session(&mut self, client: &Arc<str>, id: &str) -> Option<Opened> {
        let own = self.open.get(client)?.session;
        let is_watched = |number| self.open.values().any(|other| other.session.number == number);
        let session = match self.sessions.get(0, Some(id)) {
            Some(known) => {
                // A session may be told by several ids; this one then knows no less than the connection.
                let same = known.number == own.number;
                known.unwatched |= if same { own.unwatched } else { !is_watched(known.number) };
                *known
            }
            None => {
                // Nothing was forgotten of a session that is new; whether it is, nobody can tell once some were.
                let new = Joined { forgotten: self.sessions.may_lack(0), ..own };
                self.sessions.insert(0, Some(id), new, size_of::<SessionNo>());
                new
            }
        };
        let opened = self.open.get_mut(client)?;
        opened.session = session;
        Some(*opened)
    }

    /// Ends the trace. `settled`: everything that the server had to say has been seen, so that duties that are
    /// still open are broken.
    pub fn finish(mut self, settled: bool) -> Outcome {
        for monitor in &mut self.monitors {
            monitor.finish(&End { settled, history: &self.history }, &mut self.findings);
        }
        for (message, counts) in self.protocol.messages.iter().zip(&self.counts) {
            message.counted(counts).for_each(|(ids, times)| self.findings.exercise_often(ids, times));
        }
        let violations = self.take_violations();
        let limits = self.memory().into_iter().filter(|(_, memory)| memory.forgotten > 0);
        let limits =
            limits.map(|(check, Memory { forgotten, .. })| Limit { check: check.to_owned(), forgotten });
        let limits = limits.collect();
        Outcome { violations, limits, exercised: self.findings.exercised() }
    }

    /// No connection is open.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// What is in memory, by monitor.
    pub(super) fn memory(&self) -> Vec<(&str, Memory)> {
        let names = self.names.iter().map(String::as_str);
        let mut memory: Vec<_> = names.zip(self.monitors.iter().map(|monitor| monitor.memory())).collect();
        memory.push(("log", self.history.memory()));
        memory.push(("requests", self.requests.memory()));
        memory.push(("sessions", self.sessions.memory()));
        memory
    }
}
