//! The cases of a run, side by side: which begins next, and what becomes of each.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};

use crate::results::event::{CaseReport, Failure, RunEvent, Verdict};
use crate::run::RunError;
use crate::run::case::execute::inapplicable;
use crate::run::case::interpreter::Outcome;
use crate::run::context::{RunContext, fresh_salt};
use crate::run::isolation::leaks as overheard;
use crate::run::options::CaseOptions;
use crate::run::server::pool::Hosts;
use crate::run::server::serve::run_on_server;
use crate::run::suite::report::{panicked, report, verdict_of};
use crate::run::suite::schedule::{interrupted, no_trace};
use crate::run::suite::short_deadlines::{Hurry, Turn};
use crate::run::suite::sink::Ledger;
use crate::run::triage::groups::Causes;
use crate::scenario::LoadedCase;
use crate::trace::{Event, TraceFile};

/// What every case of a run shares.
pub(crate) struct Shared {
    pub run: RunContext,
    pub hosts: Hosts,
    pub start: Instant,
}

/// A case that runs.
struct Running {
    case: Arc<LoadedCase>,
    round: u32,
    hasty: bool,
}

/// What is left, what runs, and what waits for a second look.
pub(crate) struct Suite<'s> {
    shared: Arc<Shared>,
    ledger: Ledger<'s>,
    trace: Option<TraceFile>,
    jobs: usize,
    queue: VecDeque<Turn>,
    tasks: JoinSet<(CaseReport, Vec<Event>)>,
    running: HashMap<Id, Running>,
    hurry: Hurry,
    /// What cases came to that met others, which are run again alone.
    disturbed: HashMap<(String, u32), CaseReport>,
    /// Why no further case begins.
    stopped: Option<String>,
    /// The server says nothing to anybody: the rest is not run.
    mute: bool,
}

/// How the cases ended.
pub(crate) struct Ended<'s> {
    pub ledger: Ledger<'s>,
    pub trace: Option<TraceFile>,
    /// What stopped them before all had run.
    pub stopped: Option<String>,
    pub complete: bool,
    /// What is to be said of how they were run.
    pub hint: Option<String>,
}

impl<'s> Suite<'s> {
    pub fn new(
        shared: Arc<Shared>,
        ledger: Ledger<'s>,
        trace: Option<TraceFile>,
        cases: &[LoadedCase],
        jobs: usize,
    ) -> Self {
        let mut queue: VecDeque<Turn> = VecDeque::new();
        for round in 0..shared.run.options.attempts.repeat.max(1) {
            queue.extend(cases.iter().map(|case| (Arc::new(case.clone()), round)));
        }
        // What needs a server of its own comes last, so that the shared one is not stopped in between.
        queue.make_contiguous().sort_by_key(|(case, _)| shared.hosts.is_exclusive(case));
        Self {
            jobs: jobs.max(1),
            shared,
            ledger,
            trace,
            queue,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            hurry: Hurry::default(),
            disturbed: HashMap::new(),
            stopped: None,
            mute: false,
        }
    }

    /// Runs all cases, or as many as are allowed to.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub async fn run(&mut self, stop: &mut watch::Receiver<bool>) -> Result<(), RunError> {
        loop {
            self.begin();
            if self.is_at_end() {
                let again = self.hurry.last();
                if !again.is_empty() {
                    self.queue.extend(again);
                    continue;
                }
            }
            if self.tasks.is_empty() {
                return Ok(());
            }
            tokio::select! {
                Some(done) = self.tasks.join_next_with_id() => self.ended(done)?,
                true = interrupted(stop), if self.stopped.as_deref() != Some("interrupted") => {
                    self.stopped = Some("interrupted".to_owned());
                    self.tasks.shutdown().await;
                }
            }
        }
    }

    /// Nothing is left but what runs with patience.
    fn is_at_end(&self) -> bool {
        self.queue.is_empty() && self.stopped.is_none() && self.running.values().all(|one| !one.hasty)
    }

    fn may_begin(&self) -> bool {
        let fits = |next: &Arc<LoadedCase>| {
            self.running.values().all(|one| self.shared.hosts.are_compatible(&one.case, next))
        };
        self.stopped.is_none()
            && !self.mute
            && self.tasks.len() < self.jobs
            && self.queue.front().is_some_and(|(next, _)| fits(next))
    }

    /// Begins as many cases as may run side by side.
    fn begin(&mut self) {
        while self.may_begin()
            && let Some((case, round)) = self.queue.pop_front()
        {
            let attempt = if self.disturbed.contains_key(&(case.id.clone(), round)) { 2 } else { 1 };
            self.ledger.tell(&RunEvent::CaseStarted { case: case.id.clone(), attempt });
            let hasty = self.hurry.is_on();
            let task = self.tasks.spawn(attempts(Arc::clone(&self.shared), Arc::clone(&case), round, hasty));
            self.running.insert(task.id(), Running { case, round, hasty });
        }
    }

    fn ended(&mut self, done: Result<(Id, (CaseReport, Vec<Event>)), JoinError>) -> Result<(), RunError> {
        let id = done.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let Some(one) = self.running.remove(&id) else { return Ok(()) };
        let run = &self.shared.run;
        let (report, events) = match done {
            Ok((_, done)) => done,
            Err(error) if error.is_cancelled() => (self.not_run(&one.case), Vec::new()),
            Err(_) => panicked(&one.case, run),
        };
        if let Some(file) = &mut self.trace {
            for event in events {
                let event = self.ledger.secrets.event(event);
                file.write(&event).map_err(|error| no_trace(&run.options, error))?;
            }
        }
        if report.failures.iter().any(|failure| failure.check == overheard::LEAK) {
            self.jobs = 1;
        }
        self.judge(one, report);
        Ok(())
    }

    /// Enters a report, unless the case is to be run again; and draws the conclusions for the others.
    fn judge(&mut self, Running { case, round, hasty }: Running, mut report: CaseReport) {
        let run = &self.shared.run;
        let key = (case.id.clone(), round);
        if let Some(first) = self.disturbed.remove(&key) {
            overheard::warn(&mut report, first, run.options.strict);
        } else if overheard::is_disturbed(&report) {
            self.disturbed.insert(key, report);
            self.queue.push_back((case, round));
            return;
        }
        let stands = if hasty { self.hurry.keep((case, round), report) } else { Some(report) };
        stands.into_iter().for_each(|report| self.ledger.enter(report));
        self.hurry.begin(&self.ledger.causes, run);
        self.queue.extend(self.hurry.released(&run.activity));
        if run.options.attempts.fail_fast.is_some_and(|most| self.ledger.tally.failed() >= most) {
            self.stopped = Some("fail-fast".to_owned());
        }
        if !self.mute && !run.is_reference && self.ledger.causes.are_enough(&run.activity) {
            self.mute = true;
            // What runs now waits as well.
            self.tasks.abort_all();
        }
    }

    /// Enters what was held back, and what was not run.
    pub fn finish(mut self) -> Ended<'s> {
        self.hurry.reports().into_iter().for_each(|report| self.ledger.enter(report));
        if self.stopped.is_some() {
            self.disturbed.drain().for_each(|(_, report)| self.ledger.enter(report));
        } else {
            // Of a mute server: elsewhere nothing is left.
            while let Some((case, _)) = self.queue.pop_front() {
                self.ledger.tell(&RunEvent::CaseStarted { case: case.id.clone(), attempt: 1 });
                let report = self.not_run(&case);
                self.ledger.enter(report);
            }
        }
        Ended {
            complete: self.stopped.is_none() && !self.mute,
            hint: self.hurry.hint(&self.shared.run.options.timing),
            ledger: self.ledger,
            trace: self.trace,
            stopped: self.stopped,
        }
    }

    fn not_run(&self, case: &LoadedCase) -> CaseReport {
        not_run(&self.ledger.causes, case, &self.shared)
    }
}

/// The report of a case that is not run, for the server is mute.
fn not_run(causes: &Causes, case: &LoadedCase, shared: &Shared) -> CaseReport {
    let began = shared.start.elapsed().as_secs_f64();
    let (outcome, verdict) = match inapplicable(case, shared.hosts.is_ours()) {
        Some(why) => {
            let reason = Some((Verdict::NotApplicable, why.to_owned()));
            (Outcome { reason, ..Outcome::default() }, Verdict::NotApplicable)
        }
        None => (causes.not_run(&shared.run.activity, &shared.run.options), Verdict::Failed),
    };
    report(case, outcome, verdict, Vec::new(), began, 0.0, &shared.run)
}

/// Runs a case, and again while it fails and retries are left.
async fn attempts(
    shared: Arc<Shared>,
    loaded: Arc<LoadedCase>,
    round: u32,
    hasty: bool,
) -> (CaseReport, Vec<Event>) {
    let Shared { run, hosts, start } = &*shared;
    let mut options = run.case_options(0);
    if hasty {
        options = Hurry::options(options);
    }
    // A case that is run again must not meet its own session on a server that was there before.
    if !run.is_reference {
        options.salt = fresh_salt();
    }
    let began = start.elapsed().as_secs_f64();
    let mut earlier: Vec<Vec<Failure>> = Vec::new();
    let mut traces = Vec::new();
    loop {
        let attempt = earlier.len() as u32;
        let seed = run.options.seed.wrapping_add(u64::from(round) << 32);
        let seed = seed.wrapping_add(u64::from(attempt) << 48).wrapping_add(hash_of(&loaded.id));
        let clock = Instant::now();
        let mut outcome = run_on_server(hosts, run, &loaded, CaseOptions { seed, ..options }).await;
        traces.append(&mut outcome.trace);
        let verdict = verdict_of(&outcome, run.options.strict);
        let failed = matches!(verdict, Verdict::Failed | Verdict::Error);
        if failed && attempt < run.options.attempts.retries {
            earlier.push(outcome.failures);
            continue;
        }
        let verdict = if !failed && !earlier.is_empty() { Verdict::Flaky } else { verdict };
        let seconds = clock.elapsed().as_secs_f64();
        return (report(&loaded, outcome, verdict, earlier, began, seconds, run), traces);
    }
}

fn hash_of(text: &str) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    text.hash(&mut hasher);
    hasher.finish()
}
