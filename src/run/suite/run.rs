//! One run, from its first connection to its summary.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::exit::Exit;
use crate::protocol::{Level, Protocol, Requirement};
use crate::results::Check;
use crate::results::event::{CaseReport, RunEvent, RunStarted, StopReason, Summary};
use crate::results::summary::{Rule, SummaryBuilder};
use crate::results::window;
use crate::run::context::RunContext;
use crate::run::isolation::precheck as isolation;
use crate::run::options::{CaseOptions, Retention};
use crate::run::server::crashes as deaths;
use crate::run::server::pool::ServerPool;
use crate::run::server::probe::detect_dialect;
use crate::run::server::serve::run_on_server;
use crate::run::suite::attempt::SuiteContext;
use crate::run::suite::dispatcher::{Dispatcher, SuiteEnd};
use crate::run::suite::interrupt::interrupted;
use crate::run::suite::report::{report, verdict_of};
use crate::run::suite::sink::ReportSink;
use crate::run::suite::started::started;
use crate::run::triage::model_use as asked;
use crate::run::triage::model_use::ModelUse;
use crate::run::{RunError, RunOptions, Target};
use crate::scenario::LoadedCase;
use crate::shortage;
use crate::text::length_of_time;
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
    let secrets = target.secrets();
    let asked: Arc<ModelUse> = Arc::default();
    let mut jobs = options.jobs;
    let mut run = RunContext::new(&protocol, &target, options)?;
    let options = Arc::clone(&run.options);
    let model = run.calls.model(Some(asked.observer()));
    let pool = tokio::select! {
        opened = ServerPool::open(&protocol, &target, &options, model) => opened.map_err(|error| error.redacted(&secrets))?,
        true = interrupted(&mut stop) => return Err(RunError::Interrupted),
    };
    let trace = open_trace(&options)?;
    let start = Instant::now();
    tokio::select! {
        () = detect_dialect(&pool, &target, &mut run) => {}
        true = interrupted(&mut stop) => return Err(RunError::Interrupted),
    }
    let summary = SummaryBuilder::new(rules(&run.protocol), options.strict, options.baseline.clone());
    let mut reports = ReportSink::new(secrets, summary, sink);
    let limit = time_limit(&run.protocol, &options, &target, cases.len());
    let is_told = options.timing.limit.is_some() || !matches!(target, Target::Reference(_));
    let ends_within = limit.filter(|_| is_told).map(|limit| limit.as_secs_f64());
    let begins = started(&run, &target, &pool.url().await, cases.len());
    reports.emit(&RunEvent::RunStarted(Box::new(RunStarted { ends_within, ..begins })));
    let leaked = tokio::select! {
        leaked = leak(&pool, &target, &run, start) => leaked,
        true = interrupted(&mut stop) => None,
    };
    if leaked.is_some() {
        reports.causes.before(&run.activity, start.elapsed());
    }
    if let Some(report) = leaked.flatten().filter(|_| shortage::seen().is_none()) {
        if report.failures.iter().any(|failure| failure.check == Check::Leak) {
            jobs = 1;
        }
        reports.publish(report);
    }
    // A fault of the reference server is found by what it breaks.
    let faulty = matches!(&target, Target::Reference(variant) if variant.fault.is_some());
    run.leaks = (jobs > 1 && !faulty).then(Arc::default);
    let shared = Arc::new(SuiteContext { run, pool, start });
    let mut suite = Dispatcher::new(Arc::clone(&shared), reports, trace, &cases, jobs);
    suite.run(&mut stop, limit.map(|limit| start + limit)).await;
    let SuiteEnd { mut reports, trace, stopped, complete, hints } = suite.finish();
    let again = options.reproduce.run();
    for report in deaths::reports(shared.pool.unreported_crashes().await, &again, start.elapsed()) {
        reports.publish(report);
    }
    let outbursts = shared.pool.outbursts(&mut 0).await;
    shared.pool.stop().await;
    let ReportSink { summary, sink, cued, silences, .. } = reports;
    let mut summary = summary.summary(stopped, complete, start.elapsed());
    summary.hints.extend(asked::hint(&target, &asked, cued, &shared.run));
    summary.hints.extend(hints);
    if let Some(first) = outbursts.first() {
        let first = target.secrets().text(first.clone());
        let count =
            if outbursts.len() == 1 { String::new() } else { format!(", and {} more", outbursts.len() - 1) };
        summary
            .hints
            .push(format!("the output of the server tells of a failure that it survived: {first}{count}"));
    }
    if silences > 0 && !shared.run.is_reference {
        summary.hints.push(window::hint(Duration::from_millis(silences)));
    }
    if let Err(error) = trace {
        // What was judged is judged all the same.
        summary.hints.push(RunError::no_trace(&options, error).to_string());
        summary.exit_code = Exit::most_severe([summary.exit_code, Exit::Harness.code()]).code();
    }
    if let Some(limit) = limit.filter(|_| summary.stopped == Some(StopReason::Time)) {
        summary.hints.push(format!(
            "the time limit of the run, {}, was reached: cases that were not run are not judged; --time allows more",
            length_of_time(limit)
        ));
    }
    if let Some(shortage) = shortage::seen().filter(|_| summary.stopped == Some(StopReason::Shortage)) {
        summary
            .hints
            .push(format!("{shortage}; cases that were not run are not judged: {}", shortage.advice()));
    }
    sink(&RunEvent::RunFinished(Box::new(summary.clone())));
    Ok(summary)
}

/// How long the cases may take together, where the user says nothing else: several times what a server takes that answers at
/// once, and that one which answers nothing is given.
fn time_limit(protocol: &Protocol, options: &RunOptions, target: &Target, cases: usize) -> Option<Duration> {
    const BASE: Duration = Duration::from_secs(60);
    const CASE: Duration = Duration::from_secs(4);
    // Where only a silence ends a turn, a case waits for one again and again.
    const SILENCES: u32 = 6;
    // A server of the user's that is launched takes its time to start, again and again.
    let factor = if matches!(target, Target::Url { .. }) { 1.0 } else { 4.0 };
    let rounds = f64::from(options.attempts.repeat) * f64::from(options.attempts.retries + 1);
    let quiet = options.timing.quiet.or(protocol.quiet()).unwrap_or_default();
    let case = (CASE + SILENCES * quiet).as_secs_f64();
    let all = case * cases as f64 * rounds / options.jobs.max(1) as f64;
    let usual =
        Duration::try_from_secs_f64((BASE.as_secs_f64() + all) * factor * options.timing.scale.max(1.0));
    match options.timing.limit {
        Some(limit) => Some(limit),
        None if options.timing.no_deadline => None,
        None => usual.ok(),
    }
}

/// The requirements, as the summary judges them.
pub(crate) fn rules(protocol: &Protocol) -> Vec<Rule> {
    let rule = |one: &Requirement| Rule {
        id: one.id.clone(),
        is_must: one.level == Level::Must,
        is_judged: one.is_judged(),
    };
    protocol.requirements.0.values().map(rule).collect()
}

/// Before sessions run side by side: whether what one is told reaches another. `None`: it was not tried.
async fn leak(
    pool: &ServerPool,
    target: &Target,
    run: &RunContext,
    start: Instant,
) -> Option<Option<CaseReport>> {
    if !matches!(target, Target::Configured(_)) || run.options.jobs < 2 {
        return None;
    }
    let case = isolation::case(&run.protocol).ok()?;
    let clock = Instant::now();
    let options =
        CaseOptions { retention: Retention::Trace, ..run.case_options(run.options.randomness.seed) };
    let mut outcome = run_on_server(pool, run, &case, options).await;
    // A death is worth telling, too.
    if !isolation::leaks(&mut outcome, &run.protocol.extension.fuzzing.isolated)
        && outcome.end.death().is_none()
    {
        return Some(None);
    }
    let verdict = verdict_of(&outcome, run.options.strict);
    let (began, seconds) = (clock.duration_since(start).as_secs_f64(), clock.elapsed().as_secs_f64());
    let mut report = report(&case, outcome, verdict, Vec::new(), began, seconds, run);
    // No filter selects this case.
    report.reproduce = run.options.reproduce.doctor();
    Some(Some(report))
}

fn open_trace(options: &RunOptions) -> Result<Option<TraceFile>, RunError> {
    let file = options.kept.trace.as_deref().map(TraceFile::create);
    file.transpose().map_err(|error| RunError::no_trace(options, error))
}
