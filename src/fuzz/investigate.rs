//! From what is wrong with a case, a server or its memory to findings.

use super::confirm::{Confirmed, Confirmer, Pending, no_finding};
use super::crashes::CrashKind;
use super::events::{EventSink, Note};
use super::executor::{Execution, Executor};
use super::exhaustion::find_exhaustion;
use super::findings::Findings;
use super::fingerprint::Fingerprint;
use super::joint::{JointFinding, cases};
use super::memory::{GrowthSearch, MemoryWatch};
use super::oracle::Oracle;
use super::program::Program;
use crate::results::death::Death;

/// How often what looks like the same defect is confirmed: shrinking shows whether it is.
const ATTEMPTS: usize = 6;
/// The same for a crash that a finding may report: where only the way the process ended is known, shrinking seldom shows another.
const ATTEMPTS_AT_CRASH: usize = 2;

/// Confirms failures, crashes and growing memory, and keeps the findings.
pub(super) struct Investigator<'c> {
    /// Runs the replays.
    pub executor: Executor,
    /// What was found.
    pub findings: Findings,
    /// Confirms failures.
    pub confirmer: Confirmer,
    /// Where events go.
    pub events: EventSink<'c>,
    memory: MemoryWatch,
    /// How much the memory of a launched target may grow, in bytes.
    max_growth: u64,
    /// What is wrong for certain, and whose cause is looked for. Should the campaign end meanwhile, it is reported as it is.
    joint: Option<JointFinding>,
}

impl<'c> Investigator<'c> {
    pub fn new(
        executor: Executor,
        findings: Findings,
        confirmer: Confirmer,
        events: EventSink<'c>,
        max_growth: u64,
    ) -> Self {
        let memory = MemoryWatch::default();
        Self { executor, findings, confirmer, events, memory, max_growth, joint: None }
    }

    /// Whether a case shows something that is worth a look.
    pub fn is_suspect(&self, execution: &Execution) -> bool {
        execution.is_suspect(&|print| self.is_new(execution, print))
    }

    /// Whether what a case shows is worth a look, and no finding explains it.
    fn is_new(&self, execution: &Execution, print: &Fingerprint) -> bool {
        self.is_worth_a_look(print) && !self.findings.explain(execution, print)
    }

    fn is_worth_a_look(&self, print: &Fingerprint) -> bool {
        let most = if self.findings.may_report_crash(print) { ATTEMPTS_AT_CRASH } else { ATTEMPTS };
        !self.findings.shows(print) && self.confirmer.attempts(print) < most
    }

    /// Confirms, shrinks and keeps a failure, unless it is known. `false`: replays did not reproduce it.
    pub async fn confirm(&mut self, index: u64, execution: Execution, print: &Fingerprint) -> bool {
        let confirmed = self.confirmer.confirm(&self.executor, index, execution, print).await;
        let is_confirmed = confirmed.is_some();
        if let Some(confirmed) = confirmed {
            self.findings.add(confirmed, &mut self.events);
        }
        is_confirmed
    }

    /// Looks into what is wrong with a case. Where servers have crashed meanwhile, that is what happened to the cases that lost
    /// their connections; replays show which of them causes it. Those that none did are added to `unexplained`.
    pub async fn investigate(
        &mut self,
        index: u64,
        execution: Execution,
        crashes: &[Death],
        unexplained: &mut Vec<(u64, Program)>,
    ) {
        let mut wrong = execution.fingerprints();
        if !crashes.is_empty() && execution.lost_its_server() {
            let own = execution.outcome.death().cloned();
            for how in own.as_slice().iter().chain(crashes.iter().filter(|_| own.is_none())) {
                let mut crashed = execution.clone();
                crashed.outcome.died(how);
                let print = crashed.fingerprints().into_iter().find(|print| self.is_worth_a_look(print));
                let Some(print) = print else { continue };
                let shown = self.confirm(index, crashed, &print).await;
                let is_listed = || unexplained.iter().any(|(known, _)| *known == index);
                if !shown && print.oracle == Oracle::Target && !is_listed() {
                    unexplained.push((index, execution.program.clone()));
                }
            }
            // Frames that came before the crash are as wrong as ever.
            wrong.retain(|print| print.oracle.is_about_a_frame());
        }
        let print = wrong.into_iter().find(|print| self.is_new(&execution, print));
        if let Some(print) = print.filter(|_| !self.findings.is_full()) {
            self.confirm(index, execution, &print).await;
        }
    }

    /// How launched servers have crashed since this was asked last, each way once; those of which more is known come first.
    pub async fn take_crashes(&self) -> Vec<Death> {
        let mut crashes = self.executor.target.take_crashes().await;
        crashes.sort_by_cached_key(|how| std::cmp::Reverse(CrashKind::of(how).to_string()));
        crashes.dedup_by_key(|how| CrashKind::of(how));
        crashes
    }

    /// Records the crash of a launched target that no single case reproduces: as one of harmless cases, if enough of them cause it,
    /// else with the cases that ran before. Where a finding reports it already, it is a note.
    pub async fn record_crash(&mut self, how: &Death, programs: &[(u64, Program)]) {
        if self.findings.reports_crash(how) {
            let text = format!("{how} again, as in a finding; {} ran", cases(programs));
            self.events.note(Note { kind: CrashKind::of(how).to_string(), text });
            return;
        }
        self.joint = Some(JointFinding::crash(how, programs));
        let index = programs.first().map_or(0, |(index, _)| *index);
        let exhaustion = find_exhaustion(&self.executor, self.executor.seed_of(index), how).await;
        let joint = self.joint.take();
        if let Some(found) = exhaustion {
            let (print, execution, replays) = (Fingerprint::of_crash(how), found.execution, found.replays);
            self.findings.add(Confirmed { index, print, execution, replays }, &mut self.events);
        } else if let Some(joint) = joint {
            self.findings.add_joint(joint, &mut self.events);
        }
    }

    /// Records a crash that was noticed when the campaign was over, unless a finding reports it.
    pub fn record_late_crash(&mut self, how: &Death) {
        if !self.findings.reports_crash(how) {
            self.findings.add_joint(JointFinding::crash(how, &[]).cut_short(), &mut self.events);
        }
    }

    /// Measures the memory of a launched target, after these cases have run. Growth past the bound is looked into once
    /// [`Self::find_memory_growth`] is called.
    pub async fn measure_memory(&mut self, programs: Vec<(u64, Program)>) -> MemoryState {
        let Some(now) = self.executor.target.memory().await else { return MemoryState::WithinBounds };
        if self.memory.measured(now, programs) > self.max_growth {
            MemoryState::Grown
        } else {
            MemoryState::WithinBounds
        }
    }

    /// Looks for the case that makes a launched target's memory grow. Growth that no case alone shows is a finding with the
    /// cases before the measurements that grew most. The target is restarted.
    pub async fn find_memory_growth(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        let mut search = GrowthSearch::new(memory.suspects());
        self.joint = Some(JointFinding::growth(memory));
        let before = self.findings.known();
        while self.findings.known() == before {
            let next = search.next(&self.executor, &|print| self.is_worth_a_look(print)).await;
            let Some((index, execution, print)) = next else { break };
            self.confirm(index, execution, &print).await;
        }
        let is_explained = self.findings.known() > before;
        if let Some(joint) = self.joint.take().filter(|_| !is_explained) {
            self.findings.add_joint(joint, &mut self.events);
        }
        self.executor.target.restart_fresh().await;
    }

    /// The target was restarted: its memory is measured from the beginning.
    pub fn forget_memory(&mut self) {
        self.memory = MemoryWatch::default();
    }

    /// Reports the failures that replays did not reproduce.
    pub fn report_doubts(&mut self) {
        for note in self.confirmer.take_doubts() {
            self.events.note(note);
        }
    }

    /// Forgets the failures that replays did not reproduce: a finding explains them.
    pub fn drop_doubts(&mut self) {
        self.confirmer.take_doubts();
    }

    /// At the end of the campaign: keeps what was being looked into, as far as that has come.
    pub fn finish(&mut self) {
        let joint = self.joint.take();
        let mut confirmed = None;
        match self.confirmer.take_pending() {
            Some(Pending::Confirmed(pending)) => {
                confirmed = Some(pending.print.oracle);
                self.findings.add(*pending, &mut self.events);
            }
            // The joint finding below says it.
            Some(Pending::Unconfirmed(_, print))
                if joint.as_ref().is_some_and(|joint| joint.print.oracle == print.oracle) => {}
            Some(Pending::Unconfirmed(index, print)) => {
                self.events.note(no_finding(index, &print, "the campaign ended before it was confirmed"));
            }
            None => {}
        }
        if let Some(rest) = joint.and_then(|joint| joint.unless_explained(confirmed)) {
            self.findings.add_joint(rest, &mut self.events);
        }
    }
}

/// The memory of a launched target, against its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryState {
    /// It has grown less than the bound allows, or cannot be measured.
    WithinBounds,
    /// It has grown past the bound.
    Grown,
}
