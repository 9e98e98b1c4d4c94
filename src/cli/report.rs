//! `frameproof report`.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use clap::Args;

use super::{Failure, usage};
use crate::report::console::{Console, ConsoleOptions};
use crate::report::{file, json, junit};

/// Make a report from a file that `run --json` wrote.
#[derive(Debug, Args)]
pub(super) struct Report {
    /// The JSON lines.
    events: PathBuf,
    /// Write JUnit XML instead of console output.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Show every case.
    #[arg(long, short, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl Report {
    pub fn run(self) -> Result<u8, Failure> {
        let name = self.events.display();
        let input =
            File::open(&self.events).map_err(|error| usage(format!("{name} cannot be read: {error}")))?;
        let events = json::read(BufReader::new(input)).map_err(|error| usage(format!("{name}: {error}")))?;
        if let Some(path) = &self.junit {
            let text = junit::render(&events).map_err(usage)?;
            file::write_atomically(path, &text).map_err(usage)?;
            return Ok(0);
        }
        let verbosity = i8::try_from(self.verbose).unwrap_or(i8::MAX);
        let mut console = Console::new(anstream::stdout(), ConsoleOptions { progress: false, verbosity });
        for event in &events {
            console.event(event)?;
        }
        Ok(0)
    }
}
