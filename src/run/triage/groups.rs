//! What failing cases have in common is told once; and where a server says nothing at all, the rest of the cases is not run.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::results::Check;
use crate::results::cause::Cause;
use crate::results::event::{CaseReport, Failure, Verdict};
use crate::run::RunOptions;
use crate::run::case::outcome::CaseOutcome;
use crate::run::triage::activity::{ActivityLevel, ServerActivity};
use crate::run::triage::signature;

/// Cases that have waited for a word in vain before the others are not run any more.
const ENOUGH: usize = 8;
/// Cases whose upgrade was not answered, none in between whose was, before the others are not run any more.
pub(crate) const FROZEN: u32 = 3;
/// Stories that others can point to.
const MAX_GROUPS: usize = 4096;
/// Cases that went wrong in the same way: the first case tells the story, the others point to it.
#[derive(Default)]
pub(crate) struct FailureGroups {
    /// The case that told it first, by the digest of what it told.
    first: HashMap<u64, String>,
    digest: RandomState,
    /// Cases that have ended without a word from the server.
    mute: SilentCases,
    /// Those that have ended without a word behind the opening.
    idle: SilentCases,
    /// Those whose upgrade was not answered.
    frozen: SilentCases,
}

/// Cases that have waited in vain.
#[derive(Default)]
struct SilentCases {
    count: usize,
    /// When the first of them ended, and when the last of them began, since the start of the run in seconds.
    ended: Option<f64>,
    began: f64,
}

impl SilentCases {
    fn note(&mut self, report: &CaseReport) {
        self.count += 1;
        let ended = report.started + report.seconds;
        self.ended = Some(self.ended.map_or(ended, |first| first.min(ended)));
        self.began = self.began.max(report.started);
    }

    fn is_enough(&self) -> bool {
        self.are(ENOUGH)
    }

    /// So many, one of which began after another had ended: the server has had its time twice.
    fn are(&self, most: usize) -> bool {
        self.count >= most && self.ended.is_some_and(|ended| self.began >= ended)
    }
}

impl FailureGroups {
    /// Counts a case that has ended without a word from the server.
    pub fn note(&mut self, report: &CaseReport) {
        match report.cause {
            Some(Cause::NothingSaid) => self.mute.note(report),
            Some(Cause::OnlyOpenings) => self.idle.note(report),
            Some(Cause::UpgradeUnanswered) => self.frozen.note(report),
            _ => {}
        }
    }

    /// Points a case to the first one that went wrong in the same way: with the same verdict, and by the same cause or the same first
    /// failure.
    pub fn group(&mut self, report: &mut CaseReport) {
        if !report.is_notable() {
            return;
        }
        let keys = signature::of_case(report);
        report.precise_cause = None;
        let keys: Vec<u64> = keys.iter().map(|key| self.digest.hash_one(key)).collect();
        let known = keys.iter().find_map(|key| self.first.get(key)).cloned();
        let leader = known.clone().unwrap_or_else(|| report.case.clone());
        // A case that is repeated tells its own story.
        report.same_as = known.filter(|first| *first != report.case);
        for key in keys {
            if self.first.len() < MAX_GROUPS {
                self.first.entry(key).or_insert_with(|| leader.clone());
            }
        }
    }

    /// What ran before the first case, a turn, has ended by now. If the server has not said a word meanwhile, or none behind the
    /// opening, it has had its time once.
    pub fn before(&mut self, heard: &ServerActivity, now: Duration) {
        match heard.extent() {
            ActivityLevel::Nothing => self.mute.ended = Some(now.as_secs_f64()),
            ActivityLevel::Openings => self.idle.ended = Some(now.as_secs_f64()),
            _ => {}
        }
    }

    /// Whether enough cases have waited in vain. A server that has said a single word in the whole run is not mute.
    pub fn are_enough(&self, heard: &ServerActivity) -> bool {
        self.mute.is_enough() && heard.extent() == ActivityLevel::Nothing
    }

    /// Whether the rest is not run: the server has stopped answering upgrades.
    pub fn is_frozen(&self, heard: &ServerActivity) -> bool {
        self.frozen.are(FROZEN as usize) && heard.is_frozen(FROZEN).is_some()
    }

    /// Whether enough cases have waited in vain for a word behind the opening, of a server that has said nothing else to anybody.
    pub fn are_idle(&self, heard: &ServerActivity) -> bool {
        self.idle.is_enough() && heard.extent() == ActivityLevel::Openings
    }

    /// What becomes of a case that is not run any more.
    pub fn not_run(&self, heard: &ServerActivity, options: &RunOptions) -> CaseOutcome {
        if let Some(why) = heard.is_frozen(FROZEN).filter(|_| self.is_frozen(heard)) {
            let message = format!("not run: {why}. `{}` shows which step fails", options.reproduce.doctor());
            return CaseOutcome { cause: Some(Cause::NotRun), ..CaseOutcome::error(message) };
        }
        let message = format!(
            "not run: {} earlier cases timed out; the server has sent {}. `{}` shows which step fails",
            self.mute.count,
            heard.nothing(),
            options.reproduce.doctor()
        );
        let failure = Failure::new(Check::Silence, Verdict::Failed, message);
        CaseOutcome { failures: vec![failure], cause: Some(Cause::NotRun), ..CaseOutcome::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::cause::WaitFailure;

    fn report(started: f64, cause: &Cause) -> CaseReport {
        let cause = Some(cause.clone());
        CaseReport { started, seconds: 5.0, cause, verdict: Verdict::Failed, ..CaseReport::default() }
    }

    /// Takes in reports that began at these times; whether they are enough.
    fn enough(heard: &ServerActivity, cause: &Cause, started: &[f64]) -> bool {
        let mut causes = FailureGroups::default();
        started.iter().for_each(|started| causes.note(&report(*started, cause)));
        causes.are_enough(heard)
    }

    #[test]
    fn only_a_server_that_was_silent_twice_and_throughout_is_mute() {
        let heard = ServerActivity::default();
        let together = [0.0; 20];
        let twice = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.1];
        assert!(enough(&heard, &Cause::NothingSaid, &twice));
        assert!(!enough(&heard, &Cause::NothingSaid, &together), "all of them waited at the same time");
        assert!(!enough(&heard, &Cause::NothingSaid, &twice[1..]), "too few");
        assert!(!enough(&heard, &Cause::Silence(WaitFailure::NotEnded), &twice), "another reason");
        heard.note(ActivityLevel::Openings);
        assert!(!enough(&heard, &Cause::NothingSaid, &twice), "it has spoken");
        let idle = |cause: &Cause, started: &[f64]| {
            let mut causes = FailureGroups::default();
            started.iter().for_each(|started| causes.note(&report(*started, cause)));
            causes.are_idle(&heard)
        };
        assert!(idle(&Cause::OnlyOpenings, &twice));
        assert!(!idle(&Cause::OnlyOpenings, &together), "all of them waited at the same time");
        assert!(!idle(&Cause::NothingSaid, &twice));
        heard.note(ActivityLevel::Answers);
        assert!(!idle(&Cause::OnlyOpenings, &twice), "it has answered somebody");
    }

    #[test]
    fn a_warning_does_not_stand_under_a_failure() {
        let mut causes = FailureGroups::default();
        let mut same_as = |case: &str, verdict| {
            let mut report =
                CaseReport { case: case.to_owned(), verdict, ..report(0.0, &Cause::NoTurnEnded) };
            causes.group(&mut report);
            report.same_as
        };
        assert_eq!(same_as("a", Verdict::Warned), None);
        assert_eq!(same_as("b", Verdict::Failed), None);
        assert_eq!(same_as("c", Verdict::Failed).as_deref(), Some("b"));
        assert_eq!(same_as("d", Verdict::Warned).as_deref(), Some("a"));
        // What is repeated does not point to itself.
        assert_eq!(same_as("b", Verdict::Failed), None);
        assert_eq!(same_as("e", Verdict::Known), None);
    }

    #[test]
    fn what_more_is_known_of_makes_no_second_story() {
        let mut causes = FailureGroups::default();
        let all = Cause::NothingSaid;
        let to = |kind: &str| Cause::Unanswered(kind.to_owned());
        let mut same_as = |case: &str, cause: &Cause, precise: Cause| {
            let mut report = CaseReport { precise_cause: Some(precise), ..report(0.0, cause) };
            case.clone_into(&mut report.case);
            causes.group(&mut report);
            report.same_as
        };
        assert_eq!(same_as("a", &all, to("ask")), None);
        assert_eq!(same_as("b", &to("ask"), to("ask")).as_deref(), Some("a"));
        assert_eq!(same_as("c", &to("stop"), to("stop")), None);
        assert_eq!(same_as("d", &all, to("stop")).as_deref(), Some("a"));
    }

    #[test]
    fn what_ran_before_counts_as_one_time() {
        let heard = ServerActivity::default();
        let mut causes = FailureGroups::default();
        causes.before(&heard, Duration::from_secs(5));
        (0..8).for_each(|_| causes.note(&report(5.0, &Cause::NothingSaid)));
        assert!(causes.are_enough(&heard));
        let told = causes.not_run(&heard, &RunOptions::default()).failures.remove(0).message;
        assert!(told.contains("8 earlier cases") && told.contains("`frameproof doctor`"), "{told}");
        assert!(told.contains("the server has sent nothing."), "{told}");
        heard.note_ambient();
        let told = causes.not_run(&heard, &RunOptions::default()).failures.remove(0).message;
        assert!(told.contains("the server has sent only heartbeats and other ambient messages."), "{told}");
    }
}
