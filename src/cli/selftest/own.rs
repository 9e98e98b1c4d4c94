//! Self-tests against a user's own server.

use std::path::PathBuf;

use clap::Args;

use super::Selftest;
use crate::cli::cannot::cannot_run;
use crate::cli::config::{Config, Jobs};
use crate::cli::config_check::Files;
use crate::cli::server::{Server, trust};
use crate::cli::source::Filter;
use crate::cli::target::{Chosen, TargetChoice};
use crate::cli::{Failure, usage};
use crate::run::{RunError, RunOptions, Target, Timing, Transport};
use crate::selftest::subject::Subject;

/// A server of the user's that is taken for correct.
#[derive(Debug, Default, Args)]
pub(super) struct OwnServer {
    /// Run against a server of the configuration, `[target.NAME]`, and each of its `mutants`, which `--fault` can name. With `--wire` and
    /// `--steps`: in place of the reference server.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["url", "style", "styles", "triggers"])]
    target: Option<String>,
    /// With `--wire` and `--steps`: the server at this address, `ws://…`, in place of the reference server.
    #[arg(long, conflicts_with_all = ["style", "styles", "triggers"])]
    url: Option<String>,
    /// Read targets from this configuration instead of frameproof.toml of the working folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// With `--target`: how many mutants run at the same time, 1 without it. For a target whose port is chosen at each start (`ports`) and
    /// whose servers share no files.
    #[arg(long, value_name = "N", requires = "target", conflicts_with_all = ["wire", "steps"])]
    pub(super) servers: Option<Jobs>,
}

/// What is tried, and how.
pub(super) struct Tried {
    pub subject: Subject,
    pub options: RunOptions,
    pub chosen: Option<Chosen>,
}

impl Tried {
    /// Why it cannot be tried.
    pub fn cannot(&self, error: &RunError) -> Failure {
        let target = match &self.subject {
            Subject::Own(target) => target.clone(),
            Subject::Reference(_) => Target::Reference(crate::reference::Variant::default()),
        };
        cannot_run(error, &target, self.chosen.as_ref())
    }
}

impl Selftest {
    /// The reference server.
    pub(super) fn reference(&self) -> Tried {
        Tried { subject: Subject::Reference(self.style.clone()), options: self.options(), chosen: None }
    }

    /// The user's own server, if one is named. Fills in what its configuration says of protocol and scenarios.
    pub(super) fn own_server(&mut self) -> Result<Option<Tried>, Failure> {
        let is_named = self.own.target.is_some() || self.own.url.is_some();
        if !is_named {
            return Ok(None);
        }
        let is_relayed = self.wire || self.steps;
        if !is_relayed && self.own.url.is_some() {
            let hint = "a server at an address has neither faults nor mutants: --wire, --steps, or --target with `mutants`";
            return Err(usage("--url needs --wire or --steps", hint));
        }
        let file = self.own.config.clone();
        let config = Config::read(file.as_deref())?;
        let choice = TargetChoice { target: self.own.target.clone(), ..TargetChoice::default() };
        let chosen = choice.read(&config, file.as_deref(), &self.source, Files::default())?;
        let mut filter = Filter::default();
        if let Some(chosen) = &chosen {
            chosen.apply(&mut self.source, &mut filter);
        }
        let same = config.fill(&mut self.source, &mut filter);
        let mut server = Server::default();
        server.url.clone_from(&self.own.url);
        server.fill(&config, chosen.as_ref(), same);
        let target = server.target(chosen.as_ref())?;
        let url = match &target {
            Target::Url { url, .. } => url.clone(),
            Target::Configured(spec) => spec.url.clone(),
            Target::Reference(_) => String::new(),
        };
        if is_relayed && url.starts_with("wss:") {
            let hint = "messages are mutated between frameproof and the server, which TLS rules out: name its ws:// address";
            return Err(usage("a server behind TLS cannot be mutated", hint));
        }
        let sessions = chosen.as_ref().and_then(|chosen| chosen.config.sessions);
        let options = self.options();
        let options = RunOptions {
            jobs: sessions.map_or(options.jobs, |most| options.jobs.min(usize::from(most.get()))),
            timing: Timing {
                scale: server.timeout_scale.map_or(options.timing.scale, |scale| scale.0),
                quiet: server.quiet_period.map(|quiet| quiet.0),
                ..options.timing
            },
            transport: Transport { trust: trust(server.ca_file.as_deref())?, mutation: None },
            prompts: chosen.as_ref().map(|chosen| chosen.prompts.clone()).unwrap_or_default(),
            ..options
        };
        Ok(Some(Tried { subject: Subject::Own(target), options, chosen }))
    }
}
