//! `frameproof doctor`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::cannot::cannot_run;
use super::config::Config;
use super::config_check::Files;
use super::run::known;
use super::server::trust;
use super::signals::stop_on_signal;
use super::source::{Filter, Source};
use super::target::{Chosen, TargetChoice};
use super::{Failure, header, runtime, usage, width};
use crate::doctor::{StepFinding, StepState, doctor};
use crate::exit::{self, Exit};
use crate::report::clip;
use crate::report::console::wrapped;
use crate::report::escape::terminal;
use crate::results::baseline::Baseline;
use crate::run::{RunOptions, Target, Timing, Transport};

/// Frames and lines of output shown as evidence.
const SHOWN: usize = 12;
/// Characters shown of each.
const WIDTH: usize = 160;
/// Column at which a step's text begins.
const TEXT: usize = 40;

/// Check a server step by step and report what is missing: the first thing to run against a server of your own.
///
/// It stops at the first thing that is missing. What the baseline lists is reported as known, and does not stop it.
#[derive(Debug, Args)]
#[command(after_long_help = exit::help(exit::Command::Doctor))]
pub(super) struct Doctor {
    #[command(flatten)]
    source: Source,
    /// The server, `ws://…` or `wss://…`, or `env:VARIABLE`. Default: the target of the configuration, if it has exactly one.
    #[arg(long)]
    url: Option<String>,
    #[command(flatten)]
    choice: TargetChoice,
    /// A header of the upgrade request, as in `run`.
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
    /// A PEM file with certificate authorities to trust in addition to the usual ones, for `wss://`.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// A file of known failures, as in `run`. Default: the target's, or the configuration's.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Read this configuration instead of frameproof.toml of the working folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Also show the frames of good steps.
    #[arg(long, short)]
    verbose: bool,
}

impl Doctor {
    pub fn run(mut self) -> Result<Exit, Failure> {
        let config = Config::read(self.config.as_deref())?;
        if self.url.is_none()
            && self.choice.target.is_none()
            && (config.url.is_none() || config.target.len() == 1)
        {
            self.choice.pick(&config, &self.source)?;
        }
        let files = Files { baseline: self.baseline.as_deref(), ca_file: self.ca_file.as_deref() };
        let chosen = self.choice.read(&config, self.config.as_deref(), &self.source, files)?;
        if let Some(chosen) = &chosen {
            chosen.apply(&mut self.source, &mut Filter::default());
        }
        if self.source.name.is_none() && self.source.protocol.is_none() {
            (self.source.name, self.source.protocol) = (config.name.clone(), config.protocol.clone());
        }
        if self.source.overlay.is_empty() {
            self.source.overlay.clone_from(&config.overlay);
        }
        self.source.reading = self.source.reading.or(config.reading);
        self.source.dialect = self.source.dialect.take().or_else(|| config.dialect.clone());
        if self.header.is_empty() {
            self.header.clone_from(&config.header);
        }
        let mut suites = vec![super::source::Suite {
            protocol: self.source.protocol(&mut Filter::default())?,
            cases: Vec::new(),
        }];
        if let Some(chosen) = &chosen {
            chosen.tools(&mut suites)?;
        }
        let protocol = Arc::clone(&suites[0].protocol);
        let target = self.target(chosen.as_ref(), config.url.clone())?;
        let options = RunOptions {
            transport: Transport {
                trust: trust(self.ca_file.as_deref().or(config.ca_file.as_deref()))?,
                mutation: None,
            },
            timing: self.timing(chosen.as_ref(), &config),
            baseline: self.baseline(chosen.as_ref(), config.baseline.as_deref())?,
            prompts: chosen.as_ref().map(|chosen| chosen.prompts.clone()).unwrap_or_default(),
            ..RunOptions::default()
        };
        let runtime = runtime()?;
        let mut stopped = stop_on_signal(&runtime, chosen.as_ref());
        let mut out = anstream::stdout();
        let mut written = Ok(());
        let verbose = self.verbose;
        let (mut all, mut unknown) = (false, false);
        let mut sink = |finding: &StepFinding| {
            all |= finding.is_last();
            unknown |= finding.state == StepState::Unknown;
            if written.is_ok() {
                written = show(&mut out, finding, verbose);
            }
        };
        let result = runtime.block_on(async {
            tokio::select! {
                result = doctor(&protocol, &target, options, &mut sink) => Some(result),
                _ = stopped.wait_for(|stop| *stop) => None,
            }
        });
        written?;
        match result {
            None => Err(Failure::Interrupted),
            Some(Err(error)) => Err(cannot_run(&error, &target, chosen.as_ref())),
            Some(Ok(good)) => {
                let last = match good {
                    true if unknown => {
                        "Nothing that can be observed is missing: `frameproof run` tests the rest."
                    }
                    true => "Nothing is missing: `frameproof run` tests the rest.",
                    false if all => "Fix this and run the doctor again.",
                    false => "Fix this and run the doctor again: later steps were not tried.",
                };
                writeln!(out, "\n{last}")?;
                Ok(if good { Exit::Passed } else { Exit::Failed })
            }
        }
    }

    /// How long it is waited for: what the target says, or else the configuration.
    fn timing(&self, chosen: Option<&Chosen>, config: &Config) -> Timing {
        let own = chosen.map(|chosen| &chosen.config);
        let scale = own.and_then(|own| own.timeout_scale).or(config.timeout_scale.map(|scale| scale.0));
        let quiet = own.and_then(|own| own.quiet_period.map(|time| time.0));
        Timing {
            scale: scale.unwrap_or(1.0),
            quiet: quiet.or(config.quiet_period.map(|quiet| quiet.0)),
            no_deadline: self.choice.no_deadline,
            ..Timing::default()
        }
    }

    /// The known failures. Those of the configuration are for the server that it says itself.
    fn baseline(&self, chosen: Option<&Chosen>, own: Option<&Path>) -> Result<Option<Baseline>, Failure> {
        let own = own.filter(|_| self.url.is_none() || chosen.is_some());
        let path = chosen.and_then(|chosen| chosen.config.baseline.as_deref()).or(own);
        known(self.baseline.as_deref().or(path))
    }

    fn target(&self, chosen: Option<&Chosen>, url: Option<String>) -> Result<Target, Failure> {
        if let Some(chosen) = chosen {
            return Ok(Target::Configured(Arc::clone(&chosen.spec)));
        }
        let headers = self.header.iter().map(|text| header::parse(text)).collect::<Result<Vec<_>, _>>()?;
        match self.url.clone().or(url) {
            Some(url) => Ok(Target::Url { url: header::of_environment("--url", &url)?, headers }),
            None => Err(usage("which server?", "--target NAME of frameproof.toml, or --url ws://…")),
        }
    }
}

fn show(out: &mut impl Write, finding: &StepFinding, verbose: bool) -> std::io::Result<()> {
    let word = match finding.state {
        StepState::Ok => "good   ",
        StepState::Problem => "MISSING",
        StepState::Unknown => "unknown",
        StepState::Known => "known  ",
    };
    let width = width();
    writeln!(out, "{word}  {:<30} {}", finding.step, wrapped(width, &finding.text, TEXT, TEXT))?;
    if !finding.advice.is_empty() {
        let advice = wrapped(width, &finding.advice, TEXT + 2, TEXT + 2);
        writeln!(out, "{:TEXT$}→ {advice}", "")?;
    }
    for line in &finding.also {
        writeln!(out, "{:TEXT$}also: {}", "", wrapped(width, line, TEXT + 6, TEXT + 6))?;
    }
    if finding.state == StepState::Ok && !verbose {
        return Ok(());
    }
    let from = finding.frames.len().saturating_sub(SHOWN);
    for line in &finding.frames[from..] {
        let text = cut(&line.text);
        writeln!(out, "         {:>8.1} ms {} {} {text}", line.ms, terminal(&line.client), line.way)?;
    }
    for line in &finding.notes {
        writeln!(out, "         {}", cut(line))?;
    }
    let from = finding.log.len().saturating_sub(SHOWN);
    for line in &finding.log[from..] {
        let text = cut(&line.text);
        let when = if line.ms < 0.0 { "earlier".to_owned() } else { format!("{:.1} ms", line.ms) };
        writeln!(out, "         {when:>11} {} | {text}", terminal(&line.process))?;
    }
    out.flush()
}

/// A text as it may stand in a terminal, cut at [`WIDTH`].
fn cut(text: &str) -> String {
    clip::name(&terminal(text), WIDTH).into_owned()
}
