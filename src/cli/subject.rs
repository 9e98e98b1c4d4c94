//! What a campaign of generated inputs is about: one protocol, and the server that it is tried against.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tokio::sync::watch;

use super::cannot::cannot_run;
use super::config::{Config, Jobs};
use super::config_check::Files;
use super::reports::{self, Reports};
use super::runtime::Runtime;
use super::server::{Server, trust};
use super::signals::stop;
use super::source::{Filter, Source, Suite, quote};
use super::target::{Chosen, TargetChoice, config_argument};
use super::{Failure, harness, usage};
use crate::protocol::Protocol;
use crate::report::escape;
use crate::results::event::RunStarted;
use crate::results::reproduce::Reproduce;
use crate::run::testbed::Testbed;
use crate::run::{Randomness, RunError, RunOptions, Timing, Transport};

/// Cases side by side, unless it is said otherwise.
const JOBS: u16 = 4;

/// The protocol and the server, as the command line says them.
#[derive(Debug, Args)]
pub(super) struct Subject {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    pub server: Server,
    #[command(flatten)]
    choice: TargetChoice,
    /// Read this configuration instead of frameproof.toml of the working folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// A command that makes its inputs up, in the words of its messages.
pub(super) struct Generator {
    /// The subcommand.
    pub command: &'static str,
    /// What it makes, and from what.
    pub inputs: &'static str,
    /// One of its runs, with an article.
    pub run: &'static str,
}

/// The protocol and the target that were found.
pub(super) struct Found {
    pub protocol: Arc<Protocol>,
    pub chosen: Option<Chosen>,
    /// The configuration's seed.
    pub seed: Option<u64>,
}

impl Subject {
    /// Reads the configuration, the target and the protocol, and fills in what the command line leaves open.
    pub fn find(&mut self, generator: &Generator) -> Result<Found, Failure> {
        if !self.source.scenario.is_empty() {
            return Err(usage(
                format!("--scenario does not go with {}", generator.command),
                generator.inputs,
            ));
        }
        let mut filter = Filter::default();
        let config = Config::read(self.config.as_deref())?;
        if self.choice.target.is_none() && !self.server.is_named(&config) {
            self.choice.pick(&config, &self.source)?;
        }
        let files = Files { baseline: None, ca_file: self.server.ca_file.as_deref() };
        let chosen = self.choice.read(&config, self.config.as_deref(), &self.source, files)?;
        self.apply(&config, chosen.as_ref(), &mut filter);
        let protocol = self.protocol(chosen.as_ref(), &mut filter)?;
        match filter.globs.first() {
            Some(word) => Err(usage(
                format!("`{word}`: {} takes no filter", generator.run),
                "name a protocol, or give --protocol",
            )),
            None => Ok(Found { protocol, chosen, seed: config.seed }),
        }
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

    /// Starts the server, or finds it there. Interrupted meanwhile, the reports are written all the same: they say that nothing was tried.
    pub fn open(
        &self,
        runtime: &Runtime,
        found: &Found,
        seed: u64,
        stopped: &watch::Receiver<bool>,
        reports: &Reports,
    ) -> Result<Testbed, Failure> {
        let target = self.server.target(found.chosen.as_ref())?;
        let options = RunOptions {
            transport: Transport { trust: trust(self.server.ca_file.as_deref())?, mutation: None },
            randomness: Randomness { seed, run_id: None },
            timing: Timing {
                scale: self.server.timeout_scale.map_or(1.0, |scale| scale.0),
                no_deadline: self.choice.no_deadline,
                quiet: self.server.quiet_period.map(|quiet| quiet.0),
                ..Timing::default()
            },
            reproduce: Reproduce::new(format!(" {}", self.reproduce()), String::new()),
            prompts: found.chosen.as_ref().map(|chosen| chosen.prompts.clone()).unwrap_or_default(),
            ..RunOptions::default()
        };
        let opened = runtime.block_on(async {
            tokio::select! {
                opened = Testbed::open(found.protocol.clone(), target.clone(), options) => opened,
                () = stop(stopped.clone()) => Err(RunError::Interrupted),
            }
        });
        if matches!(opened, Err(RunError::Interrupted)) {
            reports::failed(reports.write_each(&Vec::new()), |error| harness(error, ""))?;
        }
        opened.map_err(|error| cannot_run(&error, &target, found.chosen.as_ref()))
    }

    /// Protocol and target, as a command line has them.
    pub fn reproduce(&self) -> String {
        let mut text = self.source.arguments().trim().to_owned();
        text += &config_argument(self.config.as_deref());
        if let Some(target) = &self.choice.target {
            text += &format!(" --target {}", quote(target));
        }
        text += &(self.server.place() + &self.server.patience());
        text
    }

    /// The same, with the scenario up to the name of its file.
    pub fn reproduce_from(&self, folder: &Path) -> String {
        format!("{} --scenario {}/", self.reproduce(), quote(&folder.display().to_string()))
    }

    /// The command that runs a finding again.
    pub fn command(&self, finding: &str) -> String {
        format!("frameproof run {} --scenario {}", self.reproduce(), quote(finding))
    }

    /// The file of a finding, and the command that runs it again.
    pub fn scenario(&self, folder: &Path, name: &str) -> (String, String) {
        let file = folder.join(name).display().to_string();
        let command = self.command(&file);
        (file, command)
    }
}

impl Found {
    /// The server says how many cases it has at once; less may be asked of it, not more.
    pub fn jobs(&self, wanted: Option<Jobs>) -> usize {
        let most = self.chosen.as_ref().and_then(|chosen| chosen.config.sessions);
        let most = most.map_or(usize::MAX, |most| usize::from(most.get()));
        usize::from(wanted.map_or(JOBS, |jobs| jobs.0)).min(most)
    }
}

/// The line with which a campaign begins.
pub(super) fn heading(doing: &str, started: &RunStarted, seed: u64) -> String {
    let (title, target) = (escape::terminal(&started.title), escape::terminal(&started.target));
    format!("{doing} {title} against {target} (seed {seed})")
}

/// Refuses a place for findings that is no folder. `option`: which says it.
pub(super) fn check_folder(option: &str, path: Option<&Path>) -> Result<(), Failure> {
    match path.filter(|path| path.exists() && !path.is_dir()) {
        None => Ok(()),
        Some(path) => Err(usage(
            format!("{} is not a folder", path.display()),
            &format!("{option} takes a folder: each finding is a file in it"),
        )),
    }
}
