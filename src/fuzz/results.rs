//! A campaign as the events of a run, for JUnit and JSON, and its exit code.

use std::collections::{BTreeMap, BTreeSet};

use super::events::{CampaignEnd, CampaignReport, Progress};
use super::finding::{Finding, blank_report};
use super::input::{Action, Input};
use super::oracle::Oracle;
use super::program::OPENED;
use crate::exit::Exit;
use crate::results::event::{
    CaseReport, Coverage, GeneratedStep, RequirementResult, RunEvent, RunStarted, StopReason, Summary,
    Verdict,
};

/// What the events of a campaign say besides its report.
pub struct Reported<'r> {
    /// The server was launched for the campaign.
    pub is_launched: bool,
    /// The scenario file of a finding, by its name, and the command that runs it again.
    pub scenario: &'r dyn Fn(&str) -> (String, String),
}

/// How `frameproof fuzz` ends.
pub fn exit_of(report: &CampaignReport) -> Exit {
    match &report.ended {
        CampaignEnd::Interrupted => Exit::Interrupted,
        CampaignEnd::Refusing(_) | CampaignEnd::Shortage(_) => Exit::Harness,
        CampaignEnd::Done if !report.findings.is_empty() => Exit::Failed,
        // Where every opening fails, nothing is fuzzed.
        CampaignEnd::Done if report.inconclusive().is_some() => Exit::Nothing,
        CampaignEnd::Done => Exit::Passed,
    }
}

/// The campaign as the events of a run: a case for each finding, and one for each oracle that found nothing.
pub fn events(started: RunStarted, report: &CampaignReport, about: &Reported<'_>) -> Vec<RunEvent> {
    let mut cases: Vec<CaseReport> = report.findings.iter().map(|found| failed(found, about)).collect();
    let has_found = |oracle: &Oracle| {
        let mut evidence = report.findings.iter().flat_map(|found| &found.evidence);
        evidence.any(|evidence| evidence.fingerprint.oracle == *oracle)
    };
    let silent = Oracle::ALL.into_iter().filter(|oracle| !has_found(oracle));
    cases.extend(silent.map(|oracle| without_finding(oracle, report, about)));
    let summary = summary(report, &cases);
    let Progress { cases: run, sent, .. } = &report.progress;
    let title = format!("{}, fuzzed with {run} cases and {sent} messages", started.title);
    let started = RunStarted { cases: cases.len(), title, ..started };
    let mut events = vec![RunEvent::RunStarted(Box::new(started))];
    events.extend(cases.into_iter().map(|case| RunEvent::CaseFinished(Box::new(case))));
    events.push(RunEvent::RunFinished(Box::new(summary)));
    events
}

fn summary(report: &CampaignReport, cases: &[CaseReport]) -> Summary {
    let mut summary = Summary {
        seconds: report.progress.time.as_secs_f64(),
        exit_code: exit_of(report).code(),
        coverage: Some(table(report)),
        ..Summary::default()
    };
    if report.ended == CampaignEnd::Interrupted {
        summary.stopped = Some(StopReason::Interrupted);
    }
    for case in cases {
        *summary.cases.entry(case.verdict).or_default() += 1;
    }
    for (id, count) in &report.exercised {
        let broken = report.findings.iter().filter(|found| found.requirements().contains(id));
        let broken_in: Vec<String> = broken.map(|found| found.report.case.clone()).collect();
        let verdict = if broken_in.is_empty() { Verdict::Passed } else { Verdict::Failed };
        summary.requirements.insert(id.clone(), RequirementResult { verdict, exercised: *count, broken_in });
    }
    summary
}

/// A finding as a failed case, whatever its level, as the exit code has it; its scenario is the place and what reproduces it.
fn failed(found: &Finding, about: &Reported<'_>) -> CaseReport {
    let (file, reproduce) = (about.scenario)(&found.file_name());
    let mut report = found.report.clone();
    report.reproduce = reproduce;
    for failure in &mut report.failures {
        // The steps were generated; the scenario has them.
        failure.step = None;
        failure.verdict = failure.verdict.max(Verdict::Failed);
    }
    let steps = found.first().program.inputs.iter().map(step).collect();
    CaseReport {
        case: format!("fuzz/{}", found.name),
        verdict: Verdict::Failed,
        file,
        line: 1,
        steps,
        ..report
    }
}

/// An input, as reports show it.
pub fn step(input: &Input) -> GeneratedStep {
    let text = match &input.action {
        Action::Send(value) => value.to_string(),
        Action::Text(text) => text.clone(),
        // Steps always serialise.
        Action::Steps(steps) => serde_json::to_string(steps).unwrap_or_default(),
    };
    GeneratedStep {
        client: input.client.clone(),
        what: format!("{} ({})", input.command, input.mutation),
        text,
    }
}

/// States and commands as a table: the state after the opening first, and then those that the protocol declares, whether or not anything was
/// tried in them; without what is no command.
pub fn table(report: &CampaignReport) -> Coverage {
    let coverage = &report.coverage;
    let tried = coverage.values().flat_map(BTreeMap::keys);
    let mut states: BTreeSet<&str> = tried.chain(&report.states).map(String::as_str).collect();
    states.remove(OPENED);
    let states: Vec<&str> = std::iter::once(OPENED).chain(states).collect();
    let commands = coverage.iter().filter(|(command, _)| *command != "wait" && !command.contains(" | "));
    let counts = |by: &BTreeMap<String, u64>| {
        states.iter().map(|state| by.get(*state).copied().unwrap_or(0)).collect()
    };
    Coverage {
        commands: commands.map(|(command, by)| (command.clone(), counts(by))).collect(),
        states: states.iter().map(|state| (*state).to_owned()).collect(),
    }
}

/// An oracle that found nothing: passed, if it was asked at all.
fn without_finding(oracle: Oracle, report: &CampaignReport, about: &Reported<'_>) -> CaseReport {
    let reason = match oracle {
        _ if report.inconclusive().is_some() => report.inconclusive(),
        Oracle::Memory if !about.is_launched => Some("frameproof did not launch the server"),
        _ => None,
    };
    let verdict = if reason.is_some() { Verdict::NotExercised } else { Verdict::Passed };
    CaseReport { verdict, reason: reason.map(str::to_owned), ..blank_report(oracle.name(), oracle.about()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shortage::Shortage;

    fn report(cases: u64, ended: CampaignEnd) -> CampaignReport {
        CampaignReport {
            progress: Progress { cases, fuzzed: cases, sent: 3 * cases, ..Progress::default() },
            findings: Vec::new(),
            unconfirmed: 0,
            coverage: BTreeMap::new(),
            states: Vec::new(),
            exercised: BTreeMap::from([("A-1".to_owned(), 3)]),
            ended,
            cut: false,
        }
    }

    #[test]
    fn a_declared_state_is_a_column_though_nothing_was_tried_in_it() {
        let mut report = report(3, CampaignEnd::Done);
        report.coverage.insert("say".to_owned(), BTreeMap::from([("running".to_owned(), 2)]));
        report.states = vec!["asking".to_owned(), "running".to_owned()];
        let Coverage { states, commands } = table(&report);
        assert_eq!(states, [OPENED, "asking", "running"]);
        assert_eq!(commands, [("say".to_owned(), vec![0, 0, 2])]);
    }

    #[test]
    fn exit_codes_say_how_a_campaign_ended() {
        for (cases, ended, expected) in [
            (9, CampaignEnd::Done, 0),
            (0, CampaignEnd::Done, 4),
            (9, CampaignEnd::Interrupted, 130),
            (0, CampaignEnd::Refusing("x".to_owned()), 3),
            (9, CampaignEnd::Shortage(Shortage::Descriptors), 3),
        ] {
            assert_eq!(exit_of(&report(cases, ended.clone())).code(), expected, "{cases} {ended:?}");
        }
        let mut unfuzzed = report(9, CampaignEnd::Done);
        unfuzzed.progress.fuzzed = 0;
        assert_eq!(exit_of(&unfuzzed), Exit::Nothing, "messages were sent, but no input");
        for (fuzzed, unconfirmed, expected) in
            [(4, 0, Exit::Nothing), (5, 0, Exit::Passed), (5, 3, Exit::Nothing)]
        {
            unfuzzed.progress.fuzzed = fuzzed;
            unfuzzed.unconfirmed = unconfirmed;
            assert_eq!(
                exit_of(&unfuzzed),
                expected,
                "{fuzzed} of 9 were fuzzed, {unconfirmed} failed for no reason"
            );
        }
    }

    #[test]
    fn a_campaign_whose_cases_mostly_fail_for_no_reason_is_no_pass() {
        let about = Reported { is_launched: true, scenario: &|_| Default::default() };
        for (cases, unconfirmed, expected) in [(67, 35, 4), (67, 33, 0), (10, 5, 0), (1, 1, 4)] {
            let report = CampaignReport { unconfirmed, ..report(cases, CampaignEnd::Done) };
            assert_eq!(exit_of(&report).code(), expected, "{unconfirmed} of {cases}");
            let passes = without_finding(Oracle::ALL[0], &report, &about).verdict == Verdict::Passed;
            assert_eq!(passes, expected == 0, "{unconfirmed} of {cases}");
        }
    }

    #[test]
    fn every_oracle_is_a_case() {
        let report = report(9, CampaignEnd::Done);
        let scenario = |name: &str| (name.to_owned(), String::new());
        let about = Reported { is_launched: false, scenario: &scenario };
        let cases: Vec<CaseReport> =
            Oracle::ALL.into_iter().map(|oracle| without_finding(oracle, &report, &about)).collect();
        let of = |name: &str| cases.iter().find(|case| case.case == format!("fuzz/{name}"));
        for name in ["reply", "setup", "alive"] {
            assert_eq!(of(name).map(|case| case.verdict), Some(Verdict::Passed), "{name}");
        }
        assert_eq!(of("memory").map(|case| case.verdict), Some(Verdict::NotExercised));
        assert_eq!(summary(&report, &cases).cases[&Verdict::Passed], 17);
    }
}
