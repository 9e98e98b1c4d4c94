//! Cases on their way: made ahead, run side by side, and taken in one by one, in the order of their numbers.

use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::JoinSet;

use super::executor::{Execution, Executor};
use super::program::Program;

/// How far cases are made ahead: case `n` is made when all below `n - AHEAD` have been taken in, and none above. So it does not depend on
/// which ends first, and no slow case keeps the others waiting.
pub(super) const AHEAD: u64 = 64;

/// A case that was run; `None`: it was no scenario, or frameproof itself broke in it.
pub(super) type Landed = (u64, Option<Execution>);

/// The cases that are not taken in yet.
#[derive(Default)]
pub(super) struct InFlight {
    waiting: VecDeque<(u64, Program)>,
    running: JoinSet<Landed>,
    done: BTreeMap<u64, Option<Execution>>,
    /// The number of the case that is taken in next.
    next: u64,
    /// What [`InFlight::recent`] tells next, where servers are watched.
    recent: Vec<(u64, Program)>,
}

impl InFlight {
    /// The number of the case that may be made last.
    pub fn horizon(&self) -> u64 {
        self.next + AHEAD
    }

    /// Adds a case; they come in the order of their numbers.
    pub fn add(&mut self, index: u64, program: Program) {
        self.waiting.push_back((index, program));
    }

    /// Gives up what has not begun.
    pub fn give_up(&mut self) {
        self.waiting.clear();
    }

    /// Starts cases until `jobs` run. Launched servers are watched: what ran on them is remembered.
    pub fn start(
        &mut self,
        jobs: usize,
        executor: &Executor,
        deadline: Duration,
        seed_of: impl Fn(u64) -> u64,
    ) {
        while self.running.len() < jobs.max(1) {
            let Some((index, program)) = self.waiting.pop_front() else { return };
            if executor.ground.is_launched() {
                self.recent.push((index, program.clone()));
            }
            let (executor, seed) = (executor.clone(), seed_of(index));
            self.running.spawn(async move {
                let ran = AssertUnwindSafe(executor.run(program, seed, deadline)).catch_unwind().await;
                (index, ran.ok().flatten())
            });
        }
    }

    /// Waits until a case is over. `false`: none runs.
    pub async fn land(&mut self) -> bool {
        match self.running.join_next().await {
            Some(Ok((index, ran))) => drop(self.done.insert(index, ran)),
            Some(Err(_)) => {}
            None => return false,
        }
        true
    }

    /// Waits for all that run.
    pub async fn land_all(&mut self) {
        while self.land().await {}
    }

    /// The next case in order, if it is over.
    pub fn take(&mut self) -> Option<Landed> {
        let ran = self.done.remove(&self.next)?;
        self.next += 1;
        Some((self.next - 1, ran))
    }

    /// What ran since this was asked last; what runs still counts for the next time, too.
    pub fn recent(&mut self) -> Vec<(u64, Program)> {
        let (next, done) = (self.next, &self.done);
        let runs = |index: &u64| *index >= next && !done.contains_key(index);
        let still = self.recent.iter().filter(|(index, _)| runs(index)).cloned().collect();
        std::mem::replace(&mut self.recent, still)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_taken_in_by_their_numbers() {
        let mut flight = InFlight::default();
        for index in [2, 0] {
            flight.done.insert(index, None);
        }
        assert_eq!(flight.take().map(|(index, _)| index), Some(0));
        assert!(flight.take().is_none(), "the second is not over");
        assert_eq!(flight.horizon(), 1 + AHEAD);
        flight.done.insert(1, None);
        assert_eq!(flight.take().map(|(index, _)| index), Some(1));
        assert_eq!(flight.take().map(|(index, _)| index), Some(2));
        assert!(flight.take().is_none());
    }
}
