//! `frameproof selftest`.

mod counts;
mod driver;
mod explore;
mod faults;
mod mutants;
mod own;
mod reporting;
mod steps;
mod styles;
mod triggers;
mod wire;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use self::own::{OwnServer, Tried};
use self::reporting::Reporting;
use super::config::Jobs;
use super::preambles::Preambles;
use super::source::{Filter, Source};
use super::{Failure, usage};
use crate::exit::Exit;
use crate::run::RunOptions;
use crate::shortage;

/// Test the suite itself: against every fault, faults at certain moments, mutated messages, or every legal style.
#[derive(Debug, Args)]
pub(super) struct Selftest {
    #[command(flatten)]
    source: Source,
    /// Only this fault. May be repeated.
    #[arg(long, value_name = "NAME", conflicts_with = "styles")]
    fault: Vec<String>,
    /// Run against the legal styles instead of the faults: nothing may fail.
    #[arg(long)]
    styles: bool,
    /// Only these styles, separated by commas. With `--triggers`, `--wire`, `--steps` and `--explore`: styles that the servers have in
    /// addition.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    style: Vec<String>,
    /// Also run against this many random combinations of styles.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "styles")]
    combinations: usize,
    /// Run against faults that occur only at certain moments; a survivor is a gap in the suite.
    #[arg(long, conflicts_with = "styles")]
    triggers: bool,
    /// Only this trigger; `serve NAME --list-triggers` shows them. May be repeated.
    #[arg(long, value_name = "NAME", requires = "triggers")]
    trigger: Vec<String>,
    /// Run against a correct server whose messages are mutated on the wire; a survivor is a gap in the suite.
    #[arg(long, conflicts_with_all = ["styles", "triggers", "fault"])]
    wire: bool,
    /// Remove each judging step from its case in turn: a step is dead if every fault and mutant is still found without it.
    #[arg(long, conflicts_with_all = ["styles", "triggers", "wire", "fault"])]
    steps: bool,
    /// Run long valid conversations (`--sample` of them) against the correct server: nothing may be found.
    #[arg(long, conflicts_with_all = ["styles", "triggers", "wire", "steps", "fault", "target", "url"])]
    explore: bool,
    /// Run nothing: show how many faults violate each MUST that a suite can exercise, where they are fewer than three.
    #[arg(long, conflicts_with_all = ["styles", "triggers", "wire", "steps", "explore", "fault", "target", "url"])]
    count: bool,
    /// With `--count`: add what a file of `--report` says of mutants of the wire and of triggers.
    #[arg(long, value_name = "FILE", requires = "count")]
    measured: Option<PathBuf>,
    /// Write what was found to this file, as JSON. What it says of other suites and of other parts (faults, `--triggers`, `--wire`,
    /// `--styles`, `--explore`) stays.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["steps", "count"])]
    report: Option<PathBuf>,
    /// Run nothing: print what a file of `--report` says, as Markdown.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["styles", "triggers", "wire", "steps", "explore", "count", "report", "target", "url"])]
    table: Option<PathBuf>,
    /// What is written to the report.
    #[arg(skip)]
    reporting: Reporting,
    /// With `--steps` and `--wire`: only these cases, as globs over `family/name`. May be repeated.
    #[arg(long, value_name = "GLOB")]
    case: Vec<String>,
    /// With `--steps`: only this many random cases.
    #[arg(long, value_name = "N", requires = "steps")]
    cases: Option<usize>,
    #[command(flatten)]
    preambles: Preambles,
    #[command(flatten)]
    own: OwnServer,
    /// With `--wire`: only mutants whose names match this glob, as they are printed. May be repeated.
    #[arg(long, value_name = "GLOB", requires = "wire")]
    mutant: Vec<String>,
    /// Only this many random pairs of fault and trigger, or mutants of messages. With `--steps`: so many faults, and so many mutants. With
    /// `--explore`: so many conversations, 100 without it.
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// The seed of the combinations or of the sample.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Show the cases that found each violated requirement, or what was reported against each style.
    #[arg(long, short)]
    verbose: bool,
    /// Cases that run at the same time.
    #[arg(long, short, value_name = "N", default_value = "16")]
    jobs: Jobs,
}

impl Selftest {
    pub fn run(mut self) -> Result<Exit, Failure> {
        let own = self.own_server()?;
        if !self.case.is_empty() && !self.steps && !self.wire {
            let hint = "faults and styles are about the whole suite: --wire or --steps";
            return Err(usage("--case needs --wire or --steps", hint));
        }
        let mut filter = Filter { case: self.case.clone(), ..Filter::default() };
        let mut suites = self.source.suites(&mut filter)?;
        self.preambles.add(&mut suites, &filter, self.seed, false)?;
        if let Some(Tried { chosen: Some(chosen), .. }) = &own {
            chosen.tools(&mut suites)?;
        }
        let suites = filter.select(suites)?;
        if let Some(file) = &self.table {
            return self.print_table(&suites, file);
        }
        if self.count {
            return self.count(&suites);
        }
        self.reporting = Reporting::begin(self.report.as_deref())?;
        let exit = if self.explore {
            self.exploration(&suites)
        } else if self.steps {
            self.steps(&suites, own)
        } else if self.styles {
            self.styles(&suites)
        } else if self.triggers {
            self.triggers(&suites)
        } else if self.wire {
            self.wire(&suites, own)
        } else if let Some((tried, chosen)) = own.as_ref().and_then(|own| Some((own, own.chosen.as_ref()?))) {
            self.mutants(&suites, tried, chosen)
        } else {
            self.faults(&suites)
        };
        // What was not run has found nothing.
        if shortage::seen().is_some() { Err(Failure::Shortage) } else { exit }
    }

    fn options(&self) -> RunOptions {
        let mut options = RunOptions { jobs: usize::from(self.jobs.0), ..RunOptions::default() };
        // A fault that strikes once would be gone the second time; a legal style has nothing to hide.
        options.attempts.again_if_late = self.styles;
        options
    }
}

/// How many servers were judged as they should be.
#[derive(Debug, Default)]
struct Tally {
    right: usize,
    total: usize,
}

impl Tally {
    fn add(&mut self, is_right: bool) {
        self.total += 1;
        self.right += usize::from(is_right);
    }

    /// Writes the closing line: so many of all `what`.
    fn close(&self, out: &mut impl Write, what: &str) -> std::io::Result<Exit> {
        let Self { right, total } = *self;
        writeln!(out, "{right} of {total} {what}")?;
        Ok(if right == total { Exit::Passed } else { Exit::Failed })
    }
}
