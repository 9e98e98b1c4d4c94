//! One case, run once, with everything that came of it: for a caller that makes its cases itself.

use std::sync::Arc;

use tokio::sync::RwLock;

use crate::protocol::Protocol;
use crate::results::cause::Cause;
use crate::results::death::Death;
use crate::results::event::{CaseReport, Failure, RunStarted, Verdict};
use crate::results::kept::shorten;
use crate::results::redact::Secrets;
use crate::run::case::holding::Share;
use crate::run::case::outcome::CaseOutcome;
use crate::run::context::RunContext;
use crate::run::options::{CaseOptions, Retention};
use crate::run::run_id::RunId;
use crate::run::server::pool::ServerPool;
use crate::run::server::probe::detect_dialect;
use crate::run::server::serve::run_on_server;
use crate::run::suite::report as reports;
use crate::run::{RunError, RunOptions, Target};
use crate::scenario::LoadedCase;
use crate::trace::{Direction, Event, Payload};

/// A target that cases can be run against. What was started for it lives until [`Testbed::close`].
pub struct Testbed {
    run: RunContext,
    target: Target,
    pool: ServerPool,
    /// Where clients connect to, for reports.
    url: String,
    secrets: Secrets,
}

/// What came of a case. It is small, whatever the server has sent.
#[derive(Debug, Clone)]
pub struct CaseRun {
    /// As a run reports it, with no more than 2 MiB of the wire log.
    pub report: CaseReport,
    /// The step of each of the report's failures, by its JSON Pointer below the case; empty: at the end.
    pub failed_at: Vec<String>,
    /// Messages that were sent.
    pub sent: usize,
    /// Whether anything was seen at all: a case without a server says nothing.
    pub has_begun: bool,
}

/// What was seen in a case: as much as a server likes to send, up to the bound of a case. It counts as held until it is dropped, and
/// all cases together hold no more than the bound for all: whoever looks at it does so at once.
#[derive(Debug)]
pub struct Recorded {
    /// Every event, in the order in which it was seen. As it was on the wire: secrets included.
    pub trace: Vec<Event>,
    /// Where in `trace` each step began, by its JSON Pointer below the case.
    pub marks: Vec<(String, usize)>,
    #[expect(dead_code, reason = "they are held, and no more")]
    shares: Vec<Share>,
}

/// Wire log, output and values that a report keeps, in bytes.
const SHOWN: usize = 2 << 20;

/// Cases run together as long as there is room for what they hold; one for which there was none is run again while no other runs.
static TOGETHER: RwLock<()> = RwLock::const_new(());

impl Testbed {
    /// Starts the embedded server, or finds out whether the target is there.
    ///
    /// # Errors
    /// As [`crate::run::run`].
    pub async fn open(
        protocol: Arc<Protocol>,
        target: Target,
        mut options: RunOptions,
    ) -> Result<Self, RunError> {
        // Whoever has cases of its own says itself how many deaths are too many.
        options.attempts.max_deaths = u32::MAX;
        let secrets = target.secrets();
        let mut run = RunContext::new(&protocol, &target, options)?;
        let opened = ServerPool::open(&protocol, &target, &run.options, run.calls.model(None)).await;
        let pool = opened.map_err(|error| error.redacted(&secrets))?;
        detect_dialect(&pool, &target, &mut run).await;
        let url = pool.url().await;
        Ok(Self { run, target, pool, url, secrets })
    }

    /// Whether the target takes a connection.
    ///
    /// # Errors
    /// Why not.
    pub async fn probe(&self) -> Result<(), RunError> {
        self.pool.reachable().await.map_err(|error| error.redacted(&self.secrets))
    }

    /// Starts the embedded or launched server anew, without anything that it remembered. `false`: the target is not ours.
    pub async fn restart_fresh(&self) -> bool {
        self.pool.restart_fresh().await
    }

    /// A ground of its own for one replay, so that what came before plays no part: another embedded or launched server.
    /// `None`: the target is not ours, or has fixed ports, and there is but one.
    pub async fn fork(&self) -> Option<Self> {
        if !self.forks() {
            return None;
        }
        let options = RunOptions { bare: self.run.bare.clone(), ..RunOptions::clone(&self.run.options) };
        Self::open(Arc::clone(&self.run.protocol), self.target.clone(), options).await.ok()
    }

    /// Whether there can be several of it.
    pub fn forks(&self) -> bool {
        match &self.target {
            Target::Reference { .. } => true,
            Target::Url { .. } => false,
            Target::Configured(spec) => spec.is_launched() && spec.is_portable(),
        }
    }

    /// Whether it is a process of its own that was started by us.
    pub fn is_launched(&self) -> bool {
        matches!(&self.target, Target::Configured(spec) if spec.is_launched())
    }

    /// How launched servers have ended since this was asked last.
    pub async fn take_crashes(&self) -> Vec<Death> {
        let mask = |text: String| self.secrets.text(text);
        self.pool.take_crashes().await.into_iter().map(|fallen| fallen.how.masked(&mask)).collect()
    }

    /// The panics and exceptions of which the output of the launched server, which lives on, has told since this was asked with the same
    /// `seen`.
    pub async fn outbursts(&self, seen: &mut u64) -> Vec<String> {
        self.pool.outbursts(seen).await.into_iter().map(|text| self.secrets.text(text)).collect()
    }

    /// Memory that the launched server has resident, in bytes. None: it was not launched, or the system does not tell.
    pub async fn memory(&self) -> Option<u64> {
        self.pool.memory().await
    }

    /// By what deadlines are multiplied; `None`: there are none.
    pub fn scale(&self) -> Option<f64> {
        let timing = &self.run.options.timing;
        (!timing.no_deadline).then(|| timing.scaled(std::time::Duration::from_secs(1)).as_secs_f64())
    }

    /// The protocol.
    pub fn protocol(&self) -> &Arc<Protocol> {
        &self.run.protocol
    }

    /// How a report begins.
    pub fn started(&self, cases: usize) -> RunStarted {
        // Each of its cases has a run id of its own.
        RunStarted {
            run_id: None,
            ..crate::run::suite::started::started(&self.run, &self.target, &self.url, cases)
        }
    }

    /// Runs a case. `deadline` replaces the run's step deadline.
    pub async fn run(
        &self,
        loaded: &LoadedCase,
        seed: u64,
        deadline: Option<std::time::Duration>,
    ) -> (CaseRun, Recorded) {
        let run = &self.run;
        let mut options = CaseOptions { retention: Retention::Trace, ..run.case_options(seed) };
        options.step_deadline = deadline.unwrap_or(options.step_deadline);
        let together = TOGETHER.read().await;
        let (mut outcome, mut seconds) = self.run_once(loaded, options).await;
        drop(together);
        if outcome.record.crowded_out {
            // It says nothing about the server. What it holds must go before.
            drop(outcome);
            let _alone = TOGETHER.write().await;
            (outcome, seconds) = self.run_once(loaded, options).await;
        }
        let record = &mut outcome.record;
        let recorded = Recorded {
            trace: std::mem::take(&mut record.trace),
            marks: std::mem::take(&mut record.step_starts),
            shares: std::mem::take(&mut record.shares),
        };
        let is_message = |payload: &Payload| matches!(payload, Payload::Text(_) | Payload::Binary(_));
        let is_sent = |event: &&Event| event.dir == Direction::Send && is_message(&event.payload);
        let sent = recorded.trace.iter().filter(is_sent).count();
        let at = |failure: &Failure| failure.step.as_ref().map(|step| step.pointer.clone());
        let failed_at = outcome.failures.iter().map(|failure| at(failure).unwrap_or_default()).collect();
        let verdict = reports::verdict_of(&outcome, false);
        let mut report = reports::report(loaded, outcome, verdict, Vec::new(), 0.0, seconds, run);
        shorten(&mut report, SHOWN);
        let report = self.secrets.case(report);
        (CaseRun { report, failed_at, sent, has_begun: !recorded.trace.is_empty() }, recorded)
    }

    /// Runs a case once: what came of it, and in how many seconds.
    async fn run_once(&self, loaded: &LoadedCase, mut options: CaseOptions) -> (CaseOutcome, f64) {
        // A case that is run again, perhaps beside itself, must not meet its own sessions on a server that was there before.
        if !self.run.is_reference {
            options.salt = RunId::fresh().salt(0);
        }
        let clock = std::time::Instant::now();
        let outcome = run_on_server(&self.pool, &self.run, loaded, options).await;
        (outcome, clock.elapsed().as_secs_f64())
    }

    /// Ends what was started.
    pub async fn close(self) {
        self.pool.stop().await;
    }
}

#[cfg(test)]
impl Recorded {
    /// What nobody counts.
    pub fn of(trace: Vec<Event>, marks: &[(&str, usize)]) -> Self {
        let marks = marks.iter().map(|(at, index)| ((*at).to_owned(), *index)).collect();
        Self { trace, marks, shares: Vec::new() }
    }
}

impl CaseRun {
    /// The server was found dead afterwards: what failed is its death.
    pub fn died(&mut self, how: &Death) {
        let cause = Cause::ServerDied(how.clone());
        self.report.failures.iter_mut().for_each(|failure| failure.verdict = Verdict::Error);
        self.report.verdict = Verdict::Error;
        self.report.reason = Some(cause.to_string());
        self.report.cause = Some(cause);
    }

    /// How the server died, if it did.
    pub fn death(&self) -> Option<&Death> {
        self.report.cause.as_ref().filter(|_| self.report.verdict == Verdict::Error)?.death()
    }

    /// Whether the harness or the target broke, and why.
    pub fn broke(&self) -> Option<&str> {
        self.report.reason.as_deref().filter(|_| self.report.verdict == Verdict::Error)
    }
}
