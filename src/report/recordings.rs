//! Two recordings compared, for a person.

use std::io::{Result, Write};

use anstyle::{AnsiColor, Style};

use super::clip;
use super::diff::{hunks, lines};
use super::escape::terminal;
use crate::recording::compare::{CaseComparison, ClientComparison, Comparison, Counts, Difference, Row};
use crate::recording::entry::Entry;
use crate::text::listed;

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const RED: Style = AnsiColor::Red.on_default().bold();
const GREEN: Style = AnsiColor::Green.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// Lines shown of a message that has changed, around each change, and characters of each.
const LINES: usize = 40;
const AROUND: usize = 2;
const LINE: usize = 160;
/// Rows that follow each other and are in one recording only which are shown of many.
const ONE_SIDED: usize = 3;
const MANY: usize = 6;
/// Answers shown that come later.
const SLOWER: usize = 10;
/// Names shown of a list.
const NAMED: usize = 20;

/// Writes it, with at most `most` differences; `quiet`: the closing line only.
///
/// # Errors
/// The output cannot be written.
pub fn show(found: &Comparison, quiet: bool, most: usize, out: &mut impl Write) -> Result<()> {
    if !quiet {
        let mut left = most;
        for case in &found.cases {
            self::case(case, &mut left, out)?;
        }
        let Counts { gone, new, moved, changed, .. } = found.counts();
        if left == 0 && gone + new + moved + changed > most {
            writeln!(out, "… and more differences: --show N shows more than {most}\n")?;
        }
        slower(found, out)?;
        broken(out, RED, "breaks now", &found.broken.1)?;
        broken(out, GREEN, "breaks no longer", &found.broken.0)?;
    }
    let (style, word) = if found.differs() { (RED, "different") } else { (GREEN, "the same") };
    writeln!(out, "{style}{word}{style:#}: {}", summary(found))
}

/// How much differs, in a line.
pub(super) fn summary(found: &Comparison) -> String {
    let Counts { same, gone, new, moved, changed } = found.counts();
    let parts = [
        (changed, "changed"),
        (gone, "only in the first"),
        (new, "only in the second"),
        (moved, "at another place"),
        (same, "the same"),
        (found.matched, "ids matched"),
        (found.ambient as usize, "not compared"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let (before, after) = found.seconds;
    format!("{}; {before:.2} s before, {after:.2} s after", parts.collect::<Vec<_>>().join(", "))
}

fn case(case: &CaseComparison, left: &mut usize, out: &mut impl Write) -> Result<()> {
    for client in case.clients.iter().filter(|client| client.rows.iter().any(|row| row.difference.is_some()))
    {
        if *left == 0 {
            return Ok(());
        }
        let name = clip::name(&client.client, 60);
        match &case.case {
            Some(case) => writeln!(out, "{BOLD}{}{BOLD:#}, client {}", terminal(case), terminal(&name))?,
            None => writeln!(out, "{BOLD}client {}{BOLD:#}", terminal(&name))?,
        }
        rows(client, left, out)?;
        writeln!(out)?;
    }
    Ok(())
}

fn rows(client: &ClientComparison, left: &mut usize, out: &mut impl Write) -> Result<()> {
    let alike = |one: &Row, other: &Row| match (&one.difference, &other.difference) {
        (None, None) => true,
        (Some(one), Some(other)) => one == other && matches!(one, Difference::Gone | Difference::New),
        _ => false,
    };
    for rows in client.rows.chunk_by(alike) {
        let [first, ..] = rows else { continue };
        let shown = match &first.difference {
            None => 0,
            Some(_) if *left == 0 => return Ok(()),
            Some(_) if rows.len() > MANY => ONE_SIDED,
            Some(_) => rows.len(),
        };
        for row in rows.iter().take(shown) {
            self::row(row, out)?;
            // What has moved is told at both of its places, and counted at one.
            let is_counted = !matches!(row.difference, Some(Difference::Moved(_))) || row.before.is_some();
            *left = left.saturating_sub(usize::from(is_counted));
        }
        let more = rows.len() - shown;
        match &first.difference {
            None => writeln!(out, "    {DIM}… {more} the same{DIM:#}")?,
            Some(Difference::Gone) if more > 0 => {
                writeln!(out, "    {DIM}… {more} more only in the first{DIM:#}")?
            }
            Some(_) if more > 0 => writeln!(out, "    {DIM}… {more} more only in the second{DIM:#}")?,
            Some(_) => {}
        }
    }
    Ok(())
}

fn row(row: &Row, out: &mut impl Write) -> Result<()> {
    match (&row.difference, &row.before, &row.after) {
        (Some(Difference::Gone), Some(said), _) => {
            writeln!(out, "  {RED}-{RED:#} {}  {DIM}only in the first: {}{DIM:#}", head(said), body(said))
        }
        (Some(Difference::New), _, Some(said)) => {
            writeln!(
                out,
                "  {GREEN}+{GREEN:#} {}  {DIM}only in the second: {}{DIM:#}",
                head(said),
                body(said)
            )
        }
        (Some(Difference::Moved(at)), Some(said), _) => {
            writeln!(out, "  {YELLOW}<{YELLOW:#} {}  {DIM}in the second at {}{DIM:#}", head(said), ms(*at))
        }
        (Some(Difference::Moved(at)), _, Some(said)) => {
            writeln!(out, "  {YELLOW}>{YELLOW:#} {}  {DIM}in the first at {}{DIM:#}", head(said), ms(*at))
        }
        (Some(Difference::Changed(translated)), Some(before), Some(after)) => {
            writeln!(
                out,
                "  {YELLOW}~{YELLOW:#} {}  {DIM}in the second at {}{DIM:#}",
                head(before),
                ms(after.at)
            )?;
            let shown = hunks(lines(&before.body, translated), AROUND);
            for (sign, line) in shown.iter().take(LINES) {
                let style = match sign {
                    '-' => RED,
                    '+' => GREEN,
                    _ => DIM,
                };
                writeln!(out, "      {style}{sign} {}{style:#}", terminal(&clip::clipped(line, LINE)))?;
            }
            let more = shown.len().saturating_sub(LINES);
            if more > 0 { writeln!(out, "      {DIM}… {more} more lines{DIM:#}") } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

/// When, which way, and what.
pub(super) fn head(said: &Entry) -> String {
    let pieces = if said.pieces > 1 { format!(" ({} pieces)", said.pieces) } else { String::new() };
    let text = format!("{:>11} {} {}{pieces}", ms(said.at), said.way, clip::name(&said.kind, 60));
    terminal(&text).into_owned()
}

fn body(said: &Entry) -> String {
    let text = said.body.as_str().map_or_else(|| said.body.to_string(), str::to_owned);
    terminal(&clip::clipped(&text, LINE)).into_owned()
}

pub(super) fn ms(at: std::time::Duration) -> String {
    format!("{:.1} ms", at.as_secs_f64() * 1e3)
}

fn slower(found: &Comparison, out: &mut impl Write) -> Result<()> {
    let all = found.cases.iter().flat_map(|case| case.slower.iter().map(move |slower| (&case.case, slower)));
    let all: Vec<_> = all.collect();
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "{DIM}at least twice as slow{DIM:#} ({})", all.len())?;
    for (case, one) in all.into_iter().take(SLOWER) {
        let case = case.as_ref().map(|case| format!("{case}, ")).unwrap_or_default();
        let what = format!("{case}client {}: {}", one.client, clip::name(&one.kind, 60));
        let (before, after) = one.took;
        writeln!(
            out,
            "  {} {DIM}{} after what came before it, now {}{DIM:#}",
            terminal(&what),
            ms(before),
            ms(after)
        )?;
    }
    writeln!(out)
}

fn broken(out: &mut impl Write, style: Style, title: &str, ids: &[String]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let shown = listed(ids.iter().map(|id| terminal(id)), NAMED);
    writeln!(out, "{style}{title}{style:#} ({}): {shown}\n", ids.len())
}
