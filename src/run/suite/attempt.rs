//! One case of a suite, and again while it fails and retries are left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::results::event::{CaseReport, Failure, Verdict};
use crate::run::case::holding::Share;
use crate::run::context::RunContext;
use crate::run::options::{CaseOptions, GoesOn};
use crate::run::server::pool::ServerPool;
use crate::run::server::serve::run_on_server;
use crate::run::suite::report::{report, verdict_of};
use crate::run::suite::short_deadlines::ShortDeadlines;
use crate::scenario::LoadedCase;
use crate::trace::Event;

/// What every case of a run shares.
pub(crate) struct SuiteContext {
    pub run: RunContext,
    pub pool: ServerPool,
    pub start: Instant,
}

/// What became of a case.
pub(crate) struct Attempted {
    pub report: CaseReport,
    pub trace: Vec<Event>,
    /// What the trace takes in memory.
    pub shares: Vec<Share>,
    /// The longest that this process was late meanwhile.
    pub late: Duration,
    /// It was given up because all cases together held too much.
    pub crowded_out: bool,
}

/// Runs a case, and again while it fails and retries are left.
pub(crate) async fn run_attempts(
    shared: Arc<SuiteContext>,
    loaded: Arc<LoadedCase>,
    round: u32,
    is_short: bool,
) -> Attempted {
    let SuiteContext { run, pool, start } = &*shared;
    let mut options = CaseOptions { goes_on: GoesOn::UnlessBuiltOn, ..run.case_options(0) };
    if is_short {
        options = ShortDeadlines::options(options);
    }
    let began = start.elapsed().as_secs_f64();
    let mut earlier: Vec<Vec<Failure>> = Vec::new();
    let (mut trace, mut shares) = (Vec::new(), Vec::new());
    let mark = run.lag.mark();
    loop {
        let attempt = earlier.len() as u32;
        let seed = run.options.randomness.seed.wrapping_add(u64::from(round) << 32);
        let seed = seed.wrapping_add(u64::from(attempt) << 48).wrapping_add(hash_of(&loaded.id));
        options.salt = run.next_salt(&loaded.id, round, attempt);
        let clock = Instant::now();
        let mut outcome = run_on_server(pool, run, &loaded, CaseOptions { seed, ..options }).await;
        trace.append(&mut outcome.record.trace);
        let held = std::mem::take(&mut outcome.record.shares);
        shares.extend(held.into_iter().filter(|_| !trace.is_empty()));
        let crowded_out = outcome.record.crowded_out;
        let verdict = verdict_of(&outcome, run.options.strict);
        let failed = matches!(verdict, Verdict::Failed | Verdict::Error);
        if failed && !crowded_out && attempt < run.options.attempts.retries {
            earlier.push(outcome.failures);
            continue;
        }
        let verdict = if !failed && !earlier.is_empty() { Verdict::Flaky } else { verdict };
        let seconds = clock.elapsed().as_secs_f64();
        let report = report(&loaded, outcome, verdict, earlier, began, seconds, run);
        return Attempted { report, trace, shares, late: run.lag.since(mark), crowded_out };
    }
}

fn hash_of(text: &str) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    text.hash(&mut hasher);
    hasher.finish()
}
