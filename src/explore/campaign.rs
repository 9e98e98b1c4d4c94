//! The exploration: short walks that try each move alone, then long ones; what fails is confirmed, shrunk and kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use tokio::sync::watch;

use super::alone::each_alone;
use super::coverage::Coverage;
use super::failure::{Execution, Fingerprint};
use super::finding::{Finding, Source};
use super::generate;
use super::shrink::shrink;
use super::table::Table;
use super::walk::{ClosingChecks, Walk};
use crate::protocol::Protocol;
use crate::results::event::{Failure, Verdict};
use crate::run::testbed::Testbed;
use crate::shortage::{self, Shortage};
use crate::synthesis::runner::Runner;

/// Replays that must all show a finding.
const CONFIRMATIONS: usize = 3;
/// How often a failure that replays do not reproduce is confirmed anew.
const ATTEMPTS: usize = 3;

/// How to explore.
#[derive(Debug, Clone)]
pub struct ExploreOptions {
    /// Seed of everything random.
    pub seed: u64,
    /// Stop after so many walks.
    pub walks: Option<u64>,
    /// Begin no further walk after this time.
    pub time: Option<Duration>,
    /// Most moves of a walk.
    pub moves: usize,
    /// Walks side by side, at least 1.
    pub jobs: usize,
    /// How long an answer may take. Confirming gives three times as much.
    pub deadline: Duration,
    /// Stop after so many findings.
    pub max_findings: usize,
    /// How the target is given on the command line, for the comments of scenarios.
    pub reproduce: String,
}

/// Where an exploration is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Walks run, but for the short ones at the beginning.
    pub walks: u64,
    /// Moves made.
    pub moves: u64,
    /// Messages sent.
    pub sent: u64,
    /// Since the beginning.
    pub time: Duration,
    /// Confirmed findings.
    pub findings: usize,
}

/// What happens in an exploration.
pub enum ExploreEvent<'e> {
    /// A walk is over.
    Progress(Progress),
    /// A finding is confirmed and shrunk; its scenario file.
    Finding(&'e Finding, &'e str),
    /// Something that the user should know.
    Note(String),
}

/// Why an exploration is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExploreEnd {
    /// Its time or its walks are used up, or it has found as much as it may.
    Done,
    /// By a signal.
    Interrupted,
    /// The target takes no connections any more.
    Refusing(String),
    /// This machine had no more of something for frameproof itself.
    Shortage(Shortage),
}

/// What came of an exploration.
pub struct ExploreReport {
    /// Totals.
    pub progress: Progress,
    /// Confirmed findings, shrunk, each once.
    pub findings: Vec<Finding>,
    /// Failures that replays did not reproduce.
    pub unconfirmed: usize,
    /// Which moves were made in which states.
    pub coverage: Coverage,
    /// What is legal and was never done: state and move.
    pub never: Vec<(String, String)>,
    /// How often each requirement was exercised.
    pub exercised: BTreeMap<String, u64>,
    /// Why it is over.
    pub ended: ExploreEnd,
}

/// Runs walks.
#[derive(Clone)]
pub(super) struct Replayer {
    pub runner: Runner,
    pub table: Arc<Table>,
}

impl Replayer {
    fn protocol(&self) -> &Arc<Protocol> {
        self.runner.protocol()
    }

    /// A walk without the moves that are not legal where they stand.
    pub fn repaired(&self, walk: Walk) -> Walk {
        Walk::repaired(walk.moves, walk.closing, self.protocol(), &self.table)
    }

    /// Runs a walk. `None`: it is no scenario.
    async fn run(&self, walk: Walk, seed: u64) -> Option<Execution> {
        let rendered = walk.render(self.protocol(), &self.table, "walk", "A walk");
        let (outcome, _) = self.runner.run(&rendered.case, seed, self.runner.deadline()).await?;
        Some(Execution { walk, rendered, outcome })
    }

    /// Replays walks against servers of their own, at most `jobs` at once, in the walks' order.
    pub async fn replay_all(
        &self,
        walks: Vec<Walk>,
        seed: u64,
        deadline: Duration,
        jobs: usize,
    ) -> Vec<Execution> {
        let replay = |walk: Walk| {
            let replayer = self.clone();
            tokio::spawn(async move {
                let rendered = walk.render(replayer.protocol(), &replayer.table, "walk", "A walk");
                let (outcome, _) = replayer.runner.replay(&rendered.case, seed, deadline).await?;
                Some(Execution { walk, rendered, outcome })
            })
        };
        let replays = stream::iter(walks).map(replay).buffered(self.runner.replay_jobs(jobs));
        let results: Vec<_> = replays.collect().await;
        results.into_iter().filter_map(|result| result.ok().flatten()).collect()
    }
}

struct Exploration<'c> {
    replayer: Replayer,
    options: ExploreOptions,
    sink: &'c mut (dyn FnMut(ExploreEvent<'_>) + Send),
    start: Instant,
    /// How often what looks like the same defect was confirmed in vain.
    attempts: BTreeMap<Fingerprint, usize>,
    report: ExploreReport,
}

/// Explores a target. Once `stop` turns true it ends; what was found before stays in the report.
pub async fn explore(
    target: Testbed,
    options: ExploreOptions,
    sink: &mut (dyn FnMut(ExploreEvent<'_>) + Send),
    mut stop: watch::Receiver<bool>,
) -> ExploreReport {
    let runner = Runner::new(target, "explore", options.seed, options.deadline);
    let table = Arc::new(Table::new(runner.protocol(), BTreeSet::new()));
    let report = ExploreReport {
        progress: Progress::default(),
        findings: Vec::new(),
        unconfirmed: 0,
        coverage: Coverage::default(),
        never: Vec::new(),
        exercised: BTreeMap::new(),
        ended: ExploreEnd::Done,
    };
    let replayer = Replayer { runner, table };
    let (start, attempts) = (Instant::now(), BTreeMap::new());
    let mut exploration = Exploration { replayer, options, sink, start, attempts, report };
    let stopped = async {
        if stop.wait_for(|stop| *stop).await.is_err() {
            // Nobody is left who could stop it.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = exploration.all() => {}
        () = stopped => exploration.report.ended = ExploreEnd::Interrupted,
        shortage = shortage::came() => exploration.report.ended = ExploreEnd::Shortage(shortage),
    }
    exploration.finish().await
}

impl Exploration<'_> {
    async fn all(&mut self) {
        if self.each_move_alone().await {
            self.long_walks().await;
        }
    }

    /// Tries each move alone, and leaves out what cannot be done. `false`: not even an empty walk succeeds.
    async fn each_move_alone(&mut self) -> bool {
        let empty = Walk { moves: Vec::new(), closing: ClosingChecks::Full };
        if !self.try_alone(vec![(String::new(), empty)]).await.is_empty() {
            if self.report.ended == ExploreEnd::Done && self.report.findings.is_empty() {
                self.note(
                    "nothing is explored, because even a single turn on each of two connections fails"
                        .to_owned(),
                );
            }
            return false;
        }
        let alone = each_alone(self.replayer.protocol(), &self.replayer.table);
        let without = self.try_alone(alone).await;
        if !without.is_empty() {
            let names: Vec<&str> = without.iter().map(String::as_str).collect();
            self.note(format!("left out of the long walks, because they fail alone: {}", names.join(", ")));
        }
        self.replayer.table = Arc::new(Table::new(self.replayer.protocol(), without));
        self.may_go_on()
    }

    /// Runs short walks, each for a move; the moves that do not succeed.
    async fn try_alone(&mut self, walks: Vec<(String, Walk)>) -> BTreeSet<String> {
        let mut without = BTreeSet::new();
        let jobs = self.options.jobs.max(1);
        let runs = walks.into_iter().enumerate().map(|(number, (name, walk))| {
            // Their numbers are apart from those of the long walks.
            (name, walk, self.replayer.runner.seed_of(u64::MAX - number as u64))
        });
        let replayer = self.replayer.clone();
        let run = move |(name, walk, seed)| {
            let replayer = replayer.clone();
            tokio::spawn(async move { (name, seed, replayer.run(walk, seed).await) })
        };
        let runs: Vec<_> = runs.collect();
        let mut runs = stream::iter(runs).map(run).buffered(jobs);
        while self.may_go_on()
            && let Some(done) = runs.next().await
        {
            let Ok((name, seed, execution)) = done else { continue };
            let Some(execution) = execution else {
                // Not a case that can be loaded: a class of tools that an overlay took away, for one.
                without.insert(name);
                continue;
            };
            let verdict = execution.outcome.report.verdict;
            let failures = execution.failures();
            self.take_in(execution, None, seed).await;
            // What failed by chance is tried again in the long walks.
            let is_known = failures.iter().any(|(print, _)| self.is_known(print));
            if verdict.says_nothing() || verdict >= Verdict::Failed && is_known {
                without.insert(name);
            }
        }
        without
    }

    async fn long_walks(&mut self) {
        let most = self.options.walks.unwrap_or(u64::MAX);
        let (seed, moves) = (self.options.seed, self.options.moves);
        let replayer = self.replayer.clone();
        let run = move |index: u64| {
            let replayer = replayer.clone();
            tokio::spawn(async move {
                let walk = generate::walk(replayer.protocol(), &replayer.table, seed, index, moves);
                (index, replayer.run(walk, replayer.runner.seed_of(index)).await)
            })
        };
        let mut runs = stream::iter(1..=most).map(run).buffered(self.options.jobs.max(1));
        while self.may_go_on()
            && let Some(done) = runs.next().await
        {
            self.report.progress.walks += 1;
            if let Ok((index, Some(execution))) = done {
                self.take_in(execution, Some(index), self.replayer.runner.seed_of(index)).await;
            }
        }
    }

    /// Whether there is time, and something left to find.
    fn may_go_on(&self) -> bool {
        let is_spent = self.options.time.is_some_and(|time| self.start.elapsed() >= time);
        let has_all = self.report.findings.len() >= self.options.max_findings;
        !is_spent && !has_all && self.report.ended == ExploreEnd::Done
    }

    /// Counts what was done, and confirms what failed.
    async fn take_in(&mut self, execution: Execution, index: Option<u64>, seed: u64) {
        let done = execution.moves_done();
        let progress = &mut self.report.progress;
        progress.moves += done as u64;
        progress.sent += execution.outcome.sent as u64;
        progress.time = self.start.elapsed();
        let progress = *progress;
        self.report.coverage.add(&execution.walk, done, self.replayer.protocol(), &self.replayer.table);
        execution.outcome.report.exercised.add_to(&mut self.report.exercised);
        (self.sink)(ExploreEvent::Progress(progress));
        let is_lost = execution.outcome.broke().is_some();
        for (print, _) in execution.failures() {
            self.confirm(&execution, &print, index, seed).await;
        }
        if is_lost && let Err(error) = self.replayer.runner.target.probe().await {
            self.report.ended = ExploreEnd::Refusing(error.to_string());
        }
    }

    /// Whether a finding may be of the same defect.
    fn is_known(&self, print: &Fingerprint) -> bool {
        self.report.findings.iter().any(|found| found.print.is_same_defect(print))
    }

    /// Confirms a failure, shrinks its walk and keeps it, unless it is known.
    async fn confirm(&mut self, execution: &Execution, print: &Fingerprint, index: Option<u64>, seed: u64) {
        let is_known = self.is_known(print);
        let attempts = self.attempts.entry(print.clone()).or_default();
        if is_known || *attempts >= ATTEMPTS || self.report.findings.len() >= self.options.max_findings {
            return;
        }
        *attempts += 1;
        let replayer = self.replayer.clone();
        let deadline = replayer.runner.replay_deadline();
        let walks = vec![execution.walk.clone(); CONFIRMATIONS];
        let again = replayer.replay_all(walks, seed, deadline, CONFIRMATIONS).await;
        let shown = again.iter().filter(|again| again.shows(print)).count();
        let Some(shows) =
            again.into_iter().find(|again| again.shows(print)).filter(|_| shown == CONFIRMATIONS)
        else {
            self.report.unconfirmed += 1;
            let walk = index.map_or("a short walk".to_owned(), |index| format!("walk {index}"));
            let what = print.requirements.join(" ");
            self.note(format!(
                "{walk} failed, but {shown} of {CONFIRMATIONS} replays reproduced it: not a finding. {what} {}",
                print.shape
            ));
            return;
        };
        let (mut best, mut replays, was) = (shows, CONFIRMATIONS, execution.walk.moves.len());
        shrink(&replayer, &mut best, &mut replays, print, seed).await;
        let found = best.failures().into_iter().find(|(shown, _)| shown.is_same_defect(print));
        if let Some((print, failure)) = found {
            let found = Finding { index, was, replays, ..self.finding(best, print, failure.as_ref()) };
            self.keep(found);
        }
    }

    fn finding(&self, execution: Execution, print: Fingerprint, failure: Option<&Failure>) -> Finding {
        Finding { at: self.start.elapsed(), ..Finding::new(execution, print, failure) }
    }

    /// Keeps a finding. What the same moves break, too, is no other defect.
    fn keep(&mut self, found: Finding) {
        let same = |known: &&Finding| known.walk.moves == found.walk.moves && !found.walk.moves.is_empty();
        if self.report.findings.iter().find(same).is_some_and(|known| known.verdict >= found.verdict) {
            return;
        }
        let source = Source { seed: self.options.seed, reproduce: &self.options.reproduce };
        let scenario = found.scenario(self.replayer.protocol(), &self.replayer.table, &source);
        (self.sink)(ExploreEvent::Finding(&found, &scenario));
        self.report.findings.push(found);
        self.report.progress.findings = self.report.findings.len();
    }

    fn note(&mut self, text: String) {
        (self.sink)(ExploreEvent::Note(text));
    }

    async fn finish(mut self) -> ExploreReport {
        let has_death = self.report.findings.iter().any(|found| found.verdict == Verdict::Error);
        let crashes = self.replayer.runner.target.take_crashes().await;
        if let Some(how) = crashes.first().filter(|_| !has_death) {
            self.report.unconfirmed += 1;
            self.note(format!("the server died, and no walk alone shows it: {how}"));
        }
        self.report.progress.time = self.start.elapsed();
        let mut report = self.report;
        report.never = report.coverage.never(self.replayer.protocol(), &self.replayer.table);
        if let Ok(target) = Arc::try_unwrap(self.replayer.runner.target) {
            target.close().await;
        }
        report
    }
}
