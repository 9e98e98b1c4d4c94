//! `frameproof run`.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio::sync::watch;

use super::config::Config;
use super::source::{Filter, Source, quote};
use super::{Failure, runtime, usage};
use crate::report::console::{Console, ConsoleOptions};
use crate::report::{file, json, junit};
use crate::run::baseline::{self, Baseline};
use crate::run::event::{CaseReport, RunEvent};
use crate::run::{self, Options, Target};

/// Run a protocol's suite.
#[derive(Debug, Args)]
pub(super) struct Run {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    filter: Filter,
    /// The server to test, `ws://…` or `wss://…`. Default: the built-in reference server.
    #[arg(long)]
    url: Option<String>,
    /// A header of the upgrade request, `Name: value`; `Name: env:VARIABLE` takes the value from the environment. May
    /// be repeated. Values are never shown.
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
    /// Show what would run, and run nothing.
    #[arg(long)]
    list: bool,
    /// Cases side by side.
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Factor on every deadline.
    #[arg(long, value_name = "FACTOR")]
    timeout_scale: Option<f64>,
    /// Stop after the first failed case, or after N.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", require_equals = true)]
    fail_fast: Option<usize>,
    /// Run a failed case up to N times more; one that passes then is flaky.
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Run everything N times.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Seed of everything random.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Treat warnings (a broken SHOULD or MAY) as failures.
    #[arg(long)]
    strict: bool,
    /// Known failures.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the failures of this run as a baseline.
    #[arg(long, value_name = "FILE")]
    baseline_write: Option<PathBuf>,
    /// Write every frame as NDJSON.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write JUnit XML. Default against the reference server: reports/NAME.junit.xml.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the run's events as JSON lines. Default against the reference server: reports/NAME.jsonl.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Test the reference server with one of its faults.
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    fault: Option<String>,
    /// Defaults for these options; read from frameproof.toml of the working folder if it is there.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Show the closing line only.
    #[arg(long, short)]
    quiet: bool,
    /// Show every case.
    #[arg(long, short, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl Run {
    pub fn run(mut self) -> Result<u8, Failure> {
        let config = Config::read(self.config.as_deref())?;
        self.apply(config);
        let protocol = self.source.protocol()?;
        let cases = self.filter.select(self.source.cases(&protocol)?)?;
        if self.list {
            return super::list::cases(&cases);
        }
        if self.url.is_none() {
            self.junit.get_or_insert_with(|| format!("reports/{}.junit.xml", protocol.name).into());
            self.json.get_or_insert_with(|| format!("reports/{}.jsonl", protocol.name).into());
        }
        let outputs = [&self.junit, &self.json, &self.trace, &self.baseline_write];
        for path in outputs.into_iter().flatten() {
            file::check_writable(path).map_err(usage)?;
        }
        let target = self.target()?;
        let options = self.options()?;
        let verbosity = if self.quiet { -1 } else { i8::try_from(self.verbose).unwrap_or(i8::MAX) };
        let progress = std::io::stdout().is_terminal();
        let mut console = Console::new(anstream::stdout(), ConsoleOptions { progress, verbosity });
        let mut events = Vec::new();
        let mut shown = Ok(());
        let mut sink = |event: &RunEvent| {
            if shown.is_ok() {
                shown = console.event(event);
            }
            events.push(event.clone());
        };
        let summary = runtime()?.block_on(async {
            let (stop, stopped) = watch::channel(false);
            tokio::spawn(stop_on_signal(stop));
            run::run(protocol, cases, target, options, &mut sink, stopped).await
        });
        let summary = summary.map_err(|error| Failure::Harness(format!("error: {error}")))?;
        self.write(&events)?;
        shown?;
        Ok(summary.exit_code)
    }

    fn apply(&mut self, config: Config) {
        self.url = self.url.take().or(config.url.filter(|_| self.fault.is_none()));
        if self.header.is_empty() {
            self.header = config.header;
        }
        self.jobs = self.jobs.or(config.jobs.and_then(|jobs| u16::try_from(jobs).ok()));
        self.timeout_scale = self.timeout_scale.or(config.timeout_scale);
        self.retries = self.retries.or(config.retries);
        self.strict |= config.strict.unwrap_or(false);
        self.source.reading = self.source.reading.take().or(config.reading);
        self.baseline = self.baseline.take().or(config.baseline);
        if self.source.overlay.is_empty() {
            self.source.overlay = config.overlay;
        }
        self.junit = self.junit.take().or(config.junit);
        self.json = self.json.take().or(config.json);
    }

    fn target(&self) -> Result<Target, Failure> {
        let Some(url) = &self.url else { return Ok(Target::Reference { fault: self.fault.clone() }) };
        let headers = self.header.iter().map(|header| parse_header(header)).collect::<Result<Vec<_>, _>>()?;
        let endpoint = crate::wire::Endpoint {
            url: url.clone(),
            headers: headers.clone(),
            max_message: 0,
            deadline: Duration::ZERO,
        };
        endpoint.check().map_err(usage)?;
        Ok(Target::Url { url: url.clone(), headers })
    }

    fn options(&self) -> Result<Options, Failure> {
        let scale = self.timeout_scale.unwrap_or(1.0);
        if !(0.001..=1000.0).contains(&scale) {
            return Err(usage(format!("--timeout-scale {scale}: a factor from 0.001 to 1000 is expected")));
        }
        let today = jiff::Timestamp::now().to_string()[..10].to_owned();
        let baseline = self.baseline.as_deref().map(|path| Baseline::load(path, &today)).transpose()?;
        let mut reproduce = format!("frameproof run{}", self.source.arguments());
        if let Some(url) = &self.url {
            reproduce += &format!(" --url {}", quote(url.split('?').next().unwrap_or_default()));
        }
        if let Some(fault) = &self.fault {
            reproduce += &format!(" --fault {fault}");
        }
        for header in &self.header {
            let name = header.split(':').next().unwrap_or_default();
            reproduce += &format!(" --header '{name}: …'");
        }
        reproduce += &format!(" --seed {}", self.seed);
        Ok(Options {
            jobs: usize::from(self.jobs.unwrap_or(8)),
            timeout_scale: scale,
            fail_fast: self.fail_fast,
            retries: self.retries.unwrap_or(0),
            repeat: self.repeat,
            seed: self.seed,
            strict: self.strict,
            baseline,
            trace: self.trace.clone(),
            reproduce,
            ..Options::default()
        })
    }

    fn write(&self, events: &[RunEvent]) -> Result<(), Failure> {
        let write = |path: &Option<PathBuf>, text: &dyn Fn() -> Result<String, String>| {
            let Some(path) = path else { return Ok(()) };
            text()
                .and_then(|text| file::write_atomically(path, &text))
                .map_err(|error| Failure::Harness(format!("error: {error}")))
        };
        write(&self.junit, &|| junit::render(events))?;
        write(&self.json, &|| Ok(events.iter().map(|event| json::line(event) + "\n").collect()))?;
        write(&self.baseline_write, &|| {
            let reports = events.iter().filter_map(|event| match event {
                RunEvent::CaseFinished(report) => Some((**report).clone()),
                _ => None,
            });
            Ok(baseline::write(&reports.collect::<Vec<CaseReport>>()))
        })
    }
}

/// `Name: value`, or `Name: env:VARIABLE`.
fn parse_header(header: &str) -> Result<(String, String), Failure> {
    let Some((name, value)) = header.split_once(':') else {
        return Err(usage(format!("--header {header:?}: write `Name: value` or `Name: env:VARIABLE`")));
    };
    let value = value.trim();
    let value = match value.strip_prefix("env:") {
        Some(variable) => std::env::var(variable)
            .map_err(|_| usage(format!("--header {name}: the environment variable {variable} is not set")))?,
        None => value.to_owned(),
    };
    Ok((name.trim().to_owned(), value))
}

/// Ctrl-C and SIGTERM end a run in order.
async fn stop_on_signal(stop: watch::Sender<bool>) {
    let mut terminate = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(_) => return,
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    // An error means that the run is over.
    let _ = stop.send(true);
    stop.closed().await;
}
