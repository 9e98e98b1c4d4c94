//! What a case sees: each event goes to the wire log and to the judge, each message to its client.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use crate::protocol::Matcher;
use crate::results::Check;
use crate::results::event::{Failure, Verdict, Way, WireLine};
use crate::run::case::client::{ObservedEnd, Received};
use crate::run::case::diagnose::Mark;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::options::Retention;
use crate::run::triage::activity::ActivityLevel;
use crate::trace::{Direction, End, Event, Payload};
use crate::wire::Incoming;

/// What each whole `--timeout-scale` above 1 adds to the delays that are measured.
const SLOW: std::time::Duration = std::time::Duration::from_millis(100);
/// How much of a frame the wire log keeps, in bytes.
const MAX_SHOWN: usize = 2048;

impl Interpreter<'_> {
    /// Records what a client did itself, and shows it to the judge.
    pub fn record(&mut self, client: &str, dir: Direction, payload: Payload) -> crate::check::Judged {
        let event = Event {
            at: self.log.start.elapsed(),
            case: Some(self.cx.loaded.id.as_str().into()),
            client: client.into(),
            dir,
            payload,
        };
        self.observe(event)
    }

    fn observe(&mut self, event: Event) -> crate::check::Judged {
        let index = self.log.wire.len() as u64;
        self.log.wire.push(wire_line(index, &event));
        if let (Some(lag), Some(judge)) = (&self.verdict.lag, &mut self.verdict.judge) {
            // The server shares the machine: it is as late again. Who scales deadlines knows of delays, too.
            let scaled = SLOW.mul_f64((self.cx.run.options.timing.scale - 1.0).clamp(0.0, 1000.0));
            judge.delayed(lag.worst() * 2 + scaled);
        }
        let mut judged = self.verdict.judge.as_mut().map(|judge| judge.observe(&event)).unwrap_or_default();
        let word = match event.payload {
            Payload::Text(_) | Payload::Binary(_) => true,
            Payload::Ping(_) => event.dir == Direction::Send,
            _ => false,
        };
        let connected = matches!(event.payload, Payload::Open { .. });
        self.log.marks.push(Mark { message: judged.message, word, connected, ..Mark::default() });
        self.note_heard(&event, judged.message);
        if let Some(shadow) = &mut self.verdict.shadow {
            let bare = shadow.observe(&event).violations;
            self.excuse(bare, &judged.violations);
        }
        if self.cx.options.retention == Retention::Trace {
            self.log.trace.push(event);
        }
        for violation in std::mem::take(&mut judged.violations) {
            self.violated(violation);
        }
        judged
    }

    /// Notes what a client asks behind its opening, and that the server speaks.
    fn note_heard(&mut self, event: &Event, message: Option<usize>) {
        let said = matches!(event.payload, Payload::Text(_) | Payload::Binary(_));
        let Some(client) = self.conns.clients.get_mut(&*event.client).filter(|_| said) else { return };
        if event.dir == Direction::Send {
            client.asked |= !self.cx.roles.manners.opens(message);
        } else if message.is_some_and(|message| self.cx.protocol.is_ambient(message)) {
            self.cx.run.activity.note_ambient();
        } else {
            // A greeting may be late.
            let answers = client.asked && !self.cx.roles.manners.greets(message);
            self.cx.run.activity.note(if answers { ActivityLevel::Answers } else { ActivityLevel::Openings });
        }
    }

    /// Notes that a step begins, for whoever wants to know what came of it.
    pub fn mark(&mut self) {
        if self.cx.options.retention == Retention::Trace {
            self.log.step_starts.push((self.step.pointer.clone(), self.log.trace.len()));
        }
    }

    /// Waits for the next thing that any client receives. `false`: nothing came before the deadline.
    pub async fn receive_until(&mut self, until: Instant) -> Result<bool, Abort> {
        let wait = tokio::time::timeout_at(until.into(), self.conns.receiver.recv());
        let Ok(Some(incoming)) = wait.await else { return Ok(false) };
        self.receive(incoming);
        // Nothing is looked at behind the frame that broke a MUST.
        while !self.verdict.broken
            && let Ok(incoming) = self.conns.receiver.try_recv()
        {
            self.receive(incoming);
        }
        if self.verdict.broken { Err(Abort::Failed) } else { Ok(true) }
    }

    /// Takes in what has come where much is waiting: a server whose answers nobody reads would stop reading itself.
    pub fn make_room(&mut self) -> Result<(), Abort> {
        while !self.verdict.broken
            && self.conns.receiver.len() * 2 > crate::run::case::connections::QUEUE
            && let Ok(incoming) = self.conns.receiver.try_recv()
        {
            self.receive(incoming);
        }
        if self.verdict.broken { Err(Abort::Failed) } else { Ok(()) }
    }

    fn receive(&mut self, incoming: Incoming) {
        let Some(name) = self.conns.numbers.get(&incoming.connection).cloned() else { return };
        if self
            .conns
            .clients
            .get(&name)
            .is_none_or(|client| client.number != incoming.connection || client.connection.is_none())
        {
            return;
        }
        self.count(&incoming.payload);
        let mut ended = ObservedEnd::from(&incoming.payload, incoming.detail.as_deref());
        if let (Some(ended), Some(client)) = (&mut ended, self.conns.clients.get(&name)) {
            ended.answers = client.closing;
        }
        let event = Event {
            at: incoming.at.saturating_duration_since(self.log.start),
            case: Some(self.cx.loaded.id.as_str().into()),
            client: name.as_str().into(),
            dir: Direction::Recv,
            payload: incoming.payload.clone(),
        };
        let index = self.log.wire.len() as u64;
        let failures = self.verdict.failures.len();
        if let (Some(heard), Payload::Text(text)) = (&mut self.log.texts, &incoming.payload) {
            heard.push((index, name.clone(), Arc::clone(text)));
        }
        if let (Some(probe), Payload::Text(text)) = (&self.cx.probe, &incoming.payload) {
            probe.hears(&name, index, text);
        }
        let judged = self.observe(event);
        if let Some(ended) = &ended {
            self.note_end(index, ended, failures);
        }
        if let (Payload::Pong(bytes), Some(client)) = (&incoming.payload, self.conns.clients.get_mut(&name)) {
            client.pongs.push(Arc::clone(bytes));
        }
        if let Some(ended) = ended
            && let Some(client) = self.conns.clients.get_mut(&name)
        {
            // It may have been found when writing, before this came.
            client.ended.get_or_insert(ended).event.get_or_insert(index);
        }
        if let Some(body) = judged.body {
            let protocol = Arc::clone(&self.cx.protocol);
            let ambient = judged.message.is_some_and(|message| protocol.is_ambient(message));
            self.deliver(
                &name,
                Received { event: index, body, message: judged.message, ambient, ended: None },
            );
        }
    }

    /// Shows in the wire log how a connection ended, and sees to it that bytes which no WebSocket client can read fail the
    /// case, whether or not a requirement speaks of them.
    fn note_end(&mut self, index: u64, ended: &ObservedEnd, failures: usize) {
        if let (Some(line), Some(_)) = (self.log.wire.get_mut(index as usize), &ended.detail) {
            line.text = ended.describe();
        }
        if !ended.is_breach() {
            return;
        }
        match self.verdict.failures.get_mut(failures) {
            Some(failure) => failure.message = ended.describe(),
            None => {
                self.verdict.broken = true;
                let failure = Failure::new(Check::Frame, Verdict::Failed, ended.describe());
                self.fail(failure.shown_by([index]));
            }
        }
    }

    fn deliver(&mut self, name: &str, received: Received) {
        self.vars.seen.learn(name, &received);
        let seen = |matcher: &Matcher| matcher.matches(received.message, Direction::Recv, &received.body);
        let told = self.cx.roles.session_ids.iter().find(|(on, _)| seen(on));
        let id = told.and_then(|(_, at)| at.get(&received.body)).and_then(Value::as_str).map(str::to_owned);
        let logged = self.cx.roles.log.as_ref().filter(|(on, _)| seen(on));
        let logged = logged.and_then(|(_, at)| at.get(&received.body)).and_then(Value::as_i64);
        let turn_over = seen(&self.cx.roles.turn_end);
        if let Some(mark) = self.log.marks.get_mut(received.event as usize) {
            mark.ends = turn_over;
            mark.error = self.cx.roles.errors.as_ref().is_some_and(seen);
        }
        if turn_over && self.goes_on(name, received.event) {
            self.cx.run.activity.note(ActivityLevel::Turns);
        }
        self.capabilities.announced(seen);
        let ambient = received.ambient;
        let Some(client) = self.conns.clients.get_mut(name) else { return };
        if let Some(id) = id {
            if let Some(probe) = self.cx.probe.as_ref().filter(|_| !asked_for(&self.log.wire, &id)) {
                let text = self.log.wire.get(received.event as usize).map_or("", |line| &line.text);
                probe.joins(name, received.event, &id, text);
            }
            self.conns.sessions.ids.insert(client.session.clone(), Some(id));
        }
        if let Some(logged) = logged {
            client.last_seen = Some(client.last_seen.map_or(logged, |last| last.max(logged)));
            client.since_send.push(logged);
        }
        client.received += u64::from(!ambient);
        if ambient && let Some(line) = self.log.wire.get_mut(received.event as usize) {
            line.ambient = true;
        }
        client.turn_over |= turn_over;
        client.queue.push_back(received);
    }

    /// Whether a received frame is not the first that the client hears since it sent something.
    fn goes_on(&self, client: &str, event: u64) -> bool {
        let before = self.log.wire.iter().zip(&self.log.marks).take(event as usize).rev();
        let mut own = before.filter(|(line, mark)| line.client == client && mark.word && !line.ambient);
        own.next().is_some_and(|(line, _)| line.way == Way::ToClient)
    }

    fn count(&mut self, payload: &Payload) {
        self.log.frames += 1;
        self.log.bytes += match payload {
            Payload::Text(text) => text.len() as u64,
            Payload::Binary(bytes) | Payload::Raw(bytes) => bytes.len() as u64,
            _ => 0,
        };
        let limits = &self.cx.run.options.limits;
        let over = if self.log.frames > limits.frames {
            format!("the server sent more than {} frames in one case", limits.frames)
        } else if self.log.bytes > limits.bytes {
            format!("the server sent more than {} bytes in one case", limits.bytes)
        } else {
            return;
        };
        if !self.verdict.broken {
            self.verdict.broken = true;
            self.fail(Failure::new(Check::Limit, Verdict::Failed, over));
        }
    }
}

/// Whether a case has said such an id itself, or may have.
fn asked_for(wire: &[WireLine], id: &str) -> bool {
    wire.iter().any(|line| line.way != Way::ToClient && (line.cut > 0 || line.text.contains(id)))
}

/// The first bytes of what is no text.
fn hex(bytes: &[u8]) -> String {
    let shown: Vec<String> = bytes.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
    shown.join(" ") + if bytes.len() > 32 { " …" } else { "" }
}

fn wire_line(index: u64, event: &Event) -> WireLine {
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
    let most = text.len().min(MAX_SHOWN);
    let shown = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    WireLine {
        index,
        ms: event.at.as_secs_f64() * 1e3,
        client: event.client.to_string(),
        way,
        ambient: false,
        cut: text.len() - shown,
        text: text[..shown].to_owned(),
    }
}
