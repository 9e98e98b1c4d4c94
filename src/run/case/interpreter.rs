//! One run of one case: its clients, its judge, its wire log.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::check::Judge;
use crate::frame::Pointer;
use crate::protocol::{Matcher, Protocol, ReadingName};
use crate::results::event::{Excused, Failure, LogLine, Verdict, WireLine};
use crate::run::Options;
use crate::run::case::client as clients;
use crate::run::case::client::Clients;
use crate::run::case::diagnose::{Manners, Mark, Silence};
use crate::run::isolation::leaks::Ear;
use crate::run::server::handle::Restarter;
use crate::scenario::LoadedCase;
use crate::scenario::model::Step;
use crate::target::{Instance, Vars};
use crate::trace::Event;
use crate::wire::{Endpoint, Incoming, Standing};

/// Messages that wait for the interpreter; a server that sends more is kept waiting by TCP.
pub(crate) const QUEUE: usize = 256;

/// How the reason begins where the server died.
pub(crate) const DIED: &str = "the server died while this case ran: ";

/// What one run of a case came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
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
    /// A connection ended that its client did not cut: seen when reading, or when writing failed.
    pub lost: bool,
    /// One of them ended without a close frame.
    pub cut: bool,
    /// Why the opening failed, if that ended the case.
    pub opening: Option<String>,
    /// Every wait in vain: the sentence about it, and what the server did meanwhile.
    pub silences: Vec<(String, Silence)>,
    /// When the clock of the wire log began.
    pub began: Option<Instant>,
    /// Why failures that the baseline knows were taken out (by the doctor alone).
    pub known: Option<String>,
    /// The launched server died meanwhile.
    pub dead: bool,
    /// Where to note that somebody has told of it.
    pub grave: Option<Arc<AtomicBool>>,
    /// What the launched server wrote meanwhile.
    pub log: Vec<LogLine>,
    /// Deviations that the overlay excuses.
    pub excused: Vec<Excused>,
}

impl Outcome {
    /// Whether a connection ended that no client ended, or could not be had.
    pub fn lost_connection(&self) -> bool {
        self.lost || matches!(self.reason, Some((Verdict::Error, _)))
    }

    /// Whether that looks like a process that ended: it takes no leave.
    pub fn was_cut(&self) -> bool {
        self.cut || !self.lost
    }

    /// The server died meanwhile: what failed is its death and no requirement.
    pub fn died(&mut self, how: &str) {
        for failure in &mut self.failures {
            failure.verdict = Verdict::Error;
            failure.requirements.clear();
        }
        self.dead = true;
        self.reason = Some((Verdict::Error, format!("{DIED}{how}")));
    }
}

/// Why the steps ended early.
#[derive(Debug)]
pub(crate) enum Stop {
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
pub(crate) struct Runner<'r> {
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
    pub(crate) shadow: Option<Judge>,
    pub clients: Clients,
    pub first_client: Option<String>,
    /// The client that the current templates are about.
    pub current: String,
    /// Session name to id, once it is known.
    pub sessions: HashMap<String, Option<String>>,
    pub vars: HashMap<String, Value>,
    /// What was received, whole, with its index in the wire log and its client: where a step of the case looks back.
    pub heard: Option<Vec<(u64, String, Arc<str>)>>,
    pub outcome: Outcome,
    /// Tells what is heard from what other cases hear; none: nobody else is there.
    pub(crate) ear: Option<Arc<Ear>>,
    /// What each line of the wire log is.
    pub(crate) marks: Vec<Mark>,
    pub(crate) manners: Manners,
    /// How late this process is, where a monitor asks for times.
    pub lag: Option<crate::run::loop_lag::Lag>,
    /// None: everything has been judged.
    pub judge: Option<Judge>,
    pub settled: bool,
    /// How many lines the wire log had when the server had last been silent towards all clients for long enough.
    pub(crate) silent_at: Option<usize>,
    /// Pointer of the current step, relative to the case.
    pub step: String,
    /// The answer taken for the ambiguity by which the current step may fail.
    pub tolerated: Option<ReadingName>,
    /// A failure of the current step is no more than a warning.
    pub warns: bool,
    pub(crate) rng: ChaCha8Rng,
    pub(crate) start: Instant,
    pub(crate) sender: mpsc::Sender<Incoming>,
    pub(crate) receiver: mpsc::Receiver<Incoming>,
    pub(crate) numbers: HashMap<u64, String>,
    pub(crate) next_number: u64,
    pub(crate) session_ids: Vec<(Matcher, Pointer)>,
    /// Ids that the server tells, for `{{seen.NAME}}`.
    pub(crate) seen: crate::run::case::server_ids::Seen,
    pub(crate) log: Option<(Matcher, Pointer)>,
    pub(crate) turn_end: Arc<Matcher>,
    /// The protocol's errors, where it has such a message.
    pub(crate) errors: Option<Matcher>,
    /// Capabilities that the case needs and that the server has not announced yet.
    pub needed: Vec<(String, Matcher)>,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) broken: bool,
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
        let errors = extension.errors.as_ref().map(|errors| Matcher::new(&errors.on, protocol));
        let mut needed = Vec::new();
        for name in &loaded.case.needs {
            let announced = extension.capabilities.get(name).and_then(|known| known.announced.as_ref());
            if let Some(pattern) = announced {
                needed.push((name.clone(), Matcher::new(pattern, protocol).map_err(text)?));
            }
        }
        let (sender, receiver) = mpsc::channel(QUEUE);
        let looks_back = loaded.case.steps.iter().any(Step::looks_back);
        Ok(Self {
            heard: looks_back.then(Vec::new),
            seen: crate::run::case::server_ids::Seen::new(protocol).map_err(text)?,
            session_ids,
            needed,
            log: log.transpose().map_err(text)?,
            turn_end: Matcher::new(&extension.turn.end, protocol).map(Arc::new).map_err(text)?,
            errors: errors.transpose().map_err(text)?,
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
            ear: None,
            marks: Vec::new(),
            manners: Manners::of(protocol),
            lag: extension.is_timed().then(crate::run::loop_lag::Lag::new),
            judge: Some(judge),
            settled: false,
            silent_at: None,
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
