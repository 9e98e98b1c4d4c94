//! `frameproof fuzz`.

pub(super) mod budget;
mod replay;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use budget::Budget;
use clap::Args;
use replay::again;
use tokio::sync::watch;

use super::config::Jobs;
use super::reports::{self, Besides, Reports};
use super::runtime::Runtime;
use super::screen::Screen;
use super::signals::{stop, stop_on_signal};
use super::subject::{Found, Generator, Subject, check_folder, heading};
use super::{Failure, harness, runtime, usage};
use crate::exit::{self, Exit};
use crate::fuzz::campaign::{self, CampaignOptions};
use crate::fuzz::corpus;
use crate::fuzz::events::CampaignEvent;
use crate::fuzz::finding::Finding;
use crate::fuzz::program::Program;
use crate::fuzz::results::{self, Reported, exit_of};
use crate::protocol::Protocol;
use crate::report::{escape, fuzz as show};
use crate::run::testbed::Testbed;

/// How long an answer may take, before `--timeout-scale`: a scripted model answers at once.
const DEADLINE: Duration = Duration::from_millis(1500);
/// How long after `--time` what has failed by then may be confirmed and shrunk, before `--timeout-scale`.
const SLACK: Duration = Duration::from_secs(10);
/// The budget without `--time` and `--iterations`.
const BUDGET: Duration = Duration::from_secs(60);
const GENERATOR: Generator =
    Generator { command: "fuzz", inputs: "inputs are made from the protocol's schemas", run: "a campaign" };

/// How a finding is shown: with its file, and the columns of the terminal.
type Shown = fn(&Finding, Option<&str>, Option<usize>) -> String;

/// Fuzz a live server.
#[derive(Debug, Args)]
#[command(after_long_help = exit::help(exit::Command::Fuzz))]
pub(super) struct Fuzz {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    extent: Extent,
    #[command(flatten)]
    folders: Folders,
    #[command(flatten)]
    bounds: Bounds,
    #[command(flatten)]
    outputs: Outputs,
}

/// How long to fuzz, and from which seed.
#[derive(Debug, Args)]
struct Extent {
    /// Start no case after this time: `90s`, `10m`. Default: 60s, unless --iterations is given.
    ///
    /// What has failed by then is confirmed and minimized for 10 s more (times --timeout-scale, if that is above 1). Then
    /// the rest is abandoned, and a finding is kept as it is.
    #[arg(long, value_name = "TIME")]
    time: Option<Budget>,
    /// Stop after this many cases.
    #[arg(long, value_name = "N")]
    iterations: Option<std::num::NonZeroU64>,
    /// Seed of the random generator. Default: 1.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
}

/// What is read and written besides reports.
#[derive(Debug, Args)]
struct Folders {
    /// Keep inputs with new behaviour in this folder, and start from them the next time.
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Write findings to this folder, as scenarios. Default: reports/fuzz-NAME.
    #[arg(long, value_name = "DIR")]
    findings: Option<PathBuf>,
    /// Replay the findings of a folder and report which still fail.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["time", "iterations", "corpus", "findings"])]
    replay: Option<PathBuf>,
}

/// How much is done, and how much the target may grow.
#[derive(Debug, Args)]
struct Bounds {
    /// Stop after this many findings.
    #[arg(long, value_name = "N", default_value = "50")]
    max_findings: std::num::NonZeroUsize,
    /// Cases that run at the same time, each with connections of its own. Default: 4, or the target's `sessions`.
    #[arg(long, short, value_name = "N")]
    jobs: Option<Jobs>,
    /// How much the memory of a launched target may grow in the campaign, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    max_growth: u32,
}

/// Where the campaign is reported.
#[derive(Debug, Args)]
struct Outputs {
    #[command(flatten)]
    reports: Reports,
    /// Show the last line only.
    #[arg(long, short, conflicts_with = "verbose")]
    quiet: bool,
    /// Show the complete messages of a finding.
    #[arg(long, short)]
    verbose: bool,
}

impl Fuzz {
    pub fn run(mut self) -> Result<Exit, Failure> {
        let found = self.subject.find(&GENERATOR)?;
        self.extent.seed = self.extent.seed.or(found.seed);
        check_folder("--findings", self.folders.findings.as_deref())?;
        let name = format!("fuzz-{}", found.protocol.name);
        self.outputs.reports =
            std::mem::take(&mut self.outputs.reports).settle(&name, &Besides::default())?;
        let runtime = runtime()?;
        let stopped = stop_on_signal(&runtime, found.chosen.as_ref());
        let testbed = self.subject.open(&runtime, &found, self.seed(), &stopped, &self.outputs.reports)?;
        let Some(folder) = &self.folders.replay else {
            return self.campaign(&runtime, testbed, &found, stopped);
        };
        runtime.block_on(async {
            tokio::select! {
                exit = again(testbed, folder, DEADLINE * 3, self.seed()) => exit,
                () = stop(stopped) => Err(Failure::Interrupted),
            }
        })
    }

    fn seed(&self) -> u64 {
        self.extent.seed.unwrap_or(1)
    }

    fn campaign(
        &self,
        runtime: &Runtime,
        testbed: Testbed,
        found: &Found,
        stopped: watch::Receiver<bool>,
    ) -> Result<Exit, Failure> {
        let mut out = anstream::stdout();
        let corpus = self.stored_programs(testbed.protocol())?;
        let (started, is_launched) = (testbed.started(0), testbed.is_launched());
        if !self.outputs.quiet {
            writeln!(out, "{}", heading("Fuzzing", &started, self.seed()))?;
        }
        let default = || format!("reports/fuzz-{}", found.protocol.name).into();
        let folder = self.folders.findings.clone().unwrap_or_else(default);
        self.outputs.reports.check_links(&folder)?;
        let mut screen = Screen::new(self.outputs.quiet);
        let options = self.options(corpus, found, &folder);
        let mut sink = |event: CampaignEvent<'_>| self.event(&mut screen, &event, &folder);
        let report = runtime.block_on(campaign::campaign(testbed, options, &mut sink, stopped));
        screen.clear();
        let mut errors: Vec<String> = screen.failed.take().into_iter().collect();
        let exit = exit_of(&report);
        let scenario = |name: &str| self.subject.scenario(&folder, name);
        let events = results::events(started, &report, &Reported { is_launched, scenario: &scenario });
        errors.extend(self.outputs.reports.write_each(&events));
        if !self.outputs.quiet {
            writeln!(out, "\n{}", show::coverage(&results::table(&report), "command"))?;
        }
        writeln!(out, "{}", show::summary(&report))?;
        if let Some(what) = report.inconclusive().filter(|_| exit == Exit::Nothing) {
            let why = match &report.progress {
                progress if progress.cases == 0 => "no case was complete in time: use a larger --time",
                progress if progress.fuzzed < progress.cases.div_ceil(2) => {
                    "the opening fails: frameproof doctor shows what is missing"
                }
                _ => "the server does not answer the same way twice: frameproof run --repeat shows where",
            };
            writeln!(anstream::stderr(), "note: {what}; {why}")?;
        }
        let hint = "the campaign itself is over; its verdict is above";
        reports::failed(errors, |error| harness(error, hint)).map(|()| exit)
    }

    /// Shows an event, and keeps programs and findings.
    fn event(&self, screen: &mut Screen, event: &CampaignEvent<'_>, folder: &Path) {
        let width = super::width().filter(|_| !self.outputs.verbose);
        let mut found = |found: &Finding, scenario: &str, show: Shown| {
            let kept = screen.kept(found.write(folder, scenario)).map(|path| path.display().to_string());
            screen.finding(|| show(found, kept.as_deref(), width));
        };
        match event {
            CampaignEvent::Finding(finding, scenario) => found(finding, scenario, show::finding),
            CampaignEvent::Joined(finding, scenario) => found(finding, scenario, show::joined),
            CampaignEvent::Progress(progress) => screen.progress(|| show::progress(progress)),
            CampaignEvent::Novel(program) => {
                let folder = self.folders.corpus.as_deref();
                screen.kept(folder.map_or(Ok(()), |folder| corpus::store(folder, program)));
            }
            CampaignEvent::Note(note) => screen.note(note),
        }
    }

    /// The programs of the corpus. What cannot be read is named and left out.
    fn stored_programs(&self, protocol: &Protocol) -> Result<Vec<Program>, Failure> {
        let corpus = self.folders.corpus.as_deref().map(|folder| corpus::load(folder, protocol)).transpose();
        let (corpus, skipped) =
            corpus.map_err(|error| usage(error, "check the path and its permissions"))?.unwrap_or_default();
        if let Some(folder) = &self.folders.corpus {
            self.outputs.reports.check_links(folder)?;
            // Rather now than after the campaign.
            let made = std::fs::create_dir_all(folder);
            made.map_err(|error| {
                let message = format!("{} cannot be written: {error}", folder.display());
                usage(message, "--corpus takes a folder")
            })?;
        }
        for entry in skipped {
            writeln!(anstream::stderr(), "warning: skipped {}", escape::terminal(&entry))?;
        }
        Ok(corpus)
    }

    fn options(&self, corpus: Vec<Program>, found: &Found, folder: &Path) -> CampaignOptions {
        CampaignOptions {
            seed: self.seed(),
            iterations: self.extent.iterations.map(std::num::NonZeroU64::get),
            time: match (self.extent.time, self.extent.iterations) {
                (Some(time), _) => Some(time.0),
                (None, Some(_)) => None,
                (None, None) => Some(BUDGET),
            },
            slack: SLACK
                .mul_f64(self.subject.server.timeout_scale.map_or(1.0, |scale| scale.0).clamp(1.0, 1000.0)),
            jobs: found.jobs(self.bounds.jobs),
            max_growth: u64::from(self.bounds.max_growth) << 20,
            deadline: DEADLINE,
            corpus,
            max_findings: self.bounds.max_findings.get(),
            reproduce: self.subject.reproduce_from(folder),
        }
    }
}
