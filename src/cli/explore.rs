//! `frameproof explore`.

mod screen;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use screen::Screen;
use tokio::sync::watch;

use super::config::{Config, Jobs};
use super::fuzz::budget::Budget;
use super::places::Files;
use super::run::{cannot_run, trust, unwritable};
use super::server::Server;
use super::signals::{Handlers, stop_on_signal};
use super::source::{Filter, Source, Suite, quote};
use super::target::{Chosen, TargetChoice, config_argument};
use super::{Failure, harness, runtime, usage};
use crate::exit::{self, Exit};
use crate::explore::campaign::{self, ExploreEvent, ExploreOptions, ExploreReport};
use crate::explore::results::{self, exit_of};
use crate::protocol::Protocol;
use crate::report::{escape, explore as show, file, json, junit};
use crate::results::event::RunStarted;
use crate::results::reproduce::Reproduce;
use crate::run::testbed::Testbed;
use crate::run::{Randomness, RunOptions, Timing};

/// How long an answer may take, before `--timeout-scale`: a scripted model answers at once.
const DEADLINE: Duration = Duration::from_millis(1500);
/// Walks side by side, unless it is said otherwise.
const JOBS: u16 = 4;
/// Walks, without `--walks` and `--time`.
const WALKS: u64 = 100;

/// Explore a live server with long valid conversations.
#[derive(Debug, Args)]
#[command(after_long_help = exit::help(exit::Command::Explore))]
pub(super) struct Explore {
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
    /// Most moves of a walk.
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
    /// Write JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the exploration as JSON lines, like the events of a run.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show the last line only.
    #[arg(long, short)]
    quiet: bool,
}

impl Explore {
    pub fn run(mut self) -> Result<Exit, Failure> {
        if !self.source.scenario.is_empty() {
            return Err(usage(
                "--scenario does not go with explore",
                "conversations are made from the protocol's own data",
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
                format!("`{word}`: an exploration takes no filter"),
                "name a protocol, or give --protocol",
            ));
        }
        self.check_outputs()?;
        let target = self.server.target(chosen.as_ref())?;
        let runtime = runtime()?;
        let options = self.run_options(chosen.as_ref())?;
        let testbed = runtime.block_on(Testbed::open(protocol.clone(), target.clone(), options));
        let testbed = testbed.map_err(|error| cannot_run(&error, &target, chosen.as_ref()))?;
        self.explore(&runtime, testbed, &protocol.name, chosen.as_ref())
    }

    fn check_outputs(&self) -> Result<(), Failure> {
        if let Some(path) = self.outputs.save.iter().find(|path| path.exists() && !path.is_dir()) {
            let message = format!("{} is not a folder", path.display());
            return Err(usage(message, "--save takes a folder: each finding is a file in it"));
        }
        for path in [&self.outputs.junit, &self.outputs.json].into_iter().flatten() {
            file::check_writable(path).map_err(unwritable)?;
        }
        Ok(())
    }

    fn run_options(&self, chosen: Option<&Chosen>) -> Result<RunOptions, Failure> {
        Ok(RunOptions {
            trust: trust(self.server.ca_file.as_deref())?,
            randomness: Randomness { seed: self.seed(), run_id: None },
            timing: Timing {
                scale: self.server.timeout_scale.map_or(1.0, |scale| scale.0),
                no_deadline: self.choice.no_deadline,
                quiet: self.server.quiet_period.map(|quiet| quiet.0),
                ..Timing::default()
            },
            reproduce: Reproduce::new(format!(" {}", self.reproduce()), String::new()),
            prompts: chosen.map(|chosen| chosen.prompts.clone()).unwrap_or_default(),
            ..RunOptions::default()
        })
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

    fn explore(
        self,
        runtime: &tokio::runtime::Runtime,
        testbed: Testbed,
        name: &str,
        chosen: Option<&Chosen>,
    ) -> Result<Exit, Failure> {
        let mut out = anstream::stdout();
        let started = testbed.started(0);
        if !self.outputs.quiet {
            writeln!(
                out,
                "Exploring {} against {} (seed {})",
                escape::terminal(&started.title),
                escape::terminal(&started.target),
                self.seed()
            )?;
        }
        let folder = self.outputs.save.clone().unwrap_or_else(|| format!("reports/explore-{name}").into());
        let mut screen = Screen::new(self.outputs.quiet, folder.clone(), self.reproduce());
        let mut sink = |event: ExploreEvent<'_>| screen.event(&event);
        let (stop, stopped) = watch::channel(false);
        let handlers = runtime.block_on(async { Handlers::new() });
        runtime.spawn(stop_on_signal(handlers, stop, chosen.map(|chosen| Arc::clone(&chosen.spec.groups))));
        let report = runtime.block_on(campaign::explore(testbed, self.options(chosen), &mut sink, stopped));
        screen.clear();
        if let Some(error) = screen.failed.take() {
            return Err(harness(error, "--save needs a folder that can be written"));
        }
        self.write(started, &report, &folder)?;
        if !self.outputs.quiet {
            writeln!(out, "\n{}", show::coverage(&report.coverage, &report.never))?;
        }
        writeln!(out, "{}", show::summary(&report))?;
        let exit = exit_of(&report);
        if exit == Exit::Nothing {
            writeln!(anstream::stderr(), "note: nothing was explored; use a larger --time")?;
        }
        Ok(exit)
    }

    fn options(&self, chosen: Option<&Chosen>) -> ExploreOptions {
        // The server says how many cases it bears at once; less may be asked of it, not more.
        let most = chosen.and_then(|chosen| chosen.config.sessions);
        let most = most.map_or(usize::MAX, |most| usize::from(most.get()));
        let walks = self.extent.walks.map(std::num::NonZeroU64::get);
        ExploreOptions {
            seed: self.seed(),
            walks: walks.or_else(|| self.extent.time.is_none().then_some(WALKS)),
            time: self.extent.time.map(|time| time.0),
            moves: self.extent.moves.get(),
            jobs: usize::from(self.extent.jobs.map_or(JOBS, |jobs| jobs.0)).min(most),
            deadline: DEADLINE,
            max_findings: self.extent.max_findings.get(),
            reproduce: self.reproduce(),
        }
    }

    fn write(&self, started: RunStarted, report: &ExploreReport, folder: &Path) -> Result<(), Failure> {
        let target = self.reproduce();
        let scenario = |name: &str| {
            let file = folder.join(name).display().to_string();
            let command = format!("frameproof run {target} --scenario {}", quote(&file));
            (file, command)
        };
        let events = results::events(started, report, &scenario);
        let write = |path: &Option<PathBuf>, text: Result<String, String>| match path {
            Some(path) => text
                .and_then(|text| file::write_atomically(path, &text))
                .map_err(|error| harness(error, "the exploration itself is over; its findings are above")),
            None => Ok(()),
        };
        write(&self.outputs.junit, junit::render(&events))?;
        write(&self.outputs.json, Ok(events.iter().map(|event| json::line(event) + "\n").collect()))
    }
}
