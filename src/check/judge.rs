//! Frames in, verdicts out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::bounded::Memory;
use super::evidence::{clipped, evidence, is_small};
use super::history::{History, Logged};
use super::monitor::{End, Monitor, Observation, Pace};
use super::replies::{Identity, Requests};
use super::ruleset::{Dispatch, Rule};
use super::sessions::{Opened, Sessions};
use super::tally::Tally;
use super::{Limit, Outcome, Ruleset, Violation};
use crate::frame::{self, FrameError, Limits};
use crate::protocol::{
    Bundle, BundleLevel, BundleVerdict, ConnectionEvent, Counts, InFrame, Protocol, beginning_of, end_of,
};
use crate::results::Check;
use crate::source::Diagnostics;
use crate::source::schema::Violation as Violated;
use crate::trace::{self, Direction, Event, Payload, may_be_sent};

/// Judges one case or one recording. Events go in in the order in which they were seen.
///
/// Memory is bounded, whatever the length of the trace: a frame is dropped when it has been looked at, and most monitors
/// keep a window of 65,536 entries and 16 MiB at most (`series` 64 MiB; each file says of what). `dialogue`, `correlation`
/// and `projection` keep about 1 MiB for each open connection (a projection: for each of its lists), so that memory grows
/// with the number of connections that are open at once. What depends on what was forgotten is not judged,
/// and [`Outcome::limits`] says so.
pub struct Judge {
    rules: Arc<Ruleset>,
    limits: Limits,
    monitors: Vec<Box<dyn Monitor>>,
    /// Their names.
    names: Vec<Arc<str>>,
    dispatch: Dispatch,
    sessions: Sessions,
    history: History,
    requests: Requests,
    seen: Seen,
    /// The longest of the delays that were told, and the scale of times.
    pace: Pace,
    tally: Tally,
    /// For each message of the protocol, what it gave an occasion to break.
    counts: Vec<Counts>,
}

/// How far a trace has come.
#[derive(Default)]
struct Seen {
    /// How many events there were.
    events: u64,
    /// When the newest message was seen.
    newest: Duration,
    /// It is a member of a batch.
    in_batch: bool,
    /// Events whose consequences nobody waits for.
    abandoned: BTreeSet<u64>,
}

impl Seen {
    fn end<'a>(&'a self, settled: bool, pace: Pace, history: &'a History) -> End<'a> {
        End { settled, newest: self.newest, pace, history, abandoned: &self.abandoned }
    }
}

/// What one event turned out to be.
#[derive(Debug, Default)]
pub struct Judged {
    /// The JSON object of a text frame, sent or received, if it is one.
    pub body: Option<Value>,
    /// Its message (index in [`Protocol::messages`]), if it is one.
    pub message: Option<usize>,
    /// Of a batch, its members: then the frame itself has neither body nor message.
    pub batch: Vec<Member>,
    /// What this event broke.
    pub violations: Vec<Violation>,
}

/// A member of a batch.
#[derive(Debug)]
pub struct Member {
    /// The JSON object; or another value, which is no message.
    pub body: Value,
    /// Its message (index in [`Protocol::messages`]), if it is one.
    pub message: Option<usize>,
}

impl Judged {
    /// Whether every message in the frame is one of the protocol.
    pub fn is_known(&self) -> bool {
        self.messages().all(|message| message.is_some())
    }

    /// What the frame is, or each member of its batch: an index as of [`Judged::message`].
    pub fn messages(&self) -> impl Iterator<Item = Option<usize>> {
        let one = self.batch.is_empty().then_some(self.message);
        one.into_iter().chain(self.batch.iter().map(|member| member.message))
    }
}

impl Judge {
    /// A judge with the monitors of the protocol, except those named in `suspended`. Whoever makes several compiles
    /// a [`Ruleset`] once.
    ///
    /// # Errors
    /// An invariant whose pattern does not compile (found when the protocol is loaded, too).
    pub fn new(protocol: Arc<Protocol>, limits: Limits, suspended: &[String]) -> Result<Self, Diagnostics> {
        Ok(Ruleset::compile(&protocol)?.judge(limits, suspended))
    }

    /// A judge with these monitors.
    pub(super) fn of(rules: &Arc<Ruleset>, limits: Limits, active: &[&Rule]) -> Self {
        Self {
            limits,
            monitors: active.iter().map(|rule| rule.monitor.fresh()).collect(),
            names: active.iter().map(|rule| Arc::clone(&rule.name)).collect(),
            dispatch: Dispatch::new(&rules.protocol, active),
            sessions: Sessions::default(),
            history: rules.history.clone(),
            requests: Requests::default(),
            seen: Seen::default(),
            pace: Pace::default(),
            tally: Tally::default(),
            counts: rules.protocol.messages.iter().map(|_| Counts::default()).collect(),
            rules: Arc::clone(rules),
        }
    }

    /// Takes the next event.
    pub fn observe(&mut self, event: &Event) -> Judged {
        let index = self.seen.events;
        self.seen.events += 1;
        let mut judged = Judged::default();
        if self.sessions.is_behind_close(event) {
            let ids = &self.rules.protocol.extension.frames.object;
            let message = "a frame follows a close frame (RFC 6455, 5.5.1)".to_owned();
            self.tally.broken(&Check::Frame, ids, index, message);
        }
        match &event.payload {
            Payload::Open { url } => {
                self.disconnect(&event.client);
                self.open(event, index, url);
            }
            Payload::End(how) => {
                let ids = &self.rules.protocol.extension.frames.object;
                let broken = match how {
                    trace::End::Protocol => Some("the server sent bytes that are not a WebSocket frame"),
                    trace::End::TooLong => Some("the server sent a message longer than the limit"),
                    _ => None,
                };
                if let Some(message) = broken.filter(|_| event.dir == Direction::Recv) {
                    let why =
                        event.why.as_deref().map_or(String::new(), |why| format!(" ({})", clipped(why)));
                    self.tally.broken(&Check::Frame, ids, index, format!("{message}{why}"));
                }
                self.close(event, index, None, None);
                self.disconnect(&event.client);
            }
            Payload::Text(text) => judged = self.text(event, index, text),
            Payload::Binary(_) if event.dir == Direction::Recv => {
                self.sessions.connection(&event.client);
                let ids = self.rules.protocol.extension.frames.object.clone();
                self.tally.broken(&Check::Frame, &ids, index, "the frame is binary, not text".to_owned());
            }
            // Whether a client's binary message counts is the server's affair: a request, of no known kind.
            Payload::Binary(_) => {
                let conn = self.sessions.connection(&event.client);
                self.requests.unread(conn.conn, event.dir);
                self.show(event, index, conn, (None, None), &Value::Null);
            }
            Payload::Raw(_) | Payload::Ping(_) | Payload::Pong(_) => {
                self.sessions.connection(&event.client);
            }
            Payload::Close { code, reason } => {
                self.sessions.connection(&event.client);
                self.close(event, index, *code, Some(reason));
            }
        }
        judged.violations = self.take_violations();
        judged
    }

    /// Tells that the times of events may be off by this much from now on: whoever measures them was kept waiting.
    pub fn delayed(&mut self, delays: Duration) {
        self.pace.delays = self.pace.delays.max(delays);
    }

    /// Tells that what the event of this number asks for may still be under way at the end: what is owed for it then is not judged.
    pub fn abandon(&mut self, event: u64) {
        self.seen.abandoned.insert(event);
    }

    /// Tells that the times of the protocol are to be taken as so many times longer.
    pub fn scaled(&mut self, scale: f64) {
        self.pace.scale = scale;
    }

    fn text(&mut self, event: &Event, index: u64, text: &str) -> Judged {
        let conn = self.sessions.connection(&event.client);
        let protocol = Arc::clone(&self.rules.protocol);
        let frames = &protocol.extension.frames;
        let received = event.dir == Direction::Recv;
        if received {
            self.tally.exercise(&frames.object);
        }
        match protocol.messages_in(text, event.dir, &self.limits) {
            Ok(InFrame::One(body)) => {
                let Member { body, message } = self.message(event, index, conn, body);
                Judged { body: Some(body), message, ..Judged::default() }
            }
            Ok(InFrame::Batch(members)) => {
                self.seen.in_batch = true;
                let judged = self.batch(event, index, members);
                self.seen.in_batch = false;
                judged
            }
            Err(error @ FrameError::BatchTooLong { .. }) if received => {
                // A bound of ours, of which no requirement speaks.
                let violation = Violation::new(&Check::Limit, &[], error.to_string());
                self.tally.list(Violation { event: Some(index), ..violation });
                Judged::default()
            }
            Err(error) => {
                if received {
                    self.tally.broken(&Check::Frame, &frames.object, index, error.to_string());
                    return Judged::default();
                }
                // A client may send rubbish on purpose: it is a request all the same, of no known kind.
                self.requests.unread(conn.conn, event.dir);
                self.show(event, index, conn, (None, None), &Value::Null);
                Judged::default()
            }
        }
    }

    /// Takes the messages of a batch, one after another.
    fn batch(&mut self, event: &Event, index: u64, members: Vec<Value>) -> Judged {
        let mut judged = Judged::default();
        for (number, member) in members.into_iter().enumerate() {
            // The message before may have told the session.
            let conn = self.sessions.connection(&event.client);
            if member.is_object() {
                judged.batch.push(self.message(event, index, conn, member));
                continue;
            }
            if event.dir == Direction::Recv {
                let ids = self.rules.protocol.extension.frames.object.clone();
                let found = frame::name_of(&member);
                let message = format!("message {} of the batch is {found}, not a JSON object", number + 1);
                self.tally.broken(&Check::Frame, &ids, index, message);
            } else {
                self.requests.unread(conn.conn, event.dir);
                self.show(event, index, conn, (None, None), &Value::Null);
            }
            judged.batch.push(Member { body: member, message: None });
        }
        judged
    }

    /// Takes one message.
    fn message(&mut self, event: &Event, index: u64, conn: Opened, body: Value) -> Member {
        let protocol = Arc::clone(&self.rules.protocol);
        let frames = &protocol.extension.frames;
        let received = event.dir == Direction::Recv;
        let mut body = match protocol.take_out(event.dir, body) {
            Ok(body) => body,
            Err(body) => return self.without_envelope(event, index, conn, body),
        };
        let Identity { message, answers, lost, request } =
            self.requests.identify(&protocol, conn.conn, event.dir, &body);
        if received && let Some(bundle) = protocol.bundle() {
            // What the server has generated is about what is on the wire.
            self.vendor(&protocol, bundle, request.as_deref(), &body, index);
        }
        protocol.read_spelling(message, &mut body);
        let logged = self.history.logged(message, event.dir, &body);
        if received {
            self.tally.exercise(&frames.discriminator);
            self.tally.exercise(&frames.message);
            match (message, answers) {
                (_, Some(false)) => self.unmatched(&protocol, &body, index),
                (Some(message), _) => self.validate(&protocol, message, &body, logged, index),
                // The result of a request that the protocol does not know.
                (None, Some(true)) => {}
                (None, None) if lost => {}
                (None, None) => self.unknown(&protocol, &body, index),
            }
            if answers == Some(true) {
                self.tally.exercise(protocol.unmatched());
            }
        }
        let conn = self.learn_session(event, conn, message, &body);
        self.show(event, index, conn, (message, logged), &body);
        self.follow_turn(event, conn, message, &body);
        Member { body, message }
    }

    /// Takes an object that has no message where its envelope should have it.
    fn without_envelope(&mut self, event: &Event, index: u64, conn: Opened, body: Value) -> Member {
        let protocol = Arc::clone(&self.rules.protocol);
        match protocol.envelope(event.dir) {
            Some(at) if event.dir == Direction::Recv => {
                let ids = protocol.extension.frames.untyped();
                let message = format!("{at} is missing: the frame has no message in its envelope");
                self.tally.exercise(ids);
                if let Some(violation) = self.tally.broken(&Check::Message, ids, index, message) {
                    violation.actual = Some(evidence(&body));
                }
            }
            _ => self.requests.unread(conn.conn, event.dir),
        }
        self.show(event, index, conn, (None, None), &body);
        Member { body, message: None }
    }

    /// A connection begins, and that is shown: as the server's answer.
    fn open(&mut self, event: &Event, index: u64, url: &str) {
        let protocol = Arc::clone(&self.rules.protocol);
        let mut conn = self.sessions.connection(&event.client);
        if let Some(id) = protocol.session_in(url) {
            conn = self.sessions.join(&event.client, id).unwrap_or(conn);
        }
        let opened = protocol.index_of_event(ConnectionEvent::Open);
        let event = Event { dir: Direction::Recv, ..event.clone() };
        self.show(&event, index, conn, (Some(opened), None), &beginning_of(url));
    }

    /// A side ends a connection, by a close frame or without one, and that is shown once.
    fn close(&mut self, event: &Event, index: u64, code: Option<u16>, reason: Option<&str>) {
        let protocol = Arc::clone(&self.rules.protocol);
        if let Some(code) = code.filter(|code| event.dir == Direction::Recv && !may_be_sent(*code)) {
            let message = format!("a close frame has the code {code}, which may not be sent (RFC 6455, 7.4)");
            self.tally.broken(&Check::Frame, &protocol.extension.frames.object, index, message);
        }
        let Some(conn) = self.sessions.closes(&event.client, event.dir) else { return };
        let by = if conn.closing.client { Direction::Send } else { event.dir };
        let closed = protocol.index_of_event(ConnectionEvent::Close);
        self.show(event, index, conn, (Some(closed), None), &end_of(code, reason, by));
    }

    fn take_violations(&mut self) -> Vec<Violation> {
        let mut violations = self.tally.take_violations();
        for violation in &mut violations {
            let invariant = violation.invariant(&self.rules.protocol);
            violation.warns |= invariant.is_some_and(|invariant| invariant.warns);
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
        self.seen.newest = self.seen.newest.max(event.at);
        let (pace, session, opened) = (self.pace, on.session.id, self.sessions.opened());
        let seen = observation(on, opened, (event, index), pace, message, body, &self.history);
        let batched = self.seen.in_batch;
        let whole = Observation { logged, batched, ..seen };
        for monitor in self.dispatch.wanting(message, event.dir) {
            self.monitors[*monitor].observe(&whole, &mut self.tally);
        }
        if let Some(logged) = logged {
            self.history.record(session, logged, index, on.conn);
        }
        let Some(message) = message else { return };
        for (number, part) in self.rules.protocol.parts().iter().enumerate() {
            let number = self.rules.protocol.messages.len() + number;
            let wanted = self.dispatch.wanting(Some(number), event.dir);
            if wanted.is_empty() || !part.of.contains(&message) {
                continue;
            }
            for element in part.elements(body) {
                let seen =
                    observation(on, opened, (event, index), pace, Some(number), &element, &self.history);
                let seen = Observation { batched, ..seen };
                for monitor in wanted {
                    self.monitors[*monitor].observe(&seen, &mut self.tally);
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
        self.tally.exercise(&protocol.extension.frames.schema);
        let counts = &mut self.counts[message];
        let message = &protocol.messages[message];
        message.count(body, logged.map(|_| self.history.fields().layout), counts);
        let findings = message.validate(body);
        let shared = findings.len() > 1 && is_small(body);
        for (number, finding) in findings.into_iter().enumerate() {
            let violation = Violation::new(&Check::Schema, &finding.requirements, finding.message);
            let violation = self.tally.list(Violation { event: Some(index), ..violation });
            // The frame is the same for all: where it is large, the first has it.
            if let Some(violation) = violation.filter(|_| number == 0 || shared) {
                violation.actual = Some(evidence(body));
            }
        }
    }

    /// Judges a message by the schemas that the server has generated.
    fn vendor(
        &mut self,
        protocol: &Protocol,
        bundle: &Bundle,
        request: Option<&str>,
        body: &Value,
        index: u64,
    ) {
        let name = protocol.type_of(body);
        let verdict = match name {
            Some(name) => bundle.message(name, body),
            None => bundle.reply(&protocol.extension, request, body),
        };
        let told = match verdict {
            BundleVerdict::Unjudged | BundleVerdict::Valid => return,
            BundleVerdict::Unknown => {
                let name = clipped(name.unwrap_or_default());
                vec![format!("the server's own schemas have no message `{name}`")]
            }
            BundleVerdict::Refused(place, violations) => {
                let told = |one: &Violated| format!("the server's own schema {place} refuses this: {one}");
                violations.iter().map(told).collect()
            }
        };
        for (number, message) in told.into_iter().enumerate() {
            let warns = bundle.level == BundleLevel::Warning;
            let violation = Violation::new(&Check::VendorSchema, &[], message);
            let violation = self.tally.list(Violation { event: Some(index), warns, ..violation });
            if let Some(violation) = violation.filter(|_| number == 0) {
                violation.actual = Some(evidence(body));
            }
        }
    }

    fn unmatched(&mut self, protocol: &Protocol, body: &Value, index: u64) {
        let message = "a reply without an open request on this connection".to_owned();
        if let Some(violation) = self.tally.broken(&Check::Reply, protocol.unmatched(), index, message) {
            violation.actual = Some(evidence(body));
        }
    }

    fn unknown(&mut self, protocol: &Protocol, body: &Value, index: u64) {
        let at = &protocol.extension.discriminator;
        let message = match at.get(body) {
            None => format!("{at} is missing: the frame has no type"),
            Some(Value::String(name)) => {
                format!("the server may not send a message `{}`", clipped(name))
            }
            Some(other) => format!("{at} must be a string, not {}", crate::protocol::shorten(other)),
        };
        let frames = &protocol.extension.frames;
        let named = at.get(body).is_some_and(Value::is_string);
        let ids = if named { &frames.message } else { frames.untyped() };
        if let Some(violation) = self.tally.broken(&Check::Message, ids, index, message) {
            violation.actual = Some(evidence(body));
        }
    }

    pub(super) fn disconnect(&mut self, client: &str) {
        if let Some(conn) = self.sessions.close(client) {
            self.requests.closed(conn);
            for monitor in &mut self.monitors {
                monitor.closed(conn, &mut self.tally);
            }
        }
    }

    /// The session of the message's connection, which the message may tell.
    fn learn_session(&mut self, event: &Event, on: Opened, message: Option<usize>, body: &Value) -> Opened {
        let ids = &self.rules.protocol.roles().session.ids;
        let told = ids.iter().find(|(on, _)| on.matches(message, event.dir, body));
        match told.and_then(|(_, at)| at.get(body)).and_then(Value::as_str) {
            Some(id) => self.sessions.join(&event.client, id).unwrap_or(on),
            None => on,
        }
    }

    /// Turns that begin and end: whoever joins in the midst of one has not missed what others may yet be told.
    fn follow_turn(&mut self, event: &Event, on: Opened, message: Option<usize>, body: &Value) {
        let roles = self.rules.protocol.roles();
        match event.dir {
            Direction::Send if message.is_some() && message == roles.turn_start => {
                self.sessions.begins_turn(on.session.id);
            }
            Direction::Recv if on.in_turn && roles.turn_end.matches(message, event.dir, body) => {
                self.sessions.ends_turn(&event.client);
            }
            _ => {}
        }
    }

    /// Whether a duty is still open that would be broken if the trace ended now, everything having been seen.
    pub fn is_owed(&self) -> bool {
        let end = self.seen.end(true, self.pace, &self.history);
        self.monitors.iter().any(|monitor| monitor.is_owed(&end))
    }

    /// Ends the trace. `settled`: everything that the server had to say has been seen, so that duties that are
    /// still open are broken.
    pub fn finish(mut self, settled: bool) -> Outcome {
        let end = self.seen.end(settled, self.pace, &self.history);
        for monitor in &mut self.monitors {
            monitor.finish(&end, &mut self.tally);
        }
        for (message, counts) in self.rules.protocol.messages.iter().zip(&self.counts) {
            message.counted(counts).for_each(|(ids, times)| self.tally.exercise_often(ids, times));
        }
        let violations = self.take_violations();
        let limits = self.memory().into_iter().filter(|(_, memory)| memory.forgotten > 0);
        let limits =
            limits.map(|(check, Memory { forgotten, .. })| Limit { check: check.to_owned(), forgotten });
        let limits = limits.collect();
        Outcome { violations, limits, exercised: self.tally.exercised() }
    }

    /// No connection is open.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.sessions.is_idle()
    }

    /// What is in memory, by monitor.
    pub(super) fn memory(&self) -> Vec<(&str, Memory)> {
        let names = self.names.iter().map(|name| &**name);
        let mut memory: Vec<_> = names.zip(self.monitors.iter().map(|monitor| monitor.memory())).collect();
        memory.push(("log", self.history.memory()));
        memory.push(("requests", self.requests.memory()));
        memory.push(("sessions", self.sessions.memory()));
        memory
    }
}

/// A message of a connection, not logged, that came with an event of the trace.
fn observation<'a>(
    on: Opened,
    opened: u32,
    (event, index): (&Event, u64),
    pace: Pace,
    message: Option<usize>,
    body: &'a Value,
    history: &'a History,
) -> Observation<'a> {
    let Opened { conn, session, .. } = on;
    Observation {
        event: index,
        at: event.at,
        pace,
        conn,
        opened,
        session,
        dir: event.dir,
        batched: false,
        message,
        body,
        logged: None,
        history,
    }
}
