//! Cases side by side, retries, and the stop signal.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::protocol::Protocol;
use crate::reference;
use crate::results::event::{CaseReport, LogLine, RunEvent, Summary, Verdict};
use crate::results::redact::Secrets;
use crate::results::summary::Tally;
use crate::run::case::execute::run_case;
use crate::run::case::interpreter::Outcome;
use crate::run::isolation::leaks as overheard;
use crate::run::isolation::precheck as isolation;
use crate::run::server::crashes as deaths;
use crate::run::server::pool::Hosts;
use crate::run::server::probe as dialect;
use crate::run::suite::dispatcher::{Ended, Shared, Suite};
use crate::run::suite::report::{report, verdict_of};
use crate::run::suite::sink::Ledger;
use crate::run::suite::started::started;
use crate::run::triage::groups::Causes;
use crate::run::triage::model_use as asked;
use crate::run::triage::model_use::{Asked, Cued};
use crate::run::{Options, Target};
use crate::scenario::LoadedCase;
use crate::target::LaunchFailure;
use crate::trace::TraceFile;
use crate::wire::ConnectError;

/// The silence that ends a turn of the reference server: it says what it has to say at once. Its own writes take
/// well under a millisecond, and the scenarios' pauses are longer than this.
pub(crate) const REFERENCE_QUIET: Duration = Duration::from_millis(10);

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
    let asked: Arc<Asked> = Arc::default();
    options.heard = Arc::default();
    match &target {
        Target::Reference { .. } => {
            options.reference = true;
            options.quiet.get_or_insert(REFERENCE_QUIET);
        }
        Target::Url { .. } | Target::Configured(_) => options.salt = uuid::Uuid::new_v4().as_u64_pair().1,
    }
    let hosts = tokio::select! {
        opened = Hosts::open(&protocol, &target, &options, Some(asked.observer())) => opened.map_err(|error| masked(error, &secrets))?,
        true = interrupted(&mut stop) => return Err(RunError::Interrupted),
    };
    let trace = open_trace(&options)?;
    let start = Instant::now();
    let protocol = tokio::select! {
        spoken = dialect::spoken(&hosts, &protocol, &target, &mut options) => spoken,
        true = interrupted(&mut stop) => return Err(RunError::Interrupted),
    };
    let tally = Tally::new(&protocol, &options);
    let mut ledger = Ledger { secrets, causes: Causes::default(), tally, sink, cued: Cued::default() };
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
    // A fault of the reference server is found by what it breaks.
    let faulty = matches!(&target, Target::Reference { fault: Some(_) });
    options.overheard = (options.jobs > 1 && !faulty).then(Arc::default);
    let shared = Arc::new(Shared { protocol, options, hosts, start });
    let mut suite = Suite::new(Arc::clone(&shared), ledger, trace, &cases);
    suite.run(&mut stop).await?;
    let Ended { mut ledger, trace, stopped, complete, hint } = suite.finish();
    for report in deaths::reports(shared.hosts.unnoticed().await, &shared.options, start.elapsed()) {
        ledger.enter(report);
    }
    shared.hosts.stop().await;
    if let Some(file) = trace {
        file.finish().map_err(|error| no_trace(&shared.options, error))?;
    }
    let Ledger { tally, sink, cued, .. } = ledger;
    let mut summary = tally.summary(stopped, complete, start.elapsed());
    let options = &shared.options;
    summary.hints.extend(asked::hint(&target, asked.count(), cued, &options.heard, options));
    summary.hints.extend(hint);
    sink(&RunEvent::RunFinished(Box::new(summary.clone())));
    Ok(summary)
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

pub(crate) async fn interrupted(stop: &mut watch::Receiver<bool>) -> bool {
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

pub(crate) fn no_trace(options: &Options, error: std::io::Error) -> RunError {
    let path = options.trace.as_deref().unwrap_or(Path::new("")).display().to_string();
    RunError::Trace { path, error }
}

/// A server that refuses may quote what it was sent.
pub(crate) fn masked(error: RunError, secrets: &Secrets) -> RunError {
    match error {
        RunError::Target(error) => RunError::Target(error.masked(&|text| secrets.text(text))),
        RunError::Launch(LaunchFailure { error, mut output }) => {
            output.iter_mut().for_each(|line| line.text = secrets.text(std::mem::take(&mut line.text)));
            RunError::Launch(LaunchFailure { error: error.masked(&|text| secrets.text(text)), output })
        }
        other => other,
    }
}

/// Runs a case once, on the server that it is given.
pub(crate) async fn served(
    hosts: &Hosts,
    protocol: &Arc<Protocol>,
    loaded: &LoadedCase,
    options: &Options,
    seed: u64,
) -> Outcome {
    let clock = Instant::now();
    let lease = match hosts.lease(loaded).await {
        Ok(lease) => lease,
        Err(error) => return not_served(&error, clock),
    };
    let mut outcome = run_case(protocol, loaded, options, &lease, seed).await;
    if let Some(instance) = &lease.instance
        && (!outcome.failures.is_empty() || outcome.reason.is_some())
    {
        if let Some(how) = lease.death(&outcome).await {
            outcome.died(&how);
            outcome.grave = Some(Arc::clone(&lease.told));
        }
        // What it wrote while it was launched for this case is no part of what it wrote meanwhile.
        let began = outcome.began.unwrap_or(clock);
        outcome.log = LogLine::of(&instance.log().between(began, Instant::now()), began);
    }
    lease.finish().await;
    outcome
}

/// What becomes of a case for which there is no server.
pub(crate) fn not_served(error: &RunError, clock: Instant) -> Outcome {
    let output = if let RunError::Launch(failure) = error { failure.output.as_slice() } else { &[] };
    let log = LogLine::of(output, clock);
    Outcome { reason: Some((Verdict::Error, error.to_string())), log, ..Outcome::default() }
}
