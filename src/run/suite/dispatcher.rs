//! The cases of a run, side by side: which begins next, and what becomes of each.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};

use crate::protocol::Protocol;
use crate::results::Check;
use crate::results::event::{CaseReport, Failure, RunEvent, StopReason, Verdict};
use crate::run::case::execute::not_applicable_reason;
use crate::run::case::outcome::{CaseEnd, CaseOutcome};
use crate::run::suite::attempt::{Attempted, SuiteContext, run_attempts};
use crate::run::suite::held::{Circumstances, HeldCases, Key, Reason};
use crate::run::suite::interrupt::interrupted;
use crate::run::suite::pace::Pace;
use crate::run::suite::report::{panicked, report};
use crate::run::suite::short_deadlines::{QueuedCase, ShortDeadlines};
use crate::run::suite::sink::ReportSink;
use crate::run::triage::activity::ActivityLevel;
use crate::run::triage::groups::{FROZEN, FailureGroups};
use crate::scenario::LoadedCase;
use crate::shortage;
use crate::trace::{Event, TraceFile};

/// Cases that are in the queue at a time, unless some come back to it.
const QUEUED: usize = 10_000;

/// A case that runs.
struct Running {
    case: Arc<LoadedCase>,
    round: u32,
    is_short: bool,
    /// How many could run beside each other when it began.
    jobs: usize,
    began: Instant,
}

/// What is left, what runs, and what waits for a second look.
pub(crate) struct Dispatcher<'s> {
    shared: Arc<SuiteContext>,
    reports: ReportSink<'s>,
    /// None: no trace is wanted. An error: it could not be written to its end.
    trace: std::io::Result<Option<TraceFile>>,
    pace: Pace,
    queue: VecDeque<QueuedCase>,
    /// What comes when the queue is empty: repeating a suite needs no more room than running it.
    later: Box<dyn Iterator<Item = QueuedCase> + Send>,
    tasks: JoinSet<Attempted>,
    running: HashMap<Id, Running>,
    short: ShortDeadlines,
    held: HeldCases,
    /// Why no further case begins.
    stopped: Option<StopReason>,
    /// The server says nothing to anybody: the rest is not run.
    server_is_mute: bool,
}

/// How the cases ended.
pub(crate) struct SuiteEnd<'s> {
    pub reports: ReportSink<'s>,
    /// Of the trace, if one is written: whether it is in its place.
    pub trace: std::io::Result<()>,
    /// What stopped them before all had run.
    pub stopped: Option<StopReason>,
    pub complete: bool,
    /// What is to be said of how they were run.
    pub hints: Vec<String>,
}

/// So many times fewer cases run together where all hold too much.
const FEWER: usize = 8;
impl<'s> Dispatcher<'s> {
    pub fn new(
        shared: Arc<SuiteContext>,
        reports: ReportSink<'s>,
        trace: Option<TraceFile>,
        cases: &[LoadedCase],
        jobs: usize,
    ) -> Self {
        // What needs a server of its own comes last, so that the shared one is not stopped in between.
        let cases = cases.iter().map(|case| Arc::new(case.clone()));
        let (own, common): (Vec<_>, Vec<_>) = cases.partition(|case| shared.pool.is_exclusive(case));
        let rounds = 0..shared.run.options.attempts.repeat.max(1);
        let of = move |cases: Vec<Arc<LoadedCase>>, rounds: std::ops::Range<u32>| {
            rounds.flat_map(move |round| cases.clone().into_iter().map(move |case| (case, round)))
        };
        let mut later = Box::new(of(common, rounds.clone()).chain(of(own, rounds)));
        let queue = later.by_ref().take(QUEUED).collect();
        let strict = shared.run.options.strict;
        Self {
            pace: match shared.run.is_reference {
                true => Pace::fixed(jobs.max(1)),
                false => Pace::adaptive(jobs.max(1)),
            },
            shared,
            reports,
            trace: Ok(trace),
            queue,
            later,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            short: ShortDeadlines::default(),
            held: HeldCases::new(strict),
            stopped: None,
            server_is_mute: false,
        }
    }

    /// Runs all cases, or as many as are allowed to, until a moment.
    pub async fn run(&mut self, stop: &mut watch::Receiver<bool>, until: Option<Instant>) {
        let until = async {
            match until {
                Some(until) => tokio::time::sleep_until(until.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(until);
        loop {
            self.begin();
            if self.tasks.is_empty() {
                if self.begin_again() {
                    continue;
                }
                return;
            }
            tokio::select! {
                Some(done) = self.tasks.join_next_with_id() => self.ended(done),
                true = interrupted(stop), if self.stopped != Some(StopReason::Interrupted) => {
                    self.stopped = Some(StopReason::Interrupted);
                    self.tasks.shutdown().await;
                }
                _ = shortage::came(), if self.stopped.is_none() => self.stop_for_shortage().await,
                () = &mut until, if self.stopped.is_none() => {
                    self.stopped = Some(StopReason::Time);
                    self.tasks.shutdown().await;
                }
            }
        }
    }

    /// What runs may fail for want of what this machine lacks: it is not judged.
    async fn stop_for_shortage(&mut self) {
        self.stopped = Some(StopReason::Shortage);
        self.tasks.shutdown().await;
    }

    /// Begins what was held back until nothing else runs. Whether there is something left to do.
    fn begin_again(&mut self) -> bool {
        if self.stopped.is_some() {
            return false;
        }
        if self.queue.is_empty() {
            self.short.end();
        }
        let mut stand = Vec::new();
        let frozen = self.shared.run.activity.is_frozen(FROZEN).is_some();
        let next = self.held.next(&mut stand, frozen);
        stand.into_iter().for_each(|(key, report)| self.enter(&key, report));
        if self.server_is_mute {
            return false;
        }
        let is_left = !next.is_empty() || !self.queue.is_empty();
        next.into_iter().for_each(|turn| self.start(turn));
        is_left
    }

    fn may_begin(&self) -> bool {
        let fits = |next: &Arc<LoadedCase>| {
            let is_preamble =
                |one: &Running| next.preamble.as_ref().is_some_and(|before| before.id == one.case.id);
            let mut running = self.running.values();
            // Whether its preamble fails by itself has to be known.
            running.all(|one| self.shared.pool.are_compatible(&one.case, next) && !is_preamble(one))
        };
        self.stopped.is_none()
            && !self.server_is_mute
            && !self.held.is_urgent()
            && self.tasks.len() < self.pace.now()
            && self.queue.front().is_some_and(|(next, _)| fits(next))
    }

    /// Begins as many cases as may run side by side.
    fn begin(&mut self) {
        if self.queue.is_empty() {
            self.queue.extend(self.later.by_ref().take(QUEUED));
        }
        while self.may_begin()
            && let Some(turn) = self.queue.pop_front()
        {
            self.start(turn);
        }
    }

    fn start(&mut self, (case, round): QueuedCase) {
        // A run that ends with the first failure ends with the one that is found first.
        let in_order = self.shared.run.options.attempts.fail_fast.is_none();
        let key = (case.id.clone(), round);
        self.reports.begin(&key, in_order);
        if let Some(why) = self.reports.preambles.why_not_behind(&case) {
            let report = not_applicable(why, &case, &self.shared);
            return self.enter(&key, report);
        }
        let is_short = self.short.is_on();
        let jobs = if self.held.is_urgent() { 1 } else { self.pace.now() };
        let task =
            self.tasks.spawn(run_attempts(Arc::clone(&self.shared), Arc::clone(&case), round, is_short));
        self.running.insert(task.id(), Running { case, round, is_short, jobs, began: Instant::now() });
    }

    fn ended(&mut self, done: Result<(Id, Attempted), JoinError>) {
        let id = done.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let Some(one) = self.running.remove(&id) else { return };
        let run = &self.shared.run;
        let alone = |report| Attempted {
            report,
            trace: Vec::new(),
            shares: Vec::new(),
            late: Duration::ZERO,
            crowded_out: false,
        };
        let Attempted { report, trace, shares, late, crowded_out } = match done {
            Ok((_, done)) => done,
            Err(error) if error.is_cancelled() => alone(self.not_run(&one.case)),
            Err(_) => alone(panicked(&one.case, run)),
        };
        self.record(trace);
        let openings = self.shared.run.activity.take_openings();
        openings.into_iter().for_each(|took| self.pace.opened(took));
        drop(shares);
        // Unless it has passed all the same, the server may not be to blame.
        if shortage::seen().is_some() && report.verdict != Verdict::Passed {
            return;
        }
        if report.failures.iter().any(|failure| failure.check == Check::Leak) {
            self.pace.at_most(1);
        }
        let run = &self.shared.run;
        let seen = Circumstances {
            jobs: one.jobs,
            late: if run.options.attempts.again_if_late { late } else { Duration::ZERO },
            crowded_out,
            short: one.is_short,
            proven: report.failures.iter().any(|failure| is_proof(failure, &run.protocol)),
            overtaken: self.overtaken(one.began),
            foreign: !run.is_reference,
            answers: run.activity.extent() >= ActivityLevel::Answers,
        };
        self.judge(one, report, &seen);
    }

    /// How many cases began and passed while a case that has just ended may have waited for the last thing in vain.
    fn overtaken(&self, began: Instant) -> usize {
        let timing = &self.shared.run.options.timing;
        let waited = Duration::try_from_secs_f64(timing.step_deadline.as_secs_f64() * timing.scale);
        let since = waited.ok().and_then(|waited| Instant::now().checked_sub(waited));
        since.filter(|since| *since >= began).map_or(0, |since| self.held.passed_since(since))
    }

    /// What is to be said of cases that were given up for want of room.
    fn crowding_note(&self) -> Option<String> {
        let count = self.held.given_up(Reason::Crowded);
        let runs = if count == 1 { "1 run of a case was" } else { &format!("{count} runs of cases were") };
        (count > 0).then(|| {
            format!(
                "the server sends more than is kept of cases that run together: {runs} given up, to be made again with fewer beside it \
                 (--jobs {} at the end)",
                self.pace.now()
            )
        })
    }

    /// Writes the events of a case to the trace. The verdict does not hang on it.
    fn record(&mut self, events: Vec<Event>) {
        let Ok(Some(file)) = &mut self.trace else { return };
        let secrets = &self.reports.secrets;
        let written = events.into_iter().try_for_each(|event| file.write(&secrets.event(event)));
        if let Err(error) = written {
            self.trace = Err(error);
        }
    }

    /// Enters a report, unless the case is to be run again.
    fn judge(&mut self, one: Running, report: CaseReport, seen: &Circumstances) {
        let Running { case, round, is_short, jobs, began } = one;
        if report.verdict == Verdict::Passed {
            self.held.note_passed(began);
        }
        let key = (case.id.clone(), round);
        let reason = self.held.reason(&key, &report, seen).filter(|_| self.stopped.is_none());
        let Some(reason) = reason else {
            let report = self.held.settle(&key, report);
            if is_short {
                self.short.note();
            }
            return self.enter(&key, report);
        };
        match reason {
            // Alone, it has all the room that there is.
            Reason::Crowded => self.pace.at_most((jobs / FEWER).max(1)),
            // Whatever begins now would meet the same.
            Reason::Upgrade => self.pace.at_most((jobs / 2).max(1)),
            _ => {}
        }
        match self.held.hold((case, round), report, reason, seen.late) {
            Some(turn) if reason == Reason::Crowded => self.queue.push_front(turn),
            Some(turn) => self.queue.push_back(turn),
            None => {}
        }
        self.release();
    }

    /// Cases that had short deadlines are run again once the server has answered somebody.
    fn release(&mut self) {
        if self.shared.run.activity.extent() > ActivityLevel::Openings {
            self.short.end();
            self.queue.extend(self.held.released());
        }
    }

    /// Enters a report that stands, and draws the conclusions for the others.
    fn enter(&mut self, key: &Key, report: CaseReport) {
        self.reports.enter(key, report);
        let run = &self.shared.run;
        self.short.begin(&self.reports.causes, run);
        if run.options.attempts.fail_fast.is_some_and(|most| self.reports.summary.failed() >= most) {
            self.stopped = Some(StopReason::FailFast);
        }
        let causes = &self.reports.causes;
        let is_lost = causes.are_enough(&run.activity) || causes.is_frozen(&run.activity);
        if !self.server_is_mute && !run.is_reference && is_lost {
            self.server_is_mute = true;
            // What runs now waits as well.
            self.tasks.abort_all();
        }
        self.release();
    }

    /// Enters what was held back, and what was not run.
    pub fn finish(mut self) -> SuiteEnd<'s> {
        // Of a mute server: elsewhere nothing is left. What was run before has its verdict.
        let mut left = if self.stopped.is_none() { std::mem::take(&mut self.queue) } else { VecDeque::new() };
        left.retain(|(case, round)| !self.held.holds(&(case.id.clone(), *round)));
        self.held.rest().into_iter().for_each(|(key, report)| self.reports.enter(&key, report));
        self.reports.flush();
        for (case, _) in left {
            self.reports.emit(&RunEvent::CaseStarted { case: case.id.clone(), attempt: 1 });
            let report = self.not_run(&case);
            self.reports.publish(report);
        }
        let crowding_note = self.crowding_note();
        let trace = self.trace.and_then(|file| file.map_or(Ok(()), TraceFile::finish));
        SuiteEnd {
            complete: self.stopped.is_none() && !self.server_is_mute,
            hints: self
                .short
                .hint(&self.shared.run.options.timing, self.held.short())
                .into_iter()
                .chain(self.held.hints())
                .chain(self.pace.hint())
                .chain(crowding_note)
                .collect(),
            reports: self.reports,
            trace,
            stopped: self.stopped,
        }
    }

    fn not_run(&self, case: &LoadedCase) -> CaseReport {
        not_run(&self.reports.causes, case, &self.shared)
    }
}

/// Whether what the server has sent breaks a rule in which no time occurs: no lateness of anybody explains it.
fn is_proof(failure: &Failure, protocol: &Protocol) -> bool {
    let is_untimed = match &failure.check {
        Check::Frame | Check::Message | Check::Schema => true,
        Check::Invariant(name) => {
            protocol.extension.invariants.get(&**name).is_some_and(|invariant| !invariant.monitor.is_timed())
        }
        _ => false,
    };
    failure.verdict == Verdict::Failed && is_untimed
}

/// The report of a case that is not run, for the server is mute.
fn not_run(causes: &FailureGroups, case: &LoadedCase, shared: &SuiteContext) -> CaseReport {
    let began = shared.start.elapsed().as_secs_f64();
    let unfit = not_applicable_reason(case).filter(|_| !shared.pool.is_ours());
    if let Some(why) = unfit {
        return not_applicable(why.to_owned(), case, shared);
    }
    let outcome = causes.not_run(&shared.run.activity, &shared.run.options);
    let verdict = outcome.end.verdict().unwrap_or(Verdict::Failed);
    report(case, outcome, verdict, Vec::new(), began, 0.0, &shared.run)
}

/// The report of a case that is not run, for a reason that is no capability.
fn not_applicable(why: String, case: &LoadedCase, shared: &SuiteContext) -> CaseReport {
    let began = shared.start.elapsed().as_secs_f64();
    let outcome = CaseOutcome::of(CaseEnd::NotApplicable(why));
    let report = report(case, outcome, Verdict::NotApplicable, Vec::new(), began, 0.0, &shared.run);
    CaseReport { unoffered: Vec::new(), ..report }
}
