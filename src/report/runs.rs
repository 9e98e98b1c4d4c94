//! What a page or a summary is made of: the runs that a stream of events tells of.

use crate::exit::Exit;
use crate::results::event::{CaseReport, RunEvent, RunStarted, Summary};

/// One run of a protocol's suite.
pub(super) struct Run<'e> {
    pub started: &'e RunStarted,
    /// In the order of their names: they end in another order each time.
    pub cases: Vec<&'e CaseReport>,
    /// None: the events end before the run did.
    pub summary: Option<&'e Summary>,
}

/// The runs, in the order in which they began.
pub(super) fn runs(events: &[RunEvent]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for event in events {
        if let RunEvent::RunStarted(started) = event {
            runs.push(Run { started, cases: Vec::new(), summary: None });
        }
        let Some(run) = runs.last_mut() else { continue };
        match event {
            RunEvent::CaseFinished(case) => run.cases.push(case),
            RunEvent::RunFinished(summary) => run.summary = Some(summary),
            RunEvent::RunStarted(_) | RunEvent::CaseStarted { .. } => {}
        }
    }
    runs.iter_mut().for_each(|run| run.cases.sort_by(|one, other| one.case.cmp(&other.case)));
    runs
}

/// All runs in one, without their requirements. None: one of them was not ended.
pub(super) fn total(runs: &[Run<'_>]) -> Option<Summary> {
    let summaries: Option<Vec<&Summary>> = runs.iter().map(|run| run.summary).collect();
    summaries.filter(|summaries| !summaries.is_empty()).map(sum)
}

/// These in one, without their requirements.
pub(super) fn sum<'s>(summaries: impl IntoIterator<Item = &'s Summary>) -> Summary {
    let mut total = Summary::default();
    let mut codes = Vec::new();
    for summary in summaries {
        codes.push(summary.exit_code);
        summary.cases.iter().for_each(|(verdict, count)| *total.cases.entry(*verdict).or_default() += count);
        total.stale_baseline.extend(summary.stale_baseline.iter().cloned());
        total.stopped = total.stopped.or(summary.stopped);
        total.seconds += summary.seconds;
    }
    total.exit_code = Exit::heaviest(codes).code();
    total
}
