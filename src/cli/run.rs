//! `frameproof run`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::cannot::cannot_run;
use super::config::{Config, Jobs};
use super::config_check::Files;
use super::fuzz::budget::Budget;
use super::preambles::Preambles;
use super::reports::{self, Besides, EventsFile, Frames, Reports};
use super::run_explore::AfterRun;
use super::server::{Server, trust};
use super::shard::Sharding;
use super::side_by_side::{SuiteRun, side_by_side};
use super::signals::stop_on_signal;
use super::source::{Filter, Source, Suite};
use super::target::{Chosen, TargetChoice, config_argument};
use super::{Failure, harness, runtime, usage};
use crate::exit::{self, Exit};
use crate::report::console::{Console, ConsoleOptions};
use crate::report::file;
use crate::results::baseline::{self, Baseline};
use crate::results::case_id;
use crate::results::event::{CaseReport, RunEvent};
use crate::results::kept::KeptEvents;
use crate::results::reproduce::Reproduce;
use crate::run::{Attempts, Kept, Randomness, RunError, RunId, RunOptions, Timing, Transport};
use crate::scenario;

/// Rounds of several suites that run side by side.
const TOGETHER: u32 = 16;
/// Cases at the same time where a silence ends each turn: nearly all of their time they wait.
const MOSTLY_SILENT: usize = 24;

/// Run a protocol's suite, or all of them.
#[derive(Debug, Args)]
#[command(after_long_help = exit::help(exit::Command::Run))]
pub(super) struct Run {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    preambles: Preambles,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    choice: TargetChoice,
    #[command(flatten)]
    sharding: Sharding,
    /// List the cases that would run, and run nothing.
    #[arg(long)]
    pub list: bool,
    /// Cases that run at the same time. Default: 8; 24 where a silence ends each turn; of one protocol's reference server 32, of all at
    /// once 16 each.
    #[arg(long, short, value_name = "N")]
    jobs: Option<Jobs>,
    /// Stop after the first failed case, or after N.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", require_equals = true)]
    fail_fast: Option<std::num::NonZeroUsize>,
    /// Repeat a failed case up to N times; one that then passes is flaky.
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Run everything N times.
    #[arg(long, value_name = "N")]
    repeat: Option<std::num::NonZeroU32>,
    /// End the run after this time, with a verdict on the cases judged until then: `90s`, `10m`. Default: several times the
    /// duration of the cases on a server that answers at once.
    #[arg(long, value_name = "TIME")]
    time: Option<Budget>,
    /// After the suite, explore the same server with N (20 if no number is given) long valid conversations, as `frameproof explore` does.
    /// Findings are written below reports/.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "20", require_equals = true)]
    explore: Option<std::num::NonZeroU64>,
    /// Seed of the random generator. Default: 1.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Use the keys and sessions of the run with this id, which it printed: with its --seed, the same messages. Default: a new id,
    /// so that data that an earlier run has left on the server has no effect.
    #[arg(long, value_name = "ID")]
    run_id: Option<RunId>,
    /// Treat warnings (a violated SHOULD or MAY) as failures.
    #[arg(long)]
    strict: bool,
    /// A file of known failures, as written by `--baseline-write`: they do not fail the run.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the failures of this run as a baseline.
    #[arg(long, value_name = "FILE")]
    baseline_write: Option<PathBuf>,
    /// Write every frame as NDJSON.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    reports: Reports,
    #[command(flatten)]
    frames: Frames,
    /// Defaults for these options. Default: frameproof.toml of the working folder, if it exists.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Show the last line only.
    #[arg(long, short, conflicts_with = "verbose")]
    quiet: bool,
    /// Show every case; twice: also every requirement that was not exercised.
    #[arg(long, short, action = clap::ArgAction::Count)]
    verbose: u8,
    /// The arguments about protocol and scenarios, as they were given.
    #[arg(skip)]
    given: String,
}

impl Run {
    /// The files that a run writes, as the command line names them.
    pub fn outputs(&self) -> impl Iterator<Item = &PathBuf> {
        self.reports.paths().chain([&self.trace, &self.baseline_write].into_iter().flatten())
    }

    /// Where its events go.
    pub fn events(&self) -> Option<&Path> {
        self.reports.json.as_deref()
    }

    /// The configuration that the command line names.
    pub fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Whether warnings count as failures.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Whether the command line says which cases are run.
    pub fn is_filtered(&self) -> bool {
        !self.filter.is_empty()
    }

    /// A number behind an option whose number is written with `=` would be a glob that matches nothing.
    fn detached_number(&self) -> Result<(), Failure> {
        let options = [
            ("--fail-fast", self.fail_fast.is_some()),
            ("--explore", self.explore.is_some()),
            ("--preambles", self.preambles.is_given()),
        ];
        let given = options.iter().find(|(_, given)| *given);
        let number = self.filter.globs.iter().find(|glob| glob.parse::<u64>().is_ok());
        match (number, given) {
            (Some(number), Some((option, _))) => {
                let message =
                    format!("`{number}` would be a glob over cases, and not the number of {option}");
                Err(usage(message, &format!("{option}={number}")))
            }
            _ => Ok(()),
        }
    }

    pub fn run(mut self) -> Result<Exit, Failure> {
        self.detached_number()?;
        let config = Config::read(self.config.as_deref())?;
        let named = self.source.name.clone().filter(|word| Source::is_embedded(word));
        self.given = Source { name: named, ..self.source.clone() }.arguments();
        if self.choice.target.is_none() && !self.server.is_named(&config) && !self.list {
            self.choice.pick(&config, &self.source)?;
        }
        let files = Files { baseline: self.baseline.as_deref(), ca_file: self.server.ca_file.as_deref() };
        let chosen = self.choice.read(&config, self.config.as_deref(), &self.source, files)?;
        self.apply(config, chosen.as_ref());
        // First: what is taken to read it is free again before the suites are there.
        let baseline = known(self.baseline.as_deref())?;
        let mut suites = self.source.suites(&mut self.filter)?;
        let is_reference = self.server.url.is_none() && chosen.is_none();
        self.preambles.add(&mut suites, &self.filter, self.seed(), !is_reference)?;
        if suites.len() > 1 {
            self.check_all()?;
        }
        if let Some(chosen) = &chosen {
            chosen.tools(&mut suites)?;
        }
        if let Some(baseline) = &baseline {
            self.report_mistyped(&suites, baseline);
        }
        let mut suites = self.filter.select(suites)?;
        let all = suites.len() > 1;
        let shards = self.sharding.select(&mut suites)?;
        if self.list {
            return super::list::cases(&suites.iter().map(Suite::from).collect::<Vec<_>>());
        }
        let name = if all { "frameproof" } else { &suites[0].protocol.name };
        if is_reference {
            // A case mostly waits for what must not come; several suites at the same time keep the processor busy sooner.
            self.jobs = self.jobs.or(Some(Jobs(if all { 16 } else { 32 })));
        }
        let target = self.server.target(chosen.as_ref())?;
        let besides = Besides {
            written: [&self.trace, &self.baseline_write].into_iter().flatten().collect(),
            usual: is_reference.then_some(Path::new("reports")),
            ..Besides::default()
        };
        self.reports = std::mem::take(&mut self.reports).settle(name, &besides)?;
        let verbosity = if self.quiet { -1 } else { i8::try_from(self.verbose).unwrap_or(i8::MAX) };
        let progress = std::io::stdout().is_terminal();
        let console = ConsoleOptions { progress, verbosity, overview: all, width: super::width() };
        let mut console = Console::new(anstream::stdout(), console);
        let mut written = self.reports.events_file();
        let mut events = KeptEvents::default();
        let mut shown = Ok(());
        let mut sink = |mut event: RunEvent| {
            if let RunEvent::RunStarted(started) = &mut event {
                started.shard = shards.as_ref().and_then(|shards| shards.get(&started.protocol).copied());
            }
            if shown.is_ok() {
                shown = console.event(&event);
            }
            written.add(&event);
            events.push(event);
        };
        let (mut codes, mut before_the_first) = (Vec::new(), false);
        let runtime = runtime()?;
        let stopped = stop_on_signal(&runtime, chosen.as_ref());
        let explored = self.explore.map(|walks| (walks.get(), Arc::clone(&suites[0].protocol)));
        let mut prepared = Vec::new();
        for Suite { protocol, cases } in suites {
            if all {
                self.source.name = Some(protocol.name.clone());
            }
            let mut options = self.options(chosen.as_ref(), baseline.clone())?;
            if self.jobs.is_none() && protocol.quiet().is_some() {
                options.jobs = MOSTLY_SILENT;
            }
            prepared.push(SuiteRun {
                protocol,
                cases,
                target: target.clone(),
                options,
                stopped: stopped.clone(),
            });
        }
        // Each has a reference server of its own. A run that ends with the first failure begins no suite behind it. The events of suites
        // beside the first wait for its end: of many rounds they are too many.
        let one_by_one =
            self.fail_fast.is_some() || self.repeat.is_some_and(|rounds| rounds.get() > TOGETHER);
        let at_once = if one_by_one { 1 } else { prepared.len() };
        while !prepared.is_empty() {
            let rest = prepared.split_off(at_once.min(prepared.len()));
            let results = side_by_side(&runtime, std::mem::replace(&mut prepared, rest), &mut sink);
            for result in results {
                match result {
                    Ok(summary) => {
                        codes.push(summary.exit_code);
                        if summary.stopped.is_some() {
                            prepared.clear();
                        }
                    }
                    // The reports say so, too: whoever waits for them finds them.
                    Err(RunError::Interrupted) => {
                        before_the_first = true;
                        prepared.clear();
                    }
                    Err(error) => return Err(cannot_run(&error, &target, chosen.as_ref())),
                }
            }
        }
        shown = shown.and_then(|()| console.finish());
        if let Some((walks, protocol)) = explored.filter(|_| !before_the_first && !*stopped.borrow()) {
            let after = AfterRun {
                protocol,
                target,
                chosen: chosen.as_ref(),
                options: RunOptions { kept: Kept::default(), ..self.options(chosen.as_ref(), None)? },
                walks,
                subject: self.subject(chosen.as_ref()),
                quiet: self.quiet,
            };
            let (more, exit) = after.explore(&runtime, stopped.clone())?;
            for event in more {
                written.add(&event);
                events.push(event);
            }
            codes.push(exit.code());
        }
        self.write(events.events(), written)?;
        if before_the_first {
            return Err(Failure::Interrupted);
        }
        match shown.map_err(Failure::from) {
            // The verdict stands, whoever has stopped reading.
            Ok(()) | Err(Failure::BrokenPipe) => Ok(Exit::most_severe(codes)),
            Err(failure) => Err(failure),
        }
    }

    /// Tells of entries of the baseline that name nothing there is, whatever part of the suite is run.
    fn report_mistyped(&self, suites: &[Suite], baseline: &Baseline) {
        let [Suite { protocol, cases }] = suites else { return };
        // An entry about a shipped case stays right where other scenarios are run. To a protocol of one's own, or one that an overlay
        // has changed, they need not fit: then nobody knows which names there are.
        let shipped = match self.source.scenario.is_empty() {
            true => Vec::new(),
            false => match scenario::embedded(protocol) {
                Ok(shipped) => shipped,
                Err(_) => return,
            },
        };
        let cases = cases.iter().chain(&shipped).filter(|case| case.preamble.is_none());
        // Which cases are run behind which preambles differs from run to run.
        let is_about_preambles = baseline.is_about_preambles();
        let preambles = cases.clone().filter(|case| is_about_preambles && case.case.beginning.is_preamble);
        let behind: Vec<String> = preambles
            .flat_map(|preamble| cases.clone().map(|case| case_id::behind(&case.id, preamble.name())))
            .collect();
        let ids = cases.map(|case| case.id.as_str()).chain(behind.iter().map(String::as_str));
        super::print_notes(baseline.mistyped(ids.chain(protocol.requirements.0.keys().map(String::as_str))));
    }

    /// All protocols at once are for their reference servers only.
    fn check_all(&self) -> Result<(), Failure> {
        let single = [
            ("--url", self.server.url.is_some()),
            ("--target", self.choice.target.is_some()),
            ("--fault", self.server.fault.is_some()),
            ("--explore", self.explore.is_some()),
            ("--trace", self.trace.is_some()),
            ("--baseline", self.baseline.is_some()),
            ("--baseline-write", self.baseline_write.is_some()),
        ];
        match single.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(self.source.which(&format!("{flag} belongs to one"))),
            None => Ok(()),
        }
    }

    fn apply(&mut self, config: Config, chosen: Option<&Chosen>) {
        if let Some(chosen) = chosen {
            chosen.apply(&mut self.source, &mut self.filter);
            let own = &chosen.config;
            let sessions = own.sessions.map(|sessions| Jobs(sessions.get().min(1024)));
            // The server says how many it bears; less may be asked of it, not more.
            self.jobs = match (self.jobs.or(config.jobs), sessions) {
                (Some(jobs), Some(most)) => Some(Jobs(jobs.0.min(most.0))),
                (jobs, sessions) => jobs.or(sessions),
            };
            self.baseline = self.baseline.take().or(own.baseline.clone());
        }
        let same = config.fill(&mut self.source, &mut self.filter);
        self.server.fill(&config, chosen, same);
        if same {
            self.baseline = self.baseline.take().or(config.baseline);
        }
        self.jobs = self.jobs.or(config.jobs);
        self.fail_fast = self.fail_fast.or(config.fail_fast);
        self.retries = self.retries.or(config.retries);
        self.preambles.configure(config.preambles);
        self.repeat = self.repeat.or(config.repeat);
        self.seed = self.seed.or(config.seed);
        self.strict |= config.strict.unwrap_or(false);
        self.trace = self.trace.take().or(config.trace);
        self.reports.junit = self.reports.junit.take().or(config.junit);
        self.reports.json = self.reports.json.take().or(config.json);
        self.reports.html = self.reports.html.take().or(config.html);
    }

    fn options(
        &self,
        chosen: Option<&Chosen>,
        mut baseline: Option<Baseline>,
    ) -> Result<RunOptions, Failure> {
        if let Some(baseline) = &mut baseline {
            baseline.partial = !self.filter.is_empty() || self.sharding.is_given();
        }
        let trust = trust(self.server.ca_file.as_deref())?;
        let transport = Transport { trust, mutation: None };
        let options = RunOptions::default();
        Ok(RunOptions {
            transport,
            jobs: self.jobs.map_or(options.jobs, |jobs| usize::from(jobs.0)),
            timing: Timing {
                scale: self.server.timeout_scale.map_or(options.timing.scale, |scale| scale.0),
                quiet: self.server.quiet_period.map(|quiet| quiet.0),
                limit: self.time.map(|time| time.0),
                no_deadline: self.choice.no_deadline,
                ..options.timing
            },
            attempts: Attempts {
                fail_fast: self.fail_fast.map(usize::from),
                retries: self.retries.unwrap_or(0),
                repeat: self.repeat.map_or(1, u32::from),
                ..options.attempts
            },
            randomness: Randomness { seed: self.seed(), run_id: self.run_id },
            strict: self.strict,
            baseline,
            kept: Kept { trace: self.trace.clone(), frames: self.frames.are_all() },
            reproduce: self.reproduce(chosen),
            prompts: chosen.map(|chosen| chosen.prompts.clone()).unwrap_or_default(),
            bare: self.source.bare()?,
            ..options
        })
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// The arguments that choose protocol and server again.
    fn subject(&self, chosen: Option<&Chosen>) -> String {
        let subject = match chosen {
            // What the target says of protocol and overlay it says again.
            Some(chosen) => format!("{}{}", self.given, chosen.arguments),
            None => self.source.arguments() + &config_argument(self.config.as_deref()),
        };
        subject + &self.server.place()
    }

    /// The command that, with a case's name added, does the same to that case alone.
    fn reproduce(&self, chosen: Option<&Chosen>) -> Reproduce {
        let subject = self.subject(chosen);
        let strict = if self.strict { " --strict" } else { "" };
        let settings = format!("{}{strict} --seed {}", self.server.patience(), self.seed());
        let again = Reproduce::new(subject, settings);
        if chosen.is_none() && self.server.url.is_none() { again.against_reference() } else { again }
    }

    fn write(&self, events: &[RunEvent], written: EventsFile) -> Result<(), Failure> {
        let mut errors: Vec<String> = written.finish().err().into_iter().collect();
        errors.extend(self.reports.write_each(events));
        if let Some(path) = &self.baseline_write {
            let reports = events.iter().filter_map(|event| match event {
                RunEvent::CaseFinished(report) => Some((**report).clone()),
                _ => None,
            });
            let text = baseline::write(&reports.collect::<Vec<CaseReport>>(), self.strict);
            errors.extend(file::write_atomically(path, &text).err());
        }
        reports::failed(errors, |error| harness(error, "the run itself is over; its verdict is above"))
    }
}

/// The known failures of a file.
pub(super) fn known(file: Option<&Path>) -> Result<Option<Baseline>, Failure> {
    let today = jiff::Timestamp::now().to_string()[..10].to_owned();
    Ok(file.map(|path| Baseline::load(path, &today)).transpose()?)
}
