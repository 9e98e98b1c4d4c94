//! From what a case came to, to its report.

use std::sync::atomic::Ordering;

use crate::protocol::extension::Offered;
use crate::results::cause::Cause;
use crate::results::event::{CaseReport, Failure, LogLine, Verdict, Way};
use crate::run::case::diagnose;
use crate::run::case::outcome::{CaseEnd, CaseOutcome};
use crate::run::context::RunContext;
use crate::run::isolation::markers::CUE;
use crate::run::suite::states;
use crate::run::triage::activity::ActivityLevel;
use crate::scenario::LoadedCase;
use crate::target::{ends, left_out};

/// Lines of the wire log that a report keeps of a failed case.
const WIRE_LINES: usize = 400;
/// Lines of the server's output that a report keeps of a failed case: the first and the last ones.
const LOG_LINES: (usize, usize) = (40, 160);

pub(crate) fn verdict_of(outcome: &CaseOutcome, strict: bool) -> Verdict {
    if outcome.failures.iter().any(|failure| failure.verdict == Verdict::Failed) {
        return Verdict::Failed;
    }
    outcome.end.verdict().unwrap_or(match outcome.failures.as_slice() {
        [] => Verdict::Passed,
        _ if strict => Verdict::Failed,
        _ => Verdict::Warned,
    })
}

pub(crate) fn report(
    loaded: &LoadedCase,
    outcome: CaseOutcome,
    verdict: Verdict,
    earlier: Vec<Vec<Failure>>,
    started: f64,
    seconds: f64,
    run: &RunContext,
) -> CaseReport {
    if let CaseEnd::ServerDied { reported: Some(reported), .. } = &outcome.end {
        reported.store(true, Ordering::Relaxed);
    }
    let wrong = matches!(verdict, Verdict::Failed | Verdict::Error | Verdict::Warned);
    let cause = match outcome.end.death() {
        Some(death) => Some(Cause::ServerDied(death.clone())),
        None => diagnose::cause(&outcome, run.activity.extent()).or_else(|| outcome.cause.clone()),
    };
    let cause = cause.filter(|_| wrong);
    // Cases that fail later, when the server was heard to say more, may fail for the same reason.
    let precise_cause =
        diagnose::cause(&outcome, ActivityLevel::Turns).filter(|_| wrong && outcome.end.death().is_none());
    let mut wire = outcome.record.wire;
    let cued = wire.iter().any(|line| line.way == Way::ToServer && line.text.contains(CUE.0));
    let has_passed = matches!(verdict, Verdict::Passed | Verdict::NotApplicable);
    if has_passed && !run.options.kept.frames {
        wire = Vec::new();
    }
    let began = outcome.record.began.filter(|_| !wire.is_empty());
    let model = began.map(|began| run.calls.of(&wire, began)).unwrap_or_default();
    let omitted = wire.len().saturating_sub(WIRE_LINES);
    wire.drain(..omitted);
    // What is kept for as long as the run lasts has no room for what is not.
    wire.shrink_to_fit();
    states::note(&mut wire, &outcome.record.batches, &run.protocol);
    let between = |count, beside: &LogLine| LogLine { text: left_out(count), ..beside.clone() };
    let written = outcome.log.len();
    let mut log = ends(outcome.log, LOG_LINES.0, LOG_LINES.1, between);
    let log_omitted = written - log.len();
    log.shrink_to_fit();
    CaseReport {
        case: loaded.id.clone(),
        title: loaded.case.title.clone(),
        file: loaded.file.clone(),
        line: loaded.line,
        embedded: loaded.embedded,
        covers: loaded.covered(),
        verdict,
        reason: outcome.end.reason(),
        unoffered: if verdict == Verdict::NotApplicable { unoffered(loaded, run) } else { Vec::new() },
        seconds,
        started,
        cause,
        failures: outcome.failures,
        earlier,
        exercised: outcome.exercised.into(),
        repeats: 0,
        wire,
        wire_omitted: omitted,
        log,
        log_omitted,
        model,
        steps: Vec::new(),
        cued,
        precise_cause,
        same_as: None,
        windows: outcome.record.windows,
        excused: outcome.excused,
        reproduce: run.options.reproduce.case(&loaded.id),
        known: None,
    }
}

/// Capabilities that a case needs, that nothing announces, and that only the user could know of.
fn unoffered(loaded: &LoadedCase, run: &RunContext) -> Vec<String> {
    let capabilities = &run.protocol.extension.capabilities;
    let is_lacking = |need: &&String| {
        let known = capabilities.get(*need);
        known.is_some_and(|known| {
            known.announced.is_none() && known.offered == Offered::Fixture && !run.is_reference
        })
    };
    loaded.case.needs.iter().filter(is_lacking).cloned().collect()
}

/// The report of a case in which frameproof itself broke: a defect of ours must not pass as a pass.
pub(crate) fn panicked(loaded: &LoadedCase, run: &RunContext) -> CaseReport {
    let reason =
        "frameproof itself failed in this case; please report this bug, with the command below".to_owned();
    let outcome = CaseOutcome::error(reason);
    report(loaded, outcome, Verdict::Error, Vec::new(), 0.0, 0.0, run)
}
