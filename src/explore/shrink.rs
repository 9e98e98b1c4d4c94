//! Making a walk small: fewer moves first, in ever smaller pieces, then simpler ones.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::campaign::Replayer;
use super::failure::{Execution, Fingerprint};
use super::walk::{Act, ClosingChecks, Loss, Move, Text, Walk};

/// Most replays of one finding.
const MOST: usize = 400;
/// Longest time for one finding.
const LONGEST: Duration = Duration::from_secs(20);
/// Longest time where every candidate launches a server.
const LAUNCHED: Duration = Duration::from_secs(60);
/// Candidates tried side by side.
const JOBS: usize = 8;

/// Shrinks what a run shows; `replays` counts the walks run. Given up in the middle, what is there is as good as any, but larger.
pub(super) async fn shrink(
    replayer: &Replayer,
    best: &mut Execution,
    replays: &mut usize,
    wanted: &Fingerprint,
    seed: u64,
) {
    let longest = if replayer.runner.target.is_launched() { LAUNCHED } else { LONGEST };
    let until = Instant::now() + longest;
    let mut work = Work { replayer, best, replays, wanted, seed, until, tried: HashSet::new() };
    loop {
        let before = work.best.walk.size();
        work.up_to_the_failure().await;
        work.fewer_moves().await;
        work.simpler_moves().await;
        if work.best.walk.size() >= before || work.is_over() {
            break;
        }
    }
}

struct Work<'w> {
    replayer: &'w Replayer,
    best: &'w mut Execution,
    replays: &'w mut usize,
    wanted: &'w Fingerprint,
    seed: u64,
    until: Instant,
    tried: HashSet<Walk>,
}

impl Work<'_> {
    fn is_over(&self) -> bool {
        *self.replays >= MOST || Instant::now() > self.until
    }

    /// Tries candidates, a batch at a time; takes the first that still shows the finding, twice. `true`: there was one.
    async fn try_all(&mut self, candidates: Vec<Walk>) -> bool {
        let now = self.best.walk.size();
        let mut fresh = Vec::new();
        for candidate in candidates {
            let candidate = self.replayer.repaired(candidate);
            if candidate.size() < now && self.tried.insert(candidate.clone()) {
                fresh.push(candidate);
            }
        }
        let mut rest = fresh.into_iter();
        loop {
            let batch: Vec<Walk> = rest.by_ref().take(JOBS).collect();
            if batch.is_empty() || self.is_over() {
                return false;
            }
            *self.replays += batch.len();
            let deadline = self.replayer.runner.deadline();
            for found in self.replayer.replay_all(batch, self.seed, deadline, JOBS).await {
                if found.shows(self.wanted) && self.is_steady(&found.walk).await {
                    *self.best = found;
                    return true;
                }
            }
        }
    }

    /// Whether a walk that has shown the finding once does so again.
    async fn is_steady(&mut self, walk: &Walk) -> bool {
        *self.replays += 1;
        let deadline = self.replayer.runner.deadline();
        let again = self.replayer.replay_all(vec![walk.clone()], self.seed, deadline, 1).await;
        again.iter().all(|again| again.shows(self.wanted)) && !again.is_empty()
    }

    /// Leaves out what comes after the move that failed, and what is asked afterwards.
    async fn up_to_the_failure(&mut self) {
        let walk = self.best.walk.clone();
        let done = (self.best.moves_done() + 1).min(walk.moves.len());
        let first = Walk { moves: walk.moves[..done].to_vec(), closing: ClosingChecks::Brief };
        let brief = Walk { closing: ClosingChecks::Brief, ..walk };
        self.try_all(vec![first, brief]).await;
    }

    /// Leaves moves out: halves, quarters, … and at last one at a time.
    async fn fewer_moves(&mut self) {
        let mut chunk = self.best.walk.moves.len().div_ceil(2);
        while chunk >= 1 && !self.is_over() {
            let walk = &self.best.walk;
            let count = walk.moves.len();
            let without = (0..count).step_by(chunk).map(|from| {
                let mut walk = walk.clone();
                walk.moves.drain(from..(from + chunk).min(count));
                walk
            });
            let candidates: Vec<Walk> = without.collect();
            if !self.try_all(candidates).await {
                if chunk == 1 {
                    return;
                }
                chunk = chunk.div_ceil(2);
            }
            chunk = chunk.min(self.best.walk.moves.len().max(1));
            if self.best.walk.moves.is_empty() {
                return;
            }
        }
    }

    async fn simpler_moves(&mut self) {
        let walk = self.best.walk.clone();
        let simpler = walk.moves.iter().enumerate().flat_map(|(index, step)| {
            let with = |step| {
                let mut walk = walk.clone();
                walk.moves[index] = step;
                walk
            };
            simpler(step).into_iter().map(with).collect::<Vec<_>>()
        });
        let candidates = simpler.collect();
        self.try_all(candidates).await;
    }
}

/// Simpler moves of the same kind.
fn simpler(step: &Move) -> Vec<Move> {
    let mut all = Vec::new();
    if step.watched {
        all.push(Move { watched: false, ..step.clone() });
    }
    let plain = match &step.act {
        Act::Turn(script, text) if *text != Text::Plain => Some(Act::Turn(script.clone(), Text::Plain)),
        Act::Exit(Some(_)) => Some(Act::Exit(None)),
        Act::Reopen(_, Some(_)) => Some(Act::Reopen(Loss::Cut, None)),
        _ => None,
    };
    all.extend(plain.map(|act| Move { act, ..step.clone() }));
    all
}
