//! Running programs: as the campaign does it, and as a replay does it, against a server of its own.

use std::ops::Deref;
use std::time::Duration;

use tokio::task::JoinSet;

use super::fingerprint::{Fingerprint, fingerprints};
use super::observed::Observed;
use super::program::Program;
use super::render::Rendered;
use crate::results::event::{Failure, Verdict};
use crate::run::testbed::{CaseRun, Recorded, Testbed};
use crate::synthesis::runner::Runner;

/// Replays that must all reproduce a finding.
pub(super) const CONFIRMATIONS: usize = 3;

/// A target, and how programs are run against it.
#[derive(Clone)]
pub struct Executor {
    runner: Runner,
}

impl Deref for Executor {
    type Target = Runner;
    fn deref(&self) -> &Runner {
        &self.runner
    }
}

/// A program that was run.
#[derive(Clone)]
pub struct Execution {
    /// The program.
    pub program: Program,
    /// The scenario that it was.
    pub rendered: Rendered,
    /// What came of it.
    pub outcome: CaseRun,
    /// What was seen of the target.
    pub observed: Observed,
}

impl Executor {
    /// An executor for a target. `seed`: of the campaign; `deadline`: how long an answer may take.
    pub fn new(target: Testbed, seed: u64, deadline: Duration) -> Self {
        Self { runner: Runner::new(target, "fuzz", seed, deadline) }
    }

    /// The program as a case.
    fn rendered(&self, program: &Program) -> Rendered {
        program.render(self.protocol(), "case", "A fuzzed case", &[])
    }

    /// Runs a program. `None`: it is no scenario (shrinking may cause that).
    pub async fn run(&self, program: Program, seed: u64, deadline: Duration) -> Option<Execution> {
        let rendered = self.rendered(&program);
        let run = self.runner.run(&rendered.case, seed, deadline).await?;
        Some(self.execution(program, rendered, run))
    }

    /// Runs a program against a server of its own, where there can be one.
    pub async fn replay(&self, program: Program, seed: u64, deadline: Duration) -> Option<Execution> {
        let rendered = self.rendered(&program);
        let run = self.runner.replay(&rendered.case, seed, deadline).await?;
        Some(self.execution(program, rendered, run))
    }

    /// Looks at what was recorded, and keeps no more of it.
    fn execution(
        &self,
        program: Program,
        rendered: Rendered,
        (outcome, recorded): (CaseRun, Recorded),
    ) -> Execution {
        let observed = Observed::new(self.protocol(), &program, &rendered, &outcome, &recorded);
        Execution { program, rendered, outcome, observed }
    }

    /// Runs a candidate of shrinking against a server on which earlier ones have passed.
    async fn try_candidate(&self, program: Program, seed: u64, deadline: Duration) -> Option<Execution> {
        let rendered = self.rendered(&program);
        let run = self.runner.try_candidate(&rendered.case, seed, deadline).await?;
        Some(self.execution(program, rendered, run))
    }

    /// Replays programs side by side, at most `jobs` at once; the results are in the programs' order.
    pub async fn replay_all(
        &self,
        programs: Vec<Program>,
        seed: u64,
        deadline: Duration,
        jobs: usize,
    ) -> Vec<Option<Execution>> {
        let replay =
            move |executor: Self, program| async move { executor.replay(program, seed, deadline).await };
        self.side_by_side(programs, jobs, replay).await
    }

    /// Tries candidates of shrinking in the same way, on servers that are kept running between them.
    pub async fn try_candidates(
        &self,
        programs: Vec<Program>,
        seed: u64,
        deadline: Duration,
        jobs: usize,
    ) -> Vec<Option<Execution>> {
        let attempt = move |executor: Self, program| async move {
            executor.try_candidate(program, seed, deadline).await
        };
        self.side_by_side(programs, jobs, attempt).await
    }

    async fn side_by_side<F: Future<Output = Option<Execution>> + Send + 'static>(
        &self,
        programs: Vec<Program>,
        jobs: usize,
        run: impl Fn(Self, Program) -> F,
    ) -> Vec<Option<Execution>> {
        let jobs = self.replay_jobs(jobs);
        let mut results: Vec<Option<Execution>> = programs.iter().map(|_| None).collect();
        let mut waiting = programs.into_iter().enumerate();
        let mut running = JoinSet::new();
        loop {
            while running.len() < jobs {
                let Some((index, program)) = waiting.next() else { break };
                let executor = self.clone();
                let run = run(executor, program);
                running.spawn(async move { (index, run.await) });
            }
            match running.join_next().await {
                // A replay that panicked is one that did not reproduce the finding.
                Some(Ok((index, execution))) => results[index] = execution,
                Some(Err(_)) => {}
                None => return results,
            }
        }
    }

    /// Replays a program so many times, side by side; the runs that reproduce a finding.
    pub async fn reproductions(
        &self,
        program: &Program,
        times: usize,
        wanted: &Fingerprint,
        seed: u64,
        deadline: Duration,
    ) -> Vec<Execution> {
        let again = self.replay_all(vec![program.clone(); times], seed, deadline, times).await;
        again.into_iter().flatten().filter(|execution| execution.reproduces(wanted)).collect()
    }
}

impl Execution {
    /// Everything that is wrong, each with its failure.
    pub fn failures(&self) -> Vec<(Fingerprint, Option<Failure>)> {
        fingerprints(&self.program, &self.rendered, &self.outcome, &self.observed)
    }

    /// Everything that is wrong.
    pub fn fingerprints(&self) -> Vec<Fingerprint> {
        self.failures().into_iter().map(|(print, _)| print).collect()
    }

    /// Whether there is something to confirm, or harm that may last. Warnings and single wrong frames do no harm; they count
    /// where they are `new`.
    pub fn is_suspect(&self, new: &dyn Fn(&Fingerprint) -> bool) -> bool {
        let counts = |(print, failure): &(Fingerprint, Option<Failure>)| {
            let lasts = !print.oracle.is_about_a_frame() && !failure.as_ref().is_some_and(is_warning);
            lasts || new(print)
        };
        self.outcome.broke().is_some() || self.failures().iter().any(counts)
    }

    /// What keeps a harmless case from its end, and why in a sentence. A warning does not.
    pub fn obstacle(&self) -> Option<(Fingerprint, String)> {
        let stops = |failure: &Option<Failure>| !failure.as_ref().is_some_and(is_warning);
        let (print, failure) = self.failures().into_iter().find(|(_, failure)| stops(failure))?;
        let why = failure.map(|failure| failure.message).or(self.outcome.report.reason.clone());
        Some((print, why.unwrap_or_default()))
    }

    /// Whether a crash of the server can have harmed it: a connection broke off, or none could be opened.
    pub fn lost_its_server(&self) -> bool {
        self.outcome.broke().is_some() || self.observed.has_lost_connection
    }

    /// Whether it shows the defect: the same oracle, and a requirement that it says is broken.
    pub fn reproduces(&self, wanted: &Fingerprint) -> bool {
        self.fingerprints().iter().any(|print| print.is_same_defect(wanted))
    }
}

fn is_warning(failure: &Failure) -> bool {
    failure.verdict == Verdict::Warned
}
