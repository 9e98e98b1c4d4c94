//! A failed case: what is wrong, what the document says, and the frames that show it.

use std::io::Write;

use anstyle::Style;
use serde_json::Value;

use super::{BOLD, CYAN, Console, DIM, GREEN, RED, look};
use crate::report::brief::{Before, Emphasis, Piece};
use crate::report::diff::{self, Comparison};
use crate::report::escape::terminal;
use crate::results::Check;
use crate::results::event::{CaseReport, Failure, FrameRecord, ShownFrame};

/// Frames shown of a failed case.
const FRAMES: usize = 12;
/// Lines that a frame gets which is shown whole.
const WHOLE: usize = 64;
/// Columns that a line gets however narrow the terminal is.
const NARROWEST: usize = 40;

impl<W: Write> Console<W> {
    /// What is wrong: each requirement's violation once, with how many more of it there are.
    pub(super) fn failures(&mut self, failures: &[Failure], case: &CaseReport) -> std::io::Result<()> {
        let like = |one: &Failure, other: &Failure| {
            !one.requirements.is_empty()
                && (&one.requirements, one.verdict) == (&other.requirements, other.verdict)
        };
        for (at, failure) in failures.iter().enumerate() {
            let is_told = failures[..at].iter().any(|told| like(told, failure));
            if is_told && self.options.verbosity < 1 {
                continue;
            }
            self.failure(failure, case)?;
            let others = failures[at + 1..].iter().filter(|other| like(failure, other));
            let more: u64 = others.map(|other| 1 + other.more).sum();
            if more > 0 && !is_told && self.options.verbosity < 1 {
                writeln!(self.out, "    {DIM}and {} in this case (-v){DIM:#}", more_of(more, failure))?;
            }
        }
        Ok(())
    }

    fn failure(&mut self, failure: &Failure, case: &CaseReport) -> std::io::Result<()> {
        let (style, _) = look(failure.verdict);
        let message = self.wrapped(&failure.message, 2, 4);
        writeln!(self.out, "  {style}{message}{style:#}")?;
        for id in &failure.requirements {
            self.requirement(id, failure)?;
        }
        if let Some(step) = &failure.step {
            let place = format!("{}:{}", step.file, step.line);
            let at = if failure.check == Check::Step { "at" } else { "while at" };
            let before = 7 + at.len() + place.chars().count();
            let source = self.clip(&step.source, before);
            writeln!(self.out, "    {DIM}{at} {}{DIM:#}  {source}", terminal(&place))?;
        }
        match (&failure.expected, &failure.actual) {
            (Some(expected), Some(actual)) => self.difference(failure, expected, actual),
            (Some(expected), None) => self.value("expected", expected),
            // A frame that is marked below need not stand here, too.
            (None, Some(actual)) if is_marked(actual, failure, case) => Ok(()),
            (None, Some(actual)) => self.value("came", actual),
            (None, None) => Ok(()),
        }
    }

    fn requirement(&mut self, id: &str, failure: &Failure) -> std::io::Result<()> {
        let text = self.started.as_ref().and_then(|started| started.requirements.get(id));
        let Some(text) = text.cloned() else {
            return writeln!(self.out, "    {CYAN}{}{CYAN:#}", terminal(id));
        };
        let (id, level) = (terminal(id), terminal(&text.level));
        let before = 6 + id.chars().count() + level.chars().count();
        let said = self.wrapped(&format!("{} ({})", text.text, text.source), before, 6);
        writeln!(self.out, "    {CYAN}{id}{CYAN:#} {level} {said}")?;
        if let Some(reading) = failure.reading(&text) {
            let reading = self.wrapped(reading, 14, 8);
            writeln!(self.out, "      {DIM}reading {reading}{DIM:#}")?;
        }
        Ok(())
    }

    fn value(&mut self, word: &str, value: &Value) -> std::io::Result<()> {
        let value = self.clip(&value.to_string(), 13);
        writeln!(self.out, "    {word:<8} {value}")
    }

    /// Expected against actual.
    fn difference(&mut self, failure: &Failure, expected: &Value, actual: &Value) -> std::io::Result<()> {
        let Comparison { lines, more, schema } = diff::compare(failure, expected, actual);
        writeln!(self.out, "    {RED}- expected{RED:#}  {GREEN}+ came{GREEN:#}")?;
        for (sign, line) in lines {
            let style = match sign {
                '-' => RED,
                '+' => GREEN,
                _ => DIM,
            };
            let line = self.clip(&line, 6);
            writeln!(self.out, "    {style}{sign} {line}{style:#}")?;
        }
        if more {
            writeln!(self.out, "    {DIM}  … other fields are not compared{DIM:#}")?;
        }
        match schema {
            Some(schema) => self.value("where", &schema),
            None => Ok(()),
        }
    }

    /// The last frames, and the ones that show the failure wherever they are.
    pub(super) fn wire(&mut self, case: &CaseReport, failures: &[Failure]) -> std::io::Result<()> {
        if case.wire.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "  {DIM}on the wire:{DIM:#}")?;
        let mut before = Before::default();
        for frame in case.last_frames(FRAMES, failures) {
            let ShownFrame { line, marked: mark, gap, .. } = frame;
            if gap {
                writeln!(self.out, "    {DIM}  …{DIM:#}")?;
            }
            if let Some(summary) = frame.summary() {
                writeln!(self.out, "    {DIM}  {summary}{DIM:#}")?;
                continue;
            }
            let (style, sign) = if mark { (RED, '>') } else { (DIM, ' ') };
            let shown_by = |failure: &&Failure| mark && failure.frames.contains(&line.index);
            let failures: Vec<&Failure> = failures.iter().filter(shown_by).collect();
            writeln!(
                self.out,
                "    {style}{sign}{style:#} {DIM}{:>8.1} ms{DIM:#} {:<8} {} {}",
                line.ms,
                terminal(&line.client),
                line.way,
                self.frame(line, &mut before, &failures, style)
            )?;
        }
        Ok(())
    }

    /// The first and the last lines that the server wrote while the case ran.
    pub(super) fn output(&mut self, case: &CaseReport) -> std::io::Result<()> {
        const FIRST: usize = 4;
        let skipped = case.log.len().saturating_sub(FRAMES + FIRST);
        if !case.log.is_empty() {
            writeln!(self.out, "  {DIM}output of the server at the time:{DIM:#}")?;
        }
        let before = if skipped > 0 { FIRST } else { 0 };
        for (index, line) in
            case.log.iter().enumerate().filter(|(at, _)| *at < before || *at >= before + skipped)
        {
            if index == before && skipped + case.log_omitted > 0 {
                writeln!(self.out, "    {DIM}  … {} more lines{DIM:#}", skipped + case.log_omitted)?;
            }
            let process = terminal(&line.process);
            let text = self.clip(&line.text, 21 + process.chars().count());
            writeln!(self.out, "      {DIM}{:>8.1} ms {process} |{DIM:#} {text}", line.ms)?;
        }
        Ok(())
    }

    /// A line of the wire log: in one line what matters of it, or whole with `-v`.
    fn frame<'c>(
        &self,
        line: &'c FrameRecord,
        before: &mut Before<'c>,
        failures: &[&Failure],
        style: Style,
    ) -> String {
        let columns = 22 + terminal(&line.client).chars().count().max(8);
        if self.options.verbosity > 0 {
            let more = if line.cut > 0 { format!("… (+{} bytes)", line.cut) } else { String::new() };
            return format!("{style}{}{style:#}", self.folded(&format!("{}{more}", line.text), columns));
        }
        let room = self.options.width.map(|width| width.saturating_sub(columns).max(NARROWEST));
        painted(&before.line(line, room, failures), style)
    }

    /// Text on as many lines as it takes behind so many columns, at most `WHOLE`; on one in a pipe.
    fn folded(&self, text: &str, before: usize) -> String {
        let shown = terminal(text);
        let Some(width) = self.options.width else { return shown.into_owned() };
        let room = width.saturating_sub(before).max(NARROWEST);
        let all: Vec<char> = shown.chars().collect();
        let mut lines: Vec<String> = all.chunks(room).take(WHOLE).map(|line| line.iter().collect()).collect();
        if all.len() > WHOLE * room
            && let Some(last) = lines.last_mut()
        {
            last.pop();
            last.push('…');
        }
        lines.join(&format!("\n{:before$}", ""))
    }

    fn wrapped(&self, text: &str, before: usize, indent: usize) -> String {
        wrapped(self.options.width, text, before, indent)
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

fn more_of(count: u64, failure: &Failure) -> String {
    let ids = failure.requirements.join(" ");
    format!("{count} more {} of {}", if count == 1 { "violation" } else { "violations" }, terminal(&ids))
}

/// A line with what matters in it: where nothing stands out, the line as a whole has this style.
pub(in crate::report) fn painted(pieces: &[Piece], style: Style) -> String {
    let violates = pieces.iter().any(|piece| piece.emphasis == Emphasis::Violating);
    let paint = |piece: &Piece| {
        let style = match piece.emphasis {
            Emphasis::Violating => RED,
            Emphasis::Changed => BOLD,
            Emphasis::Plain if violates => Style::new(),
            Emphasis::Plain => style,
        };
        format!("{style}{}{style:#}", piece.text)
    };
    pieces.iter().map(paint).collect()
}

/// Whether a value is a frame that the wire log shows as one of the failure.
fn is_marked(value: &Value, failure: &Failure, case: &CaseReport) -> bool {
    let mut marked = case.wire.iter().filter(|line| failure.frames.contains(&line.index) && line.cut == 0);
    marked.any(|line| serde_json::from_str::<Value>(&line.text).is_ok_and(|frame| frame == *value))
}

/// Words on lines that fit the terminal: the first behind so many columns, the others behind `indent`.
pub(crate) fn wrapped(width: Option<usize>, text: &str, before: usize, indent: usize) -> String {
    let text = terminal(text);
    let Some(width) = width else { return text.into_owned() };
    let width = width.max(NARROWEST + indent);
    let (mut out, mut column) = (String::new(), before);
    for word in text.split(' ') {
        let length = word.chars().count();
        if out.is_empty() {
            column += length;
        } else if column + 1 + length > width {
            out.push_str(&format!("\n{:indent$}", ""));
            column = indent + length;
        } else {
            out.push(' ');
            column += 1 + length;
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::console::ConsoleOptions;
    use crate::results::event::{RunEvent, Verdict};

    fn console(width: Option<usize>) -> Console<Vec<u8>> {
        Console::new(Vec::new(), ConsoleOptions { progress: false, verbosity: 0, overview: false, width })
    }

    /// Reports come in the order in which cases began: one that is late holds others back, and the count goes on.
    #[test]
    fn progress_counts_cases_whose_reports_wait() {
        let mut console = console(None);
        console.options.progress = true;
        let started = serde_json::json!({
            "event": "run-started", "version": "1", "protocol": "p", "title": "p", "target": "t", "started": "", "seed": 1,
            "reading": "default", "cases": 100, "jobs": 4, "requirements": {},
        });
        console.event(&serde_json::from_value(started).expect("an event")).expect("shown");
        for attempt in [1, 1, 1, 1, 1, 1, 2] {
            let begun = RunEvent::CaseStarted { case: "a/b".to_owned(), attempt };
            console.event(&begun).expect("shown");
        }
        let shown = String::from_utf8(console.out).expect("text");
        assert!(shown.contains("2/100 cases, 0 failed") && !shown.contains("3/100"), "{shown}");
    }

    #[test]
    fn what_is_not_listed_counts() {
        let failure = |more: u64| {
            let mut failure =
                Failure::new(Check::Schema, Verdict::Failed, "wrong").breaking(&["A-1".to_owned()]);
            failure.more = more;
            failure
        };
        let mut console = console(None);
        console.failures(&[failure(0), failure(0), failure(980)], &CaseReport::default()).expect("shown");
        let shown = String::from_utf8(console.out).expect("text");
        assert!(shown.contains("and 982 more violations of A-1"), "{shown}");
    }

    #[test]
    fn lines_fit_the_terminal_and_are_whole_in_a_pipe() {
        let text = "word ".repeat(60);
        let frame = format!("{{\"t\":\"{}\"}}", "x".repeat(200));
        for width in [60, 80, 120] {
            let console = console(Some(width));
            assert_eq!(6 + console.clip(&frame, 6).chars().count(), width);
            let wrapped = format!("{:6}{}", "", console.wrapped(&text, 6, 4));
            assert!(wrapped.lines().all(|line| line.chars().count() <= width), "{wrapped}");
            let folded = console.folded(&frame, 30);
            assert!(folded.lines().skip(1).all(|line| line.starts_with(&" ".repeat(30))), "{folded}");
            let joined: String = folded.lines().map(str::trim_start).collect();
            assert_eq!(joined, frame);
            assert!(console.folded(&"y".repeat(1 << 20), 30).ends_with('…'));
        }
        let console = console(None);
        assert_eq!(console.clip(&frame, 6), frame);
        assert_eq!(console.folded(&frame, 30), frame);
        assert_eq!(console.wrapped(&text, 6, 4), text);
    }
}
