//! Cases side by side, retries, and the stop signal.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::begin::started;
use super::case::Outcome;
use super::causes::Causes;
use super::event::{CaseReport, Failure, LogLine, RunEvent, Summary, Verdict};
use super::execute::{inapplicable, run_case};
use super::host::Hosts;
use super::hurry::Hurry;
use super::made_up::CUE;
use super::redact::Secrets;
use super::reports::{panicked, report, verdict_of};
use super::summary::Tally;
use super::{Options, Target};
use super::{deaths, dialect, doctor, isolation, overheard};
use crate::model::{Observer, Record};
use crate::protocol::Protocol;
use crate::reference;
use crate::scenario::LoadedCase;
use crate::target::LaunchFailure;
use crate::trace::{Event, TraceFile};
use crate::wire::ConnectError;

/// The silence that ends a turn of the reference server: it says what it has to say at once. Its own writes take
/// well under a millisecond, and the scenarios' pauses are longer than this.
pub(super) const REFERENCE_QUIET: Duration = Duration::from_millis(10);

/// Why a run cannot begin, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The reference server does not start.
    #[error(transparent)]
    Reference(#[from] reference::StartError),
    /// The target cannot be reached.
    #[error("the target cannot be tested: {0}")]
    Target(#[from] ConnectError),
    /// The target does not start, or cannot be set up.
    #[error("target cannot be tested: {0}")]
    Launch(#[from] LaunchFailure),
    /// Stopped before the first case.
    #[error("interrupted before the first case")]
    Interrupted,
    /// The trace cannot be written.
    #[error("the trace cannot be written to {path}: {error}")]
    Trace {
        /// Where to.
        path: String,
        /// The reason.
        error: std::io::Error,
    },
}

/// What every case of a run shares.
struct Shared {
    protocol: Arc<Protocol>,
    options: Options,
    hosts: Hosts,
    start: Instant,
}

/// Runs the cases and reports each event to `sink` as it happens. Once `stop` turns true no further case begins, those that
/// run are given up, and the summary says so.
///
/// # Errors
/// See [`RunError`]; nothing has been run then.
pub async fn run(
    protocol: Arc<Protocol>,
    cases: Vec<LoadedCase>,
    target: Target,
    mut options: Options,
    sink: &mut (dyn FnMut(&RunEvent) + Send),
    mut stop: watch::Receiver<bool>,
) -> Result<Summary, RunError> {
    let secrets = Secrets::of(&target);
    let asked = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&asked);
    let observer: Observer = Arc::new(move |record| {
        noted.fetch_or(matches!(record, Record::Request(_)), Ordering::Relaxed);
    });
    options.heard = Arc::default();
    match &target {
        Target::Reference { .. } => {
            options.reference = true;
            options.quiet.get_or_insert(REFERENCE_QUIET);
        }
        Target::Url { .. } | Target::Configured(_) => options.salt = uuid::Uuid::new_v4().as_u64_pair().1,
    }
    let hosts = tokio::select! {
        opened = Hosts::open(&protocol, &target, &options, Some(observer)) => opened.map_err(|error| masked(error, &secrets))?,
        true = interrupted(&mut stop) => return Err(RunError::Interrupted),
    };
    let mut trace = open_trace(&options)?;
    let start = Instant::now();
    let protocol = tokio::select! {
        spoken = dialect::spoken(&hosts, &protocol, &target, &mut options) => spoken,
        true = interrupted(&mut stop) => return Err(RunError::Interrupted),
    };
    let tally = Tally::new(&protocol, &options);
    let mut ledger = Ledger { secrets, causes: Causes::default(), tally, sink, spoke: false };
    let begins = started(&protocol, &target, &hosts.url().await, &options, cases.len());
    ledger.tell(&RunEvent::RunStarted(begins));
    let leaked = tokio::select! {
        leaked = leak(&hosts, &protocol, &target, &options, start) => leaked,
        true = interrupted(&mut stop) => None,
    };
    if leaked.is_some() {
        ledger.causes.before(&options.heard, start.elapsed());
    }
    if let Some(report) = leaked.flatten() {
        if report.failures.iter().any(|failure| failure.check == overheard::LEAK) {
            options.jobs = 1;
        }
        ledger.enter(report);
    }
    let mut jobs = options.jobs.max(1);
    // A fault of the reference server is found by what it breaks.
    let faulty = matches!(&target, Target::Reference { fault: Some(_) });
    options.overheard = (jobs > 1 && !faulty).then(Arc::default);
    let mut queue: VecDeque<(Arc<LoadedCase>, u32)> = VecDeque::new();
    for round in 0..options.repeat.max(1) {
        queue.extend(cases.iter().map(|case| (Arc::new(case.clone()), round)));
    }
    // What needs a server of its own comes last, so that the shared one is not stopped in between.
    queue.make_contiguous().sort_by_key(|(case, _)| hosts.is_exclusive(case));
    let shared = Arc::new(Shared { protocol, options, hosts, start });
    let mut running = JoinSet::new();
    let mut names: HashMap<tokio::task::Id, (Arc<LoadedCase>, u32, bool)> = HashMap::new();
    let mut hurry = Hurry::default();
    // What cases came to that met others, which are run again alone.
    let mut disturbed: HashMap<(String, u32), CaseReport> = HashMap::new();
    let mut stopped = None;
    let mut mute = false;
    loop {
        while stopped.is_none()
            && !mute
            && running.len() < jobs
            && queue.front().is_some_and(|(next, _)| {
                names.values().all(|(case, ..)| shared.hosts.are_compatible(case, next))
            })
            && let Some((case, round)) = queue.pop_front()
        {
            let attempt = if disturbed.contains_key(&(case.id.clone(), round)) { 2 } else { 1 };
            ledger.tell(&RunEvent::CaseStarted { case: case.id.clone(), attempt });
            let task = running.spawn(attempts(Arc::clone(&shared), Arc::clone(&case), round, hurry.is_on()));
            names.insert(task.id(), (case, round, hurry.is_on()));
        }
        if queue.is_empty()
            && stopped.is_none()
            && names.values().all(|(.., hasty)| !hasty)
            && let Some(turn) = hurry.last()
        {
            queue.push_back(turn);
            continue;
        }
        if running.is_empty() {
            break;
        }
        tokio::select! {
            Some(done) = running.join_next_with_id() => {
                let (id, done) = match done {
                    Ok((id, done)) => (id, Some(done)),
                    Err(error) if error.is_cancelled() => (error.id(), names.get(&error.id()).map(|(case, ..)| {
                        (not_run(&ledger.causes, case, &shared), Vec::new())
                    })),
                    Err(error) => (error.id(), None),
                };
                let Some((case, round, hasty)) = names.remove(&id) else { continue };
                let (mut report, events) = done.unwrap_or_else(|| panicked(&case, &shared.options));
                if let Some(file) = &mut trace {
                    for event in events {
                        let event = ledger.secrets.event(event);
                        file.write(&event).map_err(|error| no_trace(&shared.options, error))?;
                    }
                }
                if report.failures.iter().any(|failure| failure.check == overheard::LEAK) {
                    jobs = 1;
                }
                let key = (case.id.clone(), round);
                if let Some(first) = disturbed.remove(&key) {
                    overheard::warn(&mut report, first, shared.options.strict);
                } else if overheard::is_disturbed(&report) {
                    disturbed.insert(key, report);
                    queue.push_back((case, round));
                    continue;
                }
                match hasty {
                    false => ledger.enter(report),
                    true => hurry.keep((case, round), report).into_iter().for_each(|report| ledger.enter(report)),
                }
                hurry.begin(&ledger.causes, &shared.options);
                queue.extend(hurry.released(&shared.options.heard));
                if shared.options.fail_fast.is_some_and(|most| ledger.tally.failed() >= most) {
                    stopped = Some("fail-fast".to_owned());
                }
                if !mute && !shared.options.reference && ledger.causes.are_enough(&shared.options.heard) {
                    mute = true;
                    // What runs now waits as well.
                    running.abort_all();
                }
            }
            true = interrupted(&mut stop), if stopped.as_deref() != Some("interrupted") => {
                stopped = Some("interrupted".to_owned());
                running.shutdown().await;
            }
        }
    }
    if stopped.is_some() {
        disturbed.into_values().for_each(|report| ledger.enter(report));
    } else {
        hurry.reports().into_iter().for_each(|report| ledger.enter(report));
        // Of a mute server: elsewhere nothing is left.
        for (case, _) in queue {
            ledger.tell(&RunEvent::CaseStarted { case: case.id.clone(), attempt: 1 });
            ledger.enter(not_run(&ledger.causes, &case, &shared));
        }
    }
    for report in deaths::reports(shared.hosts.unnoticed().await, &shared.options, start.elapsed()) {
        ledger.enter(report);
    }
    shared.hosts.stop().await;
    if let Some(file) = trace {
        file.finish().map_err(|error| no_trace(&shared.options, error))?;
    }
    let complete = stopped.is_none() && !mute;
    let Ledger { tally, sink, spoke, .. } = ledger;
    let mut summary = tally.summary(stopped, complete, start.elapsed());
    let has_model = matches!(&target, Target::Configured(spec) if spec.model.is_some());
    if has_model && spoke && !asked.load(Ordering::Relaxed) {
        let doctor = isolation::doctor(&shared.options.reproduce);
        summary.hints.push(format!(
            "{}: {}; `{doctor}` walks through it",
            doctor::NEVER_ASKED,
            doctor::POINT_THERE
        ));
    }
    summary.hints.extend(hurry.hint(&shared.options));
    sink(&RunEvent::RunFinished(Box::new(summary.clone())));
    Ok(summary)
}

/// Where reports go: grouped, added up and told.
struct Ledger<'s> {
    secrets: Secrets,
    causes: Causes,
    tally: Tally,
    sink: &'s mut (dyn FnMut(&RunEvent) + Send),
    /// A case has failed that said something which the model was to see.
    spoke: bool,
}

impl Ledger<'_> {
    fn tell(&mut self, event: &RunEvent) {
        (self.sink)(event);
    }

    fn enter(&mut self, report: CaseReport) {
        let mut report = self.secrets.report(report);
        self.causes.group(&mut report);
        self.tally.add(&mut report);
        self.causes.join(&mut report);
        if matches!(report.verdict, Verdict::Failed | Verdict::Warned) {
            self.spoke |= report.wire.iter().any(|line| line.dir == "->" && line.text.contains(CUE.0));
        }
        self.tell(&RunEvent::CaseFinished(Box::new(report)));
    }
}

/// The report of a case that is not run, for the server is mute.
fn not_run(causes: &Causes, case: &LoadedCase, shared: &Shared) -> CaseReport {
    let began = shared.start.elapsed().as_secs_f64();
    let (outcome, verdict) = match inapplicable(case, shared.hosts.is_ours()) {
        Some(why) => {
            let reason = Some((Verdict::NotApplicable, why.to_owned()));
            (Outcome { reason, ..Outcome::default() }, Verdict::NotApplicable)
        }
        None => (causes.not_run(&shared.options), Verdict::Failed),
    };
    report(case, outcome, verdict, Vec::new(), began, 0.0, &shared.options)
}

/// Before sessions run side by side: whether what one is told reaches another. `None`: it was not tried.
async fn leak(
    hosts: &Hosts,
    protocol: &Arc<Protocol>,
    target: &Target,
    options: &Options,
    start: Instant,
) -> Option<Option<CaseReport>> {
    if !matches!(target, Target::Configured(_)) || options.jobs < 2 {
        return None;
    }
    let case = isolation::case(protocol).ok()?;
    let clock = Instant::now();
    let whole = Options { keep: true, ..options.clone() };
    let mut outcome = served(hosts, protocol, &case, &whole, options.seed).await;
    // A death is worth telling, too.
    if !isolation::leaks(&mut outcome, &protocol.extension.fuzzing.isolated) && !outcome.dead {
        return Some(None);
    }
    let verdict = verdict_of(&outcome, options.strict);
    let (began, seconds) = (clock.duration_since(start).as_secs_f64(), clock.elapsed().as_secs_f64());
    let mut report = report(&case, outcome, verdict, Vec::new(), began, seconds, options);
    isolation::reproduce(&mut report);
    Some(Some(report))
}

async fn interrupted(stop: &mut watch::Receiver<bool>) -> bool {
    match stop.wait_for(|stop| *stop).await {
        Ok(_) => true,
        // Nobody is left who could stop the run.
        Err(_) => std::future::pending().await,
    }
}

fn open_trace(options: &Options) -> Result<Option<TraceFile>, RunError> {
    let file = options.trace.as_deref().map(TraceFile::create);
    file.transpose().map_err(|error| no_trace(options, error))
}

fn no_trace(options: &Options, error: std::io::Error) -> RunError {
    let path = options.trace.as_deref().unwrap_or(Path::new("")).display().to_string();
    RunError::Trace { path, error }
}

/// A server that refuses may quote what it was sent.
pub(super) fn masked(error: RunError, secrets: &Secrets) -> RunError {
    match error {
        RunError::Target(ConnectError::Http { status, body }) => {
            RunError::Target(ConnectError::Http { status, body: secrets.text(body) })
        }
        RunError::Launch(mut failure) => {
            let text = format!("{:?}", failure.error);
            if secrets.text(text.clone()) != text {
                let shown = secrets.text(failure.error.to_string());
                failure.error = crate::target::LaunchError::System(shown);
            }
            failure
                .output
                .iter_mut()
                .for_each(|line| line.text = secrets.text(std::mem::take(&mut line.text)));
            RunError::Launch(failure)
        }
        other => other,
    }
}

/// Runs a case, and again while it fails and retries are left.
async fn attempts(
    shared: Arc<Shared>,
    loaded: Arc<LoadedCase>,
    round: u32,
    hasty: bool,
) -> (CaseReport, Vec<Event>) {
    let Shared { protocol, options, hosts, start } = &*shared;
    let hurried = hasty.then(|| Hurry::options(options));
    let options = hurried.as_ref().unwrap_or(options);
    let began = start.elapsed().as_secs_f64();
    let mut earlier: Vec<Vec<Failure>> = Vec::new();
    let mut traces = Vec::new();
    loop {
        let attempt = earlier.len() as u32;
        let seed = options.seed.wrapping_add(u64::from(round) << 32).wrapping_add(u64::from(attempt) << 48);
        let seed = seed.wrapping_add(hash_of(&loaded.id));
        let clock = Instant::now();
        let mut outcome = served(hosts, protocol, &loaded, options, seed).await;
        traces.append(&mut outcome.trace);
        let verdict = verdict_of(&outcome, options.strict);
        let failed = matches!(verdict, Verdict::Failed | Verdict::Error);
        if failed && attempt < options.retries {
            earlier.push(outcome.failures);
            continue;
        }
        let verdict = if !failed && !earlier.is_empty() { Verdict::Flaky } else { verdict };
        let seconds = clock.elapsed().as_secs_f64();
        return (report(&loaded, outcome, verdict, earlier, began, seconds, options), traces);
    }
}

/// Runs a case once, on the server that it is given.
pub(super) async fn served(
    hosts: &Hosts,
    protocol: &Arc<Protocol>,
    loaded: &LoadedCase,
    options: &Options,
    seed: u64,
) -> Outcome {
    let clock = Instant::now();
    let lease = match hosts.lease(loaded).await {
        Ok(lease) => lease,
        Err(error) => {
            let output = if let RunError::Launch(failure) = &error { failure.output.as_slice() } else { &[] };
            let log = LogLine::of(output, clock);
            return Outcome { reason: Some((Verdict::Error, error.to_string())), log, ..Outcome::default() };
        }
    };
    let mut outcome = run_case(protocol, loaded, options, &lease, seed).await;
    if let Some(instance) = &lease.instance
        && (!outcome.failures.is_empty() || outcome.reason.is_some())
    {
        if let Some(how) = lease.death(&outcome).await {
            outcome.died(&how);
            outcome.grave = Some(Arc::clone(&lease.told));
        }
        let lines = instance.log().between(clock, Instant::now());
        outcome.log = LogLine::of(&lines, outcome.began.unwrap_or(clock));
    }
    lease.finish().await;
    outcome
}

fn hash_of(text: &str) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    text.hash(&mut hasher);
    hasher.finish()
}
