//! Confirming a failure: replays must reproduce it each time, then it is shrunk.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::budget::Budget;
use super::events::Note;
use super::executor::{CONFIRMATIONS, Execution, Executor};
use super::exhaustion::{MANY, find_exhaustion};
use super::fingerprint::Fingerprint;
use super::latency::Latency;
use super::oracle::Oracle;
use super::shrink::{Patience, shrink};

/// A failure that replays have reproduced each time.
pub(super) struct Confirmed {
    /// The number of the case.
    pub index: u64,
    /// What it shows.
    pub print: Fingerprint,
    /// The run of the smallest program so far that shows it.
    pub execution: Execution,
    /// Cases run to confirm and shrink it.
    pub replays: usize,
}

/// How far the failure that is being confirmed has come. Should the campaign end meanwhile, it is reported as it is.
pub(super) enum Pending {
    /// Replays have not reproduced it yet: the number of the case, and what it showed.
    Unconfirmed(u64, Fingerprint),
    /// It is being shrunk.
    Confirmed(Box<Confirmed>),
}

/// Confirms failures, one at a time.
pub(super) struct Confirmer {
    budget: Budget,
    /// How often what looks like the same defect was confirmed, by a digest of what it is about.
    attempts: HashMap<u64, usize>,
    digest: RandomState,
    /// How long the target takes to answer.
    pub latency: Latency,
    unconfirmed: usize,
    /// Notes on failures that replays did not reproduce. Reported unless another case explains them.
    doubts: Vec<Note>,
    pending: Option<Pending>,
}

impl Confirmer {
    pub fn new(budget: Budget) -> Self {
        let (attempts, latency) = (HashMap::new(), Latency::default());
        let digest = RandomState::new();
        Self { budget, attempts, digest, latency, unconfirmed: 0, doubts: Vec::new(), pending: None }
    }

    /// How often what looks like the same defect was tried.
    pub fn attempts(&self, print: &Fingerprint) -> usize {
        self.attempts.get(&self.digest.hash_one(print.subject())).copied().unwrap_or(0)
    }

    /// Failures that replays did not reproduce.
    pub fn unconfirmed(&self) -> usize {
        self.unconfirmed
    }

    /// The notes on failures that replays did not reproduce, since this was asked last.
    pub fn take_doubts(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.doubts)
    }

    /// What was being confirmed when the campaign ended.
    pub fn take_pending(&mut self) -> Option<Pending> {
        self.pending.take()
    }

    /// Confirms and shrinks a failure. `None`: replays did not reproduce it.
    pub async fn confirm(
        &mut self,
        executor: &Executor,
        index: u64,
        execution: Execution,
        print: &Fingerprint,
    ) -> Option<Confirmed> {
        self.pending = Some(Pending::Unconfirmed(index, print.clone()));
        let confirmed = self.replay_and_shrink(executor, index, execution, print).await;
        self.pending = None;
        confirmed
    }

    async fn replay_and_shrink(
        &mut self,
        executor: &Executor,
        index: u64,
        execution: Execution,
        print: &Fingerprint,
    ) -> Option<Confirmed> {
        let (seed, patient) = (executor.seed_of(index), executor.replay_deadline());
        // A case that shares a server with one that crashes it fails with it.
        if print.oracle == Oracle::Target {
            let alone = executor.replay(execution.program.clone(), seed, patient).await;
            alone.filter(|alone| alone.reproduces(print))?;
        }
        *self.attempts.entry(self.digest.hash_one(print.subject())).or_default() += 1;
        let mut quick = JoinSet::new();
        if let Some(deadline) = self.expected_latency(executor) {
            let (executor, execution, print) = (executor.clone(), execution.clone(), print.clone());
            let until = self.end_of_quick_shrinking(&executor);
            quick.spawn(shrink_quickly(executor, execution, print, seed, deadline, until));
        }
        let program = &execution.program;
        let shown = executor.reproductions(program, CONFIRMATIONS, print, seed, patient).await.len();
        if shown < CONFIRMATIONS {
            self.unconfirmed += 1;
            self.doubts.push(no_finding(
                index,
                print,
                &format!("{shown} of {CONFIRMATIONS} replays reproduced it"),
            ));
            return None;
        }
        // So many inputs may have crashed it by their number.
        let how = execution.outcome.death().filter(|_| program.inputs.len() >= MANY);
        let how = how.cloned();
        let confirmed = Confirmed { index, execution, print: print.clone(), replays: CONFIRMATIONS };
        self.pending = Some(Pending::Confirmed(Box::new(confirmed)));
        if let Some(how) = how
            && let Some(found) = find_exhaustion(executor, seed, &how).await
        {
            let (print, execution) = (Fingerprint::of_crash(&how), found.execution);
            return Some(Confirmed { index, print, execution, replays: found.replays });
        }
        let small = quick.join_next().await.and_then(|small| small.ok().flatten());
        self.shrink_pending(executor, small, seed).await;
        match self.pending.take() {
            Some(Pending::Confirmed(confirmed)) => Some(*confirmed),
            _ => None,
        }
    }

    /// Replaces the run that is pending by that of a smaller program: the one that was found quickly, or one that is looked for.
    async fn shrink_pending(&mut self, executor: &Executor, quick: Option<QuickShrink>, seed: u64) {
        // What else fails must be confirmed in what is left of the time.
        let until = self.budget.end_of_share();
        let Some(Pending::Confirmed(confirmed)) = &mut self.pending else { return };
        let Confirmed { execution, replays, print, .. } = confirmed.as_mut();
        let QuickShrink { smallest, replays: tried } = quick.unwrap_or_default();
        *replays += tried;
        if let Some(small) = smallest {
            *execution = small;
            return;
        }
        // Where replays showed it in so short a time, and not in a long one, the target takes longer than it has so far.
        if tried > 0 {
            self.latency.was_misleading();
        }
        let patience = Patience { first: executor.deadline(), again: executor.replay_deadline() };
        shrink(executor, (execution, replays), print, seed, patience, until).await;
    }

    /// By when an answer of the target can be expected, before the scale of deadlines. `None`: unknown. A server that was just
    /// launched takes longer than it has so far.
    fn expected_latency(&self, executor: &Executor) -> Option<Duration> {
        let scale = executor.target.scale().filter(|_| !executor.target.is_launched())?;
        let expected = self.latency.expected(executor.deadline().mul_f64(scale))?;
        Some(expected.div_f64(scale))
    }

    /// The end of the campaign, less the time in which a silence is confirmed.
    fn end_of_quick_shrinking(&self, executor: &Executor) -> Option<Instant> {
        let needed = executor.replay_deadline().mul_f64(executor.target.scale().unwrap_or(1.0));
        let end = self.budget.end().map(|end| end.checked_sub(needed).unwrap_or(end));
        end.zip(self.budget.end_of_share()).map(|(end, share)| end.min(share))
    }
}

/// A note on a case that failed and is no finding, and why not.
pub(super) fn no_finding(index: u64, print: &Fingerprint, why: &str) -> Note {
    let (oracle, what) = (print.oracle, &print.signature);
    Note {
        kind: format!("{oracle} {what}"),
        text: format!("case {index} failed, but {why}: not a finding. {oracle}: {what}"),
    }
}

/// What shrinking with a short deadline has come to.
#[derive(Default)]
struct QuickShrink {
    /// The smallest run, if replays with the long deadline reproduce it, too.
    smallest: Option<Execution>,
    /// Cases run.
    replays: usize,
}

/// Shrinks what a run shows, waiting for answers no longer than `deadline`: replays of a silence with the long one would take long.
/// `None`: with so short a deadline no replays reproduce it.
async fn shrink_quickly(
    executor: Executor,
    mut execution: Execution,
    print: Fingerprint,
    seed: u64,
    deadline: Duration,
    until: Option<Instant>,
) -> Option<QuickShrink> {
    let shown = executor.reproductions(&execution.program, CONFIRMATIONS, &print, seed, deadline).await;
    if shown.len() < CONFIRMATIONS {
        return None;
    }
    let (mut replays, patience) = (2 * CONFIRMATIONS, Patience { first: deadline, again: deadline });
    shrink(&executor, (&mut execution, &mut replays), &print, seed, patience, until).await;
    let patient = executor.replay_deadline();
    let shown = executor.reproductions(&execution.program, CONFIRMATIONS, &print, seed, patient).await;
    Some(QuickShrink { smallest: shown.into_iter().nth(CONFIRMATIONS - 1), replays })
}
