//! What a person sees.

mod case;

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indexmap::IndexSet;

pub(super) use case::painted;
pub(crate) use case::wrapped;

use super::escape::terminal;
use super::runs;
use super::table::Table;
use super::{cases, counts, often, verdict_of};
use crate::results::event::{CaseReport, RunEvent, RunStarted, Summary, Verdict};
use crate::text::{length_of_time, listed};

/// Cases named of a group that failed for the same reason.
const NAMED: usize = 6;

/// Reasons shown why cases are not applicable.
const REASONS: usize = 6;

/// How to show a run.
#[derive(Debug, Clone, Copy)]
pub struct ConsoleOptions {
    /// Show a line that counts the cases as they finish. For terminals.
    pub progress: bool,
    /// -1: the closing line only; 0: failures and summary; 1: every case; 2: passed cases' counts, too.
    pub verbosity: i8,
    /// Several runs: end with a table of them instead of a closing line each.
    pub overview: bool,
    /// Columns of the terminal, to which long lines are cut; `None` (a pipe): they are shown as far as the report has them.
    pub width: Option<usize>,
}

/// Shows the events of a run. Colours are written as ANSI sequences: give it a writer that strips them where they
/// are not wanted.
pub struct Console<W> {
    out: W,
    options: ConsoleOptions,
    started: Option<RunStarted>,
    done: usize,
    /// Cases that have begun: the reports of some are waiting for that of an earlier one.
    begun: usize,
    counts: BTreeMap<Verdict, usize>,
    /// Stories already told, by the case that told them first, with all cases that share it, each once.
    groups: Vec<(String, IndexSet<String>)>,
    /// Cases that say nothing about this server, by the reason.
    unjudged: Vec<(String, IndexSet<String>)>,
    progress_shown: bool,
    /// The runs that are done.
    runs: Vec<(RunStarted, Summary)>,
}

const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const RED: Style = AnsiColor::Red.on_default().bold();
const GREEN: Style = AnsiColor::Green.on_default().bold();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
pub(super) const CYAN: Style = AnsiColor::Cyan.on_default();

fn look(verdict: Verdict) -> (Style, &'static str) {
    match verdict {
        Verdict::Passed => (GREEN, "PASS"),
        Verdict::Flaky => (YELLOW, "FLAKY"),
        Verdict::Known => (YELLOW, "KNOWN"),
        Verdict::Warned => (YELLOW, "WARN"),
        Verdict::Failed => (RED, "FAIL"),
        Verdict::Error => (RED, "ERROR"),
        Verdict::NotApplicable => (DIM, "N/A"),
        Verdict::NotExercised => (DIM, "SKIP"),
    }
}

impl<W: Write> Console<W> {
    /// Shows on `out`.
    pub fn new(out: W, options: ConsoleOptions) -> Self {
        Self {
            out,
            options,
            started: None,
            done: 0,
            begun: 0,
            counts: BTreeMap::new(),
            groups: Vec::new(),
            unjudged: Vec::new(),
            progress_shown: false,
            runs: Vec::new(),
        }
    }

    /// Shows one event.
    ///
    /// # Errors
    /// The writer's; a broken pipe among them.
    pub fn event(&mut self, event: &RunEvent) -> std::io::Result<()> {
        match event {
            RunEvent::RunStarted(started) => self.run_started(started),
            RunEvent::CaseStarted { attempt, .. } => {
                self.begun += usize::from(*attempt == 1);
                self.show_progress()
            }
            RunEvent::CaseFinished(case) => self.case_finished(case),
            RunEvent::RunFinished(summary) => self.run_finished(summary),
        }
    }

    fn run_started(&mut self, started: &RunStarted) -> std::io::Result<()> {
        self.started = Some(started.clone());
        (self.done, self.begun, self.counts) = (0, 0, BTreeMap::new());
        (self.groups, self.unjudged) = (Vec::new(), Vec::new());
        if self.options.verbosity < 0 {
            return Ok(());
        }
        let run = started.run_id.as_ref().map(|id| format!(", run {id}")).unwrap_or_default();
        let limit = started.ends_within.and_then(|limit| Duration::try_from_secs_f64(limit).ok());
        let limit = limit.map(|limit| format!(", at most {}", length_of_time(limit))).unwrap_or_default();
        writeln!(
            self.out,
            "{BOLD}{}{BOLD:#} against {} {DIM}({}, {} at a time, seed {}{}, {} reading{limit}){DIM:#}",
            terminal(&started.title),
            terminal(&started.target),
            cases(started.cases),
            started.jobs,
            started.seed,
            terminal(&run),
            terminal(&started.reading)
        )
    }

    fn case_finished(&mut self, case: &CaseReport) -> std::io::Result<()> {
        self.done += 1;
        *self.counts.entry(case.verdict).or_default() += 1;
        if case.verdict.says_nothing() {
            let reason = case.reason.clone().unwrap_or_default();
            match self.unjudged.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, cases)) => drop(cases.insert(case.case.clone())),
                None => self.unjudged.push((reason, IndexSet::from([case.case.clone()]))),
            }
        }
        let notable = case.is_notable();
        if self.options.verbosity >= 1 || (notable && self.options.verbosity >= 0) {
            self.clear_progress()?;
            if notable {
                self.notable(case)?;
            } else {
                let (style, word) = look(case.verdict);
                let ms = case.seconds * 1e3;
                let runs =
                    if case.repeats > 0 { format!(", in {} runs", case.repeats + 1) } else { String::new() };
                let known = case.known.as_deref().map(|why| format!(" (known: {})", terminal(why)));
                let why = case.reason.as_deref().map(|why| format!(" ({})", terminal(why)));
                writeln!(
                    self.out,
                    "{style}{word:>5}{style:#} {DIM}{ms:>7.1} ms{DIM:#}  {}: {DIM}{}{}{runs}{DIM:#}",
                    terminal(&case.case),
                    terminal(&case.title),
                    known.or(why).unwrap_or_default()
                )?;
            }
        }
        self.show_progress()
    }

    fn show_progress(&mut self) -> std::io::Result<()> {
        if !self.options.progress || self.options.verbosity < 0 {
            return Ok(());
        }
        let all = self.started.as_ref().map_or(0, |started| started.cases);
        let failed = self.counts.get(&Verdict::Failed).copied().unwrap_or(0);
        let jobs = self.started.as_ref().map_or(1, |started| started.jobs);
        let done = self.begun.saturating_sub(jobs).max(self.done);
        write!(self.out, "\r\u{1b}[K{DIM}{done}/{all} cases, {failed} failed{DIM:#}")?;
        self.progress_shown = true;
        self.out.flush()
    }

    fn clear_progress(&mut self) -> std::io::Result<()> {
        if std::mem::take(&mut self.progress_shown) {
            write!(self.out, "\r\u{1b}[K")?;
        }
        Ok(())
    }

    /// A failed or warned case: in full the first time that its reason comes, by name afterwards.
    fn notable(&mut self, case: &CaseReport) -> std::io::Result<()> {
        // One root cause, however many cases it fails.
        let group = case.same_as.as_deref().unwrap_or(&case.case);
        let (style, word) = look(case.verdict);
        if let Some((_, cases)) = self.groups.iter_mut().find(|(known, _)| known == group) {
            cases.insert(terminal(&case.case).into_owned());
            if self.options.verbosity >= 1 {
                writeln!(
                    self.out,
                    "{style}{word:>5}{style:#} {} {DIM}(same reason as above){DIM:#}",
                    terminal(&case.case)
                )?;
            }
            return Ok(());
        }
        self.groups.push((group.to_owned(), IndexSet::from([terminal(&case.case).into_owned()])));
        let id = terminal(&case.case);
        let before = word.len() + id.chars().count() + 3;
        let title = case::wrapped(self.options.width, &case.title, before, 2);
        writeln!(self.out, "\n{style}{word}{style:#} {BOLD}{id}{BOLD:#}: {title}")?;
        if let Some(reason) = &case.reason {
            writeln!(self.out, "  {}", case::wrapped(self.options.width, reason, 2, 4))?;
        }
        let failures = case.decisive_failures();
        self.failures(&failures, case)?;
        self.wire(case, &failures)?;
        self.output(case)?;
        if let Some(explain) = case.explained_by() {
            let explain = terminal(&explain);
            writeln!(self.out, "  {DIM}the scenario is embedded:{DIM:#} {explain} {DIM}shows it{DIM:#}")?;
        }
        writeln!(self.out, "  {DIM}reproduce:{DIM:#} {}", terminal(&case.reproduce))
    }

    /// Why cases say nothing about this server: each reason once.
    fn unjudged(&mut self) -> std::io::Result<()> {
        // Cases end in another order each time.
        self.unjudged.iter_mut().for_each(|(_, cases)| cases.sort());
        self.unjudged.sort_by(|(_, one), (_, other)| one.iter().cmp(other));
        for (index, (reason, cases)) in self.unjudged.iter().enumerate() {
            if index == 0 {
                writeln!(self.out)?;
            }
            if index == REASONS {
                let more: usize = self.unjudged[REASONS..].iter().map(|(_, cases)| cases.len()).sum();
                return writeln!(self.out, "{DIM}not applicable:{DIM:#} and {more} more, with -v");
            }
            let line = format!("{}: {reason}", listed(cases.iter(), NAMED));
            let line = case::wrapped(self.options.width, &line, 16, 2);
            writeln!(self.out, "{DIM}not applicable:{DIM:#} {line}")?;
        }
        Ok(())
    }

    /// What the overlay excuses, so that nobody forgets it.
    fn excused(&mut self, summary: &Summary) -> std::io::Result<()> {
        if !summary.excused.is_empty() {
            writeln!(self.out, "\n{YELLOW}excused by the overlay:{YELLOW:#}")?;
        }
        let mut excused: Vec<_> = summary.excused.iter().collect();
        // They are found in another order each time.
        excused.sort_by(|one, other| {
            (&one.requirements, &one.message).cmp(&(&other.requirements, &other.message))
        });
        for one in excused {
            let ids =
                if one.requirements.is_empty() { String::new() } else { one.requirements.join(" ") + " " };
            writeln!(
                self.out,
                "  {CYAN}{}{CYAN:#}{} {DIM}({}, first in {}){DIM:#}",
                terminal(&ids),
                self.clip(&one.message, 2 + ids.len()),
                often(one.count),
                terminal(&one.place)
            )?;
        }
        Ok(())
    }

    fn run_finished(&mut self, summary: &Summary) -> std::io::Result<()> {
        self.clear_progress()?;
        if self.options.verbosity >= 0 {
            // Cases end in another order each time.
            self.groups.sort_by(|(_, one), (_, other)| one.first().cmp(&other.first()));
            for (_, cases) in &self.groups {
                let mut cases = cases.iter().map(String::as_str);
                let Some(first) = cases.next() else { continue };
                let mut others: Vec<&str> = cases.collect();
                if others.is_empty() {
                    continue;
                }
                others.sort_unstable();
                let most = if self.options.verbosity >= 1 { others.len() } else { NAMED };
                let more = others.len().saturating_sub(most);
                let more = if more > 0 { format!(" and {more} more, with -v") } else { String::new() };
                let named = others[..others.len().min(most)].join(", ");
                let head = format!("same reason as {first}:");
                let named = format!("{named}{more}");
                let named = case::wrapped(self.options.width, &named, head.chars().count() + 1, 2);
                writeln!(self.out, "\n{YELLOW}{head}{YELLOW:#} {named}")?;
            }
            self.unjudged()?;
            for message in &summary.stale_baseline {
                writeln!(self.out, "\n{RED}stale baseline entry{RED:#} {}", terminal(message))?;
            }
            self.excused(summary)?;
            for hint in &summary.hints {
                let hint = case::wrapped(self.options.width, hint, 6, 2);
                writeln!(self.out, "\n{YELLOW}hint:{YELLOW:#} {hint}")?;
            }
            self.requirements(summary)?;
        }
        if self.options.overview {
            self.runs.extend(self.started.clone().map(|started| (started, summary.clone())));
            return Ok(());
        }
        self.closing(summary)
    }

    /// Ends the output: of several runs, with a table.
    ///
    /// # Errors
    /// The writer's.
    pub fn finish(&mut self) -> std::io::Result<()> {
        if !self.options.overview {
            return Ok(());
        }
        let mut table = Table::new([
            "protocol",
            "cases",
            "requirements passed",
            "failed",
            "warned",
            "not exercised",
            "not applicable",
            "seconds",
        ]);
        for (started, summary) in &self.runs {
            let count =
                |wanted| summary.requirements.values().filter(|result| result.verdict == wanted).count();
            table.row([
                terminal(&started.protocol).into_owned(),
                summary.cases.values().sum::<usize>().to_string(),
                count(Verdict::Passed).to_string(),
                count(Verdict::Failed).to_string(),
                count(Verdict::Warned).to_string(),
                count(Verdict::NotExercised).to_string(),
                count(Verdict::NotApplicable).to_string(),
                format!("{:.2}", summary.seconds),
            ]);
        }
        if self.options.verbosity >= 0 {
            writeln!(self.out, "\n{}", table.text())?;
        }
        self.closing(&runs::sum(self.runs.iter().map(|(started, summary)| (started, summary))))
    }

    fn requirements(&mut self, summary: &Summary) -> std::io::Result<()> {
        let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
        for result in summary.requirements.values() {
            *counts.entry(result.verdict).or_default() += 1;
        }
        let count = |verdict| counts.get(&verdict).copied().unwrap_or(0);
        if !self.options.overview {
            let mut parts = vec![
                format!("{} passed", count(Verdict::Passed)),
                format!("{} failed", count(Verdict::Failed)),
                format!("{} warned", count(Verdict::Warned)),
                format!("{} not exercised", count(Verdict::NotExercised)),
            ];
            if count(Verdict::Known) > 0 {
                parts.push(format!("{} known to fail", count(Verdict::Known)));
            }
            if count(Verdict::NotApplicable) > 0 {
                parts.push(format!("{} not applicable", count(Verdict::NotApplicable)));
            }
            writeln!(self.out, "\n{BOLD}requirements{BOLD:#}  {}", parts.join(", "))?;
        }
        for (id, result) in &summary.requirements {
            let wanted = matches!(result.verdict, Verdict::Failed | Verdict::Warned | Verdict::Known)
                || (self.options.verbosity >= 2 && result.verdict == Verdict::NotExercised);
            if !wanted {
                continue;
            }
            let (style, word) = look(result.verdict);
            let text = self.started.as_ref().and_then(|started| started.requirements.get(id));
            let text = text.map(|text| text.text.as_str()).unwrap_or_default();
            let cases = match result.broken_in.len() {
                0 => String::new(),
                1 => "(1 case)".to_owned(),
                many => format!("({many} cases)"),
            };
            writeln!(
                self.out,
                "  {style}{word}{style:#} {CYAN}{}{CYAN:#} {}",
                terminal(id),
                case::wrapped(self.options.width, &format!("{text} {cases}"), 4 + word.len() + id.len(), 4)
            )?;
        }
        Ok(())
    }

    fn closing(&mut self, summary: &Summary) -> std::io::Result<()> {
        let style = if summary.exit_code == 0 { GREEN } else { RED };
        writeln!(self.out, "{style}{}{style:#}: {}", verdict_of(summary), counts(summary))?;
        self.out.flush()
    }
}
