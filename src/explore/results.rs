//! An exploration as the events of a run, for JUnit and JSON, and its exit code.

use super::campaign::{ExploreEnd, ExploreReport};
use super::coverage;
use super::finding::Finding;
use super::model::REST;
use super::walk::Move;
use crate::exit::Exit;
use crate::results::event::{
    CaseReport, Coverage, GeneratedStep, RequirementResult, RunEvent, RunStarted, StopReason, Summary,
    Verdict,
};

/// How `frameproof explore` ends.
pub fn exit_of(report: &ExploreReport) -> Exit {
    match &report.ended {
        ExploreEnd::Interrupted => Exit::Interrupted,
        ExploreEnd::Refusing(_) | ExploreEnd::Shortage(_) => Exit::Harness,
        ExploreEnd::Done if !report.findings.is_empty() => Exit::Failed,
        // A server with which not even one walk goes on was not explored.
        ExploreEnd::Done if report.progress.walks == 0 || report.progress.moves == 0 => Exit::Nothing,
        ExploreEnd::Done => Exit::Passed,
    }
}

/// The exploration as the events of a run: a case for each finding, and one for the walks as a whole. `scenario`: the file of a
/// finding, by its name, and the command that runs it again.
pub fn events(
    started: RunStarted,
    report: &ExploreReport,
    scenario: &dyn Fn(&str) -> (String, String),
) -> Vec<RunEvent> {
    let mut cases: Vec<CaseReport> = report.findings.iter().map(|found| failed(found, scenario)).collect();
    cases.push(walks(report));
    let summary = summary(report, &cases);
    let title = format!("{}, explored with {} walks", started.title, report.progress.walks);
    let started = RunStarted { cases: cases.len(), title, ..started };
    let mut events = vec![RunEvent::RunStarted(Box::new(started))];
    events.extend(cases.into_iter().map(|case| RunEvent::CaseFinished(Box::new(case))));
    events.push(RunEvent::RunFinished(Box::new(summary)));
    events
}

/// A finding as a failed case, whatever its level, as the exit code has it; its scenario is the place and what reproduces it.
fn failed(found: &Finding, scenario: &dyn Fn(&str) -> (String, String)) -> CaseReport {
    let (file, reproduce) = scenario(&found.file_name());
    let mut report = CaseReport { reproduce, ..found.report.clone() };
    for failure in &mut report.failures {
        // The steps were generated; the scenario has them.
        failure.step = None;
        failure.verdict = failure.verdict.max(Verdict::Failed);
    }
    CaseReport {
        case: format!("explore/{}", found.name()),
        title: found.message.clone(),
        verdict: Verdict::Failed,
        file,
        line: 1,
        steps: found.walk.moves.iter().map(step).collect(),
        ..report
    }
}

/// A move, as reports show it.
fn step(made: &Move) -> GeneratedStep {
    GeneratedStep { client: made.by.name().to_owned(), what: made.act.to_string(), text: String::new() }
}

/// Moves and states as a table: at rest first.
pub fn table(coverage: &coverage::Coverage) -> Coverage {
    let mut states: Vec<&str> = coverage.states().into_iter().collect();
    states.sort_by_key(|state| (*state != REST, *state));
    let counts = |act: &str| states.iter().map(|state| coverage.count(state, act)).collect();
    Coverage {
        commands: coverage.acts().into_iter().map(|act| (act.to_owned(), counts(act))).collect(),
        states: states.iter().map(|state| (*state).to_owned()).collect(),
    }
}

/// All walks as one case: passed, if nothing was found and something was done.
fn walks(report: &ExploreReport) -> CaseReport {
    let (verdict, reason) = match exit_of(report) {
        Exit::Passed => (Verdict::Passed, None),
        Exit::Failed => (Verdict::NotExercised, Some("the failures are listed above".to_owned())),
        Exit::Interrupted => (Verdict::NotExercised, Some("interrupted".to_owned())),
        _ => (Verdict::NotExercised, Some("no walk was run, or none came to its first move".to_owned())),
    };
    CaseReport {
        case: "explore/walks".to_owned(),
        title: "Every valid conversation follows the protocol".to_owned(),
        verdict,
        reason,
        seconds: report.progress.time.as_secs_f64(),
        exercised: report.exercised.clone().into(),
        ..CaseReport::default()
    }
}

fn summary(report: &ExploreReport, cases: &[CaseReport]) -> Summary {
    let mut summary = Summary {
        seconds: report.progress.time.as_secs_f64(),
        exit_code: exit_of(report).code(),
        coverage: Some(table(&report.coverage)),
        ..Summary::default()
    };
    if report.ended == ExploreEnd::Interrupted {
        summary.stopped = Some(StopReason::Interrupted);
    }
    for case in cases {
        *summary.cases.entry(case.verdict).or_default() += 1;
    }
    for (id, count) in &report.exercised {
        let broken = report.findings.iter().filter(|found| found.print.requirements.contains(id));
        let broken_in: Vec<String> = broken.map(|found| format!("explore/{}", found.name())).collect();
        let verdict = if broken_in.is_empty() { Verdict::Passed } else { Verdict::Failed };
        summary.requirements.insert(id.clone(), RequirementResult { verdict, exercised: *count, broken_in });
    }
    summary
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::explore::campaign::Progress;
    use crate::explore::coverage::Coverage;

    #[test]
    fn an_exploration_without_a_move_does_not_pass() {
        for (walks, moves, exit) in [(0, 0, Exit::Nothing), (2, 0, Exit::Nothing), (2, 1, Exit::Passed)] {
            let report = ExploreReport {
                progress: Progress { walks, moves, ..Progress::default() },
                findings: Vec::new(),
                unconfirmed: 9,
                coverage: Coverage::default(),
                never: Vec::new(),
                exercised: BTreeMap::new(),
                ended: ExploreEnd::Done,
            };
            assert_eq!(exit_of(&report), exit, "{walks} walks, {moves} moves");
            let passes = super::walks(&report).verdict == Verdict::Passed;
            assert_eq!(passes, exit == Exit::Passed);
        }
    }
}
