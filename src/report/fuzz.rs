//! Campaigns of the live fuzzer on a terminal.

use std::fmt::Write as _;

use super::brief;
use super::escape::terminal;
use crate::fuzz::events::{CampaignEnd, CampaignReport, Progress};
use crate::fuzz::finding::{Evidence, Finding};
use crate::fuzz::input::Input;
use crate::fuzz::oracle::Oracle;
use crate::fuzz::results;
use crate::results::event::{Coverage, GeneratedStep, Verdict};

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
/// Columns that a step gets however narrow the terminal is.
const NARROWEST: usize = 40;

/// A finding, in a few lines: what it breaks, its steps, how sure it is, and where it is kept.
/// `width`: columns of the terminal, within which each step keeps what matters of it; `None`: steps are whole.
pub fn finding(found: &Finding, file: Option<&str>, width: Option<usize>) -> String {
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
        let _ = writeln!(text, "     {}", step(input, width));
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

/// One step, in a line.
fn step(input: &Input, width: Option<usize>) -> String {
    let GeneratedStep { client, what, text } = results::step(input);
    let head = format!("{} {}: ", terminal(&client), terminal(&what));
    let room = width.map(|width| width.saturating_sub(5 + head.chars().count()).max(NARROWEST));
    let pieces = brief::line(brief::Shown { kind: None, text: &text, cut: 0 }, room, &[]);
    pieces.into_iter().fold(head, |line, piece| line + &piece.text)
}

/// What the steps of a finding were seen last to break, too.
pub fn joined(found: &Finding, file: Option<&str>, _width: Option<usize>) -> String {
    let mut text = heading(found, found.last());
    let steps = counted(found.steps, "step");
    let _ =
        writeln!(text, "     case {}, {steps} like those of {}: one finding", found.last().case, found.name);
    place(&mut text, file);
    text
}

fn heading(found: &Finding, evidence: &Evidence) -> String {
    let word = if evidence.verdict == Verdict::Warned { "WARN" } else { "FAIL" };
    let print = &evidence.fingerprint;
    let requirements = if print.requirements.is_empty() {
        String::new()
    } else {
        format!(" [{}]", print.requirements.join(" "))
    };
    let check = found.report.failures.iter().find(|failure| failure.requirements == print.requirements);
    let check =
        check.filter(|_| print.oracle == Oracle::Invariant).map(|failure| format!(" {}", failure.check));
    format!(
        "{word} {}{}{requirements} in state {}: {}\n",
        print.oracle,
        check.unwrap_or_default(),
        terminal(&print.state),
        terminal(&evidence.message)
    )
}

fn place(text: &mut String, file: Option<&str>) {
    if let Some(file) = file {
        let _ = writeln!(text, "     {}", terminal(file));
    }
}

/// States × commands: how often each command was tried in each state.
pub fn coverage(coverage: &Coverage, corner: &str) -> String {
    let shown = |text: &str| terminal(text).into_owned();
    let names = coverage.commands.iter().map(|(command, _)| shown(command).chars().count());
    let first = names.max().unwrap_or(0).max(corner.len());
    let mut text = format!("{corner:<first$}");
    let states: Vec<String> = coverage.states.iter().map(|state| shown(state)).collect();
    for state in &states {
        let _ = write!(text, "  {state:>5}");
    }
    text.push('\n');
    for (command, counts) in &coverage.commands {
        let _ = write!(text, "{:<first$}", shown(command));
        for (state, count) in states.iter().zip(counts) {
            let width = state.chars().count().max(5);
            let count = if *count == 0 { "-".to_owned() } else { count.to_string() };
            let _ = write!(text, "  {count:>width$}");
        }
        text.push('\n');
    }
    text
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The end of a campaign.
pub fn summary(report: &CampaignReport) -> String {
    let CampaignReport { progress, findings, unconfirmed, .. } = report;
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
        let _ = write!(text, "; {} that replays did not reproduce", counted(*unconfirmed, "failure"));
    }
    if report.cut {
        text.push_str("; ended while cases or replays were still running");
    }
    match &report.ended {
        CampaignEnd::Done => {}
        CampaignEnd::Interrupted => text.push_str("; interrupted"),
        CampaignEnd::Shortage(shortage) => {
            let _ = write!(text, "; {shortage}: {}", shortage.advice());
        }
        CampaignEnd::Refusing(why) => {
            let _ = write!(text, "; the target no longer accepts connections: {}", terminal(why));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_column_a_state() {
        let row = |command: &str, counts: [u64; 3]| (command.to_owned(), counts.to_vec());
        let table = Coverage {
            states: ["opened", "awaiting", "running"].map(str::to_owned).to_vec(),
            commands: vec![row("abort\u{1b}", [0, 0, 1]), row("send", [3, 12, 0])],
        };
        let expected = "command    opened  awaiting  running\nabort\\u{1b}       -         -        1\nsend            3        12        -\n";
        assert_eq!(
            coverage(&table, "command").replace("  ", " ").replace("  ", " ").replace("  ", " "),
            expected.replace("  ", " ").replace("  ", " ").replace("  ", " ")
        );
    }
}
