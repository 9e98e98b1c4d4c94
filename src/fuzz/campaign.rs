//! The campaign: rounds of programs, and what is made of what they show.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::bench::{Bench, Ran};
use super::finding::{Finding, Fingerprint};
use super::generate::Generator;
use super::guide::{Coverage, Guide};
use super::input::Input;
use super::program::Program;
use crate::run::single::Ground;
use crate::source::Diagnostics;
use crate::trace::{Direction, Payload};

/// Programs of one round: they are made before any of them is run, so that the campaign does not depend on which ends first.
const ROUND: u64 = 16;

/// How to fuzz.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of everything random.
    pub seed: u64,
    /// Stop after so many cases.
    pub iterations: Option<u64>,
    /// Stop after this time.
    pub time: Option<Duration>,
    /// Cases side by side, at least 1. Each has connections of its own.
    pub jobs: usize,
    /// How long an answer may take. Confirming a finding gives three times as much.
    pub deadline: Duration,
    /// Programs of a campaign before, to begin with.
    pub corpus: Vec<Program>,
    /// Stop after so many findings.
    pub max_findings: usize,
    /// How much the memory of a launched target may grow, in bytes.
    pub max_growth: u64,
    /// How the target is given on the command line, for the scenario's comments.
    pub reproduce: String,
}

/// Where a campaign is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Cases run.
    pub cases: u64,
    /// Messages sent.
    pub sent: u64,
    /// Since the beginning.
    pub time: Duration,
    /// Programs in the corpus.
    pub corpus: usize,
    /// Confirmed findings.
    pub findings: usize,
}

/// What happens in a campaign.
pub enum Event<'e> {
    /// A round is over.
    Progress(Progress),
    /// A finding is confirmed and shrunk.
    Finding(&'e Finding),
    /// A program joins the corpus.
    Novel(&'e Program),
    /// Something that the user should know.
    Note(String),
}

/// Why a campaign is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Its time or its cases are used up, or it has found as much as it may.
    Done,
    /// By a signal.
    Interrupted,
    /// The target refuses connections.
    Refusing(String),
}

/// What came of a campaign.
pub struct Report {
    /// Totals.
    pub progress: Progress,
    /// Confirmed findings, shrunk, each once.
    pub findings: Vec<Finding>,
    /// Failures that replays did not show again.
    pub unconfirmed: usize,
    /// States and commands.
    pub coverage: Coverage,
    /// How often each oracle's requirements were put to the test.
    pub exercised: BTreeMap<String, u64>,
    /// Why it is over.
    pub ended: Ended,
}

pub(super) struct Campaign<'c> {
    pub bench: Bench,
    pub options: Options,
    guide: Guide,
    pub report: Report,
    /// (command, mutation) of findings of one input: they would hide others.
    pub known_inputs: BTreeSet<(String, String)>,
    pub known: BTreeSet<Fingerprint>,
    pub looks: BTreeMap<(String, Vec<String>, String), usize>,
    pub growth: Growth,
    start: Instant,
    pub sink: &'c mut (dyn FnMut(Event<'_>) + Send),
}

/// The memory of a launched target.
#[derive(Default)]
pub(super) struct Growth {
    /// When it was measured first, in bytes.
    pub base: Option<u64>,
    /// When it was measured last.
    pub last: u64,
    /// What made it grow most, and by how much.
    pub heaviest: (u64, Vec<(u64, Program)>),
}

/// Fuzzes a target. Once `stop` turns true the round that runs is given up; what was found before stays in the report.
///
/// # Errors
/// A protocol whose patterns do not compile (found when it is loaded, too).
pub async fn campaign(
    ground: Ground,
    options: Options,
    sink: &mut (dyn FnMut(Event<'_>) + Send),
    mut stop: watch::Receiver<bool>,
) -> Result<Report, Diagnostics> {
    let guide = Guide::new(ground.protocol())?;
    let report = Report {
        progress: Progress::default(),
        findings: Vec::new(),
        unconfirmed: 0,
        coverage: Coverage::new(),
        exercised: BTreeMap::new(),
        ended: Ended::Done,
    };
    let mut campaign = Campaign {
        bench: Bench::new(ground),
        options,
        guide,
        report,
        known_inputs: BTreeSet::new(),
        known: BTreeSet::new(),
        looks: BTreeMap::new(),
        growth: Growth::default(),
        start: Instant::now(),
        sink,
    };
    tokio::select! {
        () = campaign.run() => {}
        () = interrupted(&mut stop) => campaign.report.ended = Ended::Interrupted,
    }
    campaign.report.progress.time = campaign.start.elapsed();
    campaign.report.coverage = std::mem::take(&mut campaign.guide.coverage);
    Ok(campaign.report)
}

async fn interrupted(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        // Nobody is left who could stop it.
        std::future::pending::<()>().await;
    }
}

impl Campaign<'_> {
    async fn run(&mut self) {
        let states = self.reachable().await;
        let generator = Generator::new(self.bench.ground.protocol(), states);
        let mut resumed = std::mem::take(&mut self.options.corpus).into_iter();
        let mut index = 0;
        while !self.is_over(index) {
            let mut round = Vec::new();
            let left = self.options.iterations.map_or(ROUND, |most| most.saturating_sub(index).min(ROUND));
            for _ in 0..left {
                let known = |input: &Input| {
                    self.known_inputs.contains(&(input.command.clone(), input.mutation.clone()))
                };
                let made = resumed.next();
                let made = made.unwrap_or_else(|| {
                    generator.program(self.options.seed, index, &self.guide.corpus, &known)
                });
                round.push((index, made));
                index += 1;
            }
            let programs = round.clone();
            let done = self.run_round(round).await;
            if !self.take_in(done, &programs).await {
                return;
            }
            self.weigh(programs).await;
            let progress = self.progress();
            (self.sink)(Event::Progress(progress));
        }
    }

    fn is_over(&self, index: u64) -> bool {
        self.options.iterations.is_some_and(|most| index >= most)
            || self.options.time.is_some_and(|time| self.start.elapsed() >= time)
            || self.report.findings.len() >= self.options.max_findings
    }

    fn progress(&mut self) -> Progress {
        self.report.progress.time = self.start.elapsed();
        self.report.progress.corpus = self.guide.corpus.len();
        self.report.progress.findings = self.report.findings.len();
        self.report.progress
    }

    /// The states that this target can be brought into and out of, and a first turn without any harm.
    async fn reachable(&mut self) -> Vec<Option<String>> {
        let states: Vec<Option<String>> = std::iter::once(None)
            .chain(self.bench.ground.protocol().extension.fuzzing.states.keys().cloned().map(Some))
            .collect();
        let program = |state: &Option<String>| Program {
            state: state.clone(),
            inputs: Vec::new(),
            own: true,
            fresh: true,
            witness: true,
            witness_state: None,
            repeat: None,
        };
        let mut reached = Vec::new();
        for state in states {
            let Some(ran) =
                self.bench.run(program(&state), self.options.seed, self.options.deadline * 3).await
            else {
                continue;
            };
            let wrong = ran.wrong();
            match wrong.first() {
                None => reached.push(state),
                Some(print) => {
                    let name = state.clone().unwrap_or_else(|| "after the opening".to_owned());
                    let why = ran.single.report.failures.first().map(|failure| failure.message.clone());
                    let why = why.or(ran.single.report.reason.clone()).unwrap_or_default();
                    (self.sink)(Event::Note(format!(
                        "state {name}: left out, for it fails without any fuzzing: {why}"
                    )));
                    if state.is_none() {
                        let print = print.clone();
                        self.look_into(0, ran, &print).await;
                        reached.push(None);
                    }
                }
            }
        }
        reached
    }

    async fn run_round(&mut self, round: Vec<(u64, Program)>) -> Vec<(u64, Option<Ran>)> {
        let mut done: BTreeMap<u64, Option<Ran>> = BTreeMap::new();
        let mut waiting = round.into_iter();
        let mut running = JoinSet::new();
        loop {
            while running.len() < self.options.jobs.max(1) {
                let Some((index, program)) = waiting.next() else { break };
                let (bench, seed) = (self.bench.clone(), self.seed_of(index));
                let deadline = self.options.deadline;
                running.spawn(async move { (index, bench.run(program, seed, deadline).await) });
            }
            match running.join_next().await {
                Some(Ok((index, ran))) => {
                    done.insert(index, ran);
                }
                Some(Err(_)) => {}
                None => return done.into_iter().collect(),
            }
        }
    }

    pub(super) fn seed_of(&self, index: u64) -> u64 {
        self.options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(index)
    }

    /// Learns from a round, in the order of its numbers. `false`: the campaign cannot go on.
    async fn take_in(&mut self, done: Vec<(u64, Option<Ran>)>, programs: &[(u64, Program)]) -> bool {
        let (mut suspects, mut broke) = (Vec::new(), false);
        for (index, ran) in done {
            self.report.progress.cases += 1;
            let Some(ran) = ran else { continue };
            let sent = ran.single.trace.iter().filter(|event| {
                event.dir == Direction::Send && matches!(event.payload, Payload::Text(_) | Payload::Binary(_))
            });
            self.report.progress.sent += sent.count() as u64;
            for (id, count) in &ran.single.report.exercised {
                *self.report.exercised.entry(id.clone()).or_default() += count;
            }
            if let Some(novel) = self.guide.learn(&ran.program, &ran.rendered, &ran.single) {
                (self.sink)(Event::Novel(&novel));
            }
            broke |= ran.single.broke().is_some();
            let wrong = ran.wrong();
            if !wrong.is_empty() {
                suspects.push((index, ran, wrong));
            }
        }
        let fallen = self.bench.ground.fallen().await;
        if suspects.is_empty() && fallen.is_empty() && !broke {
            return true;
        }
        let (before, mut dead) = (self.known.len(), Vec::new());
        for (index, mut ran, mut wrong) in suspects {
            // A death shows in many ways; which case brings it about is for the replays to tell.
            if let Some(how) = fallen.first() {
                ran.single.died(how);
                wrong = ran.wrong();
            }
            let fresh = wrong.iter().find(|print| self.is_worth_a_look(print)).cloned();
            if let Some(print) = fresh {
                let died = (print.oracle == "target").then(|| (index, ran.program.clone()));
                if !self.look_into(index, ran, &print).await {
                    dead.extend(died);
                }
            }
            if self.report.findings.len() >= self.options.max_findings {
                break;
            }
        }
        if let Some(how) = fallen.first().filter(|_| self.known.len() == before) {
            self.mourn(how, if dead.is_empty() { programs } else { &dead });
        }
        if !fallen.is_empty() {
            self.growth = Growth::default();
        }
        self.recover().await
    }
}
