//! One run of one case: its clients, its judge, its wire log.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::clients::{Clients, Ended, Received};
use super::event::{Excused, Failure, LogLine, StepPlace, Verdict, WireLine};
use super::host::Restarter;
use super::summary::same;
use super::{Options, clients};
use crate::check::{Judge, Violation};
use crate::frame::Pointer;
use crate::protocol::{Matcher, Protocol, ReadingName};
use crate::scenario::{LoadedCase, template, turn};
use crate::target::{Instance, Vars};
use crate::trace::{Direction, Event, Payload};
use crate::wire::{Endpoint, Incoming, Standing};

/// Messages that wait for the interpreter; a server that sends more is kept waiting by TCP.
const QUEUE: usize = 256;
/// How much of a frame the wire log keeps, in bytes.
const MAX_SHOWN: usize = 2048;

/// What one run of a case came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub failures: Vec<Failure>,
    pub exercised: BTreeMap<String, u64>,
    pub wire: Vec<WireLine>,
    pub trace: Vec<Event>,
    /// Where in the trace each step began, by its pointer: kept with the trace.
    pub marks: Vec<(String, usize)>,
    /// The step of each failure, by its pointer; empty: at the end.
    pub failed_at: Vec<String>,
    /// Not applicable, or a harness error.
    pub reason: Option<(Verdict, String)>,
    /// Why the opening failed, if that ended the case.
    pub opening: Option<String>,
    /// What the launched server wrote meanwhile.
    pub log: Vec<LogLine>,
    /// Deviations that the overlay excuses.
    pub excused: Vec<Excused>,
}

impl Outcome {
    /// Whether a connection ended that no client ended, or could not be had.
    pub fn lost_connection(&self) -> bool {
        let lost = |line: &WireLine| {
            line.dir == "--" && !line.text.starts_with("connected") && !line.text.contains("cut by")
        };
        self.wire.iter().any(lost) || self.opening.is_some() || self.reason.is_some()
    }

    /// The server died meanwhile: what failed is its death and no requirement.
    pub fn died(&mut self, how: &str) {
        for failure in &mut self.failures {
            failure.verdict = Verdict::Error;
            failure.requirements.clear();
        }
        self.reason = Some((Verdict::Error, format!("the server died while this case ran: {how}")));
    }
}

/// Why the steps ended early.
#[derive(Debug)]
pub(super) enum Stop {
    /// A MUST is broken; it is recorded.
    Failed,
    /// A sweep has passed the turn's end.
    SweepDone,
    /// A capability is not offered.
    NotApplicable(String),
    /// The harness or the target broke.
    Error(String),
}

/// The running case.
pub(super) struct Runner<'r> {
    pub protocol: Arc<Protocol>,
    pub loaded: &'r LoadedCase,
    pub options: &'r Options,
    pub endpoint: Endpoint,
    /// What restarts the server, where it is ours.
    pub restarter: Option<Restarter>,
    /// The launched server.
    pub instance: Option<Arc<Instance>>,
    /// What the set-up calls of each session found.
    pub session_vars: HashMap<String, Vars>,
    /// The protocol without the overlays, judging the same frames.
    shadow: Option<Judge>,
    pub clients: Clients,
    pub first_client: Option<String>,
    /// The client that the current templates are about.
    pub current: String,
    /// Session name to id, once it is known.
    pub sessions: HashMap<String, Option<String>>,
    pub vars: HashMap<String, Value>,
    pub outcome: Outcome,
    pub judge: Judge,
    pub settled: bool,
    /// Pointer of the current step, relative to the case.
    pub step: String,
    /// The answer taken for the ambiguity by which the current step may fail.
    pub tolerated: Option<ReadingName>,
    /// A failure of the current step is no more than a warning.
    pub warns: bool,
    pub(super) rng: ChaCha8Rng,
    start: Instant,
    pub(super) sender: mpsc::Sender<Incoming>,
    receiver: mpsc::Receiver<Incoming>,
    pub(super) numbers: HashMap<u64, String>,
    pub(super) next_number: u64,
    session_ids: Vec<(Matcher, Pointer)>,
    /// Ids that the server tells, for `{{seen.NAME}}`.
    pub(super) seen: super::seen::Seen,
    log: Option<(Matcher, Pointer)>,
    turn_end: Matcher,
    /// Capabilities that the case needs and that the server has not announced yet.
    pub needed: Vec<(String, Matcher)>,
    frames: u64,
    bytes: u64,
    broken: bool,
}

impl<'r> Runner<'r> {
    pub fn new(
        protocol: &Arc<Protocol>,
        loaded: &'r LoadedCase,
        options: &'r Options,
        endpoint: Endpoint,
        seed: u64,
    ) -> Result<Self, String> {
        let text = |error: crate::source::Diagnostics| error.to_string();
        let judge =
            Judge::new(Arc::clone(protocol), options.limits.frame, &loaded.case.suspend).map_err(text)?;
        // A case may suspend what the bare protocol does not know.
        let bare = options.bare.as_ref();
        let bare = bare.map(|bare| Judge::new(Arc::clone(bare), options.limits.frame, &loaded.case.suspend));
        let shadow = bare.transpose().map_err(text)?;
        let extension = &protocol.extension;
        let ids = extension.session.id.iter();
        let session_ids = ids
            .map(|place| Ok((Matcher::new(&place.on, protocol)?, place.at.clone())))
            .collect::<Result<Vec<_>, _>>()
            .map_err(text)?;
        let log = extension.log.as_ref().map(|log| Ok((Matcher::new(&log.on, protocol)?, log.id.clone())));
        let mut needed = Vec::new();
        for name in &loaded.case.needs {
            let announced = extension.capabilities.get(name).and_then(|known| known.announced.as_ref());
            if let Some(pattern) = announced {
                needed.push((name.clone(), Matcher::new(pattern, protocol).map_err(text)?));
            }
        }
        let (sender, receiver) = mpsc::channel(QUEUE);
        Ok(Self {
            seen: super::seen::Seen::new(protocol).map_err(text)?,
            session_ids,
            needed,
            log: log.transpose().map_err(text)?,
            turn_end: Matcher::new(&extension.turn.end, protocol).map_err(text)?,
            protocol: Arc::clone(protocol),
            vars: loaded.case.vars.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            loaded,
            options,
            endpoint,
            restarter: None,
            instance: None,
            session_vars: HashMap::new(),
            shadow,
            clients: Clients::new(),
            first_client: None,
            current: String::new(),
            sessions: HashMap::new(),
            outcome: Outcome::default(),
            judge,
            settled: false,
            step: String::new(),
            tolerated: None,
            warns: false,
            rng: ChaCha8Rng::seed_from_u64(seed),
            start: Instant::now(),
            sender,
            receiver,
            numbers: HashMap::new(),
            next_number: 0,
            frames: 0,
            bytes: 0,
            broken: false,
        })
    }

    /// A step's own deadline, or the run's.
    pub fn deadline(&self, own: Option<Duration>) -> Duration {
        self.options.deadline(own.unwrap_or(self.options.step_deadline))
    }

    // ---- templates ---------------------------------------------------------------------------------------------

    /// Fills in the templates of a value, for the current client.
    pub fn expand(&mut self, value: &Value, with: Option<&Value>) -> Result<Value, Stop> {
        template::expand(value, &mut |name| self.lookup(name, with))
            .map_err(|error| Stop::Error(error.to_string()))
    }

    fn lookup(&mut self, name: &str, with: Option<&Value>) -> Option<Value> {
        if let Some(value) = with.and_then(|with| template::dig(with, name)) {
            return Some(value);
        }
        let (root, rest) = name.split_once('.').map_or((name, None), |(root, rest)| (root, Some(rest)));
        if let Some(value) = self.vars.get(root) {
            return match rest {
                Some(rest) => template::dig(value, rest),
                None => Some(value.clone()),
            };
        }
        match root {
            "uuid" => Some(json!(self.uuid())),
            "uid" => {
                let uid = format!("u{:08x}", self.rng.next_u32());
                self.vars.insert("uid".into(), json!(uid));
                Some(json!(uid))
            }
            "cue" => self.cue(rest),
            "tools" => {
                let tool = json!(self.protocol.extension.tools.get(rest?.split('.').next()?)?);
                match rest?.split_once('.') {
                    Some((_, field)) => template::dig(&tool, field),
                    None => Some(tool),
                }
            }
            "session" => {
                let own = self.clients.get(&self.current).map(|client| client.session.clone());
                let session = rest.map(str::to_owned).or(own)?;
                Some(json!(self.sessions.get(&session).cloned().flatten()))
            }
            "seen" => self.seen.value(rest?, &self.current),
            "last_seen" => {
                let client = self.clients.get(rest.unwrap_or(&self.current));
                Some(json!(client.and_then(|client| client.last_seen)))
            }
            _ => None,
        }
    }

    fn cue(&mut self, name: Option<&str>) -> Option<Value> {
        let case = &self.loaded.case;
        let steps = match name {
            Some(name) => case.turns.get(name)?,
            None => case.turn.as_ref()?,
        };
        let protocol = Arc::clone(&self.protocol);
        if let Some(prompt) = self.options.prompts.of(&self.loaded.id, name) {
            return Some(Value::from(prompt));
        }
        turn::cue_text(steps, &protocol, &mut |name| self.lookup(name, None)).ok().map(Value::String)
    }

    pub fn uuid(&mut self) -> String {
        let mut bytes = [0; 16];
        self.rng.fill_bytes(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    // ---- what happens -------------------------------------------------------------------------------------------

    /// Records what a client did itself, and shows it to the judge.
    pub fn record(&mut self, client: &str, dir: Direction, payload: Payload) -> crate::check::Judged {
        let event = Event {
            at: self.start.elapsed(),
            case: Some(self.loaded.id.as_str().into()),
            client: client.into(),
            dir,
            payload,
        };
        self.observe(event)
    }

    fn observe(&mut self, event: Event) -> crate::check::Judged {
        let index = self.outcome.wire.len() as u64;
        self.outcome.wire.push(wire_line(index, &event));
        let mut judged = self.judge.observe(&event);
        if let Some(shadow) = &mut self.shadow {
            let bare = shadow.observe(&event).violations;
            self.excuse(bare, &judged.violations);
        }
        if self.options.trace.is_some() || self.options.keep {
            self.outcome.trace.push(event);
        }
        for violation in std::mem::take(&mut judged.violations) {
            self.violated(violation);
        }
        judged
    }

    /// Notes that a step begins, for whoever wants to know what came of it.
    pub fn mark(&mut self) {
        if self.options.keep {
            self.outcome.marks.push((self.step.clone(), self.outcome.trace.len()));
        }
    }

    /// Waits for the next thing that any client receives. `false`: nothing came before the deadline.
    pub async fn pump(&mut self, until: Instant) -> Result<bool, Stop> {
        let wait = tokio::time::timeout_at(until.into(), self.receiver.recv());
        let Ok(Some(incoming)) = wait.await else { return Ok(false) };
        self.receive(incoming);
        // Nothing is looked at behind the frame that broke a MUST.
        while !self.broken
            && let Ok(incoming) = self.receiver.try_recv()
        {
            self.receive(incoming);
        }
        if self.broken { Err(Stop::Failed) } else { Ok(true) }
    }

    fn receive(&mut self, incoming: Incoming) {
        let Some(name) = self.numbers.get(&incoming.connection).cloned() else { return };
        if self
            .clients
            .get(&name)
            .is_none_or(|client| client.number != incoming.connection || client.connection.is_none())
        {
            return;
        }
        self.count(&incoming.payload);
        let event = Event {
            at: incoming.at.saturating_duration_since(self.start),
            case: Some(self.loaded.id.as_str().into()),
            client: name.as_str().into(),
            dir: Direction::Recv,
            payload: incoming.payload.clone(),
        };
        let index = self.outcome.wire.len() as u64;
        let judged = self.observe(event);
        if let (Payload::Pong(bytes), Some(client)) = (&incoming.payload, self.clients.get_mut(&name)) {
            client.pongs.push(Arc::clone(bytes));
        }
        if let Some(ended) = Ended::from(&incoming.payload)
            && let Some(client) = self.clients.get_mut(&name)
        {
            client.ended.get_or_insert(ended);
        }
        if let Some(body) = judged.body {
            self.take_in(&name, Received { event: index, body, message: judged.message });
        }
    }

    fn take_in(&mut self, name: &str, received: Received) {
        self.seen.learn(name, &received);
        let seen = |matcher: &Matcher| matcher.matches(received.message, Direction::Recv, &received.body);
        let told = self.session_ids.iter().find(|(on, _)| seen(on));
        let id = told.and_then(|(_, at)| at.get(&received.body)).and_then(Value::as_str).map(str::to_owned);
        let logged = self.log.as_ref().filter(|(on, _)| seen(on));
        let logged = logged.and_then(|(_, at)| at.get(&received.body)).and_then(Value::as_i64);
        let turn_over = seen(&self.turn_end);
        self.needed.retain(|(_, on)| !seen(on));
        let ambient = received.message.is_some_and(|message| {
            self.protocol.extension.ambient.contains(&self.protocol.messages[message].name)
        });
        let Some(client) = self.clients.get_mut(name) else { return };
        if let Some(id) = id {
            self.sessions.insert(client.session.clone(), Some(id));
        }
        if let Some(logged) = logged {
            client.last_seen = Some(client.last_seen.map_or(logged, |last| last.max(logged)));
            client.since_send.push(logged);
        }
        client.received += u64::from(!ambient);
        if ambient && let Some(line) = self.outcome.wire.get_mut(received.event as usize) {
            line.ambient = true;
        }
        client.turn_over |= turn_over;
        client.queue.push_back(received);
    }

    fn count(&mut self, payload: &Payload) {
        self.frames += 1;
        self.bytes += match payload {
            Payload::Text(text) => text.len() as u64,
            Payload::Binary(bytes) | Payload::Raw(bytes) => bytes.len() as u64,
            _ => 0,
        };
        let limits = &self.options.limits;
        let over = if self.frames > limits.frames {
            format!("the server sent more than {} frames in one case", limits.frames)
        } else if self.bytes > limits.bytes {
            format!("the server sent more than {} bytes in one case", limits.bytes)
        } else {
            return;
        };
        if !self.broken {
            self.broken = true;
            self.fail(Verdict::Failed, "limit", &[], over, None, None, Vec::new());
        }
    }

    /// Notes what breaks the bare protocol and not the adapted one.
    fn excuse(&mut self, bare: Vec<Violation>, judged: &[Violation]) {
        for one in bare {
            let broken = |other: &Violation| {
                other.check == one.check
                    && (other.requirements == one.requirements || same(&other.message, &one.message))
            };
            if judged.iter().any(broken) {
                continue;
            }
            let excused = &mut self.outcome.excused;
            let known = excused
                .iter_mut()
                .find(|known| known.requirements == one.requirements && same(&known.message, &one.message));
            match known {
                Some(known) => known.count += 1,
                None => excused.push(Excused {
                    requirements: one.requirements,
                    message: one.message,
                    count: 1,
                    case: self.loaded.id.clone(),
                }),
            }
        }
    }

    // ---- failures ----------------------------------------------------------------------------------------------

    fn violated(&mut self, violation: Violation) {
        let fails = !violation.warns && self.protocol.requirements.fails(&violation.requirements);
        let verdict = if fails { Verdict::Failed } else { Verdict::Warned };
        self.broken |= fails;
        let about =
            self.protocol.extension.invariants.get(&violation.check).map(|invariant| &invariant.about);
        let message = match about {
            Some(about) => format!("{about}: {}", violation.message),
            None => violation.message,
        };
        let frames = violation.related.into_iter().chain(violation.event).collect();
        let (expected, actual) = (violation.expected, violation.actual);
        self.fail(verdict, &violation.check, &violation.requirements, message, expected, actual, frames);
    }

    /// Judges what was left open, and adds up what was exercised.
    pub fn finish_judge(self) -> Outcome {
        let mut runner = self;
        let protocol = Arc::clone(&runner.protocol);
        let fresh = Judge::new(protocol, runner.options.limits.frame, &[]);
        let Ok(fresh) = fresh else { return runner.outcome };
        let judge = std::mem::replace(&mut runner.judge, fresh);
        let settled = runner.settled && !runner.broken;
        let (violations, exercised) = judge.finish(settled);
        if let Some(shadow) = runner.shadow.take() {
            runner.excuse(shadow.finish(settled).0, &violations);
        }
        runner.step.clear();
        for violation in violations {
            runner.violated(violation);
        }
        for (id, count) in exercised {
            *runner.outcome.exercised.entry(id).or_default() += count;
        }
        runner.outcome
    }

    /// Records a failure at the current step.
    #[allow(clippy::too_many_arguments, reason = "the parts of a failure, each named at its one place")]
    pub fn fail(
        &mut self,
        verdict: Verdict,
        check: &str,
        requirements: &[String],
        message: String,
        expected: Option<Value>,
        actual: Option<Value>,
        frames: Vec<u64>,
    ) {
        let step = (!self.step.is_empty()).then(|| {
            let (line, column, source) = self.loaded.place(&self.step);
            StepPlace { file: self.loaded.file.clone(), line, column, source: source.trim().to_owned() }
        });
        self.outcome.failed_at.push(self.step.clone());
        self.outcome.failures.push(Failure {
            requirements: requirements.to_vec(),
            verdict,
            check: check.to_owned(),
            message,
            step,
            expected,
            actual,
            frames,
        });
    }

    pub fn exercise(&mut self, ids: &[String]) {
        for id in ids {
            *self.outcome.exercised.entry(id.clone()).or_default() += 1;
        }
    }

    /// Whether something broke a MUST.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    pub fn set_broken(&mut self) {
        self.broken = true;
    }

    /// An error where the client has written half a frame, to which anything sent now would belong.
    pub fn whole(&mut self, client: &str) -> Result<(), Stop> {
        let connection = self.client(client)?.connection.as_ref();
        if connection.is_some_and(|connection| connection.standing() == Standing::MidFrame) {
            let message =
                format!("`{client}` has written half a frame: finish it with `bytes`, or `drop: {client}`");
            return Err(Stop::Error(message));
        }
        Ok(())
    }

    pub fn client(&mut self, name: &str) -> Result<&mut clients::Client, Stop> {
        self.clients.get_mut(name).ok_or_else(|| Stop::Error(format!("client `{name}` was never opened")))
    }
}

/// The first bytes of what was written raw.
fn hex(bytes: &[u8]) -> String {
    let shown: Vec<String> = bytes.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
    shown.join(" ") + if bytes.len() > 32 { " …" } else { "" }
}

fn wire_line(index: u64, event: &Event) -> WireLine {
    let bytes = |bytes: &[u8]| format!("{} bytes: {}", bytes.len(), String::from_utf8_lossy(bytes));
    let (dir, text) = match &event.payload {
        Payload::Open { url } => ("--", format!("connected to {url}")),
        Payload::End(how) => ("--", Ended { code: None, how: Some(*how) }.describe()),
        Payload::Close { code, reason } => {
            let code = code.map_or_else(String::new, |code| format!(" {code}"));
            ("", format!("close{code} {reason}").trim_end().to_owned())
        }
        Payload::Text(text) => ("", text.to_string()),
        Payload::Binary(data) => ("", format!("binary, {}", bytes(data))),
        Payload::Raw(data) => ("", format!("raw, {} bytes: {}", data.len(), hex(data))),
        Payload::Ping(data) => ("", format!("ping, {}", bytes(data))),
        Payload::Pong(data) => ("", format!("pong, {}", bytes(data))),
    };
    let dir = match (dir, event.dir) {
        ("", Direction::Send) => "->",
        ("", Direction::Recv) => "<-",
        (dir, _) => dir,
    };
    let shown =
        text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= MAX_SHOWN).last();
    let shown = shown.unwrap_or(0);
    WireLine {
        index,
        ms: event.at.as_secs_f64() * 1e3,
        client: event.client.to_string(),
        dir: dir.to_owned(),
        ambient: false,
        cut: text.len() - shown,
        text: text[..shown].to_owned(),
    }
}
