//! Servers that die after so many exchanges: a harmless case, over and over, shows it.

use std::time::{Duration, Instant};

use super::campaign::Campaign;
use super::confirm::CONFIRM;
use super::crashes;
use super::executor::Execution;
use super::finding::Fingerprint;
use super::findings::Confirmed;
use super::program::Program;
use crate::run::testbed::death_of;
use crate::trace::{Direction, Payload};

/// How often the harmless case is done, in turn, until the server dies of it.
const TIMES: &[u32] = &[32, 256, 1024];
/// Longest search, beyond one of the tries.
const LONGEST: Duration = Duration::from_secs(10);
/// A program with so many inputs may have killed the server by their number.
pub(super) const MANY: usize = 8;

/// An opening and a clean turn.
fn harmless(times: u32) -> Program {
    Program { repeat: Some(times), own: true, ..Program::default() }
}

/// Messages sent until the server died of a harmless case; none: that is not what it died of.
pub(super) fn exhausted_after(ran: &Execution) -> Option<usize> {
    if !ran.program.inputs.is_empty() || ran.program.repeat.is_none() {
        return None;
    }
    death_of(ran.single.broke()?)?;
    Some(sent(ran))
}

fn sent(ran: &Execution) -> usize {
    let is_message = |payload: &Payload| matches!(payload, Payload::Text(_) | Payload::Binary(_));
    ran.single.trace.iter().filter(|event| event.dir == Direction::Send && is_message(&event.payload)).count()
}

impl Campaign<'_> {
    /// Whether the server dies in the same way of harmless cases alone, so many of them; if it does, that is a finding. Case
    /// `index` has shown it first.
    pub(super) async fn is_exhausted(&mut self, index: u64, how: &str) -> bool {
        let wanted = Fingerprint::of_death(how);
        let (seed, patient) = (self.seed_of(index), self.options.deadline * 3);
        let began = Instant::now();
        let mut replays = 0;
        let mut times = None;
        for tried in TIMES {
            replays += 1;
            let ran = self.executor.replay(harmless(*tried), seed, patient).await;
            if ran.as_ref().is_some_and(|ran| ran.shows(&wanted)) {
                times = Some(*tried);
            }
            if times.is_some() || began.elapsed() > LONGEST {
                break;
            }
        }
        let Some(times) = times else { return false };
        replays += CONFIRM;
        let shown = self.executor.shown_again(&harmless(times), CONFIRM, &wanted, seed, patient).await;
        let Some(ran) = shown.into_iter().nth(CONFIRM - 1) else { return false };
        self.keep(Confirmed { index, ran, print: wanted, replays });
        true
    }

    /// Whether a death is one that a finding tells.
    pub(super) fn is_told(&self, how: &str) -> bool {
        let shape = crashes::shape(how);
        self.known.iter().any(|print| print.oracle == "target" && crashes::is_of(&print.shape, &shape))
    }
}
