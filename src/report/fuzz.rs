//! Campaigns of the live fuzzer: what a person sees, and the events from which JUnit and JSON are made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use super::escape::terminal;
use crate::fuzz::campaign::{Ended, Progress, Report};
use crate::fuzz::feedback::{Coverage, OPENED};
use crate::fuzz::finding::{Finding, Shown, blank_report};
use crate::results::event::{CaseReport, RequirementResult, RunEvent, RunStarted, Summary, Verdict};

/// What every campaign holds the server to, as a JUnit case each: the oracle, and what it asks.
const ORACLES: &[(&str, &str)] = &[
    ("alive", "The connection lives on, whatever a client sends"),
    ("framing", "A connection ends in good order after what RFC 6455 forbids, and only then"),
    ("refused", "What is no valid command is answered with the protocol's error"),
    ("state-kept", "A refused command changes no state"),
    ("clean-turn", "A clean turn succeeds afterwards on the same connection"),
    ("fresh-connection", "A clean turn succeeds afterwards on a fresh connection"),
    ("other-session", "Another session that runs alongside is unharmed"),
    ("isolated", "Nothing of another session is shown"),
    ("schema", "Every frame of the server satisfies its schema"),
    ("frame", "Every frame of the server is a JSON object"),
    ("message", "Every frame of the server is a message of the protocol"),
    ("invariant", "Every monitor of the protocol holds"),
    ("limit", "The server stays within the limits on frames and bytes"),
    ("memory", "The memory of a launched server does not grow without bound"),
    ("sequence", "A sequence of commands is answered in time"),
    ("target", "The server is there"),
];

/// One line about where a campaign is.
pub fn progress(progress: &Progress) -> String {
    let seconds = progress.time.as_secs_f64();
    format!(
        "{:>6.1} s  {} cases ({:.0}/s)  {} messages ({:.0}/s)  corpus {}  findings {}",
        seconds,
        progress.cases,
        progress.cases as f64 / seconds.max(0.001),
        progress.sent,
        progress.sent as f64 / seconds.max(0.001),
        progress.corpus,
        progress.findings
    )
}

/// Inputs of a finding that are shown; the file has all.
const SHOWN: usize = 6;

/// A finding, in a few lines: what it shows, its steps, how sure it is, and where it is kept.
pub fn finding(found: &Finding, file: Option<&str>) -> String {
    let mut text = heading(found, found.first());
    let (case, steps, replays) =
        (found.first().case, counted(found.steps, "step"), counted(found.replays, "replay"));
    if !found.together.is_empty() {
        let cases = counted(found.together.len(), "case");
        let _ = writeln!(
            text,
            "     {cases} from {case} on, {steps}: all in the file; not confirmed by a replay"
        );
        place(&mut text, file);
        return text;
    }
    let inputs = &found.first().program.inputs;
    for input in inputs.iter().take(SHOWN) {
        let shown: String =
            serde_json::to_string(&input.action).unwrap_or_default().chars().take(160).collect();
        let _ = writeln!(
            text,
            "     {} {} ({}): {}",
            terminal(&input.client),
            terminal(&input.command),
            terminal(&input.mutation),
            terminal(&shown)
        );
    }
    if inputs.len() > SHOWN {
        let _ = writeln!(text, "     \u{2026} and {} more, in the file", inputs.len() - SHOWN);
    }
    if inputs.is_empty()
        && let Some(times) = found.first().program.repeat
    {
        let _ = writeln!(text, "     an opening and a clean turn, up to {times} times");
    }
    let at = found.at.as_secs_f64();
    let _ = writeln!(text, "     case {case}, {steps} after {replays}; confirmed at {at:.1} s");
    place(&mut text, file);
    text
}

/// What the steps of a finding were seen last to show, too.
pub fn joined(found: &Finding, file: Option<&str>) -> String {
    let mut text = heading(found, found.last());
    let steps = counted(found.steps, "step");
    let _ =
        writeln!(text, "     case {}, {steps} like those of {}: one finding", found.last().case, found.name);
    place(&mut text, file);
    text
}

fn heading(found: &Finding, shown: &Shown) -> String {
    let word = if shown.verdict == Verdict::Warned { "WARN" } else { "FAIL" };
    let print = &shown.fingerprint;
    let requirements = if print.requirements.is_empty() {
        String::new()
    } else {
        format!(" [{}]", print.requirements.join(" "))
    };
    let check = found.report.failures.iter().find(|failure| failure.requirements == print.requirements);
    let check = check.filter(|_| print.oracle == "invariant").map(|failure| format!(" {}", failure.check));
    format!(
        "{word} {}{}{requirements} in state {}: {}\n",
        print.oracle,
        check.unwrap_or_default(),
        terminal(&print.state),
        terminal(&shown.message)
    )
}

fn place(text: &mut String, file: Option<&str>) {
    if let Some(file) = file {
        let _ = writeln!(text, "     {}", terminal(file));
    }
}

/// States × commands: how often each command was tried in each state.
pub fn coverage(coverage: &Coverage) -> String {
    let mut states: BTreeSet<&str> = coverage.values().flat_map(|by| by.keys()).map(String::as_str).collect();
    states.remove(OPENED);
    let states: Vec<&str> = std::iter::once(OPENED).chain(states).collect();
    let rows: Vec<(&String, &BTreeMap<String, u64>)> =
        coverage.iter().filter(|(command, _)| *command != "wait" && !command.contains(" | ")).collect();
    let first = rows.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0).max(7);
    let mut text = format!("{:<first$}", "command");
    for state in &states {
        let _ = write!(text, "  {:>5}", terminal(state));
    }
    text.push('\n');
    for (command, by) in rows {
        let _ = write!(text, "{:<first$}", terminal(command));
        for state in &states {
            let width = state.chars().count().max(5);
            let count = by.get(*state).copied().unwrap_or(0);
            let shown = if count == 0 { "-".to_owned() } else { count.to_string() };
            let _ = write!(text, "  {shown:>width$}");
        }
        text.push('\n');
    }
    text
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The end of a campaign.
pub fn summary(report: &Report) -> String {
    let Report { progress, findings, unconfirmed, .. } = report;
    let seconds = progress.time.as_secs_f64();
    let mut text = format!(
        "{} in {} cases and {} messages, {seconds:.1} s ({:.0} messages/s); corpus {}",
        counted(findings.len(), "finding"),
        progress.cases,
        progress.sent,
        progress.sent as f64 / seconds.max(0.001),
        progress.corpus
    );
    if *unconfirmed > 0 {
        let _ = write!(text, "; {} that replays did not show again", counted(*unconfirmed, "failure"));
    }
    if report.cut {
        text.push_str("; given up while cases or replays still ran");
    }
    match &report.ended {
        Ended::Done => {}
        Ended::Interrupted => text.push_str("; interrupted"),
        Ended::Refusing(why) => {
            let _ = write!(text, "; the target takes no more connections: {}", terminal(why));
        }
    }
    text
}

/// The campaign as the events of a run: a case for each finding, and one for each oracle that found nothing. `reproduce` is protocol and
/// target as a command line has them, `folder` where the findings' scenarios are; `launched`: frameproof has launched the server.
pub fn events(
    started: RunStarted,
    report: &Report,
    launched: bool,
    exit_code: u8,
    reproduce: &str,
    folder: &Path,
) -> Vec<RunEvent> {
    let told = |found: &Finding| told(found, reproduce, folder);
    let mut cases: Vec<CaseReport> = report.findings.iter().map(told).collect();
    for (oracle, title) in ORACLES {
        if !report
            .findings
            .iter()
            .flat_map(|found| &found.shown)
            .any(|shown| shown.fingerprint.oracle == *oracle)
        {
            cases.push(untroubled(oracle, title, report, launched));
        }
    }
    let mut summary =
        Summary { seconds: report.progress.time.as_secs_f64(), exit_code, ..Summary::default() };
    if report.ended == Ended::Interrupted {
        summary.stopped = Some("interrupted".to_owned());
    }
    for case in &cases {
        *summary.cases.entry(case.verdict).or_default() += 1;
    }
    for (id, count) in &report.exercised {
        let broken_in: Vec<String> = report
            .findings
            .iter()
            .filter(|found| found.requirements().contains(id))
            .map(|found| found.report.case.clone())
            .collect();
        let verdict = if broken_in.is_empty() { Verdict::Passed } else { Verdict::Failed };
        summary.requirements.insert(id.clone(), RequirementResult { verdict, exercised: *count, broken_in });
    }
    let Progress { cases: played, sent, .. } = &report.progress;
    let title = format!("{}, fuzzed with {played} cases and {sent} messages", started.title);
    let mut events = vec![RunEvent::RunStarted(RunStarted { cases: cases.len(), title, ..started })];
    events.extend(cases.into_iter().map(|case| RunEvent::CaseFinished(Box::new(case))));
    events.push(RunEvent::RunFinished(Box::new(summary)));
    events
}

/// A finding as a failed case, whatever its level, as the exit code has it; its scenario is the place and what reproduces it.
fn told(found: &Finding, reproduce: &str, folder: &Path) -> CaseReport {
    let file = folder.join(found.file_name()).display().to_string();
    let mut report = found.report.clone();
    report.reproduce =
        format!("frameproof run {reproduce} --scenario {}", crate::report::escape::shell(&file));
    for failure in &mut report.failures {
        // The campaign made the steps up; the scenario has them.
        failure.step = None;
        failure.verdict = failure.verdict.max(Verdict::Failed);
    }
    CaseReport { case: format!("fuzz/{}", found.name), verdict: Verdict::Failed, file, line: 1, ..report }
}

/// An oracle that found nothing: passed, if it was asked at all.
fn untroubled(oracle: &str, title: &str, report: &Report, launched: bool) -> CaseReport {
    let unasked = match oracle {
        _ if report.progress.cases == 0 => Some("no case was run"),
        "memory" if !launched => Some("frameproof did not launch the server"),
        _ => None,
    };
    let verdict = if unasked.is_some() { Verdict::NotExercised } else { Verdict::Passed };
    CaseReport { verdict, reason: unasked.map(str::to_owned), ..blank_report(oracle, title) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_column_a_state() {
        let count =
            |pairs: &[(&str, u64)]| pairs.iter().map(|(state, n)| ((*state).to_owned(), *n)).collect();
        let table = Coverage::from([
            ("send".to_owned(), count(&[(OPENED, 3), ("awaiting", 12)])),
            ("wait".to_owned(), count(&[(OPENED, 9)])),
            ("abort\u{1b}".to_owned(), count(&[("running", 1)])),
        ]);
        let expected = "command    opened  awaiting  running\nabort\\u{1b}       -         -        1\nsend            3        12        -\n";
        assert_eq!(
            coverage(&table).replace("  ", " ").replace("  ", " ").replace("  ", " "),
            expected.replace("  ", " ").replace("  ", " ").replace("  ", " ")
        );
    }
}
