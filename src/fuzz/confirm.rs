//! What a campaign makes of failures: they are confirmed and shrunk; deaths and growing memory of a launched target.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::campaign::{Campaign, Ended, Growth};
use super::crashes;
use super::executor::{Execution, Executor, is_same_defect};
use super::exhaustion::MANY;
use super::finding::{Fingerprint, Shown};
use super::findings::{Confirmed, JointFinding};
use super::input::Input;
use super::program::Program;
use super::shrink::{Patience, shrink};
use crate::results::event::Verdict;
use crate::run::testbed::death_of;

/// How often what looks like the same defect is looked into: shrinking shows whether it is.
const LOOKS: usize = 6;
/// The same for a death that a finding may tell.
const LOOKS_AGAIN: usize = 2;
/// Replays that must all show a finding.
pub(super) const CONFIRM: usize = 3;
/// How often a target that refuses is asked again, and how long is waited before each time.
const RETRIES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];
/// How often a case is repeated that may make the target's memory grow.
const REPEAT: u32 = 24;
/// Inputs of a case that are tried by themselves.
const ALONE: usize = 32;
/// How often at least.
const LEAST: u32 = 3;
/// Inputs in all its times that are enough, where a case has many.
const INPUTS: usize = 256;
/// Looks at the memory, the heaviest of which are kept: the cases before each.
const HEAVIEST: usize = 4;
/// Replays side by side.
const JOBS: usize = 4;
/// Where the campaign ends before all that may have done something was looked at.
const CUT: &str = "which case does it was not looked into to the end";

impl Campaign<'_> {
    /// Whether a case shows something that is worth a look.
    pub(super) fn is_suspect(&self, ran: &Execution) -> bool {
        ran.is_suspect(&|print| self.is_new(ran, print))
    }

    /// Whether what a case shows is worth a look.
    pub(super) fn is_new(&self, ran: &Execution, print: &Fingerprint) -> bool {
        self.is_worth_a_look(print) && !self.is_explained(ran, print)
    }

    /// Whether a case has an input like one that shows this alone, according to a finding: in no state, or in the same. Once it is
    /// known, no such case is made.
    pub(super) fn is_explained(&self, ran: &Execution, print: &Fingerprint) -> bool {
        let of = |shown: &Shown| {
            let Program { inputs, state, .. } = &shown.program;
            let [alone] = inputs.as_slice() else { return false };
            is_same_defect(&shown.fingerprint, print)
                && (state.is_none() || *state == ran.program.state)
                && ran.program.inputs.iter().any(|input| input.is_like(alone))
        };
        let alone = self.report.findings.iter().filter(|found| found.together.is_empty());
        alone.flat_map(|found| &found.shown).any(of)
    }

    pub(super) fn is_worth_a_look(&self, print: &Fingerprint) -> bool {
        let looks = self.looks.get(&subject(print)).copied().unwrap_or(0);
        // Last words tell a death, in whichever state.
        let told = print.oracle == "target"
            && crashes::has_words(&print.shape)
            && self.known.iter().any(|known| known.oracle == print.oracle && known.shape == print.shape);
        // Where nothing is known of it but how the process ended, shrinking seldom shows another than the known one.
        let ended =
            |known: &Fingerprint| known.oracle == print.oracle && crashes::is_of(&known.shape, &print.shape);
        let most = match print.oracle == "target" && self.known.iter().any(ended) {
            true => LOOKS_AGAIN,
            false => LOOKS,
        };
        !told && !self.known.contains(print) && looks < most
    }

    /// Confirms, shrinks and keeps a finding, unless it is known. `false`: replays did not show it.
    pub(super) async fn look_into(&mut self, index: u64, ran: Execution, print: &Fingerprint) -> bool {
        self.looking = Some((index, print.clone()));
        let shown = self.look_closely(index, ran, print).await;
        self.looking = None;
        shown
    }

    async fn look_closely(&mut self, index: u64, ran: Execution, print: &Fingerprint) -> bool {
        let (seed, patient) = (self.seed_of(index), self.options.deadline * 3);
        // Who shares a server with a case that kills it dies with it.
        if print.oracle == "target"
            && !self
                .executor
                .replay(ran.program.clone(), seed, patient)
                .await
                .is_some_and(|ran| ran.shows(print))
        {
            return false;
        }
        *self.looks.entry(subject(print)).or_default() += 1;
        let mut quick = JoinSet::new();
        if let Some(deadline) = self.expected() {
            let (executor, ran, print) = (self.executor.clone(), ran.clone(), print.clone());
            quick.spawn(quickly_shrunk(
                executor,
                ran,
                print,
                seed,
                (deadline, patient),
                self.reserved(patient),
            ));
        }
        let shown = self.executor.shown_again(&ran.program, CONFIRM, print, seed, patient).await.len();
        if shown < CONFIRM {
            self.report.unconfirmed += 1;
            self.doubts.push(no_finding(index, print, &format!("{shown} of {CONFIRM} replays did")));
            return false;
        }
        // So many inputs may have killed it by their number.
        let how = ran.single.broke().and_then(death_of).filter(|_| ran.program.inputs.len() >= MANY);
        let how = how.map(str::to_owned);
        self.confirmed = Some(Confirmed { index, ran, print: print.clone(), replays: CONFIRM });
        if let Some(how) = how
            && self.is_exhausted(index, &how).await
        {
            self.confirmed = None;
            return true;
        }
        let small = quick.join_next().await.and_then(|small| small.ok().flatten());
        let end = self.end();
        let Some(Confirmed { ran, replays, .. }) = &mut self.confirmed else { return true };
        let (small, tried) = small.unwrap_or_default();
        *replays += tried;
        if let Some(small) = small {
            *ran = small;
        } else {
            // Where replays showed it in so short a time, and not in a long one, the target takes longer than it has so far.
            if tried > 0 {
                self.pace.was_misleading();
            }
            let patience = Patience { first: self.options.deadline, again: patient };
            // What else has failed by the end of the time must be looked into in what is left of it.
            let left = end.map(|end| end.saturating_duration_since(Instant::now()).mul_f64(0.75));
            let until = left.map(|left| Instant::now() + left);
            shrink(&self.executor, (ran, replays), print, seed, patience, until).await;
        }
        if let Some(confirmed) = self.confirmed.take() {
            self.keep(confirmed);
        }
        true
    }

    /// By when an answer of the target can be expected, before the scale of deadlines. `None`: nobody knows. A server that was just
    /// launched takes longer than it has so far.
    fn expected(&self) -> Option<Duration> {
        let scale = self.executor.ground.scale().filter(|_| !self.executor.ground.is_launched())?;
        let expected = self.pace.expected(self.options.deadline.mul_f64(scale))?;
        Some(expected.div_f64(scale))
    }

    /// The end of the campaign, less the time in which a silence is confirmed.
    fn reserved(&self, patient: Duration) -> Option<Instant> {
        let needed = patient.mul_f64(self.executor.ground.scale().unwrap_or(1.0));
        self.end().map(|end| end.checked_sub(needed).unwrap_or(end))
    }

    /// Keeps the death of a launched target that no single case shows again: as one of harmless cases, if enough of them bring it
    /// about, else with the inputs that led there. Where a finding tells it already, it is a note.
    pub(super) async fn mourn(&mut self, how: &str, programs: &[(u64, Program)]) {
        if self.is_told(how) {
            let message = format!("{how} again, as in a finding; {} ran", cases(programs));
            self.note(crashes::shape(how), message);
            return;
        }
        self.unexplained = Some(death_of_several(how, programs));
        let first = programs.first().map_or(0, |(index, _)| *index);
        let worn = self.is_exhausted(first, how).await;
        if let Some(together) = self.unexplained.take().filter(|_| !worn) {
            self.keep_together(together);
        }
    }

    /// Keeps a death that was seen when the campaign was over, unless a finding tells it.
    pub(super) fn keep_death(&mut self, how: &str) {
        if !self.is_told(how) {
            let died = death_of_several(how, &[]);
            self.keep_together(JointFinding { message: died.cut.clone(), ..died });
        }
    }

    /// Whether a launched target's memory has grown past its bound. Remembers what made it grow most.
    pub(super) async fn has_grown(&mut self, programs: Vec<(u64, Program)>) -> bool {
        let Some(now) = self.executor.ground.memory().await else { return false };
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
        let grown = last.saturating_sub(base.unwrap_or(last)) >> 20;
        let suspects = heaviest.first().map(|(_, programs)| programs.clone()).unwrap_or_default();
        let mut programs: Vec<(u64, Program)> =
            heaviest.into_iter().flat_map(|(_, programs)| programs).collect();
        programs.sort_by_key(|(index, _)| *index);
        programs.dedup_by_key(|(index, _)| *index);
        let (grew, most) = (
            format!("the target's memory grew by {grown} MiB"),
            format!("it grew most while {} ran", cases(&programs)),
        );
        let message = format!("{grew}; no case alone, repeated, makes it grow, and {most}");
        let cut = format!("{grew}; {CUT}, and {most}");
        let print = Fingerprint {
            oracle: "memory".to_owned(),
            requirements: Vec::new(),
            state: super::feedback::OPENED.to_owned(),
            shape: "the target's memory grew; no case alone makes it grow".to_owned(),
        };
        self.unexplained = Some(JointFinding { print, verdict: Verdict::Failed, message, cut, programs });
        let found = self.heaviest_of(suspects).await;
        if let Some(together) = self.unexplained.take().filter(|_| !found) {
            self.keep_together(together);
        }
        self.executor.ground.renew().await;
    }

    /// Whether one of these cases, repeated by itself, makes the memory of a server grow; looks into the first that does.
    async fn heaviest_of(&mut self, suspects: Vec<(u64, Program)>) -> bool {
        let (seed, patient) = (self.options.seed, self.options.deadline * 3);
        // Those that do most first, and as often as it takes to see what one input in eight would leave.
        let mut suspects = suspects;
        suspects.sort_by_key(|(_, program)| std::cmp::Reverse(program.inputs.len()));
        let before = self.known.len();
        for few in [true, false] {
            for batch in suspects.chunks(JOBS) {
                let alone = |(_, program): &(u64, Program)| repeated(program, few);
                let programs = batch.iter().map(alone).collect();
                let all = self.executor.replay_all(programs, seed, patient, JOBS).await;
                for ((index, _), ran) in batch.iter().zip(all) {
                    let Some(ran) = ran else { continue };
                    let Some(print) = self.growth_of(&ran) else { continue };
                    let ran = self.lightest(ran).await;
                    self.look_into(*index, ran, &print).await;
                    if self.known.len() > before {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// What says that the memory of a server has grown, if it is worth a look.
    fn growth_of(&self, ran: &Execution) -> Option<Fingerprint> {
        let print = ran.wrong().into_iter().find(|print| print.oracle == "memory")?;
        self.is_worth_a_look(&print).then_some(print)
    }

    /// One input of a case that makes the memory grow, if one of each kind alone does: of many inputs each time takes long.
    async fn lightest(&self, ran: Execution) -> Execution {
        let (seed, patient) = (self.options.seed, self.options.deadline * 3);
        let mut kinds = BTreeSet::new();
        let inputs = ran.program.inputs.iter();
        let inputs: Vec<_> =
            inputs.filter(|input| kinds.insert((&input.command, &input.mutation))).take(ALONE).collect();
        for batch in inputs.chunks(JOBS) {
            let alone = |input: &&Input| Program {
                inputs: vec![(*input).clone()],
                repeat: Some(REPEAT),
                ..ran.program.clone()
            };
            let all = self.executor.replay_all(batch.iter().map(alone).collect(), seed, patient, JOBS).await;
            if let Some(found) = all.into_iter().flatten().find(|ran| self.growth_of(ran).is_some()) {
                return found;
            }
        }
        // Whatever is left of it when it is shrunk is done as often as ever.
        Execution { program: Program { repeat: Some(REPEAT), ..ran.program.clone() }, ..ran }
    }

    /// After a failure: an embedded server begins anew, another must still take connections; one that was
    /// launched is launched again, should it not.
    pub(super) async fn recover(&mut self) -> bool {
        if !self.executor.ground.is_launched() {
            self.executor.ground.renew().await;
        }
        for wait in std::iter::once(Duration::ZERO).chain(RETRIES) {
            tokio::time::sleep(wait).await;
            match self.executor.ground.probe().await {
                Ok(()) => {
                    self.report.ended = Ended::Done;
                    return true;
                }
                // Should the time be over before it takes connections again, that is why the campaign is.
                Err(error) => self.report.ended = Ended::Refusing(error.to_string()),
            }
            // A launched target that takes no connections, though it runs, may do so after a restart.
            if self.executor.ground.renew().await {
                self.growth = Growth::default();
            }
        }
        false
    }
}

/// A case without what is asked afterwards, done often enough for its inputs to show in the memory; `few`: those of long cases only.
fn repeated(program: &Program, few: bool) -> Program {
    let bare = Program { own: false, fresh: false, witness: false, witness_state: None, ..program.clone() };
    let enough = INPUTS.div_ceil(program.inputs.len().max(1)) as u32;
    let times = if few { enough.clamp(LEAST, REPEAT) } else { REPEAT };
    Program { repeat: Some(times), ..bare }
}

/// A death that no single case shows again, after these.
fn death_of_several(how: &str, programs: &[(u64, Program)]) -> JointFinding {
    let ran = cases(programs);
    JointFinding {
        print: Fingerprint::of_death(how),
        verdict: Verdict::Error,
        message: format!("the server died: {how}; no case alone shows it again, {ran} ran"),
        cut: format!("the server died: {how}; {CUT}, {ran} ran"),
        programs: programs.to_vec(),
    }
}

/// A note on a case that failed and is no finding, and why not; before it what such notes have in common.
pub(super) fn no_finding(index: u64, print: &Fingerprint, why: &str) -> (String, String) {
    let (oracle, what) = (&print.oracle, print.what());
    (format!("{oracle} {what}"), format!("case {index} failed, and {why}: no finding. {oracle}: {what}"))
}

/// Cases in a few words: how many, and from which to which.
fn cases(programs: &[(u64, Program)]) -> String {
    let indices = programs.iter().map(|(index, _)| index);
    match (indices.clone().min(), indices.max()) {
        (Some(first), Some(last)) if first != last => {
            format!("{} cases from {first} to {last}", programs.len())
        }
        (Some(only), _) => format!("case {only}"),
        _ => "no case".to_owned(),
    }
}

/// Shrinks what a run shows, waiting for answers no longer than `deadline`: of silence many patient replays would take long. The
/// smallest run, if patient replays show it, too, and the cases run; `None`: in so short a time no replays do.
async fn quickly_shrunk(
    executor: Executor,
    mut ran: Execution,
    print: Fingerprint,
    seed: u64,
    (deadline, patient): (Duration, Duration),
    until: Option<Instant>,
) -> Option<(Option<Execution>, usize)> {
    if executor.shown_again(&ran.program, CONFIRM, &print, seed, deadline).await.len() < CONFIRM {
        return None;
    }
    let (mut replays, patience) = (2 * CONFIRM, Patience { first: deadline, again: deadline });
    shrink(&executor, (&mut ran, &mut replays), &print, seed, patience, until).await;
    let shown = executor.shown_again(&ran.program, CONFIRM, &print, seed, patient).await;
    Some((shown.into_iter().nth(CONFIRM - 1), replays))
}

/// What a failure is about, before it is known what it takes. Of RFC 6455 many things can be broken in one way, and no
/// requirement tells them apart; no more are deaths.
fn subject(print: &Fingerprint) -> (String, Vec<String>, String) {
    let by_shape = matches!(print.oracle.as_str(), "framing" | "target");
    let shape = if by_shape { print.shape.clone() } else { String::new() };
    (print.oracle.clone(), print.requirements.clone(), shape)
}
