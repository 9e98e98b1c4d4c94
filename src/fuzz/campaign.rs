//! The campaign: rounds of programs, each run, learned from and, if something is wrong, investigated.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::budget::Budget;
use super::confirm::Confirmer;
use super::events::{CampaignEnd, CampaignEvent, CampaignReport, EventSink, Note, Progress};
use super::executor::{Execution, Executor};
use super::feedback::Feedback;
use super::findings::{Findings, Origin};
use super::fingerprint::Fingerprint;
use super::generate::Generator;
use super::in_flight::{Finished, InFlight};
use super::investigate::{Investigator, MemoryState};
use super::joint::cases as ran;
use super::program::Program;
use super::reachability::reachable_states;
use super::source::ProgramSource;
use crate::results::death::Death;
use crate::results::event::Verdict;
use crate::run::testbed::Testbed;
use crate::shortage;
use crate::text::normalize;

/// Cases between two looks at a launched target, and between two reports of progress.
const ROUND: u64 = 16;
/// How often a target that refuses is asked again, and how long is waited before each time.
const RETRIES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];

/// How to fuzz.
#[derive(Debug, Clone)]
pub struct CampaignOptions {
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
    /// How the target is given on the command line, and then `--scenario` and the folder of the findings with its slash: for the
    /// scenarios' comments.
    pub reproduce: String,
}

struct Campaign<'c> {
    investigator: Investigator<'c>,
    feedback: Feedback,
    budget: Budget,
    /// Stop after so many cases.
    iterations: Option<u64>,
    /// Cases side by side.
    jobs: usize,
    /// How far the output of the target was looked through.
    output_seen: u64,
    totals: Totals,
    ended: CampaignEnd,
}

/// What was counted.
#[derive(Default)]
struct Totals {
    /// Cases run.
    cases: u64,
    /// Those in which an input was sent.
    fuzzed: u64,
    /// Messages sent.
    sent: u64,
    /// How often each requirement was exercised.
    exercised: BTreeMap<String, u64>,
}

/// The cases on their way: what makes them, and those that were made.
struct Pipeline {
    source: ProgramSource,
    in_flight: InFlight,
}

/// Whether a campaign can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetState {
    /// It accepts connections.
    Up,
    /// It does not, even after a restart.
    Refusing,
}

/// Fuzzes a target. Once `stop` turns true the round that runs is given up; what was found before stays in the report.
pub async fn campaign(
    target: Testbed,
    mut options: CampaignOptions,
    sink: &mut (dyn FnMut(CampaignEvent<'_>) + Send),
    mut stop: watch::Receiver<bool>,
) -> CampaignReport {
    let corpus = std::mem::take(&mut options.corpus);
    let mut campaign = Campaign::new(target, options, EventSink::new(sink));
    let (end, mut cut) = (campaign.budget.end(), false);
    tokio::select! {
        () = campaign.run(corpus) => {}
        () = interrupted(&mut stop) => campaign.ended = CampaignEnd::Interrupted,
        shortage = shortage::came() => campaign.ended = CampaignEnd::Shortage(shortage),
        () = passed(end) => cut = true,
    }
    campaign.finish(cut).await
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

impl<'c> Campaign<'c> {
    fn new(target: Testbed, options: CampaignOptions, events: EventSink<'c>) -> Self {
        let CampaignOptions { seed, reproduce, .. } = options;
        let feedback = Feedback::default();
        let budget = Budget::start(options.time, options.slack);
        let executor = Executor::new(target, seed, options.deadline);
        let origin = Origin { protocol: executor.protocol().clone(), seed, reproduce };
        let findings = Findings::new(origin, budget, options.max_findings);
        let confirmer = Confirmer::new(budget);
        Self {
            investigator: Investigator::new(executor, findings, confirmer, events, options.max_growth),
            feedback,
            budget,
            iterations: options.iterations,
            jobs: options.jobs,
            output_seen: 0,
            totals: Totals::default(),
            ended: CampaignEnd::Done,
        }
    }

    async fn run(&mut self, corpus: Vec<Program>) {
        // Its first cases may take long.
        self.report_progress();
        let states = reachable_states(&mut self.investigator, self.jobs, self.budget.whole()).await;
        self.investigator.report_doubts();
        let executor = &self.investigator.executor;
        let generator = Generator::new(executor.protocol(), states);
        let source = ProgramSource::new(generator, corpus, executor.seed());
        let mut cases = Pipeline { source, in_flight: InFlight::default() };
        let mut round = 0;
        loop {
            self.make(&mut cases);
            if self.has_enough() {
                cases.in_flight.discard_waiting();
            }
            cases.in_flight.start(self.jobs, &self.investigator.executor);
            if !cases.in_flight.wait_for_one().await {
                break;
            }
            while let Some(finished) = cases.in_flight.take_next() {
                round += 1;
                if finished.1.as_ref().is_some_and(|execution| self.investigator.is_suspect(execution)) {
                    if self.examine(finished, &mut cases).await == TargetState::Refusing {
                        return;
                    }
                } else {
                    self.learn(finished.1.as_ref());
                    self.make(&mut cases);
                }
            }
            if round >= ROUND {
                round = 0;
                if self.check_target(&mut cases).await == TargetState::Refusing {
                    return;
                }
            }
        }
        self.check_target(&mut cases).await;
    }

    /// Makes programs as far ahead as may be: each depends on what was taken in before, and on nothing else.
    fn make(&self, cases: &mut Pipeline) {
        let most = self.iterations.unwrap_or(u64::MAX).min(cases.in_flight.horizon());
        while cases.source.made() < most && !self.has_enough() {
            cases.in_flight.add(cases.source.next(&self.feedback, &self.investigator.findings));
        }
    }

    /// After some cases: progress, and crashes and memory of a launched target.
    async fn check_target(&mut self, cases: &mut Pipeline) -> TargetState {
        let programs = cases.in_flight.take_recent();
        let crashes = self.investigator.take_crashes().await;
        if !crashes.is_empty() {
            self.output_seen = 0;
        }
        for text in self.investigator.executor.target.outbursts(&mut self.output_seen).await {
            self.investigator.events.note(Note {
                kind: normalize(&text),
                text: format!(
                    "the output of the server tells of a failure that it survived: {text} ({} ran)",
                    ran(&programs)
                ),
            });
        }
        if !crashes.is_empty() {
            // No case has noticed.
            cases.in_flight.wait_for_all().await;
            for how in &crashes {
                self.investigator.record_crash(how, &programs).await;
            }
            self.investigator.forget_memory();
            if self.recover().await == TargetState::Refusing {
                return TargetState::Refusing;
            }
        } else if self.investigator.measure_memory(programs).await == MemoryState::Grown {
            cases.in_flight.wait_for_all().await;
            self.investigator.find_memory_growth().await;
            self.investigator.report_doubts();
        }
        self.report_progress();
        TargetState::Up
    }

    fn has_enough(&self) -> bool {
        self.budget.is_spent() || self.investigator.findings.is_full()
    }

    fn progress(&self) -> Progress {
        Progress {
            cases: self.totals.cases,
            fuzzed: self.totals.fuzzed,
            sent: self.totals.sent,
            time: self.budget.elapsed(),
            corpus: self.feedback.corpus.len(),
            findings: self.investigator.findings.len(),
        }
    }

    fn report_progress(&mut self) {
        let progress = self.progress();
        self.investigator.events.send(CampaignEvent::Progress(progress));
    }

    /// Counts and learns from what came of a case.
    fn learn(&mut self, execution: Option<&Execution>) {
        let Some(execution) = execution else { return };
        self.totals.cases += 1;
        self.totals.fuzzed += u64::from(execution.observed.has_sent_input);
        self.totals.sent += execution.outcome.sent as u64;
        let report = &execution.outcome.report;
        if report.verdict == Verdict::Passed {
            self.investigator.confirmer.latency.add(Duration::from_secs_f64(report.seconds));
        }
        report.exercised.add_to(&mut self.totals.exercised);
        if let Some(novel) = self.feedback.learn(&execution.program, &execution.observed.answered) {
            self.investigator.events.send(CampaignEvent::Novel(&novel));
        }
    }

    /// Takes in a case with which something is wrong, and all that ran meanwhile.
    async fn examine(&mut self, first: Finished, cases: &mut Pipeline) -> TargetState {
        // No case runs while servers are restarted.
        cases.in_flight.wait_for_all().await;
        let programs = cases.in_flight.take_recent();
        let crashes = self.investigator.take_crashes().await;
        let is_reported = |how: &Death| self.investigator.findings.reports_crash(how);
        let reported: Vec<bool> = crashes.iter().map(is_reported).collect();
        let mut unexplained = Vec::new();
        let (known, mut again) = (self.investigator.findings.known(), false);
        let mut next = Some(first);
        while let Some((index, execution)) = next {
            self.learn(execution.as_ref());
            again |= execution.as_ref().is_some_and(|execution| self.shows_known(execution));
            if let Some(execution) = execution.filter(|_| !self.investigator.findings.is_full()) {
                self.investigator.investigate(index, execution, &crashes, &mut unexplained).await;
            }
            self.make(cases);
            next = cases.in_flight.take_next();
        }
        // What happened to a case beside one that harms the server is explained.
        if again || self.investigator.findings.known() > known {
            self.investigator.drop_doubts();
        } else {
            self.investigator.report_doubts();
        }
        // Of those that a finding of this very round reports there is nothing more to say.
        for (how, reported) in crashes.iter().zip(reported) {
            if reported || !self.investigator.findings.reports_crash(how) {
                let programs = if unexplained.is_empty() { &programs } else { &unexplained };
                self.investigator.record_crash(how, programs).await;
            }
        }
        if !crashes.is_empty() {
            self.investigator.forget_memory();
        }
        self.recover().await
    }

    /// Whether a case shows what a finding has shown or explains.
    fn shows_known(&self, execution: &Execution) -> bool {
        let findings = &self.investigator.findings;
        let known = |print: &Fingerprint| findings.is_known(print) || findings.explain(execution, print);
        execution.fingerprints().iter().any(known)
    }

    /// After a failure: an embedded server is restarted, another must still accept connections; one that was launched is launched
    /// again, should it not.
    async fn recover(&mut self) -> TargetState {
        if !self.investigator.executor.target.is_launched() {
            self.investigator.executor.target.restart_fresh().await;
        }
        for wait in std::iter::once(Duration::ZERO).chain(RETRIES) {
            tokio::time::sleep(wait).await;
            match self.investigator.executor.target.probe().await {
                Ok(()) => {
                    self.ended = CampaignEnd::Done;
                    return TargetState::Up;
                }
                // Should the time be over before it accepts connections again, that is why the campaign is.
                Err(error) => self.ended = CampaignEnd::Refusing(error.to_string()),
            }
            // A launched target that accepts no connections, though it runs, may do so after a restart.
            if self.investigator.executor.target.restart_fresh().await {
                self.investigator.forget_memory();
            }
        }
        TargetState::Refusing
    }

    /// The report; what was being looked into is kept as far as that has come.
    async fn finish(mut self, cut: bool) -> CampaignReport {
        let is_short = matches!(self.ended, CampaignEnd::Shortage(_));
        // What was being looked into may be for want of what this machine lacks.
        if !is_short {
            self.investigator.finish();
        }
        // Whoever interrupts it may have ended the server, too.
        if self.ended != CampaignEnd::Interrupted && !is_short {
            for how in self.investigator.take_crashes().await {
                self.investigator.record_late_crash(&how);
            }
        }
        let progress = self.progress();
        let declared = &self.investigator.executor.protocol().extension.fuzzing.states;
        let states = declared.keys().cloned().collect();
        CampaignReport {
            progress,
            unconfirmed: self.investigator.confirmer.unconfirmed(),
            findings: self.investigator.findings.into_vec(),
            coverage: self.feedback.coverage,
            states,
            exercised: self.totals.exercised,
            ended: self.ended,
            cut,
        }
    }
}
