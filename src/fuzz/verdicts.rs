//! What a campaign makes of failures: they are confirmed and shrunk; deaths and growing memory of a launched target.

use std::time::{Duration, Instant};

use super::bench::Ran;
use super::campaign::{Campaign, Ended, Growth};
use super::finding::{self, Fingerprint};
use super::keep::Confirmed;
use super::program::Program;
use super::shrink::shrink;
use crate::run::event::Verdict;

/// How often what looks like the same defect is looked into: shrinking shows whether it is.
const LOOKS: usize = 6;
/// Replays that must all show a finding.
const CONFIRM: usize = 3;
/// How often a target that refuses is asked again, and how long is waited before each time.
const RETRIES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];
/// How often a case is repeated that may make the target's memory grow.
const REPEAT: u32 = 24;
/// Looks at the memory, the heaviest of which are kept: the cases before each.
const HEAVIEST: usize = 4;
/// Replays side by side.
const JOBS: usize = 4;

impl Campaign<'_> {
    pub(super) fn is_worth_a_look(&self, print: &Fingerprint) -> bool {
        let looks = self.looks.get(&subject(print)).copied().unwrap_or(0);
        !self.known.contains(print) && looks < LOOKS
    }

    /// Confirms, shrinks and keeps a finding, unless it is known. `false`: replays did not show it.
    pub(super) async fn look_into(&mut self, index: u64, ran: Ran, print: &Fingerprint) -> bool {
        let (seed, patient) = (self.seed_of(index), self.options.deadline * 3);
        // Who shares a server with a case that kills it dies with it.
        if print.oracle == "target"
            && !self
                .bench
                .replay(ran.program.clone(), seed, patient)
                .await
                .is_some_and(|ran| ran.shows(print))
        {
            return false;
        }
        *self.looks.entry(subject(print)).or_default() += 1;
        let again = vec![ran.program.clone(); CONFIRM];
        let again = self.bench.replay_all(again, seed, patient, CONFIRM).await;
        let shown = again.iter().flatten().filter(|ran| ran.shows(print)).count();
        if shown < CONFIRM {
            self.report.unconfirmed += 1;
            let message = format!(
                "case {index} failed, and {shown} of {CONFIRM} replays did: no finding. {}: {}",
                print.oracle,
                print.what()
            );
            self.doubts.push((format!("{} {}", print.oracle, print.what()), message));
            return false;
        }
        let end = self.end();
        let replays = CONFIRM;
        let confirmed = self.confirmed.insert(Confirmed { index, ran, print: print.clone(), replays });
        // What else has failed by the end of the time must be looked into in what is left of it.
        let left = end.map(|end| end.saturating_duration_since(Instant::now()).mul_f64(0.75));
        let Confirmed { ran, print, replays, .. } = confirmed;
        let until = left.map(|left| Instant::now() + left);
        shrink(&self.bench, (ran, replays), print, seed, self.options.deadline, until).await;
        if let Some(confirmed) = self.confirmed.take() {
            self.keep(confirmed);
        }
        true
    }

    /// Keeps the death of a launched target that no single case shows again, with the inputs that led there. Where a case is
    /// known that it dies of in the same way, that is a note.
    pub(super) fn mourn(&mut self, how: &str, programs: &[(u64, Program)]) {
        if self.deaths.contains(how) {
            let cases: Vec<String> = programs.iter().map(|(index, _)| index.to_string()).collect();
            let message = format!("{how} again, as in a finding; these cases ran: {}", cases.join(", "));
            self.note(how.to_owned(), message);
            return;
        }
        let message = format!("{how}; no case alone shows it again");
        self.keep_together("target", finding::normal(how), Verdict::Error, &message, programs, CONFIRM);
    }

    /// Whether a launched target's memory has grown past its bound. Remembers what made it grow most.
    pub(super) async fn has_grown(&mut self, programs: Vec<(u64, Program)>) -> bool {
        let Some(now) = self.bench.ground.memory().await else { return false };
        let base = *self.growth.base.get_or_insert(now);
        let grown = now.saturating_sub(self.growth.last.max(base));
        self.growth.last = now;
        if grown > 0 {
            let heaviest = &mut self.growth.heaviest;
            let at = heaviest.partition_point(|(most, _)| *most >= grown);
            heaviest.insert(at, (grown, programs));
            heaviest.truncate(HEAVIEST);
        }
        now.saturating_sub(base) > self.options.max_growth
    }

    /// Looks for the case that makes a launched target's memory grow. Growth that no case alone shows is a finding with the
    /// cases that made it grow most. The target begins anew.
    pub(super) async fn weigh(&mut self) {
        let Growth { base, last, heaviest } = std::mem::take(&mut self.growth);
        let alone = |(index, program): (u64, Program)| {
            let bare = Program { own: false, fresh: false, witness: false, witness_state: None, ..program };
            (index, Program { repeat: Some(REPEAT), ..bare })
        };
        let suspects: Vec<(u64, Program)> =
            heaviest.first().into_iter().flat_map(|(_, programs)| programs.clone()).map(alone).collect();
        let (indices, programs): (Vec<u64>, Vec<Program>) = suspects.into_iter().unzip();
        let (seed, patient) = (self.options.seed, self.options.deadline * 3);
        let ran = self.bench.replay_all(programs, seed, patient, JOBS).await;
        let before = self.known.len();
        for (index, ran) in indices.into_iter().zip(ran) {
            let Some(ran) = ran else { continue };
            let print = ran.wrong().into_iter().find(|print| print.oracle == "memory");
            if let Some(print) = print.filter(|print| self.is_worth_a_look(print)) {
                self.look_into(index, ran, &print).await;
                break;
            }
        }
        if self.known.len() == before {
            let grown = last.saturating_sub(base.unwrap_or(last)) >> 20;
            let message =
                format!("the target's memory grew by {grown} MiB; no case alone, repeated, makes it grow");
            let mut together: Vec<(u64, Program)> =
                heaviest.into_iter().flat_map(|(_, programs)| programs).collect();
            together.sort_by_key(|(index, _)| *index);
            together.dedup_by_key(|(index, _)| *index);
            self.keep_together(
                "memory",
                finding::normal(&message),
                Verdict::Failed,
                &message,
                &together,
                CONFIRM,
            );
        }
        self.bench.ground.renew().await;
    }

    /// After a failure: an embedded server begins anew, another must still take connections; one that was
    /// launched is launched again, should it not.
    pub(super) async fn recover(&mut self) -> bool {
        if !self.bench.ground.is_launched() {
            self.bench.ground.renew().await;
        }
        for wait in std::iter::once(Duration::ZERO).chain(RETRIES) {
            tokio::time::sleep(wait).await;
            match self.bench.ground.probe().await {
                Ok(()) => {
                    self.report.ended = Ended::Done;
                    return true;
                }
                // Should the time be over before it takes connections again, that is why the campaign is.
                Err(error) => self.report.ended = Ended::Refusing(error.to_string()),
            }
            // A launched target that takes no connections, though it runs, may do so after a restart.
            if self.bench.ground.renew().await {
                self.growth = Growth::default();
            }
        }
        false
    }
}

/// What a failure is about, before it is known what it takes. Of RFC 6455 many things can be broken in one way, and no
/// requirement tells them apart.
fn subject(print: &Fingerprint) -> (String, Vec<String>, String) {
    let shape = if print.oracle == "framing" { print.shape.clone() } else { String::new() };
    (print.oracle.clone(), print.requirements.clone(), shape)
}
