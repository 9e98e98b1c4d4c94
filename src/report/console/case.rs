//! A failed case: what is wrong, what the document says, and the frames that show it.

use std::io::Write;

use super::{CYAN, Console, DIM, GREEN, RED, look};
use crate::report::diff;
use crate::report::escape::terminal;
use crate::run::event::{CaseReport, Failure, WireLine};

/// Frames shown of a failed case.
const FRAMES: usize = 12;
/// Columns that a line gets however narrow the terminal is.
const NARROWEST: usize = 40;

impl<W: Write> Console<W> {
    pub(super) fn failure(&mut self, failure: &Failure) -> std::io::Result<()> {
        let (style, _) = look(failure.verdict);
        writeln!(self.out, "  {style}{}{style:#}", terminal(&failure.message))?;
        for id in &failure.requirements {
            let text = self.started.as_ref().and_then(|started| started.requirements.get(id));
            let Some(text) = text else {
                writeln!(self.out, "    {CYAN}{}{CYAN:#}", terminal(id))?;
                continue;
            };
            writeln!(
                self.out,
                "    {CYAN}{}{CYAN:#} {} {} {DIM}({}){DIM:#}",
                terminal(id),
                terminal(&text.level),
                terminal(&text.text),
                terminal(&text.source)
            )?;
            if let Some(reading) = &text.reading {
                writeln!(self.out, "      {DIM}reading {}{DIM:#}", terminal(reading))?;
            }
        }
        if let Some(step) = &failure.step {
            let place = format!("{}:{}", step.file, step.line);
            let at = if failure.check == "step" { "at" } else { "while at" };
            writeln!(self.out, "    {DIM}{at} {}{DIM:#}  {}", terminal(&place), terminal(&step.source))?;
        }
        match (&failure.expected, &failure.actual) {
            (Some(expected), Some(actual)) => {
                for (sign, line) in diff::lines(expected, actual) {
                    let style = match sign {
                        '-' => RED,
                        '+' => GREEN,
                        _ => DIM,
                    };
                    let line = self.clip(&line, 6);
                    writeln!(self.out, "    {style}{sign} {line}{style:#}")?;
                }
            }
            (Some(expected), None) => {
                let expected = self.clip(&expected.to_string(), 13);
                writeln!(self.out, "    expected {expected}")?;
            }
            (None, Some(actual)) => {
                let actual = self.clip(&actual.to_string(), 13);
                writeln!(self.out, "    came     {actual}")?;
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// The last frames, and the ones that show the failure wherever they are.
    pub(super) fn wire(&mut self, case: &CaseReport, failures: &[Failure]) -> std::io::Result<()> {
        if case.wire.is_empty() {
            return Ok(());
        }
        let marked: Vec<u64> = failures.iter().flat_map(|failure| failure.frames.clone()).collect();
        // Heartbeats and the like would push out what matters.
        let telling = || case.wire.iter().filter(|line| !line.ambient);
        let from = telling().nth_back(FRAMES - 1).map_or(0, |line| line.index);
        let shown: Vec<&WireLine> = case
            .wire
            .iter()
            .filter(|line| (line.index >= from && !line.ambient) || marked.contains(&line.index))
            .collect();
        writeln!(self.out, "  {DIM}on the wire:{DIM:#}")?;
        let mut next = None;
        for line in shown {
            if next.is_some_and(|next| next != line.index) || (next.is_none() && line.index > 0) {
                writeln!(self.out, "    {DIM}  …{DIM:#}")?;
            }
            next = Some(line.index + 1);
            let mark = marked.contains(&line.index);
            let (style, sign) = if mark { (RED, '>') } else { (DIM, ' ') };
            writeln!(
                self.out,
                "    {style}{sign}{style:#} {DIM}{:>8.1} ms{DIM:#} {:<8} {} {style}{}{style:#}",
                line.ms,
                terminal(&line.client),
                terminal(&line.dir),
                self.frame(line)
            )?;
        }
        Ok(())
    }

    /// The last lines that the server wrote while the case ran.
    pub(super) fn output(&mut self, case: &CaseReport) -> std::io::Result<()> {
        let skipped = case.log.len().saturating_sub(FRAMES);
        if !case.log.is_empty() {
            writeln!(self.out, "  {DIM}the server wrote meanwhile:{DIM:#}")?;
        }
        if skipped + case.log_omitted > 0 {
            writeln!(self.out, "    {DIM}  … {} more lines{DIM:#}", skipped + case.log_omitted)?;
        }
        for line in &case.log[skipped..] {
            let process = terminal(&line.process);
            let text = self.clip(&line.text, 21 + process.chars().count());
            writeln!(self.out, "      {DIM}{:>8.1} ms {process} |{DIM:#} {text}", line.ms)?;
        }
        Ok(())
    }

    /// The text of a line of the wire log, with a mark where the report holds no more of it.
    fn frame(&self, line: &WireLine) -> String {
        let text = self.clip(&line.text, 22 + terminal(&line.client).chars().count().max(8));
        match line.cut {
            0 => text,
            _ if text.ends_with('…') => text,
            cut => format!("{text}… (+{cut} bytes)"),
        }
    }

    /// Text as it is shown behind so many columns: cut at the edge of the terminal, whole in a pipe.
    pub(super) fn clip(&self, text: &str, before: usize) -> String {
        let text = terminal(text);
        let Some(width) = self.options.width else { return text.into_owned() };
        let room = width.saturating_sub(before).max(NARROWEST);
        if text.chars().count() <= room {
            return text.into_owned();
        }
        text.chars().take(room - 1).chain(['…']).collect()
    }
}
