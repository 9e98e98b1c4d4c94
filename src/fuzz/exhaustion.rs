//! Servers that crash after so many exchanges: a harmless case, repeated, shows it.

use std::time::{Duration, Instant};

use super::executor::{CONFIRMATIONS, Execution, Executor};
use super::fingerprint::Fingerprint;
use super::program::Program;
use crate::results::death::Death;

/// How often the harmless case is repeated, in turn, until the server crashes.
const TIMES: &[u32] = &[32, 256, 1024];
/// Longest search, beyond one of the tries.
const LONGEST: Duration = Duration::from_secs(10);
/// A program with so many inputs may have crashed the server by their number.
pub(super) const MANY: usize = 8;

/// A harmless case that crashes the server when it is repeated.
pub(super) struct Exhaustion {
    /// A run of it.
    pub execution: Execution,
    /// Cases run to find and confirm it.
    pub replays: usize,
}

/// An opening and a clean turn.
fn harmless(times: u32) -> Program {
    Program { repeat: Some(times), clean_turn_after: true, ..Program::default() }
}

/// Messages sent until the server crashed in a harmless case; `None`: that is not why it crashed.
pub(super) fn exhausted_after(execution: &Execution) -> Option<usize> {
    if !execution.program.inputs.is_empty() || execution.program.repeat.is_none() {
        return None;
    }
    execution.outcome.death()?;
    Some(execution.outcome.sent)
}

/// Looks for a number of harmless cases that alone crash the server in the same way.
pub(super) async fn find_exhaustion(executor: &Executor, seed: u64, how: &Death) -> Option<Exhaustion> {
    let wanted = Fingerprint::of_crash(how);
    let deadline = executor.replay_deadline();
    let began = Instant::now();
    let mut replays = 0;
    let mut times = None;
    for tried in TIMES {
        replays += 1;
        let execution = executor.replay(harmless(*tried), seed, deadline).await;
        if execution.is_some_and(|execution| execution.reproduces(&wanted)) {
            times = Some(*tried);
        }
        if times.is_some() || began.elapsed() > LONGEST {
            break;
        }
    }
    replays += CONFIRMATIONS;
    let shown = executor.reproductions(&harmless(times?), CONFIRMATIONS, &wanted, seed, deadline).await;
    let execution = shown.into_iter().nth(CONFIRMATIONS - 1)?;
    Some(Exhaustion { execution, replays })
}
