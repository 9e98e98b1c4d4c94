//! Explorations on a terminal.

use std::fmt::Write as _;

use super::escape::terminal;
use super::fuzz::coverage as table;
use crate::explore::campaign::{ExploreEnd, ExploreReport, Progress};
use crate::explore::coverage::Coverage;
use crate::explore::finding::Finding;
use crate::explore::results;
use crate::results::event::Verdict;

/// Moves of a finding that are shown; the file has all.
const SHOWN: usize = 12;

/// One line about where an exploration is.
pub fn progress(progress: &Progress) -> String {
    let seconds = progress.time.as_secs_f64();
    let Progress { walks, moves, sent, findings, .. } = progress;
    format!("{seconds:>6.1} s  {walks} walks  {moves} moves  {sent} messages  findings {findings}")
}

/// A finding, in a few lines: what it breaks, its moves, how sure it is, and where it is kept.
pub fn finding(found: &Finding, file: Option<&str>, reproduce: &str) -> String {
    let word = if found.verdict == Verdict::Warned { "WARN" } else { "FAIL" };
    let ids = &found.print.requirements;
    let ids = if ids.is_empty() { String::new() } else { format!(" [{}]", ids.join(" ")) };
    let mut text = format!("{word}{ids} {}\n", terminal(&found.message));
    for step in found.walk.moves.iter().take(SHOWN) {
        let _ = writeln!(text, "     {}", terminal(&step.to_string()));
    }
    if found.walk.moves.len() > SHOWN {
        let _ = writeln!(text, "     \u{2026} and {} more, in the file", found.walk.moves.len() - SHOWN);
    }
    let walk = found.index.map_or("a short walk".to_owned(), |index| format!("walk {index}"));
    let (left, was) = (counted(found.walk.moves.len(), "move"), found.was);
    let _ = writeln!(
        text,
        "     {walk}, {left} of {was} after {}; confirmed at {:.1} s",
        counted(found.replays, "replay"),
        found.at.as_secs_f64()
    );
    if let Some(file) = file {
        let _ = writeln!(text, "     {}\n     {}", terminal(file), terminal(reproduce));
    }
    text
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Moves × states: how often each move was made in each state; then which state followed which, and what was never done.
pub fn coverage(coverage: &Coverage, never: &[(String, String)]) -> String {
    let mut text = table(&results::table(coverage), "move");
    text.push('\n');
    for ((from, to), count) in coverage.transitions() {
        let _ = writeln!(text, "{} \u{2192} {}: {count}", terminal(from), terminal(to));
    }
    if !never.is_empty() {
        let never: Vec<String> =
            never.iter().map(|(state, act)| format!("{} ({})", terminal(act), terminal(state))).collect();
        let _ = writeln!(text, "never done: {}", never.join(", "));
    }
    text
}

/// The end of an exploration.
pub fn summary(report: &ExploreReport) -> String {
    let Progress { walks, moves, sent, time, .. } = &report.progress;
    let mut text = format!(
        "{} in {walks} walks, {moves} moves and {sent} messages, {:.1} s",
        counted(report.findings.len(), "finding"),
        time.as_secs_f64()
    );
    if report.unconfirmed > 0 {
        let _ = write!(text, "; {} that replays did not reproduce", counted(report.unconfirmed, "failure"));
    }
    match &report.ended {
        ExploreEnd::Done => {}
        ExploreEnd::Interrupted => text.push_str("; interrupted"),
        ExploreEnd::Shortage(shortage) => {
            let _ = write!(text, "; {shortage}: {}", shortage.advice());
        }
        ExploreEnd::Refusing(why) => {
            let _ = write!(text, "; the target no longer accepts connections: {}", terminal(why));
        }
    }
    text
}
