//! Running generated cases: on the target, and replaying them on a server of their own.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::protocol::Protocol;
use crate::run::testbed::{CaseRun, Testbed};
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
}

impl Runner {
    /// A runner for a target. `family`: of the cases; `seed`: of all of them; `deadline`: how long an answer may take.
    pub fn new(target: Testbed, family: &'static str, seed: u64, deadline: Duration) -> Self {
        // An empty document always parses.
        let document = Document::parse(family, "{}").map(Arc::new);
        let document = document.unwrap_or_else(|_| unreachable!("an empty map is YAML"));
        Self { target: Arc::new(target), document, family, seed, deadline }
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
    pub async fn run(&self, case: &Value, seed: u64, deadline: Duration) -> Option<CaseRun> {
        let loaded = self.loaded(case).ok()?;
        Some(self.target.run(&loaded, seed, Some(deadline)).await)
    }

    /// Runs a case against a server of its own, where there can be one.
    pub async fn replay(&self, case: &Value, seed: u64, deadline: Duration) -> Option<CaseRun> {
        let Some(own) = self.target.fork().await else {
            if self.target.is_launched() {
                self.target.restart_fresh().await;
            }
            return self.run(case, seed, deadline).await;
        };
        let runner = Self { target: Arc::new(own), ..self.clone() };
        let mut outcome = runner.run(case, seed, deadline).await;
        if let (Some(outcome), Some(how)) = (&mut outcome, runner.target.take_crashes().await.first()) {
            outcome.died(how);
        }
        if let Ok(target) = Arc::try_unwrap(runner.target) {
            target.close().await;
        }
        outcome
    }
}
