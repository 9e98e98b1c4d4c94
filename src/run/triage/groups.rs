//! What failing cases have in common is told once; and where a server says nothing at all, the rest of the cases is not run.

use std::collections::{BTreeSet, HashMap};
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
/// Stories that others can point to.
const STORIES: usize = 4096;
/// Openings that failed for the same reason, and servers that fall silent in the same way: the first case tells the story, the
/// others point to it.
#[derive(Default)]
pub(crate) struct FailureGroups {
    first: HashMap<u64, String>,
    /// Digests of what the cases that told their own story had to tell, with their names.
    told: Vec<(BTreeSet<u64>, String)>,
    digest: RandomState,
    /// Cases that have ended without a word from the server.
    mute: SilentCases,
    /// Those that have ended without a word behind the opening.
    idle: SilentCases,
}

/// Cases that have waited in vain.
#[derive(Default)]
struct SilentCases {
    count: usize,
    /// When the first of them ended, since the start of the run in seconds.
    ended: Option<f64>,
    /// One of them began after another had ended: the server has had its time twice.
    twice: bool,
}

impl SilentCases {
    fn note(&mut self, report: &CaseReport) {
        self.count += 1;
        self.twice |= self.ended.is_some_and(|ended| report.started >= ended);
        self.ended.get_or_insert(report.started + report.seconds);
    }

    fn is_enough(&self) -> bool {
        self.count >= ENOUGH && self.twice
    }
}

impl FailureGroups {
    pub fn group(&mut self, report: &mut CaseReport) {
        let Some(cause) = report.cause.clone() else { return };
        match cause {
            Cause::NothingSaid => self.mute.note(report),
            Cause::OnlyOpenings => self.idle.note(report),
            _ => {}
        }
        // Nobody looks for a story where a case is excused or passed in the end.
        if matches!(report.verdict, Verdict::Known | Verdict::Flaky) {
            return;
        }
        let causes = [Some(cause), report.precise_cause.take()];
        let keys = causes.iter().flatten().map(|cause| self.digest.hash_one(signature::of_cause(cause)));
        let keys: Vec<u64> = keys.collect();
        let known = keys.iter().find_map(|key| self.first.get(key)).cloned();
        if known.is_none() && report.verdict == Verdict::Warned {
            // The story of failures is not told by a warning.
            let key = self.digest.hash_one((keys[0], "warned"));
            match self.first.get(&key) {
                Some(first) => report.same_as = Some(first.clone()).filter(|first| *first != report.case),
                None if self.first.len() >= STORIES => {}
                None => drop(self.first.insert(key, report.case.clone())),
            }
            return;
        }
        let leader = known.clone().unwrap_or_else(|| report.case.clone());
        // A case that is repeated tells its own story.
        report.same_as = known.filter(|first| *first != report.case);
        for key in keys {
            if self.first.len() < STORIES {
                self.first.entry(key).or_insert_with(|| leader.clone());
            }
        }
    }

    /// Points a case to an earlier one that has told all that is wrong with it.
    pub fn join(&mut self, report: &mut CaseReport) {
        if !report.is_notable() || report.same_as.is_some() {
            return;
        }
        let keys = signature::of_case(report);
        let keys: BTreeSet<u64> = keys.iter().map(|key| self.digest.hash_one(key)).collect();
        match self.told.iter().find(|(told, _)| keys.is_subset(told)) {
            Some((_, first)) => {
                // Whoever has its root cause points to the story, too.
                let own = self.first.values_mut().filter(|leader| **leader == report.case);
                own.for_each(|leader| leader.clone_from(first));
                report.same_as = Some(first.clone()).filter(|first| *first != report.case);
            }
            // A case that passed in the end shows nothing of what failed before.
            None if report.verdict != Verdict::Flaky && self.told.len() < STORIES => {
                self.told.push((keys, report.case.clone()))
            }
            None => {}
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

    /// Whether enough cases have waited in vain for a word behind the opening, of a server that has said nothing else to anybody.
    pub fn are_idle(&self, heard: &ServerActivity) -> bool {
        self.idle.is_enough() && heard.extent() == ActivityLevel::Openings
    }

    /// What becomes of a case that is not run any more.
    pub fn not_run(&self, heard: &ServerActivity, options: &RunOptions) -> CaseOutcome {
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
        CaseReport { started, seconds: 5.0, cause: Some(cause.clone()), ..CaseReport::default() }
    }

    /// Takes in reports that began at these times; whether they are enough.
    fn enough(heard: &ServerActivity, cause: &Cause, started: &[f64]) -> bool {
        let mut causes = FailureGroups::default();
        started.iter().for_each(|started| causes.group(&mut report(*started, cause)));
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
            started.iter().for_each(|started| causes.group(&mut report(*started, cause)));
            causes.are_idle(&heard)
        };
        assert!(idle(&Cause::OnlyOpenings, &twice));
        assert!(!idle(&Cause::OnlyOpenings, &together), "all of them waited at the same time");
        assert!(!idle(&Cause::NothingSaid, &twice));
        heard.note(ActivityLevel::Answers);
        assert!(!idle(&Cause::OnlyOpenings, &twice), "it has answered somebody");
    }

    #[test]
    fn a_warning_joins_failures_and_does_not_lead_them() {
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
        assert_eq!(same_as("d", Verdict::Warned).as_deref(), Some("b"));
        // What is repeated does not point to itself.
        assert_eq!(same_as("b", Verdict::Failed), None);
        assert_eq!(same_as("a", Verdict::Warned).as_deref(), Some("b"));
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
        (0..8).for_each(|_| causes.group(&mut report(5.0, &Cause::NothingSaid)));
        assert!(causes.are_enough(&heard));
        let told = causes.not_run(&heard, &RunOptions::default()).failures.remove(0).message;
        assert!(told.contains("8 earlier cases") && told.contains("`frameproof doctor`"), "{told}");
        assert!(told.contains("the server has sent nothing."), "{told}");
        heard.note_ambient();
        let told = causes.not_run(&heard, &RunOptions::default()).failures.remove(0).message;
        assert!(told.contains("the server has sent only heartbeats and other ambient messages."), "{told}");
    }
}
