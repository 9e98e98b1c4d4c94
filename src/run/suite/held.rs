//! Cases that are run again before they are judged: why, when, and what their runs come to together.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use crate::results::Check;
use crate::results::cause::Cause;
use crate::results::event::{CaseReport, Failure, Verdict};
use crate::run::isolation::leaks;
use crate::run::suite::short_deadlines::QueuedCase;
use crate::text::normalize;

/// This process is late: several times what a tick of an idle machine is late by, enough to change what a case sees.
const LATE: Duration = Duration::from_millis(40);
/// How often a case is run again because of that.
const LATE_TRIES: usize = 2;
/// Cases of a run that are: where more fail, it is not for want of time.
const LATE_CASES: usize = 16;
/// Kinds of silence of which cases are run again, for each reason; more are taken for what they look like.
const KINDS: usize = 8;
/// So many cases that began behind a silence of the server and passed before it was given up show that the server had time.
const OVERTAKEN: usize = 6;
/// Cases that passed lately, of which it is known when they began.
const LATELY: usize = 1024;
/// After so many cases that hold too much even with more room, and none that does not, the server is one that floods.
const FLOODS: usize = 3;

/// Why a case is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// All cases together held too much: it is given more room.
    Crowded,
    /// It met clients of other cases.
    Disturbed,
    /// This process was late: what it sent came late, too, and what it measured was off.
    Late,
    /// It had short deadlines.
    Short,
    /// The server was silent while others ran beside it: it may have had too much to do.
    Silent,
    /// The server did not answer an upgrade while others ran beside it.
    Upgrade,
}

impl Reason {
    /// Whether no other case may run beside it then.
    fn is_alone(self) -> bool {
        matches!(self, Self::Silent | Self::Upgrade)
    }
}

/// What is known of a run of a case beside its report.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Circumstances {
    /// How many cases could run at a time when it began.
    pub jobs: usize,
    /// The longest that this process was late meanwhile, where that counts.
    pub late: Duration,
    /// It was given up because all cases together held too much.
    pub crowded_out: bool,
    /// It had short deadlines.
    pub short: bool,
    /// It failed by what the server has sent, whenever that came.
    pub proven: bool,
    /// How many cases began and passed while the server was silent.
    pub overtaken: usize,
    /// The server is no reference server.
    pub foreign: bool,
    /// The server has answered somebody in this run.
    pub answers: bool,
}

/// A case, and the round of it.
pub(crate) type Key = (String, u32);
/// A reason, and the kind of silence that was met.
type Kind = (Reason, String);

/// A case that is run again.
struct Held {
    turn: QueuedCase,
    /// Its runs so far, and why each does not stand.
    runs: Vec<(Reason, CaseReport)>,
    /// It waits until it is asked for. Else it runs, or is in the queue.
    waits: bool,
}

impl Held {
    fn has(&self, why: Reason) -> bool {
        self.runs.iter().any(|(reason, _)| *reason == why)
    }

    /// Why it is run again now.
    fn kind(&self) -> Kind {
        self.runs.last().map_or((Reason::Late, String::new()), |(reason, report)| (*reason, kind(report)))
    }
}

/// All cases that are run again.
#[derive(Default)]
pub(crate) struct HeldCases {
    held: BTreeMap<Key, Held>,
    /// One of them runs alone.
    alone: Option<Key>,
    /// Kinds of silence of which a case was run again.
    tried: BTreeSet<Kind>,
    /// Those that were met then, too.
    shown: BTreeSet<Kind>,
    /// Runs that did not stand, by the reason (of those that were late: the first of each case), and cases that passed later.
    counts: BTreeMap<Reason, (usize, usize)>,
    worst: Duration,
    /// Of the cases that held too much: how many did with more room, too, and how many did not.
    floods: (usize, usize),
    /// Reports of cases with short deadlines that stand for want of a better one.
    short: usize,
    /// When cases began that have passed.
    passed: VecDeque<Instant>,
    strict: bool,
}

/// The kind of a silence, as far as is known of it: behind which message.
fn kind(report: &CaseReport) -> String {
    let cause = report.precise_cause.as_ref().or(report.cause.as_ref());
    cause.map(|cause| normalize(&cause.to_string())).unwrap_or_default()
}

fn is_silence(report: &CaseReport) -> bool {
    matches!(
        report.precise_cause.as_ref().or(report.cause.as_ref()),
        Some(
            Cause::Silence(_)
                | Cause::Unanswered(_)
                | Cause::NothingSaid
                | Cause::OnlyOpenings
                | Cause::NoTurnEnded
        )
    )
}

fn passes(report: &CaseReport) -> bool {
    matches!(report.verdict, Verdict::Passed | Verdict::Warned | Verdict::Flaky)
}

impl HeldCases {
    pub fn new(strict: bool) -> Self {
        Self { strict, ..Self::default() }
    }

    fn count(&self, why: Reason) -> (usize, usize) {
        self.counts.get(&why).copied().unwrap_or_default()
    }

    /// A case has passed that began at a moment.
    pub fn note_passed(&mut self, began: Instant) {
        self.passed.push_back(began);
        self.passed.drain(..self.passed.len().saturating_sub(LATELY));
    }

    /// How many cases began and passed since a moment.
    pub fn passed_since(&self, since: Instant) -> usize {
        self.passed.iter().filter(|began| **began > since).count()
    }

    /// Whether a case is to be run again.
    pub fn holds(&self, key: &Key) -> bool {
        self.held.contains_key(key)
    }

    /// How many runs for this reason did not stand.
    pub fn given_up(&self, why: Reason) -> usize {
        self.count(why).0
    }

    /// Why a case is to be run again, if it is.
    pub fn reason(&self, key: &Key, report: &CaseReport, seen: &Circumstances) -> Option<Reason> {
        let times = |why| {
            let runs = self.held.get(key).map(|held| held.runs.as_slice()).unwrap_or_default();
            runs.iter().filter(|(reason, _)| *reason == why).count()
        };
        let failed = report.verdict == Verdict::Failed;
        let found = |failure: &Failure| failure.check != Check::Limit && failure.verdict == Verdict::Failed;
        let is_flooded = self.floods.0 >= FLOODS && self.floods.1 == 0;
        // What was found before it was given up is a verdict.
        if seen.crowded_out && seen.jobs > 1 && !is_flooded && !report.failures.iter().any(found) {
            return Some(Reason::Crowded);
        }
        if leaks::is_disturbed(report) && times(Reason::Disturbed) == 0 {
            return Some(Reason::Disturbed);
        }
        if seen.short {
            let stands = matches!(report.verdict, Verdict::Passed | Verdict::NotApplicable);
            return (!stands).then_some(Reason::Short);
        }
        // The server has forgotten this one; neither its load nor this process is to blame.
        let is_forgotten = is_silence(report) && seen.overtaken >= OVERTAKEN;
        if failed && (is_forgotten || seen.proven) {
            return None;
        }
        let tries = times(Reason::Late);
        // Warnings leave room for failures.
        let most = match report.verdict {
            Verdict::Failed => LATE_CASES,
            Verdict::Warned => LATE_CASES / 2,
            _ => 0,
        };
        let may = tries < LATE_TRIES && most > 0 && (tries > 0 || self.given_up(Reason::Late) < most);
        if seen.late >= LATE && may {
            return Some(Reason::Late);
        }
        if !seen.foreign || seen.jobs < 2 || times(Reason::Silent) + times(Reason::Upgrade) > 0 {
            return None;
        }
        if report.verdict == Verdict::Error && report.cause == Some(Cause::UpgradeUnanswered) {
            return Some(Reason::Upgrade);
        }
        // A server that has answered nobody yet is another matter.
        let is_new = failed && seen.answers && is_silence(report);
        (is_new && !self.is_known(&(Reason::Silent, kind(report)))).then_some(Reason::Silent)
    }

    /// Whether another case of the kind tells nothing new.
    fn is_known(&self, kind: &Kind) -> bool {
        let tried = self.tried.iter().filter(|(reason, _)| *reason == kind.0).count();
        self.shown.contains(kind) || (tried >= KINDS && !self.tried.contains(kind))
    }

    /// Holds a report back. Gives the case back if it is to be run again beside others, as soon as may be.
    pub fn hold(
        &mut self,
        turn: QueuedCase,
        report: CaseReport,
        why: Reason,
        late: Duration,
    ) -> Option<QueuedCase> {
        let key = (turn.0.id.clone(), turn.1);
        self.alone.take_if(|alone| *alone == key);
        let held = self.held.entry(key).or_insert_with(|| Held { turn, runs: Vec::new(), waits: false });
        if why != Reason::Late || !held.has(why) {
            self.counts.entry(why).or_default().0 += 1;
        }
        if why == Reason::Late {
            self.worst = self.worst.max(late);
        }
        held.runs.push((why, report));
        // What had to be alone once has to be so again.
        held.waits = why == Reason::Short || held.runs.iter().any(|(reason, _)| reason.is_alone());
        (!held.waits).then(|| held.turn.clone())
    }

    /// Whether no other case may begin: one runs alone, or is to run so before the others meet what it has met.
    pub fn is_urgent(&self) -> bool {
        self.alone.is_some() || self.held.values().any(|held| held.waits && held.has(Reason::Upgrade))
    }

    /// What a case comes to that is not run again.
    pub fn settle(&mut self, key: &Key, mut report: CaseReport) -> CaseReport {
        self.alone.take_if(|alone| alone == key);
        let Some(mut held) = self.held.remove(key) else { return report };
        let failed = held.runs.iter().filter(|(_, first)| first.verdict != Verdict::Warned);
        let reasons: BTreeSet<Reason> = failed.map(|(reason, _)| *reason).collect();
        for reason in reasons.into_iter().filter(|_| passes(&report)) {
            self.counts.entry(reason).or_default().1 += 1;
        }
        while let Some((reason, first)) = held.runs.pop() {
            // One case with all its time is enough of each kind, whatever it comes to.
            if reason == Reason::Short || (reason == Reason::Silent && report.verdict == Verdict::Failed) {
                self.shown.insert((reason, kind(&first)));
            }
            report = match reason {
                Reason::Crowded => {
                    let is_flood = report.failures.iter().any(|failure| failure.check == Check::Limit);
                    self.floods.0 += usize::from(is_flood);
                    self.floods.1 += usize::from(!is_flood);
                    carry_over(first, report)
                }
                Reason::Disturbed => leaks::warn(report, first, self.strict),
                Reason::Short => report,
                // Nothing failed: the run in time is all that there is to say.
                Reason::Late if first.verdict == Verdict::Warned => report,
                Reason::Late | Reason::Silent | Reason::Upgrade => second_look(first, report),
            };
        }
        report
    }

    /// What a case comes to that waits, and is not run again after all.
    fn give_up(&mut self, key: &Key) -> Option<CaseReport> {
        let (reason, report) = self.held.get_mut(key)?.runs.pop()?;
        self.short += usize::from(reason == Reason::Short);
        Some(self.settle(key, report))
    }

    /// What is to be run again now that nothing else runs: one case alone, or one of each kind of silence that was met with short
    /// deadlines. The reports of those that tell nothing new are added to `stand`. `frozen`: the server answers no upgrade any more.
    pub fn next(&mut self, stand: &mut Vec<(Key, CaseReport)>, frozen: bool) -> Vec<QueuedCase> {
        let mut waiting: Vec<(Key, Kind)> = Vec::new();
        for (key, held) in self.held.iter().filter(|(_, held)| held.waits) {
            waiting.push((key.clone(), held.kind()));
        }
        // Unanswered upgrades first.
        waiting.sort_by(|(_, (one, _)), (_, (other, _))| other.cmp(one));
        let (mut next, mut picked) = (Vec::new(), BTreeSet::new());
        for (key, kind) in waiting {
            let is_known = match kind.0 {
                Reason::Upgrade => frozen && self.tried.contains(&kind),
                _ => self.is_known(&kind),
            };
            let may = picked.is_empty() || kind.0 == Reason::Short;
            if is_known && !picked.contains(&kind) {
                stand.extend(self.give_up(&key).map(|report| (key, report)));
            } else if may && picked.iter().all(|(reason, _)| *reason == kind.0) && picked.insert(kind.clone())
            {
                self.tried.insert(kind.clone());
                self.alone = (kind.0 != Reason::Short).then(|| key.clone());
                next.extend(self.begin_again(&key));
            }
        }
        next
    }

    fn begin_again(&mut self, key: &Key) -> Option<QueuedCase> {
        let held = self.held.get_mut(key)?;
        held.waits = false;
        Some(held.turn.clone())
    }

    /// The cases that had short deadlines: the server has answered somebody, so that they are all run again.
    pub fn released(&mut self) -> Vec<QueuedCase> {
        let short = self.held.values_mut().filter(|held| held.waits && held.has(Reason::Short));
        short.map(|held| (held.waits = false, held.turn.clone()).1).collect()
    }

    /// What was held back, at the end of a run.
    pub fn rest(&mut self) -> Vec<(Key, CaseReport)> {
        let keys: Vec<Key> = self.held.keys().cloned().collect();
        keys.into_iter().filter_map(|key| self.give_up(&key).map(|report| (key, report))).collect()
    }

    /// Reports of cases with short deadlines that stand for want of a better one, if there are any, and how many kinds were tried again.
    pub fn short(&self) -> Option<(usize, usize)> {
        let tried = self.tried.iter().filter(|(reason, _)| *reason == Reason::Short).count();
        (self.short > 0 && tried > 0).then_some((self.short, tried))
    }

    /// What is to be said of those that passed.
    pub fn hints(&self) -> Vec<String> {
        let passed = |why: Reason, of: &str| match self.count(why).1 {
            0 => None,
            1 => Some(format!("a case that had failed{of} passed")),
            many => Some(format!("{many} cases that had failed{of} passed")),
        };
        let fewer = "it bears fewer at a time (`sessions` of the target, or --jobs)";
        let late = passed(Reason::Late, "").map(|passed| {
            format!(
                "this process itself was late, by up to {:.0?}: {passed} when run again. On a busy machine, run fewer cases at a time (--jobs)",
                self.worst
            )
        });
        let alone = [
            (Reason::Silent, " by a silence of the server"),
            (Reason::Upgrade, " because the server did not answer an upgrade"),
        ];
        let alone = alone.into_iter().filter_map(|(why, of)| passed(why, of));
        late.into_iter().chain(alone.map(|passed| format!("{passed} when run alone: {fewer}"))).collect()
    }
}

/// The second run of a case, whose first one did not show whether the server is to blame.
fn second_look(first: CaseReport, mut second: CaseReport) -> CaseReport {
    if passes(&second) {
        second.verdict = Verdict::Flaky;
        let told = first.reason.filter(|_| first.failures.is_empty());
        let told = told.map(|reason| Failure::new(Check::Connection, first.verdict, reason));
        let failures = first.failures.into_iter().chain(told).collect();
        second.earlier.insert(0, failures);
        return second;
    }
    // Where it could not be run again (a server that is harmed lets nobody in), nothing speaks against what was seen.
    if first.verdict == Verdict::Failed && second.verdict != Verdict::Failed { first } else { second }
}

/// A run of a case with what was found in one that was given up for want of room: that stands, whatever the second finds.
fn carry_over(first: CaseReport, mut second: CaseReport) -> CaseReport {
    let found = first.failures.into_iter().filter(|failure| failure.check != Check::Limit);
    for failure in found {
        second.verdict = second.verdict.max(failure.verdict);
        second.failures.push(failure);
    }
    second.earlier.splice(0..0, first.earlier);
    if second.verdict == Verdict::Passed && !second.earlier.is_empty() {
        second.verdict = Verdict::Flaky;
    }
    second
}

#[cfg(test)]
mod tests;
