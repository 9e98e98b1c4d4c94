//! Cases side by side, retries, and the stop signal.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use crate::protocol::Protocol;
use crate::results::event::{CaseReport, RunEvent, Summary};
use crate::results::redact::Secrets;
use crate::results::summary::Tally;
use crate::run::context::RunContext;
use crate::run::isolation::leaks as overheard;
use crate::run::isolation::precheck as isolation;
use crate::run::options::{CaseOptions, Retention};
use crate::run::server::crashes as deaths;
use crate::run::server::pool::Hosts;
use crate::run::server::probe::detect_dialect;
use crate::run::server::serve::run_on_server;
use crate::run::suite::dispatcher::{Ended, Shared, Suite};
use crate::run::suite::report::{report, verdict_of};
use crate::run::suite::sink::Ledger;
use crate::run::suite::started::started;
use crate::run::triage::groups::Causes;
use crate::run::triage::model_use as asked;
use crate::run::triage::model_use::{Asked, Cued};
use crate::run::{RunError, RunOptions, Target};
use crate::scenario::LoadedCase;
use crate::trace::TraceFile;

/// Runs the cases and reports each event to `sink` as it happens. Once `stop` turns true no further case begins, those that
/// run are given up, and the summary says so.
///
/// # Errors
/// See [`RunError`]; nothing has been run then.
pub async fn run(
    protocol: Arc<Protocol>,
    cases: Vec<LoadedCase>,
    target: Target,
    options: RunOptions,
    sink: &mut (dyn FnMut(&RunEvent) + Send),
    mut stop: watch::Receiver<bool>,
) -> Result<Summary, RunError> {
    let secrets = Secrets::of(&target);
    let asked: Arc<Asked> = Arc::default();
    let mut jobs = options.jobs;
    let mut run = RunContext::new(&protocol, &target, options);
    let options = Arc::clone(&run.options);
    let hosts = tokio::select! {
        opened = Hosts::open(&protocol, &target, &options, Some(asked.observer())) => opened.map_err(|error| error.redacted(&secrets))?,
        true = interrupted(&mut stop) => return Err(RunError::Interrupted),
    };
    let trace = open_trace(&options)?;
    let start = Instant::now();
    tokio::select! {
        () = detect_dialect(&hosts, &target, &mut run) => {}
        true = interrupted(&mut stop) => return Err(RunError::Interrupted),
    }
    let tally = Tally::new(&run.protocol, &options);
    let mut ledger = Ledger { secrets, causes: Causes::default(), tally, sink, cued: Cued::default() };
    let begins = started(&run.protocol, &target, &hosts.url().await, &options, cases.len());
    ledger.tell(&RunEvent::RunStarted(begins));
    let leaked = tokio::select! {
        leaked = leak(&hosts, &target, &run, start) => leaked,
        true = interrupted(&mut stop) => None,
    };
    if leaked.is_some() {
        ledger.causes.before(&run.activity, start.elapsed());
    }
    if let Some(report) = leaked.flatten() {
        if report.failures.iter().any(|failure| failure.check == overheard::LEAK) {
            jobs = 1;
        }
        ledger.enter(report);
    }
    // A fault of the reference server is found by what it breaks.
    let faulty = matches!(&target, Target::Reference(variant) if variant.fault.is_some());
    run.leaks = (jobs > 1 && !faulty).then(Arc::default);
    let shared = Arc::new(Shared { run, hosts, start });
    let mut suite = Suite::new(Arc::clone(&shared), ledger, trace, &cases, jobs);
    suite.run(&mut stop).await?;
    let Ended { mut ledger, trace, stopped, complete, hint } = suite.finish();
    for report in deaths::reports(shared.hosts.unnoticed().await, &options.reproduce, start.elapsed()) {
        ledger.enter(report);
    }
    shared.hosts.stop().await;
    if let Some(file) = trace {
        file.finish().map_err(|error| no_trace(&options, error))?;
    }
    let Ledger { tally, sink, cued, .. } = ledger;
    let mut summary = tally.summary(stopped, complete, start.elapsed());
    summary.hints.extend(asked::hint(&target, asked.count(), cued, &shared.run.activity, &options));
    summary.hints.extend(hint);
    sink(&RunEvent::RunFinished(Box::new(summary.clone())));
    Ok(summary)
}

/// Before sessions run side by side: whether what one is told reaches another. `None`: it was not tried.
async fn leak(
    hosts: &Hosts,
    target: &Target,
    run: &RunContext,
    start: Instant,
) -> Option<Option<CaseReport>> {
    if !matches!(target, Target::Configured(_)) || run.options.jobs < 2 {
        return None;
    }
    let case = isolation::case(&run.protocol).ok()?;
    let clock = Instant::now();
    let options = CaseOptions { retention: Retention::Trace, ..run.case_options(run.options.seed) };
    let mut outcome = run_on_server(hosts, run, &case, options).await;
    // A death is worth telling, too.
    if !isolation::leaks(&mut outcome, &run.protocol.extension.fuzzing.isolated) && !outcome.dead {
        return Some(None);
    }
    let verdict = verdict_of(&outcome, run.options.strict);
    let (began, seconds) = (clock.duration_since(start).as_secs_f64(), clock.elapsed().as_secs_f64());
    let mut report = report(&case, outcome, verdict, Vec::new(), began, seconds, run);
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

fn open_trace(options: &RunOptions) -> Result<Option<TraceFile>, RunError> {
    let file = options.trace.as_deref().map(TraceFile::create);
    file.transpose().map_err(|error| no_trace(options, error))
}

pub(crate) fn no_trace(options: &RunOptions, error: std::io::Error) -> RunError {
    let path = options.trace.as_deref().unwrap_or(Path::new("")).display().to_string();
    RunError::Trace { path, error }
}
