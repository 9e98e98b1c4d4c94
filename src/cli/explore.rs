//! `frameproof explore`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tokio::sync::watch;

use super::config::Jobs;
use super::fuzz::budget::Budget;
use super::reports::{self, Besides, Reports};
use super::runtime::Runtime;
use super::screen::Screen;
use super::signals::stop_on_signal;
use super::subject::{Found, Generator, Subject, check_folder, heading};
use super::{Failure, harness, runtime};
use crate::exit::{self, Exit};
use crate::explore::campaign::{self, ExploreEvent, ExploreOptions};
use crate::explore::finding::Finding;
use crate::explore::results::{self, exit_of};
use crate::report::explore as show;
use crate::run::testbed::Testbed;

/// How long an answer may take, before `--timeout-scale`: a scripted model answers at once.
pub(super) const DEADLINE: Duration = Duration::from_millis(1500);
/// Walks, without `--walks` and `--time`.
const WALKS: u64 = 100;
const GENERATOR: Generator = Generator {
    command: "explore",
    inputs: "conversations are made from the protocol's own data",
    run: "an exploration",
};

/// Explore a live server with long valid conversations.
#[derive(Debug, Args)]
#[command(after_long_help = exit::help(exit::Command::Explore))]
pub(super) struct Explore {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    extent: Extent,
    #[command(flatten)]
    outputs: Outputs,
}

/// How long to explore, and from which seed.
#[derive(Debug, Args)]
struct Extent {
    /// Stop after this many walks. Default: 100, unless --time is given.
    #[arg(long, value_name = "N")]
    walks: Option<std::num::NonZeroU64>,
    /// Start no walk after this time: `90s`, `10m`.
    #[arg(long, value_name = "TIME")]
    time: Option<Budget>,
    /// The largest number of moves of a walk.
    #[arg(long, value_name = "N", default_value = "25")]
    moves: std::num::NonZeroUsize,
    /// Seed of the random generator. Default: 1.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Stop after this many findings.
    #[arg(long, value_name = "N", default_value = "50")]
    max_findings: std::num::NonZeroUsize,
    /// Walks that run at the same time, each in sessions of its own. Default: 4, or the target's `sessions`.
    #[arg(long, short, value_name = "N")]
    jobs: Option<Jobs>,
}

/// Where the exploration is reported.
#[derive(Debug, Args)]
struct Outputs {
    /// Write findings to this folder, as scenarios. Default: reports/explore-NAME.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    #[command(flatten)]
    reports: Reports,
    /// Show the last line only.
    #[arg(long, short)]
    quiet: bool,
}

impl Explore {
    pub fn run(mut self) -> Result<Exit, Failure> {
        let found = self.subject.find(&GENERATOR)?;
        self.extent.seed = self.extent.seed.or(found.seed);
        check_folder("--save", self.outputs.save.as_deref())?;
        let name = format!("explore-{}", found.protocol.name);
        self.outputs.reports =
            std::mem::take(&mut self.outputs.reports).settle(&name, &Besides::default())?;
        let runtime = runtime()?;
        let stopped = stop_on_signal(&runtime, found.chosen.as_ref());
        let testbed = self.subject.open(&runtime, &found, self.seed(), &stopped, &self.outputs.reports)?;
        self.explore(&runtime, testbed, &found, stopped)
    }

    fn seed(&self) -> u64 {
        self.extent.seed.unwrap_or(1)
    }

    fn explore(
        &self,
        runtime: &Runtime,
        testbed: Testbed,
        found: &Found,
        stopped: watch::Receiver<bool>,
    ) -> Result<Exit, Failure> {
        let mut out = anstream::stdout();
        let started = testbed.started(0);
        if !self.outputs.quiet {
            writeln!(out, "{}", heading("Exploring", &started, self.seed()))?;
        }
        let default = || format!("reports/explore-{}", found.protocol.name).into();
        let folder = self.outputs.save.clone().unwrap_or_else(default);
        self.outputs.reports.check_links(&folder)?;
        let mut screen = Screen::new(self.outputs.quiet);
        let command = |file: &str| self.subject.command(file);
        let mut sink = |event: ExploreEvent<'_>| show_event(&mut screen, &event, &folder, command);
        let report =
            runtime.block_on(campaign::explore(testbed, self.options(found, &folder), &mut sink, stopped));
        screen.clear();
        let mut errors: Vec<String> = screen.failed.take().into_iter().collect();
        let scenario = |name: &str| self.subject.scenario(&folder, name);
        let events = results::events(started, &report, &scenario);
        errors.extend(self.outputs.reports.write_each(&events));
        if !self.outputs.quiet {
            writeln!(out, "\n{}", show::coverage(&report.coverage, &report.never))?;
        }
        writeln!(out, "{}", show::summary(&report))?;
        let exit = exit_of(&report);
        if exit == Exit::Nothing {
            let why = match report.progress.walks {
                0 => "use a larger --time",
                _ => "no walk came to its first move: frameproof doctor shows what is missing",
            };
            writeln!(anstream::stderr(), "note: nothing was explored; {why}")?;
        }
        let hint = "the exploration itself is over; its verdict is above";
        reports::failed(errors, |error| harness(error, hint)).map(|()| exit)
    }

    fn options(&self, found: &Found, folder: &Path) -> ExploreOptions {
        let walks = self.extent.walks.map(std::num::NonZeroU64::get);
        ExploreOptions {
            seed: self.seed(),
            walks: walks.or_else(|| self.extent.time.is_none().then_some(WALKS)),
            time: self.extent.time.map(|time| time.0),
            moves: self.extent.moves.get(),
            jobs: found.jobs(self.extent.jobs),
            deadline: DEADLINE,
            max_findings: self.extent.max_findings.get(),
            reproduce: self.subject.reproduce_from(folder),
        }
    }
}

/// Shows an event, and keeps findings in `folder`; `command` runs a file again.
pub(super) fn show_event(
    screen: &mut Screen,
    event: &ExploreEvent<'_>,
    folder: &Path,
    command: impl Fn(&str) -> String,
) {
    match event {
        ExploreEvent::Progress(progress) => screen.progress(|| show::progress(progress)),
        ExploreEvent::Finding(found, scenario) => {
            let kept = screen.kept(keep(found, scenario, folder));
            let run = kept.as_deref().map(command).unwrap_or_default();
            screen.finding(|| show::finding(found, kept.as_deref(), &run));
        }
        ExploreEvent::Note(note) => screen.note(note),
    }
}

/// Writes a finding to its file, and says which that is.
fn keep(found: &Finding, scenario: &str, folder: &Path) -> Result<String, String> {
    let path = folder.join(found.file_name());
    crate::output::replace(&path, scenario).map_err(|error| {
        format!("{} cannot be written: {}", path.display(), crate::shortage::describe(&error))
    })?;
    Ok(path.display().to_string())
}
