//! The cases of a run, side by side: which begins next, and what becomes of each.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};

use crate::results::Check;
use crate::results::event::{CaseReport, Failure, RunEvent, StopReason, Verdict};
use crate::run::case::execute::not_applicable_reason;
use crate::run::case::outcome::{CaseEnd, CaseOutcome};
use crate::run::isolation::leaks;
use crate::run::suite::attempt::{Attempted, SuiteContext, run_attempts};
use crate::run::suite::interrupt::interrupted;
use crate::run::suite::late::LateCases;
use crate::run::suite::report::{panicked, report};
use crate::run::suite::short_deadlines::{QueuedCase, ShortDeadlines};
use crate::run::suite::sink::ReportSink;
use crate::run::triage::groups::FailureGroups;
use crate::scenario::LoadedCase;
use crate::shortage;
use crate::trace::{Event, TraceFile};

/// Cases that are in the queue at a time, unless some come back to it.
const QUEUED: usize = 10_000;

/// A case that runs.
struct Running {
    case: Arc<LoadedCase>,
    round: u32,
    hasty: bool,
    /// How many could run beside each other when it began.
    jobs: usize,
}

/// Cases that are run again before they are judged.
#[derive(Default)]
struct SecondLooks {
    /// What cases came to that met others.
    disturbed: HashMap<(String, u32), CaseReport>,
    late: LateCases,
    /// What cases came to that were given up because all together held too much, and how often that happened.
    crowded_out: (HashMap<(String, u32), CaseReport>, usize),
    /// How many of them passed a bound again, however few ran beside them, and how many did not.
    floods: usize,
    fits: usize,
    /// How often cases have begun that have no verdict yet.
    begun: HashMap<(String, u32), u32>,
}

/// What is left, what runs, and what waits for a second look.
pub(crate) struct Dispatcher<'s> {
    shared: Arc<SuiteContext>,
    reports: ReportSink<'s>,
    /// None: no trace is wanted. An error: it could not be written to its end.
    trace: std::io::Result<Option<TraceFile>>,
    jobs: usize,
    queue: VecDeque<QueuedCase>,
    /// What comes when the queue is empty: repeating a suite needs no more room than running it.
    later: Box<dyn Iterator<Item = QueuedCase> + Send>,
    tasks: JoinSet<Attempted>,
    running: HashMap<Id, Running>,
    short: ShortDeadlines,
    second: SecondLooks,
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
/// After so many cases that hold too much even so, and none that does not, the server is one that floods.
const FLOODS: usize = 3;

/// Adds what was found in a run of a case that was given up for want of room: it stands, whatever the next run finds.
fn carry_over(first: CaseReport, report: &mut CaseReport) {
    let found = first.failures.into_iter().filter(|failure| failure.check != Check::Limit);
    for failure in found {
        report.verdict = report.verdict.max(failure.verdict);
        report.failures.push(failure);
    }
    report.earlier.splice(0..0, first.earlier);
    if report.verdict == Verdict::Passed && !report.earlier.is_empty() {
        report.verdict = Verdict::Flaky;
    }
}

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
        Self {
            jobs: jobs.max(1),
            shared,
            reports,
            trace: Ok(trace),
            queue,
            later,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            short: ShortDeadlines::default(),
            second: SecondLooks::default(),
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
            if self.is_at_end() {
                let again = self.short.last();
                if !again.is_empty() {
                    self.queue.extend(again);
                    continue;
                }
            }
            if self.tasks.is_empty() {
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

    /// Nothing is left but what runs with patience.
    fn is_at_end(&self) -> bool {
        self.queue.is_empty() && self.stopped.is_none() && self.running.values().all(|one| !one.hasty)
    }

    fn may_begin(&self) -> bool {
        let fits = |next: &Arc<LoadedCase>| {
            self.running.values().all(|one| self.shared.pool.are_compatible(&one.case, next))
        };
        self.stopped.is_none()
            && !self.server_is_mute
            && self.tasks.len() < self.jobs
            && self.queue.front().is_some_and(|(next, _)| fits(next))
    }

    /// Begins as many cases as may run side by side.
    fn begin(&mut self) {
        if self.queue.is_empty() {
            self.queue.extend(self.later.by_ref().take(QUEUED));
        }
        while self.may_begin()
            && let Some((case, round)) = self.queue.pop_front()
        {
            let attempt = self.second.begun.entry((case.id.clone(), round)).or_default();
            *attempt += 1;
            self.reports.tell(&RunEvent::CaseStarted { case: case.id.clone(), attempt: *attempt });
            let hasty = self.short.is_on();
            let task =
                self.tasks.spawn(run_attempts(Arc::clone(&self.shared), Arc::clone(&case), round, hasty));
            self.running.insert(task.id(), Running { case, round, hasty, jobs: self.jobs });
        }
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
        drop(shares);
        // Unless it has passed all the same, the server may not be to blame.
        if shortage::seen().is_some() && report.verdict != Verdict::Passed {
            return;
        }
        if report.failures.iter().any(|failure| failure.check == Check::Leak) {
            self.jobs = 1;
        }
        // What had failed before is a verdict; nothing begins any more once the run is stopped.
        let fails = |failure: &Failure| failure.check != Check::Limit && failure.verdict == Verdict::Failed;
        if crowded_out
            && one.jobs > 1
            && !self.is_flooded()
            && self.stopped.is_none()
            && !report.failures.iter().any(fails)
        {
            self.make_room(one, report);
        } else {
            self.judge(one, report, late);
        }
    }

    /// Whether the server sends too much whatever runs beside it: then there is no use in making room.
    fn is_flooded(&self) -> bool {
        self.second.floods >= FLOODS && self.second.fits == 0
    }

    /// Runs a case again that was given up because of what the others held, and fewer cases together from now on: alone, it has all
    /// the room that there is.
    fn make_room(&mut self, Running { case, round, jobs, .. }: Running, mut report: CaseReport) {
        let (given_up, count) = &mut self.second.crowded_out;
        let key = (case.id.clone(), round);
        if let Some(first) = given_up.remove(&key) {
            carry_over(first, &mut report);
        }
        given_up.insert(key, report);
        *count += 1;
        self.jobs = self.jobs.min((jobs / FEWER).max(1));
        self.queue.push_front((case, round));
    }

    /// What is to be said of cases that were given up for want of room.
    fn crowding(&self) -> Option<String> {
        let count = self.second.crowded_out.1;
        let runs = if count == 1 { "1 run of a case was" } else { &format!("{count} runs of cases were") };
        (count > 0).then(|| {
            format!(
                "the server sends more than is kept of cases that run together: {runs} given up, to be made again with fewer beside it \
                 (--jobs {} at the end)",
                self.jobs
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

    /// Enters a report, unless the case is to be run again; and draws the conclusions for the others.
    fn judge(&mut self, Running { case, round, hasty, .. }: Running, mut report: CaseReport, late: Duration) {
        let run = &self.shared.run;
        let key = (case.id.clone(), round);
        if let Some(first) = self.second.crowded_out.0.remove(&key) {
            let is_flood = report.failures.iter().any(|failure| failure.check == Check::Limit);
            *(if is_flood { &mut self.second.floods } else { &mut self.second.fits }) += 1;
            carry_over(first, &mut report);
        }
        if let Some(first) = self.second.disturbed.remove(&key) {
            leaks::warn(&mut report, first, run.options.strict);
        } else if leaks::is_disturbed(&report) {
            self.second.disturbed.insert(key, report);
            self.queue.push_back((case, round));
            return;
        }
        if run.options.attempts.again_if_late && !hasty && self.stopped.is_none() {
            match self.second.late.settle(&key, report, late) {
                Some(stands) => report = stands,
                None => return self.queue.push_back((case, round)),
            }
        }
        let stands = if hasty { self.short.keep((case, round), report) } else { Some(report) };
        if let Some(report) = stands {
            self.second.begun.remove(&key);
            self.reports.enter(report);
        }
        self.short.begin(&self.reports.causes, run);
        self.queue.extend(self.short.released(&run.activity));
        if run.options.attempts.fail_fast.is_some_and(|most| self.reports.summary.failed() >= most) {
            self.stopped = Some(StopReason::FailFast);
        }
        if !self.server_is_mute && !run.is_reference && self.reports.causes.are_enough(&run.activity) {
            self.server_is_mute = true;
            // What runs now waits as well.
            self.tasks.abort_all();
        }
    }

    /// Enters what was held back, and what was not run.
    pub fn finish(mut self) -> SuiteEnd<'s> {
        self.short.reports().into_iter().for_each(|report| self.reports.enter(report));
        self.second.late.reports().into_iter().for_each(|report| self.reports.enter(report));
        if self.stopped.is_some() {
            let left = self.second.disturbed.drain().chain(self.second.crowded_out.0.drain());
            left.for_each(|(_, report)| self.reports.enter(report));
        } else {
            // Of a mute server: elsewhere nothing is left.
            while let Some((case, _)) = self.queue.pop_front() {
                self.reports.tell(&RunEvent::CaseStarted { case: case.id.clone(), attempt: 1 });
                let report = self.not_run(&case);
                self.reports.enter(report);
            }
        }
        let crowding = self.crowding();
        let trace = self.trace.and_then(|file| file.map_or(Ok(()), TraceFile::finish));
        SuiteEnd {
            complete: self.stopped.is_none() && !self.server_is_mute,
            hints: self
                .short
                .hint(&self.shared.run.options.timing)
                .into_iter()
                .chain(self.second.late.hint())
                .chain(crowding)
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

/// The report of a case that is not run, for the server is mute.
fn not_run(causes: &FailureGroups, case: &LoadedCase, shared: &SuiteContext) -> CaseReport {
    let began = shared.start.elapsed().as_secs_f64();
    let unfit = not_applicable_reason(case).filter(|_| !shared.pool.is_ours());
    let (outcome, verdict) = match unfit {
        Some(why) => (CaseOutcome::of(CaseEnd::NotApplicable(why.to_owned())), Verdict::NotApplicable),
        None => (causes.not_run(&shared.run.activity, &shared.run.options), Verdict::Failed),
    };
    report(case, outcome, verdict, Vec::new(), began, 0.0, &shared.run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_before_a_run_was_given_up_stands() {
        let failure = |check: &Check, verdict| Failure::new(check.clone(), verdict, "no");
        let of =
            |verdict, failures, earlier| CaseReport { verdict, failures, earlier, ..CaseReport::default() };
        let limit = || failure(&Check::Limit, Verdict::Failed);
        let after = |first| {
            let mut report = of(Verdict::Passed, Vec::new(), Vec::new());
            carry_over(first, &mut report);
            (report.verdict, report.failures.len(), report.earlier.len())
        };
        assert_eq!(after(of(Verdict::Failed, vec![limit()], Vec::new())), (Verdict::Passed, 0, 0));
        let warned = vec![failure(&Check::Message, Verdict::Warned), limit()];
        assert_eq!(after(of(Verdict::Failed, warned, Vec::new())), (Verdict::Warned, 1, 0));
        let tried = of(Verdict::Failed, vec![limit()], vec![vec![failure(&Check::Step, Verdict::Failed)]]);
        assert_eq!(after(tried), (Verdict::Flaky, 0, 1));
        let failed = vec![failure(&Check::Message, Verdict::Failed), limit()];
        assert_eq!(after(of(Verdict::Failed, failed, Vec::new())), (Verdict::Failed, 1, 0));
    }
}
