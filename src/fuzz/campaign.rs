//! The campaign: rounds of programs, and what is made of what they show.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::bench::{Bench, Ran, is_same_defect};
use super::finding::{self, Finding, Fingerprint, fingerprints};
use super::generate::Generator;
use super::guide::{Coverage, Guide};
use super::input::Input;
use super::program::Program;
use super::shrink::shrink;
use crate::run::event::Verdict;
use crate::run::single::Ground;
use crate::source::Diagnostics;
use crate::trace::{Direction, Payload};

/// Programs of one round: they are made before any of them is run, so that the campaign does not depend on which ends first.
const ROUND: u64 = 16;
/// How often what looks like the same defect is looked into: shrinking shows whether it is.
const LOOKS: usize = 6;
/// Replays that must all show a finding.
const CONFIRM: usize = 3;
/// How often a target that refuses is asked again, and how long is waited before each time.
const RETRIES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];

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

struct Campaign<'c> {
    bench: Bench,
    options: Options,
    guide: Guide,
    report: Report,
    /// (command, mutation) of findings of one input: they would hide others.
    known_inputs: BTreeSet<(String, String)>,
    known: BTreeSet<Fingerprint>,
    looks: BTreeMap<(String, Vec<String>, String), usize>,
    start: Instant,
    sink: &'c mut (dyn FnMut(Event<'_>) + Send),
}

/// Fuzzes a target. Once `stop` turns true the round that runs is the last.
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
            let done = self.run_round(round).await;
            if !self.take_in(done).await {
                return;
            }
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

    fn seed_of(&self, index: u64) -> u64 {
        self.options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(index)
    }

    /// Learns from a round, in the order of its numbers. `false`: the campaign cannot go on.
    async fn take_in(&mut self, done: Vec<(u64, Option<Ran>)>) -> bool {
        let mut suspects = Vec::new();
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
            let wrong = ran.wrong();
            if !wrong.is_empty() {
                suspects.push((index, ran, wrong));
            }
        }
        if suspects.is_empty() {
            return true;
        }
        for (index, ran, wrong) in suspects {
            let fresh = wrong.iter().find(|print| self.is_worth_a_look(print)).cloned();
            if let Some(print) = fresh {
                self.look_into(index, ran, &print).await;
            }
            if self.report.findings.len() >= self.options.max_findings {
                break;
            }
        }
        self.recover().await
    }

    fn is_worth_a_look(&self, print: &Fingerprint) -> bool {
        let looks = self.looks.get(&subject(print)).copied().unwrap_or(0);
        !self.known.contains(print) && looks < LOOKS
    }

    /// Confirms, shrinks and keeps a finding, unless it is known.
    async fn look_into(&mut self, index: u64, ran: Ran, print: &Fingerprint) {
        *self.looks.entry(subject(print)).or_default() += 1;
        let (seed, patient) = (self.seed_of(index), self.options.deadline * 3);
        let again = vec![ran.program.clone(); CONFIRM];
        let again = self.bench.replay_all(again, seed, patient, CONFIRM).await;
        let shown = again.iter().flatten().filter(|ran| ran.shows(print)).count();
        if shown < CONFIRM {
            self.report.unconfirmed += 1;
            let message = format!(
                "case {index}: {} ({}) was shown by {shown} of {CONFIRM} replays",
                print.oracle, print.shape
            );
            (self.sink)(Event::Note(message));
            return;
        }
        let shrunk = shrink(&self.bench, ran, print, seed, self.options.deadline).await;
        let (ran, replays) = (shrunk.ran, shrunk.replays + CONFIRM);
        let all = fingerprints(&ran.program, &ran.rendered, &ran.single);
        let Some((print, failure)) = all.into_iter().find(|(one, _)| is_same_defect(one, print)) else {
            return;
        };
        if !self.known.insert(print.clone()) {
            return;
        }
        if let [input] = ran.program.inputs.as_slice() {
            self.known_inputs.insert((input.command.clone(), input.mutation.clone()));
        }
        let name = finding::name_of(&print);
        let message = failure.as_ref().map(|failure| failure.message.clone());
        let message = message.or(ran.single.report.reason.clone()).unwrap_or_default();
        let protocol = self.bench.ground.protocol();
        let title = finding::normal(&message);
        let case = ran.program.render(protocol, &name, &title, &print.requirements).case;
        let comments = vec![
            format!(
                "Found by frameproof fuzz, seed {}, case {index}, in state {}.",
                self.options.seed, print.state
            ),
            format!("Oracle {}: {message}", print.oracle),
            format!("Run: frameproof run {} --scenario THIS", self.options.reproduce),
        ];
        let mut report = ran.single.report.clone();
        report.case = format!("fuzz/{name}");
        report.title = format!("{}: {title}", print.oracle);
        report.covers.clone_from(&print.requirements);
        let found = Finding {
            verdict: failure.as_ref().map_or(Verdict::Failed, |failure| failure.verdict),
            steps: finding::steps(&ran.program),
            scenario: finding::scenario(&comments, &case),
            fingerprint: print,
            program: ran.program,
            case: index,
            message,
            replays,
            name,
            report,
        };
        (self.sink)(Event::Finding(&found));
        self.report.findings.push(found);
    }

    /// After a failure: an embedded server begins anew, another must still take connections.
    async fn recover(&mut self) -> bool {
        self.bench.ground.renew().await;
        let mut why = String::new();
        for wait in std::iter::once(Duration::ZERO).chain(RETRIES) {
            tokio::time::sleep(wait).await;
            match self.bench.ground.probe().await {
                Ok(()) => return true,
                Err(error) => why = error.to_string(),
            }
        }
        self.report.ended = Ended::Refusing(why);
        false
    }
}

/// What a failure is about, before it is known what it takes. Of RFC 6455 many things can be broken in one way, and no
/// requirement tells them apart.
fn subject(print: &Fingerprint) -> (String, Vec<String>, String) {
    let shape = if print.oracle == "framing" { print.shape.clone() } else { String::new() };
    (print.oracle.clone(), print.requirements.clone(), shape)
}

/// Programs of a corpus folder. What cannot be read is named in the second list and left out.
///
/// # Errors
/// The folder cannot be read.
pub fn load_corpus(folder: &std::path::Path) -> Result<(Vec<Program>, Vec<String>), String> {
    let cannot = |error: std::io::Error| format!("{} cannot be read: {error}", folder.display());
    if !folder.exists() {
        return Ok((Vec::new(), Vec::new()));
    }
    let entries = std::fs::read_dir(folder).map_err(cannot)?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let (mut programs, mut skipped) = (Vec::new(), Vec::new());
    for path in paths {
        let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        match read.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string())) {
            Ok(program) => programs.push(program),
            Err(error) => skipped.push(format!("{}: {error}", path.display())),
        }
    }
    Ok((programs, skipped))
}

/// Keeps a program in a corpus folder, under a name that says what it is.
///
/// # Errors
/// The path and the reason.
pub fn store(folder: &std::path::Path, program: &Program) -> Result<(), String> {
    use std::hash::{Hash, Hasher};
    let text = serde_json::to_string_pretty(program).map_err(|error| error.to_string())?;
    let mut hasher = rustc_hash::FxHasher::default();
    text.hash(&mut hasher);
    let path = folder.join(format!("{:016x}.json", hasher.finish()));
    let cannot = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(cannot)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(cannot)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(cannot)?;
    file.persist(&path).map(drop).map_err(|error| cannot(error.error))
}
