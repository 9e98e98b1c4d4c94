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
    let summaries = summaries.filter(|summaries| !summaries.is_empty())?;
    Some(sum(runs.iter().map(|run| run.started).zip(summaries)))
}

/// These in one, without their requirements.
pub(super) fn sum<'s>(runs: impl IntoIterator<Item = (&'s RunStarted, &'s Summary)>) -> Summary {
    let mut total = Summary::default();
    let (mut codes, mut spans) = (Vec::new(), Vec::new());
    for (started, summary) in runs {
        spans.push((began(started), summary.seconds));
        codes.push(summary.exit_code);
        summary.cases.iter().for_each(|(verdict, count)| *total.cases.entry(*verdict).or_default() += count);
        total.stale_baseline.extend(summary.stale_baseline.iter().cloned());
        total.stopped = total.stopped.or(summary.stopped);
    }
    total.seconds = took(spans);
    total.exit_code = Exit::most_severe(codes).code();
    total
}

/// Seconds since the epoch at which a run began; none: the events do not say it.
fn began(started: &RunStarted) -> Option<f64> {
    started.started.parse::<jiff::Timestamp>().ok().map(|time| time.as_duration().as_secs_f64())
}

/// The time in which at least one of these ran: runs may have been side by side.
fn took(spans: Vec<(Option<f64>, f64)>) -> f64 {
    let known: Option<Vec<(f64, f64)>> = spans.iter().map(|(began, long)| Some(((*began)?, *long))).collect();
    let Some(mut known) = known else { return spans.iter().map(|(_, long)| long).sum() };
    known.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut total, mut until) = (0.0, f64::NEG_INFINITY);
    for (began, long) in known {
        let end = began + long;
        total += (end - began.max(until)).max(0.0);
        until = end.max(until);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_side_by_side_takes_its_time_once() {
        let close =
            |spans: &[(Option<f64>, f64)], expected: f64| (took(spans.to_vec()) - expected).abs() < 1e-9;
        assert!(close(&[(Some(10.0), 2.0), (Some(11.0), 3.0), (Some(20.0), 1.0)], 5.0));
        assert!(close(&[(Some(11.0), 1.0), (Some(10.0), 5.0)], 5.0));
        assert!(close(&[(None, 1.0), (Some(10.0), 5.0)], 6.0));
    }
}
