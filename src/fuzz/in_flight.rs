//! Cases in flight: made ahead, run side by side, and taken in one by one, in the order of their numbers.

use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::task::JoinSet;

use super::executor::{Execution, Executor};
use super::program::Program;
use crate::results::kept::weight;

/// How far cases are made ahead: case `n` is made when all below `n - AHEAD` have been taken in, and none above. So it does not depend on
/// which ends first, and no slow case keeps the others waiting.
pub(super) const AHEAD: u64 = 64;

/// While cases that are over, and wait for one before them, have reports that show more bytes, no further case begins.
const HELD: usize = 32 << 20;

/// A case that was run; `None`: it was no scenario, or frameproof itself failed in it.
pub(super) type Finished = (u64, Option<Execution>);

/// The cases that are not taken in yet.
#[derive(Default)]
pub(super) struct InFlight {
    waiting: VecDeque<(u64, Program)>,
    running: JoinSet<Finished>,
    finished: BTreeMap<u64, Option<Execution>>,
    /// What the reports of those that are over show, in bytes.
    held: usize,
    /// The number of the case that is taken in next.
    next: u64,
    /// What [`InFlight::take_recent`] returns next, where servers are watched.
    recent: Vec<(u64, Program)>,
}

impl InFlight {
    /// The number of the first case that may not be made yet.
    pub fn horizon(&self) -> u64 {
        self.next + AHEAD
    }

    /// Adds a case; they come in the order of their numbers.
    pub fn add(&mut self, (index, program): (u64, Program)) {
        self.waiting.push_back((index, program));
    }

    /// Drops what has not begun.
    pub fn discard_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Starts cases until `jobs` run. Launched servers are watched: what ran on them is remembered.
    pub fn start(&mut self, jobs: usize, executor: &Executor) {
        while self.running.len() < jobs.max(1) && (self.held <= HELD || self.running.is_empty()) {
            let Some((index, program)) = self.waiting.pop_front() else { return };
            if executor.target.is_launched() {
                self.recent.push((index, program.clone()));
            }
            let executor = executor.clone();
            self.running.spawn(async move {
                let run = executor.run(program, executor.seed_of(index), executor.deadline());
                (index, AssertUnwindSafe(run).catch_unwind().await.ok().flatten())
            });
        }
    }

    /// Waits until a case is over. `false`: none runs.
    pub async fn wait_for_one(&mut self) -> bool {
        match self.running.join_next().await {
            Some(Ok((index, execution))) => {
                self.held += held(execution.as_ref());
                self.finished.insert(index, execution);
            }
            Some(Err(_)) => {}
            None => return false,
        }
        true
    }

    /// Waits for all that run.
    pub async fn wait_for_all(&mut self) {
        while self.wait_for_one().await {}
    }

    /// The next case in order, if it is over.
    pub fn take_next(&mut self) -> Option<Finished> {
        let execution = self.finished.remove(&self.next)?;
        self.held -= held(execution.as_ref());
        self.next += 1;
        Some((self.next - 1, execution))
    }

    /// What ran since this was asked last; what runs still counts for the next time, too.
    pub fn take_recent(&mut self) -> Vec<(u64, Program)> {
        let (next, finished) = (self.next, &self.finished);
        let runs = |index: &u64| *index >= next && !finished.contains_key(index);
        let still = self.recent.iter().filter(|(index, _)| runs(index)).cloned().collect();
        std::mem::replace(&mut self.recent, still)
    }
}

/// What the report of a case shows, in bytes.
fn held(execution: Option<&Execution>) -> usize {
    execution.map_or(0, |execution| weight(&execution.outcome.report))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_taken_in_by_their_numbers() {
        let mut in_flight = InFlight::default();
        for index in [2, 0] {
            in_flight.finished.insert(index, None);
        }
        assert_eq!(in_flight.take_next().map(|(index, _)| index), Some(0));
        assert!(in_flight.take_next().is_none(), "the second is not over");
        assert_eq!(in_flight.horizon(), 1 + AHEAD);
        in_flight.finished.insert(1, None);
        assert_eq!(in_flight.take_next().map(|(index, _)| index), Some(1));
        assert_eq!(in_flight.take_next().map(|(index, _)| index), Some(2));
        assert!(in_flight.take_next().is_none());
    }
}
