//! Running generated cases: on the target, and replaying them on a server of their own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::protocol::Protocol;
use crate::results::event::Verdict;
use crate::run::testbed::{CaseRun, Recorded, Testbed};
use crate::scenario::{LoadedCase, synthetic};
use crate::source::Document;

/// A target, and how generated cases are run against it.
#[derive(Clone)]
pub struct Runner {
    /// The target.
    pub target: Arc<Testbed>,
    /// A place for the cases, which are in no file yet.
    document: Arc<Document>,
    /// The family of the cases.
    family: &'static str,
    seed: u64,
    deadline: Duration,
    /// Servers of replays that passed, kept for further candidates.
    spare: Arc<Mutex<Vec<Testbed>>>,
}

/// Most servers that are kept running for further candidates.
const SPARE: usize = 8;

impl Runner {
    /// A runner for a target. `family`: of the cases; `seed`: of all of them; `deadline`: how long an answer may take.
    pub fn new(target: Testbed, family: &'static str, seed: u64, deadline: Duration) -> Self {
        // An empty document always parses.
        let document = Document::parse(family, "{}").map(Arc::new);
        let document = document.unwrap_or_else(|_| unreachable!("an empty map is YAML"));
        Self { target: Arc::new(target), document, family, seed, deadline, spare: Arc::default() }
    }

    /// The target's protocol.
    pub fn protocol(&self) -> &Arc<Protocol> {
        self.target.protocol()
    }

    /// The seed of the whole campaign.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The seed of one case.
    pub fn seed_of(&self, index: u64) -> u64 {
        self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(index)
    }

    /// How long an answer may take.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// How long an answer may take in a replay.
    pub fn replay_deadline(&self) -> Duration {
        self.deadline * 3
    }

    /// How many replays may run side by side, of so many: on the only server that there can be, one replay would be harmed by
    /// another.
    pub fn replay_jobs(&self, jobs: usize) -> usize {
        if self.target.is_launched() && !self.target.forks() { 1 } else { jobs.max(1) }
    }

    /// The case as the interpreter takes it.
    ///
    /// # Errors
    /// Why it is no scenario.
    pub fn loaded(&self, case: &Value) -> Result<LoadedCase, String> {
        synthetic::unplaced(case, self.family, &self.document, self.protocol())
    }

    /// Runs a case. `None`: it is no scenario (shrinking may cause that).
    pub async fn run(&self, case: &Value, seed: u64, deadline: Duration) -> Option<(CaseRun, Recorded)> {
        let loaded = self.loaded(case).ok()?;
        Some(self.target.run(&loaded, seed, Some(deadline)).await)
    }

    /// Runs a case against a server of its own, where there can be one.
    pub async fn replay(&self, case: &Value, seed: u64, deadline: Duration) -> Option<(CaseRun, Recorded)> {
        let Some(own) = self.target.fork().await else {
            if self.target.is_launched() {
                self.target.restart_fresh().await;
            }
            return self.run(case, seed, deadline).await;
        };
        let outcome = self.run_on(&own, case, seed, deadline).await;
        own.close().await;
        outcome
    }

    /// Runs a candidate for a smaller case against a server on which earlier candidates have passed, where there can be several servers: to
    /// launch one takes longer than to run most cases. What it shows may come from an earlier candidate, so a replay must show it, too.
    pub async fn try_candidate(
        &self,
        case: &Value,
        seed: u64,
        deadline: Duration,
    ) -> Option<(CaseRun, Recorded)> {
        if !self.target.forks() {
            return self.replay(case, seed, deadline).await;
        }
        let spare = self.spares().pop();
        let own = match spare {
            Some(spare) => spare,
            None => self.target.fork().await?,
        };
        let outcome = self.run_on(&own, case, seed, deadline).await;
        // One on which something has failed may be harmed.
        let is_sound = outcome.as_ref().is_none_or(|(run, _)| run.report.verdict == Verdict::Passed);
        if is_sound && self.spares().len() < SPARE {
            self.spares().push(own);
        } else {
            own.close().await;
        }
        outcome
    }

    /// Stops the servers that were kept for candidates.
    pub async fn stop_spares(&self) {
        let spares = std::mem::take(&mut *self.spares());
        for spare in spares {
            spare.close().await;
        }
    }

    fn spares(&self) -> MutexGuard<'_, Vec<Testbed>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a case on a server that nobody else uses.
    async fn run_on(
        &self,
        own: &Testbed,
        case: &Value,
        seed: u64,
        deadline: Duration,
    ) -> Option<(CaseRun, Recorded)> {
        let loaded = self.loaded(case).ok()?;
        let mut outcome = own.run(&loaded, seed, Some(deadline)).await;
        if let Some(how) = own.take_crashes().await.first() {
            outcome.0.died(how);
        }
        Some(outcome)
    }
}
