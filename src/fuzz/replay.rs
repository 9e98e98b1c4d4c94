//! Stored findings, run again: does it still fail?

use std::path::Path;
use std::time::Duration;

use super::corpus;
use crate::exit::Exit;
use crate::results::event::Verdict;
use crate::run::testbed::{CaseRun, Testbed};
use crate::scenario::{self, LoadedCase};

/// How often a finding is run.
const TIMES: usize = 3;

/// What became of a stored finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayOutcome {
    /// Every replay fails, and for a requirement of the finding.
    StillFails,
    /// No replay fails, and each came to its end.
    Fixed,
    /// No replay fails, but not all could be run: nothing is known.
    Undecided,
    /// Some replays fail.
    Flaky,
    /// Replays fail, but not for what the finding is about.
    FailsOtherwise,
}

impl ReplayOutcome {
    /// As it is shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StillFails => "still fails",
            Self::Fixed => "fixed",
            Self::Undecided => "undecided",
            Self::Flaky => "flaky",
            Self::FailsOtherwise => "fails otherwise",
        }
    }
}

/// One stored finding.
pub struct Replayed {
    /// The scenario file.
    pub file: String,
    /// What came of its case, or why the file could not be read.
    pub result: Result<Replay, String>,
}

/// A case of a stored finding that was run again.
pub struct Replay {
    /// The case.
    pub case: LoadedCase,
    /// What became of it.
    pub outcome: ReplayOutcome,
    /// The last run.
    pub last: Option<CaseRun>,
}

/// How `frameproof fuzz --replay` ends: all fixed, one is not, one could not be read, or none could.
pub fn exit_of(all: &[Replayed]) -> Exit {
    let mut outcomes =
        all.iter().filter_map(|one| one.result.as_ref().ok()).map(|replay| replay.outcome).peekable();
    if outcomes.peek().is_none() {
        return Exit::Nothing;
    }
    if outcomes.any(|outcome| outcome != ReplayOutcome::Fixed) {
        return Exit::Failed;
    }
    // A finding that cannot be read is not fixed.
    if all.iter().any(|one| one.result.is_err()) { Exit::Usage } else { Exit::Passed }
}

/// Runs every scenario of a folder again.
///
/// # Errors
/// The folder cannot be read.
pub async fn replay(
    target: &Testbed,
    folder: &Path,
    deadline: Duration,
    seed: u64,
) -> Result<Vec<Replayed>, String> {
    let paths = corpus::files(folder, &["yaml", "yml"])?;
    let mut all = Vec::new();
    for path in paths {
        let file = path.display().to_string();
        let loaded = corpus::readable(&path)
            .and_then(|()| scenario::load(&path, target.protocol()).map_err(|errors| errors.to_string()));
        match loaded {
            Err(error) => all.push(Replayed { file, result: Err(error) }),
            Ok(cases) => {
                for case in cases {
                    let (outcome, last) = again(target, &case, deadline, seed).await;
                    let result = Ok(Replay { case, outcome, last });
                    all.push(Replayed { file: file.clone(), result });
                }
            }
        }
    }
    Ok(all)
}

/// What one replay of a finding shows.
enum Shown {
    /// It fails for what the case covers.
    SameFailure,
    /// It fails for something else.
    OtherFailure,
    /// It passes.
    Pass,
    /// It could not be run.
    Nothing,
}

async fn again(
    target: &Testbed,
    case: &LoadedCase,
    deadline: Duration,
    seed: u64,
) -> (ReplayOutcome, Option<CaseRun>) {
    let (mut failed, mut otherwise, mut passed, mut last) = (0, 0, 0, None);
    for time in 0..TIMES {
        let own = target.fork().await;
        if own.is_none() && target.is_launched() {
            target.restart_fresh().await;
        }
        let seed = seed.wrapping_add(time as u64);
        let (outcome, _) = own.as_ref().unwrap_or(target).run(case, seed, Some(deadline)).await;
        if let Some(own) = own {
            own.close().await;
        }
        match shown(case, &outcome) {
            Shown::SameFailure => failed += 1,
            Shown::OtherFailure => otherwise += 1,
            Shown::Pass => passed += 1,
            Shown::Nothing => {}
        }
        last = Some(outcome);
    }
    (outcome_of(failed, otherwise, passed), last)
}

/// What so many replays that failed, failed otherwise, and passed come to.
fn outcome_of(failed: usize, otherwise: usize, passed: usize) -> ReplayOutcome {
    match (failed, otherwise, passed) {
        (TIMES, ..) => ReplayOutcome::StillFails,
        (0, 0, TIMES) => ReplayOutcome::Fixed,
        (0, 0, _) => ReplayOutcome::Undecided,
        (0, TIMES, _) => ReplayOutcome::FailsOtherwise,
        _ => ReplayOutcome::Flaky,
    }
}

/// What a run of a case shows. A case that covers nothing does not say what it is about: every failure is the same.
fn shown(case: &LoadedCase, outcome: &CaseRun) -> Shown {
    let report = &outcome.report;
    let has_failed = matches!(report.verdict, Verdict::Failed | Verdict::Warned | Verdict::Error);
    // Without a server nothing was sent.
    if has_failed && report.failures.is_empty() && !outcome.has_begun {
        return Shown::Nothing;
    }
    let covers = &case.case.covers;
    let about = |ids: &[String]| covers.is_empty() || ids.iter().any(|id| covers.contains(id));
    match report.verdict {
        Verdict::Passed | Verdict::Flaky => Shown::Pass,
        _ if !has_failed => Shown::Nothing,
        _ if report.failures.is_empty() => Shown::SameFailure,
        _ if report.failures.iter().any(|failure| about(&failure.requirements)) => Shown::SameFailure,
        _ => Shown::OtherFailure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ran_is_fixed() {
        for (counts, expected) in [
            ((3, 0, 0), ReplayOutcome::StillFails),
            ((0, 0, 3), ReplayOutcome::Fixed),
            ((0, 0, 2), ReplayOutcome::Undecided),
            ((0, 0, 0), ReplayOutcome::Undecided),
            ((0, 3, 0), ReplayOutcome::FailsOtherwise),
            ((1, 0, 2), ReplayOutcome::Flaky),
            ((0, 1, 2), ReplayOutcome::Flaky),
        ] {
            assert_eq!(outcome_of(counts.0, counts.1, counts.2), expected, "{counts:?}");
        }
    }
}
