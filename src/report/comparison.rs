//! Two runs compared, for a person.

use std::io::{Result, Write};

use anstyle::{AnsiColor, Style};

use super::escape::terminal;
use crate::results::compare::{Comparison, Difference, Duration};
use crate::text::listed;

const DIM: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default().bold();
const GREEN: Style = AnsiColor::Green.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// Names shown of a list that says no more.
const NAMED: usize = 20;
/// Reasons shown of a case.
const REASONS: usize = 3;
/// Cases shown that take longer, or less time.
const DURATIONS: usize = 10;

/// Writes it; `quiet`: the closing line only.
///
/// # Errors
/// The output cannot be written.
pub fn show(found: &Comparison, quiet: bool, out: &mut impl Write) -> Result<()> {
    if !quiet {
        cases(out, RED, "newly failing", &found.failing)?;
        cases(out, YELLOW, "newly warned", &found.warned)?;
        cases(out, YELLOW, "flaky", &found.flaky)?;
        cases(out, YELLOW, "fails for another reason", &found.changed)?;
        cases(out, GREEN, "fixed", &found.fixed)?;
        names(out, YELLOW, "no longer judged", &found.gone)?;
        names(out, DIM, "new, and passed", &found.new)?;
        names(out, YELLOW, "requirements no longer exercised", &found.lost)?;
        names(out, GREEN, "requirements newly exercised", &found.gained)?;
        durations(out, "at least twice as slow", &found.pace.slower)?;
        durations(out, "at least twice as fast", &found.pace.faster)?;
    }
    let (style, word) = match (found.is_worse(), found.is_same()) {
        (true, _) => (RED, "worse"),
        (false, true) => (GREEN, "the same"),
        (false, false) => (GREEN, "not worse"),
    };
    let counts = [
        (found.failing.len(), "newly failing"),
        (found.warned.len(), "newly warned"),
        (found.flaky.len(), "flaky"),
        (found.changed.len(), "changed"),
        (found.fixed.len(), "fixed"),
        (found.gone.len(), "no longer judged"),
        (found.new.len(), "new"),
        (found.lost.len(), "requirements lost"),
        (found.gained.len(), "requirements gained"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    let (before, after) = found.seconds;
    writeln!(
        out,
        "{style}{word}{style:#}{counts}; {} {} in both, {before:.2} s before, {after:.2} s after",
        found.common,
        if found.common == 1 { "case" } else { "cases" }
    )
}

fn cases(out: &mut impl Write, style: Style, title: &str, list: &[Difference]) -> Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    writeln!(out, "{style}{title}{style:#} ({})", list.len())?;
    for difference in list {
        writeln!(out, "  {}", terminal(&difference.case))?;
        let (before, after) = &difference.reasons;
        for (sign, reasons) in [("-", before), ("+", after)] {
            for reason in reasons.iter().take(REASONS) {
                writeln!(out, "    {DIM}{sign}{DIM:#} {}", terminal(reason))?;
            }
            if reasons.len() > REASONS {
                writeln!(out, "    {DIM}{sign} and {} more{DIM:#}", reasons.len() - REASONS)?;
            }
        }
    }
    writeln!(out)
}

fn names(out: &mut impl Write, style: Style, title: &str, list: &[String]) -> Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    let shown = listed(list.iter().map(|name| terminal(name)), NAMED);
    writeln!(out, "{style}{title}{style:#} ({}): {shown}\n", list.len())
}

fn durations(out: &mut impl Write, title: &str, list: &[Duration]) -> Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    writeln!(out, "{DIM}{title}{DIM:#} ({})", list.len())?;
    for one in list.iter().take(DURATIONS) {
        let (before, after) = one.seconds;
        writeln!(out, "  {} {DIM}{before:.2} s, now {after:.2} s{DIM:#}", terminal(&one.case))?;
    }
    writeln!(out)
}
