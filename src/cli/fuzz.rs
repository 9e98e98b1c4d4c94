//! `frameproof fuzz`.

pub(super) mod budget;
mod replay;
mod screen;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use budget::Budget;
use clap::Args;
use replay::again;
use screen::Screen;
use tokio::sync::watch;

use super::config::{Config, Jobs};
use super::places::Files;
use super::run::{cannot_run, trust, unwritable};
use super::server::Server;
use super::signals::{Handlers, stop_on_signal};
use super::source::{Filter, Source, Suite, quote};
use super::target::{Chosen, TargetChoice, config_argument};
use super::{Failure, harness, runtime, usage};
use crate::exit::{self, Exit};
use crate::fuzz::campaign::{self, CampaignOptions};
use crate::fuzz::corpus;
use crate::fuzz::events::{CampaignEvent, CampaignReport};
use crate::fuzz::program::Program;
use crate::fuzz::results::{self, Reported, exit_of};
use crate::protocol::Protocol;
use crate::report::{escape, file, fuzz as show, json, junit};
use crate::results::reproduce::Reproduce;
use crate::run::testbed::Testbed;
use crate::run::{Randomness, RunOptions, Timing};

/// How long an answer may take, before `--timeout-scale`: a scripted model answers at once.
const DEADLINE: Duration = Duration::from_millis(1500);
/// Cases side by side, unless it is said otherwise.
const JOBS: u16 = 4;
/// How long after `--time` what has failed by then may be confirmed and shrunk, before `--timeout-scale`.
const SLACK: Duration = Duration::from_secs(10);
/// The budget without `--time` and `--iterations`.
const BUDGET: Duration = Duration::from_secs(60);

/// Fuzz a live server.
#[derive(Debug, Args)]
#[command(after_long_help = exit::help(exit::Command::Fuzz))]
pub(super) struct Fuzz {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    choice: TargetChoice,
    /// Read this configuration instead of frameproof.toml of the working folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
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
    /// Write JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the campaign as JSON lines, like the events of a run.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show the last line only.
    #[arg(long, short)]
    quiet: bool,
}

impl Fuzz {
    pub fn run(mut self) -> Result<Exit, Failure> {
        if !self.source.scenario.is_empty() {
            return Err(usage(
                "--scenario does not go with fuzz",
                "inputs are made from the protocol's schemas",
            ));
        }
        let mut filter = Filter::default();
        let config = Config::read(self.config.as_deref())?;
        if self.choice.target.is_none() && !self.server.is_said(&config) {
            self.choice.pick(&config, &self.source)?;
        }
        let files = Files { baseline: None, ca_file: self.server.ca_file.as_deref() };
        let chosen = self.choice.read(&config, self.config.as_deref(), &self.source, files)?;
        self.apply(&config, chosen.as_ref(), &mut filter);
        let protocol = self.protocol(chosen.as_ref(), &mut filter)?;
        if let Some(word) = filter.globs.first() {
            return Err(usage(
                format!("`{word}`: a campaign takes no filter"),
                "name a protocol, or give --protocol",
            ));
        }
        if let Some(path) = self.folders.findings.iter().find(|path| path.exists() && !path.is_dir()) {
            let message = format!("{} is not a folder", path.display());
            return Err(usage(message, "--findings takes a folder: each finding is a file in it"));
        }
        for path in [&self.outputs.junit, &self.outputs.json].into_iter().flatten() {
            file::check_writable(path).map_err(unwritable)?;
        }
        let target = self.server.target(chosen.as_ref())?;
        let options = RunOptions {
            trust: trust(self.server.ca_file.as_deref())?,
            randomness: Randomness { seed: self.seed(), run_id: None },
            timing: Timing {
                scale: self.server.timeout_scale.map_or(1.0, |scale| scale.0),
                no_deadline: self.choice.no_deadline,
                quiet: self.server.quiet_period.map(|quiet| quiet.0),
                ..Timing::default()
            },
            reproduce: Reproduce::new(format!(" {}", self.reproduce()), String::new()),
            prompts: chosen.as_ref().map(|chosen| chosen.prompts.clone()).unwrap_or_default(),
            ..RunOptions::default()
        };
        let runtime = runtime()?;
        let testbed = runtime.block_on(Testbed::open(protocol.clone(), target.clone(), options));
        let testbed = testbed.map_err(|error| cannot_run(&error, &target, chosen.as_ref()))?;
        match self.folders.replay.clone() {
            Some(folder) => runtime.block_on(again(testbed, &folder, DEADLINE * 3, self.seed())),
            None => self.campaign(&runtime, testbed, &protocol.name, chosen.as_ref()),
        }
    }

    /// The protocol, with the target's own tools.
    fn protocol(&mut self, chosen: Option<&Chosen>, filter: &mut Filter) -> Result<Arc<Protocol>, Failure> {
        let mut suites = [Suite { protocol: self.source.protocol(filter)?, cases: Vec::new() }];
        if let Some(chosen) = chosen {
            chosen.tools(&mut suites)?;
        }
        let [Suite { protocol, .. }] = suites;
        Ok(protocol)
    }

    /// Fills in what the command line leaves open.
    fn apply(&mut self, config: &Config, chosen: Option<&Chosen>, filter: &mut Filter) {
        if let Some(chosen) = chosen {
            chosen.apply(&mut self.source, filter);
        }
        let same = config.fill(&mut self.source, filter);
        self.server.fill(config, chosen, same);
        // Scenarios are for `run`.
        self.source.scenario.clear();
        self.extent.seed = self.extent.seed.or(config.seed);
    }

    fn seed(&self) -> u64 {
        self.extent.seed.unwrap_or(1)
    }

    /// Protocol and target, as a command line has them.
    fn reproduce(&self) -> String {
        let mut text = self.source.arguments().trim().to_owned();
        text += &config_argument(self.config.as_deref());
        if let Some(target) = &self.choice.target {
            text += &format!(" --target {}", quote(target));
        }
        text += &(self.server.place() + &self.server.patience());
        text
    }

    fn campaign(
        self,
        runtime: &tokio::runtime::Runtime,
        testbed: Testbed,
        name: &str,
        chosen: Option<&Chosen>,
    ) -> Result<Exit, Failure> {
        let mut out = anstream::stdout();
        let corpus = self.stored_programs(testbed.protocol())?;
        let options = self.options(corpus, chosen);
        let (started, is_launched) = (testbed.started(0), testbed.is_launched());
        if !self.outputs.quiet {
            writeln!(
                out,
                "Fuzzing {} against {} (seed {})",
                escape::terminal(&started.title),
                escape::terminal(&started.target),
                self.seed()
            )?;
        }
        let folder = self.folders.findings.clone().unwrap_or_else(|| format!("reports/fuzz-{name}").into());
        let mut screen = Screen::new(self.outputs.quiet);
        let mut sink =
            |event: CampaignEvent<'_>| screen.event(&event, &folder, self.folders.corpus.as_deref());
        let (stop, stopped) = watch::channel(false);
        let handlers = runtime.block_on(async { Handlers::new() });
        runtime.spawn(stop_on_signal(handlers, stop, chosen.map(|chosen| Arc::clone(&chosen.spec.groups))));
        let report = runtime.block_on(campaign::campaign(testbed, options, &mut sink, stopped));
        screen.clear();
        if let Some(error) = screen.failed.take() {
            return Err(harness(error, "--findings and --corpus need folders that can be written"));
        }
        let exit = exit_of(&report);
        self.write(started, &report, is_launched, &folder)?;
        if !self.outputs.quiet {
            writeln!(out, "\n{}", show::coverage(&report.coverage))?;
        }
        writeln!(out, "{}", show::summary(&report))?;
        if exit == Exit::Nothing {
            writeln!(anstream::stderr(), "note: nothing was fuzzed; use a larger --time")?;
        }
        Ok(exit)
    }

    /// The programs of the corpus. What cannot be read is named and left out.
    fn stored_programs(&self, protocol: &Protocol) -> Result<Vec<Program>, Failure> {
        let corpus = self.folders.corpus.as_deref().map(|folder| corpus::load(folder, protocol)).transpose();
        let (corpus, skipped) =
            corpus.map_err(|error| usage(error, "check the path and its permissions"))?.unwrap_or_default();
        if let Some(folder) = &self.folders.corpus {
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

    fn options(&self, corpus: Vec<Program>, chosen: Option<&Chosen>) -> CampaignOptions {
        CampaignOptions {
            seed: self.seed(),
            iterations: self.extent.iterations.map(std::num::NonZeroU64::get),
            time: match (self.extent.time, self.extent.iterations) {
                (Some(time), _) => Some(time.0),
                (None, Some(_)) => None,
                (None, None) => Some(BUDGET),
            },
            slack: SLACK.mul_f64(self.server.timeout_scale.map_or(1.0, |scale| scale.0).clamp(1.0, 1000.0)),
            jobs: self.jobs(chosen),
            max_growth: u64::from(self.bounds.max_growth) << 20,
            deadline: DEADLINE,
            corpus,
            max_findings: self.bounds.max_findings.get(),
            reproduce: self.reproduce(),
        }
    }

    /// The server says how many cases it bears at once; less may be asked of it, not more.
    fn jobs(&self, chosen: Option<&Chosen>) -> usize {
        let most = chosen
            .and_then(|chosen| chosen.config.sessions)
            .map_or(usize::MAX, |most| usize::from(most.get()));
        usize::from(self.bounds.jobs.map_or(JOBS, |jobs| jobs.0)).min(most)
    }

    fn write(
        &self,
        started: crate::results::event::RunStarted,
        report: &CampaignReport,
        is_launched: bool,
        folder: &Path,
    ) -> Result<(), Failure> {
        let target = self.reproduce();
        let scenario = |name: &str| {
            let file = folder.join(name).display().to_string();
            let command = format!("frameproof run {target} --scenario {}", quote(&file));
            (file, command)
        };
        let events = results::events(started, report, &Reported { is_launched, scenario: &scenario });
        let write = |path: &Option<PathBuf>, text: Result<String, String>| match path {
            Some(path) => text
                .and_then(|text| file::write_atomically(path, &text))
                .map_err(|error| harness(error, "the campaign itself is over; its findings are above")),
            None => Ok(()),
        };
        write(&self.outputs.junit, junit::render(&events))?;
        write(&self.outputs.json, Ok(events.iter().map(|event| json::line(event) + "\n").collect()))
    }
}
