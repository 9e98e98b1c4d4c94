//! `frameproof report`.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;

use super::reports::{Besides, Reports};
use super::{Failure, unreadable, usage};
use crate::exit::Exit;
use crate::report::console::{Console, ConsoleOptions};
use crate::report::json;
use crate::results::event::RunEvent;

/// Make a report from a file that `run --json` wrote.
#[derive(Debug, Args)]
pub(super) struct Report {
    /// The file that `run --json` wrote.
    events: PathBuf,
    #[command(flatten)]
    reports: Reports,
    #[command(flatten)]
    shown: Shown,
}

/// How much of a recorded run is shown on the console.
#[derive(Debug, Args)]
pub(super) struct Shown {
    /// Show the last line only.
    #[arg(long, short, conflicts_with = "verbose")]
    quiet: bool,
    /// Show every case; twice: also every requirement that was not exercised.
    #[arg(long, short, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// The events of a file that `run --json` wrote: of one run or more.
pub(super) fn read(path: &Path) -> Result<Vec<RunEvent>, Failure> {
    let name = path.display();
    let input = crate::input::open(path).map_err(|error| unreadable(path, &error))?;
    let hint = "the file must be one that `frameproof run --json FILE` wrote";
    let events =
        json::read(BufReader::new(input)).map_err(|error| usage(format!("{name}: {error}"), hint))?;
    if !events.iter().any(|event| matches!(event, RunEvent::RunStarted(_))) {
        return Err(usage(format!("{name} holds no run"), hint));
    }
    Ok(events)
}

/// What reports of these events are called: after the protocol, if there is one.
pub(super) fn name(events: &[RunEvent]) -> &str {
    let mut names = events.iter().filter_map(|event| match event {
        RunEvent::RunStarted(started) => Some(started.protocol.as_str()),
        _ => None,
    });
    let first = names.next().unwrap_or("frameproof");
    // The name may come from a file of somebody else's.
    let is_plain = first.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    if is_plain && !first.is_empty() && names.all(|name| name == first) { first } else { "frameproof" }
}

impl Shown {
    /// Shows the events as the run did.
    pub fn show(&self, events: &[RunEvent]) -> Result<(), Failure> {
        let verbosity = if self.quiet { -1 } else { i8::try_from(self.verbose).unwrap_or(i8::MAX) };
        let runs = events.iter().filter(|event| matches!(event, RunEvent::RunStarted(_))).count();
        let options =
            ConsoleOptions { progress: false, verbosity, overview: runs > 1, width: super::width() };
        let mut console = Console::new(anstream::stdout(), options);
        for event in events {
            console.event(event)?;
        }
        Ok(console.finish()?)
    }
}

impl Report {
    pub fn run(self) -> Result<Exit, Failure> {
        let events = read(&self.events)?;
        let besides = Besides { read: vec![&self.events], ..Besides::default() };
        let reports = self.reports.settle(name(&events), &besides)?;
        reports.write(&events, |error| usage(error, ""))?;
        if reports.are_wanted() {
            return Ok(Exit::Passed);
        }
        self.shown.show(&events)?;
        Ok(Exit::Passed)
    }
}
