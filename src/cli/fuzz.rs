//! `frameproof fuzz`.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::sync::watch;

use super::config::{Config, Jobs};
use super::places::Files;
use super::run::{Handlers, cannot_run, stop_on_signal, trust, unwritable};
use super::server::Server;
use super::source::{Filter, Source, Suite, quote};
use super::target::{Chosen, TargetChoice};
use super::{Failure, harness, nothing, runtime, usage};
use crate::fuzz::campaign::{self, Ended, Event, Options, Report};
use crate::fuzz::corpus;
use crate::fuzz::finding::Finding;
use crate::fuzz::replay::{Fate, replay};
use crate::protocol::Protocol;
use crate::report::{escape, file, fuzz as show, json, junit};
use crate::run::testbed::Ground;
use crate::run::{RunOptions, Timing};

/// How long an answer may take, before `--timeout-scale`: a scripted model answers at once.
const DEADLINE: Duration = Duration::from_millis(1500);
/// Cases side by side, unless it is said otherwise.
const JOBS: u16 = 4;
/// How long after `--time` what has failed by then may be confirmed and shrunk, before `--timeout-scale`.
const SLACK: Duration = Duration::from_secs(10);
/// The budget without `--time` and `--iterations`.
const BUDGET: Duration = Duration::from_secs(60);

/// Fuzz a live server.
///
/// Exit codes: 0 nothing found; 1 a finding; 2 usage error; 3 target unreachable, or it stopped taking connections; 4 no case
/// was run, or --replay found none; 130 interrupted.
#[derive(Debug, Args)]
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
    /// Begin no case after this time: `90s`, `10m`. Default: 60s, unless --iterations is given.
    ///
    /// What has failed by then is confirmed and shrunk for 10 s more (times --timeout-scale, where that is above 1); then
    /// whatever still runs is given up, and a finding is kept as small as it is.
    #[arg(long, value_name = "TIME")]
    time: Option<Budget>,
    /// Stop after so many cases.
    #[arg(long, value_name = "N")]
    iterations: Option<std::num::NonZeroU64>,
    /// Seed of everything random. Default: 1.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Keep what led to something new here, and begin with it the next time.
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Write findings here, as scenarios. Default: reports/fuzz-NAME.
    #[arg(long, value_name = "DIR")]
    findings: Option<PathBuf>,
    /// Run the findings of a folder again: still fails, fixed or flaky.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["time", "iterations", "corpus", "findings"])]
    replay: Option<PathBuf>,
    /// Stop after so many findings.
    #[arg(long, value_name = "N", default_value = "50")]
    max_findings: std::num::NonZeroUsize,
    /// Cases side by side, each with connections of its own.
    /// Default: 4, or as many sessions as the target bears.
    #[arg(long, short, value_name = "N")]
    jobs: Option<Jobs>,
    /// How much the memory of a launched target may grow in the campaign, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    max_growth: u32,
    /// Write JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the campaign as the JSON lines of a run.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show the closing line only.
    #[arg(long, short)]
    quiet: bool,
}

/// A length of time: `500ms`, `90s`, `10m`, `2h`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Budget(Duration);

impl std::str::FromStr for Budget {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no length of time; write `90s`, `10m` or `2h`");
        let (number, scale) = if let Some(number) = text.strip_suffix("ms") {
            (number, 0.001)
        } else {
            let scale = match text.chars().last() {
                Some('s') => 1.0,
                Some('m') => 60.0,
                Some('h') => 3600.0,
                _ => return Err(wrong()),
            };
            (&text[..text.len() - 1], scale)
        };
        let seconds = number.parse::<f64>().ok().map(|number| number * scale);
        let seconds = seconds.filter(|seconds| (0.001..=604_800.0).contains(seconds));
        seconds.map(|seconds| Self(Duration::from_secs_f64(seconds))).ok_or_else(wrong)
    }
}

impl Fuzz {
    pub fn run(mut self) -> Result<u8, Failure> {
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
        if let Some(path) = self.findings.iter().find(|path| path.exists() && !path.is_dir()) {
            let message = format!("{} is no folder", path.display());
            return Err(usage(message, "--findings takes a folder: each finding is a file in it"));
        }
        for path in [&self.junit, &self.json].into_iter().flatten() {
            file::check_writable(path).map_err(unwritable)?;
        }
        let target = self.server.target(chosen.as_ref())?;
        let options = RunOptions {
            trust: trust(self.server.ca_file.as_deref())?,
            seed: self.seed(),
            timing: Timing {
                scale: self.server.timeout_scale.map_or(1.0, |scale| scale.0),
                no_deadline: self.choice.no_deadline,
                quiet: self.server.quiet_period.map(|quiet| quiet.0),
                ..Timing::default()
            },
            reproduce: self.reproduce(),
            prompts: chosen.as_ref().map(|chosen| chosen.prompts.clone()).unwrap_or_default(),
            ..RunOptions::default()
        };
        let runtime = runtime()?;
        let ground = runtime.block_on(Ground::open(protocol.clone(), target.clone(), options));
        let ground = ground.map_err(|error| cannot_run(&error, &target, chosen.as_ref()))?;
        match self.replay.clone() {
            Some(folder) => runtime.block_on(self.again(ground, &folder)),
            None => self.campaign(&runtime, ground, &protocol.name, chosen.as_ref()),
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
        self.seed = self.seed.or(config.seed);
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// Protocol and target, as a command line has them.
    fn reproduce(&self) -> String {
        let mut text = self.source.arguments().trim().to_owned();
        if let Some(target) = &self.choice.target {
            let config =
                self.config.as_ref().map(|file| format!(" --config {}", quote(&file.display().to_string())));
            text += &format!("{} --target {}", config.unwrap_or_default(), quote(target));
        }
        text += &self.server.to_string();
        text
    }

    fn campaign(
        self,
        runtime: &tokio::runtime::Runtime,
        ground: Ground,
        name: &str,
        chosen: Option<&Chosen>,
    ) -> Result<u8, Failure> {
        let mut out = anstream::stdout();
        let corpus = self.corpus.as_deref().map(|folder| corpus::load(folder, ground.protocol())).transpose();
        let (corpus, skipped) =
            corpus.map_err(|error| usage(error, "check the path and its permissions"))?.unwrap_or_default();
        if let Some(folder) = &self.corpus {
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
        let options = Options {
            seed: self.seed(),
            iterations: self.iterations.map(std::num::NonZeroU64::get),
            time: match (self.time, self.iterations) {
                (Some(time), _) => Some(time.0),
                (None, Some(_)) => None,
                (None, None) => Some(BUDGET),
            },
            slack: SLACK.mul_f64(self.server.timeout_scale.map_or(1.0, |scale| scale.0).clamp(1.0, 1000.0)),
            jobs: self.jobs(chosen),
            max_growth: u64::from(self.max_growth) << 20,
            deadline: DEADLINE,
            corpus,
            max_findings: self.max_findings.get(),
            reproduce: self.reproduce(),
        };
        let (started, launched) = (ground.started(0), ground.is_launched());
        if !self.quiet {
            writeln!(
                out,
                "Fuzzing {} against {} (seed {})",
                escape::terminal(&started.title),
                escape::terminal(&started.target),
                self.seed()
            )?;
        }
        let folder = self.findings.clone().unwrap_or_else(|| format!("reports/fuzz-{name}").into());
        let mut screen = Screen {
            terminal: std::io::stderr().is_terminal() && !self.quiet,
            quiet: self.quiet,
            failed: None,
        };
        let mut sink = |event: Event<'_>| screen.event(&event, &folder, self.corpus.as_deref());
        let (stop, stopped) = watch::channel(false);
        let handlers = runtime.block_on(async { Handlers::new() });
        runtime.spawn(stop_on_signal(handlers, stop, chosen.map(|chosen| Arc::clone(&chosen.spec.groups))));
        let done = runtime.block_on(campaign::campaign(ground, options, &mut sink, stopped));
        let report = done.map_err(Failure::Usage)?;
        screen.clear();
        if let Some(error) = screen.failed.take() {
            return Err(harness(error, "findings and corpus must be kept somewhere"));
        }
        let code = exit_code(&report);
        self.write(started, &report, launched, code, &folder)?;
        if !self.quiet {
            writeln!(out, "\n{}", show::coverage(&report.coverage))?;
        }
        writeln!(out, "{}", show::summary(&report))?;
        if code == 4 {
            writeln!(anstream::stderr(), "note: nothing was fuzzed; give it more --time")?;
        }
        Ok(code)
    }

    /// The server says how many cases it bears at once; less may be asked of it, not more.
    fn jobs(&self, chosen: Option<&Chosen>) -> usize {
        let most = chosen
            .and_then(|chosen| chosen.config.sessions)
            .map_or(usize::MAX, |most| usize::from(most.get()));
        usize::from(self.jobs.map_or(JOBS, |jobs| jobs.0)).min(most)
    }

    fn write(
        &self,
        started: crate::results::event::RunStarted,
        report: &Report,
        launched: bool,
        code: u8,
        folder: &Path,
    ) -> Result<(), Failure> {
        let events = show::events(started, report, launched, code, &self.reproduce(), folder);
        let write = |path: &Option<PathBuf>, text: Result<String, String>| match path {
            Some(path) => text
                .and_then(|text| file::write_atomically(path, &text))
                .map_err(|error| harness(error, "the campaign itself is over; its findings are above")),
            None => Ok(()),
        };
        write(&self.junit, junit::render(&events))?;
        write(&self.json, Ok(events.iter().map(|event| json::line(event) + "\n").collect()))
    }

    async fn again(&self, ground: Ground, folder: &Path) -> Result<u8, Failure> {
        let mut out = anstream::stdout();
        let deadline = DEADLINE * 3;
        let all = replay(&ground, folder, deadline, self.seed()).await;
        let all = all.map_err(|error| usage(error, "--replay takes the folder of --findings"))?;
        ground.close().await;
        let unread = !all.is_empty() && all.iter().all(|one| one.fate.is_none());
        if all.is_empty() {
            return Err(nothing(
                format!("{} holds no findings (*.yaml)", folder.display()),
                "a campaign writes them there with --findings",
            ));
        }
        let mut code = 0;
        let mut skipped = false;
        for replayed in all {
            let file = escape::terminal(&replayed.file).into_owned();
            let (word, case) = match (replayed.fate, &replayed.case) {
                (None, Err(error)) => {
                    let mut err = anstream::stderr();
                    writeln!(err, "skipped {file}:")?;
                    for line in error.lines() {
                        writeln!(err, "{}", escape::terminal(line))?;
                    }
                    skipped = true;
                    continue;
                }
                (Some(Fate::StillFails), Ok(case)) => ("still fails", case),
                (Some(Fate::FailsOtherwise), Ok(case)) => ("fails otherwise", case),
                (Some(Fate::Flaky), Ok(case)) => ("flaky", case),
                (Some(Fate::Fixed), Ok(case)) => ("fixed", case),
                (_, Ok(case)) => ("undecided", case),
                (Some(_), Err(_)) => continue,
            };
            code |= u8::from(word != "fixed");
            let failure = replayed.last.as_ref().and_then(|single| single.report.failures.first());
            let why = failure
                .map(|failure| format!(": {}", escape::terminal(&failure.message)))
                .unwrap_or_default();
            let reason = replayed.last.as_ref().and_then(|single| single.report.reason.as_deref());
            let why = match word {
                "fixed" => String::new(),
                "undecided" => {
                    format!(": it could not be run: {}", escape::terminal(reason.unwrap_or("no verdict")))
                }
                _ => why,
            };
            writeln!(out, "{word:<15}  {}  {file}{why}", case.id)?;
        }
        // A finding that cannot be read is not fixed.
        Ok(match (unread, skipped, code) {
            (true, ..) => 4,
            (false, true, 0) => 2,
            _ => code,
        })
    }
}

fn exit_code(report: &Report) -> u8 {
    match (&report.ended, report.findings.is_empty()) {
        (Ended::Done, true) if report.progress.cases == 0 => 4,
        (Ended::Interrupted, _) => 130,
        (Ended::Refusing(_), _) => 3,
        (Ended::Done, true) => 0,
        (Ended::Done, false) => 1,
    }
}

/// What is shown while a campaign runs, and what is kept as it goes.
struct Screen {
    terminal: bool,
    quiet: bool,
    /// Why something could not be kept.
    failed: Option<String>,
}

impl Screen {
    fn event(&mut self, event: &Event<'_>, folder: &Path, corpus: Option<&Path>) {
        match event {
            Event::Progress(progress) => {
                if self.terminal {
                    // Standard error: what is piped stays clean. A terminal that is gone shows nothing.
                    let _ = write!(anstream::stderr(), "\r\u{1b}[2K{}", show::progress(progress));
                }
            }
            Event::Novel(program) => {
                let kept = corpus.map_or(Ok(()), |folder| corpus::store(folder, program));
                self.failed = self.failed.take().or(kept.err());
            }
            Event::Finding(found, scenario) => self.found(found, scenario, folder, show::finding),
            Event::Joined(found, scenario) => self.found(found, scenario, folder, show::joined),
            Event::Note(note) => {
                self.clear();
                let _ = writeln!(anstream::stderr(), "note: {}", escape::terminal(note));
            }
        }
    }

    /// Keeps a finding and shows it.
    fn found(
        &mut self,
        found: &Finding,
        scenario: &str,
        folder: &Path,
        show: fn(&Finding, Option<&str>) -> String,
    ) {
        let kept = found.write(folder, scenario);
        let file = kept.as_ref().ok().map(|path| path.display().to_string());
        self.failed = self.failed.take().or(kept.err());
        self.clear();
        if self.quiet {
            return;
        }
        let text = show(found, file.as_deref());
        let (first, rest) = text.split_at(4);
        let word = if first == "WARN" { anstyle::AnsiColor::Yellow } else { anstyle::AnsiColor::Red };
        let style = word.on_default().bold();
        let _ = write!(anstream::stdout(), "{style}{first}{style:#}{rest}");
    }

    fn clear(&self) {
        if self.terminal {
            let _ = write!(anstream::stderr(), "\r\u{1b}[2K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_read() {
        for (text, seconds) in [("90s", 90.0), ("10m", 600.0), ("0.5h", 1800.0), ("250ms", 0.25)] {
            assert_eq!(text.parse(), Ok(Budget(Duration::from_secs_f64(seconds))), "{text}");
        }
        for bad in ["", "s", "10", "-1s", "1d", "nans", "infs", "1é", "99999h"] {
            assert!(bad.parse::<Budget>().is_err(), "{bad}");
        }
    }
}
