//! The campaign: rounds of programs, and what is made of what they show.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::crashes;
use super::executor::{Execution, Executor};
use super::feedback::{Coverage, Feedback};
use super::finding::{Finding, Fingerprint};
use super::findings::{Confirmed, JointFinding};
use super::generate::Generator;
use super::in_flight::{InFlight, Landed};
use super::input::Input;
use super::latency::Latency;
use super::program::Program;
use crate::results::event::Verdict;
use crate::run::testbed::{Ground, death_of};
use crate::source::Diagnostics;
use crate::trace::{Direction, Payload};

/// Cases between two looks at a launched target, and between two reports of progress.
const ROUND: u64 = 16;

/// How to fuzz.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of everything random.
    pub seed: u64,
    /// Stop after so many cases.
    pub iterations: Option<u64>,
    /// Begin no further case after this time.
    pub time: Option<Duration>,
    /// How long what has failed by then may be confirmed and shrunk. Whatever still runs then is given up.
    pub slack: Duration,
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
    /// A finding is confirmed and shrunk; its scenario file.
    Finding(&'e Finding, &'e str),
    /// The steps of a finding show something else, too: it is told with it, as the last of what it shows. Its scenario file.
    Joined(&'e Finding, &'e str),
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
    /// Its time and the slack were over while cases or replays still ran.
    pub cut: bool,
}

pub(super) struct Campaign<'c> {
    pub executor: Executor,
    pub options: Options,
    guide: Feedback,
    pub report: Report,
    /// (command, mutation) of findings of one input: they would hide others.
    pub known_inputs: BTreeSet<(String, String)>,
    pub known: BTreeSet<Fingerprint>,
    pub looks: BTreeMap<(String, Vec<String>, String), usize>,
    /// The case that is being looked into, and what it has shown.
    pub looking: Option<(u64, Fingerprint)>,
    /// What replays have confirmed and is being shrunk. Should the campaign end meanwhile, it is kept as small as it is.
    pub confirmed: Option<Confirmed>,
    /// Notes that were told, without what differs from one to the next.
    told: BTreeSet<String>,
    /// Failures that replays did not show again: what they are like, and a note. Told unless another case explains them.
    pub doubts: Vec<(String, String)>,
    pub growth: Growth,
    /// What is wrong for certain, and is being looked into. Should the campaign end meanwhile, it is told as it is.
    pub unexplained: Option<JointFinding>,
    pub pace: Latency,
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
    /// What made it grow most, and by how much; the most first.
    pub heaviest: Vec<(u64, Vec<(u64, Program)>)>,
}

/// Makes the programs.
struct Maker {
    generator: Generator,
    /// Programs of a campaign before, which come first.
    resumed: std::vec::IntoIter<Program>,
    /// The next one's number.
    made: u64,
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
    let guide = Feedback::new(ground.protocol())?;
    let report = Report {
        progress: Progress::default(),
        findings: Vec::new(),
        unconfirmed: 0,
        coverage: Coverage::new(),
        exercised: BTreeMap::new(),
        ended: Ended::Done,
        cut: false,
    };
    let mut campaign = Campaign {
        executor: Executor::new(ground),
        options,
        guide,
        report,
        known_inputs: BTreeSet::new(),
        known: BTreeSet::new(),
        unexplained: None,
        looks: BTreeMap::new(),
        looking: None,
        confirmed: None,
        told: BTreeSet::new(),
        doubts: Vec::new(),
        growth: Growth::default(),
        pace: Latency::default(),
        start: Instant::now(),
        sink,
    };
    let end = campaign.end();
    tokio::select! {
        () = campaign.run() => {}
        () = interrupted(&mut stop) => campaign.report.ended = Ended::Interrupted,
        () = passed(end) => campaign.report.cut = true,
    }
    campaign.keep_rest();
    // Whoever interrupts it may have ended the server, too.
    if !matches!(campaign.report.ended, Ended::Interrupted) {
        for how in campaign.fallen().await {
            campaign.keep_death(&how);
        }
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

async fn passed(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end.into()).await,
        None => std::future::pending().await,
    }
}

impl Campaign<'_> {
    /// When the campaign is over at the latest.
    pub(super) fn end(&self) -> Option<Instant> {
        self.options.time.and_then(|time| self.start.checked_add(time.saturating_add(self.options.slack)))
    }

    /// Tells something, unless something `like` it was told before.
    pub(super) fn note(&mut self, like: String, text: String) {
        if self.told.insert(like) {
            (self.sink)(Event::Note(text));
        }
    }

    fn tell_doubts(&mut self, explained: bool) {
        for (like, text) in std::mem::take(&mut self.doubts).into_iter().filter(|_| !explained) {
            self.note(like, text);
        }
    }

    async fn run(&mut self) {
        // Its first cases may take long.
        let progress = self.progress();
        (self.sink)(Event::Progress(progress));
        let states = self.reachable().await;
        self.tell_doubts(false);
        let generator = Generator::new(self.executor.ground.protocol(), states);
        let resumed = std::mem::take(&mut self.options.corpus).into_iter();
        let mut maker = Maker { generator, resumed, made: 0 };
        let mut flight = InFlight::default();
        let mut round = 0;
        loop {
            self.make(&mut maker, &mut flight);
            if self.has_enough() {
                flight.give_up();
            }
            let seed = self.options.seed;
            flight.start(self.options.jobs, &self.executor, self.options.deadline, |index| {
                seed_of(seed, index)
            });
            if !flight.land().await {
                break;
            }
            while let Some(landed) = flight.take() {
                round += 1;
                if landed.1.as_ref().is_some_and(|ran| self.is_suspect(ran)) {
                    if !self.examine(landed, &mut maker, &mut flight).await {
                        return;
                    }
                } else {
                    self.learn(landed.1.as_ref());
                    self.make(&mut maker, &mut flight);
                }
            }
            if round >= ROUND {
                round = 0;
                if !self.look_after(&mut flight).await {
                    return;
                }
            }
        }
        self.look_after(&mut flight).await;
    }

    /// Makes programs as far ahead as may be: each depends on what was taken in before, and on nothing else.
    fn make(&mut self, maker: &mut Maker, flight: &mut InFlight) {
        let most = self.options.iterations.unwrap_or(u64::MAX).min(flight.horizon());
        while maker.made < most && !self.has_enough() {
            let known =
                |input: &Input| self.known_inputs.contains(&(input.command.clone(), input.mutation.clone()));
            let made = maker.resumed.next().unwrap_or_else(|| {
                maker.generator.program(self.options.seed, maker.made, &self.guide.corpus, &known)
            });
            flight.add(maker.made, made);
            maker.made += 1;
        }
    }

    /// After some cases: progress, and the life and memory of a launched target. `false`: the campaign cannot go on.
    async fn look_after(&mut self, flight: &mut InFlight) -> bool {
        let programs = flight.recent();
        let fallen = self.fallen().await;
        if !fallen.is_empty() {
            // No case has noticed.
            flight.land_all().await;
            for how in &fallen {
                self.mourn(how, &programs).await;
            }
            self.growth = Growth::default();
            if !self.recover().await {
                return false;
            }
        } else if self.has_grown(programs).await {
            flight.land_all().await;
            self.weigh().await;
            self.tell_doubts(false);
        }
        let progress = self.progress();
        (self.sink)(Event::Progress(progress));
        true
    }

    /// How launched servers have ended since this was asked last, each way once; those of which more is known come first.
    pub(super) async fn fallen(&self) -> Vec<String> {
        let mut fallen = self.executor.ground.fallen().await;
        fallen.sort_by_cached_key(|how| std::cmp::Reverse(crashes::shape(how)));
        fallen.dedup_by_key(|how| crashes::shape(how));
        fallen
    }

    fn has_enough(&self) -> bool {
        self.options.time.is_some_and(|time| self.start.elapsed() >= time)
            || self.report.findings.len() >= self.options.max_findings
    }

    pub(super) fn since_start(&self) -> Duration {
        self.start.elapsed()
    }

    fn progress(&mut self) -> Progress {
        self.report.progress.time = self.since_start();
        self.report.progress.corpus = self.guide.corpus.len();
        self.report.progress.findings = self.report.findings.len();
        self.report.progress
    }

    pub(super) fn seed_of(&self, index: u64) -> u64 {
        seed_of(self.options.seed, index)
    }

    /// Counts and learns from what came of a case.
    fn learn(&mut self, ran: Option<&Execution>) {
        self.report.progress.cases += 1;
        let Some(ran) = ran else { return };
        let sent = ran.single.trace.iter().filter(|event| {
            event.dir == Direction::Send && matches!(event.payload, Payload::Text(_) | Payload::Binary(_))
        });
        self.report.progress.sent += sent.count() as u64;
        if ran.single.report.verdict == Verdict::Passed {
            self.pace.add(Duration::from_secs_f64(ran.single.report.seconds));
        }
        for (id, count) in &ran.single.report.exercised {
            *self.report.exercised.entry(id.clone()).or_default() += count;
        }
        if let Some(novel) = self.guide.learn(&ran.program, &ran.rendered, &ran.single) {
            (self.sink)(Event::Novel(&novel));
        }
    }

    /// Takes in a case with which something is wrong, and all that ran meanwhile. `false`: the campaign cannot go on.
    async fn examine(&mut self, first: Landed, maker: &mut Maker, flight: &mut InFlight) -> bool {
        // No case runs while servers are begun anew.
        flight.land_all().await;
        let programs = flight.recent();
        let fallen = self.fallen().await;
        let told: Vec<bool> = fallen.iter().map(|how| self.is_told(how)).collect();
        let mut dead = Vec::new();
        let (known, mut again) = (self.known.len(), false);
        let mut next = Some(first);
        while let Some((index, ran)) = next {
            self.learn(ran.as_ref());
            let is_known = |ran: &Execution, print: &Fingerprint| {
                self.known.contains(print) || self.is_explained(ran, print)
            };
            again |= ran.as_ref().is_some_and(|ran| ran.wrong().iter().any(|print| is_known(ran, print)));
            if let Some(ran) = ran.filter(|_| self.report.findings.len() < self.options.max_findings) {
                self.judge(index, ran, &fallen, &mut dead).await;
            }
            self.make(maker, flight);
            next = flight.take();
        }
        // What befell a case beside one that harms the server is explained.
        self.tell_doubts(again || self.known.len() > known);
        // Of those that a finding of this very round tells there is nothing more to say.
        for (how, told) in fallen.iter().zip(told) {
            if told || !self.is_told(how) {
                self.mourn(how, if dead.is_empty() { &programs } else { &dead }).await;
            }
        }
        if !fallen.is_empty() {
            self.growth = Growth::default();
        }
        self.recover().await
    }

    /// Looks into what is wrong with a case. Where servers have died meanwhile, that is what befell those that lost their
    /// connections; which of them brings it about is for the replays to tell.
    async fn judge(&mut self, index: u64, ran: Execution, deaths: &[String], dead: &mut Vec<(u64, Program)>) {
        let mut wrong = ran.wrong();
        if !deaths.is_empty() && ran.is_struck() {
            let own = ran.single.broke().and_then(death_of).map(str::to_owned);
            for how in own.as_slice().iter().chain(deaths.iter().filter(|_| own.is_none())) {
                let mut struck = ran.clone();
                struck.single.died(how);
                let print = struck.wrong().into_iter().find(|print| self.is_worth_a_look(print));
                let Some(print) = print else { continue };
                let shown = self.look_into(index, struck, &print).await;
                if !shown && print.oracle == "target" && !dead.iter().any(|(known, _)| *known == index) {
                    dead.push((index, ran.program.clone()));
                }
            }
            // What came before its end was as wrong as ever.
            wrong.retain(Fingerprint::is_of_a_frame);
        }
        let print = wrong.into_iter().find(|print| self.is_new(&ran, print));
        if let Some(print) = print.filter(|_| self.report.findings.len() < self.options.max_findings) {
            self.look_into(index, ran, &print).await;
        }
    }
}

fn seed_of(seed: u64, index: u64) -> u64 {
    seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(index)
}
