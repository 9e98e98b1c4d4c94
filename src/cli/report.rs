//! `frameproof report`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::reports::{Besides, Reports};
use super::{Failure, harness, unreadable, usage};
use crate::exit::Exit;
use crate::report::console::{Console, ConsoleOptions};
use crate::report::stored::StoredEvents;
use crate::results::event::RunEvent;
use crate::results::recorded::Recorded;

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

/// The events of a file that `run --json` wrote, of one run or more, read where they are needed.
pub(super) fn look_through(path: &Path) -> Result<StoredEvents, Failure> {
    let name = path.display();
    let input = crate::input::open(path).map_err(|error| unreadable(path, &error))?;
    let hint = "the file must be one that `frameproof run --json FILE` wrote";
    let events = StoredEvents::open(input).map_err(|error| usage(format!("{name}: {error}"), hint))?;
    if events.starts().is_ok_and(|starts| starts.is_empty()) {
        return Err(usage(format!("{name} holds no run"), hint));
    }
    Ok(events)
}

/// As [`look_through`], all in memory.
pub(super) fn read(path: &Path) -> Result<Vec<RunEvent>, Failure> {
    Ok(look_through(path)?.all().map_err(gone)?.into_owned())
}

/// What was read once cannot be read again.
pub(super) fn gone(error: String) -> Failure {
    usage(error, "leave the files as they are until the report is made")
}

/// What reports of these events are called: after the protocol, if there is one.
pub(super) fn name(events: &impl Recorded) -> Result<String, Failure> {
    let mut first: Option<String> = None;
    for at in events.starts().map_err(gone)? {
        let event = events.event(at).map_err(gone)?;
        let RunEvent::RunStarted(started) = &*event else { continue };
        if first.get_or_insert_with(|| started.protocol.clone()) != &started.protocol {
            return Ok(NEUTRAL.to_owned());
        }
    }
    // The name may come from a file of somebody else's.
    let is_plain = |name: &String| name.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    Ok(first.filter(|name| !name.is_empty() && is_plain(name)).unwrap_or_else(|| NEUTRAL.to_owned()))
}

const NEUTRAL: &str = "frameproof";

impl Shown {
    /// Shows the events as the run did.
    pub fn show(&self, events: &impl Recorded) -> Result<(), Failure> {
        let verbosity = if self.quiet { -1 } else { i8::try_from(self.verbose).unwrap_or(i8::MAX) };
        let runs = events.starts().map_err(gone)?.len();
        let options =
            ConsoleOptions { progress: false, verbosity, overview: runs > 1, width: super::width() };
        let mut console = Console::new(anstream::stdout(), options);
        for at in 0..events.count() {
            console.event(&*events.event(at).map_err(gone)?)?;
        }
        Ok(console.finish()?)
    }
}

impl Report {
    pub fn run(self) -> Result<Exit, Failure> {
        let events = look_through(&self.events)?;
        let besides = Besides { read: vec![&self.events], ..Besides::default() };
        let reports = self.reports.settle(&name(&events)?, &besides)?;
        reports.write(&events, |error| harness(error, ""))?;
        if reports.are_wanted() {
            return Ok(Exit::Passed);
        }
        self.shown.show(&events)?;
        Ok(Exit::Passed)
    }
}
