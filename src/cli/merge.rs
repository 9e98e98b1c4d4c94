//! `frameproof merge`.

use std::path::PathBuf;

use clap::Args;

use super::report::{Shown, look_through, name};
use super::reports::{Besides, Reports};
use super::{Failure, harness, usage};
use crate::exit::{self, Exit};
use crate::results::merge;

/// Merge the shards of a run: one verdict, one set of reports.
#[derive(Debug, Args)]
#[command(after_long_help = exit::help(exit::Command::Run))]
pub(super) struct Merge {
    /// The files that `run --shard I/N --json FILE` wrote: all N of them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reports: Reports,
    #[command(flatten)]
    shown: Shown,
}

impl Merge {
    pub fn run(self) -> Result<Exit, Failure> {
        // Rather now than after many files.
        self.reports.check_distinct(&self.files)?;
        let files = self.files.iter().map(|path| look_through(path)).collect::<Result<Vec<_>, _>>()?;
        let events = merge::merge(files).map_err(|error| {
            let hint = "give the --json file of each shard of one run, each once";
            match error.file().and_then(|file| self.files.get(file)) {
                Some(path) => usage(format!("{}: {error}", path.display()), hint),
                None => usage(error, hint),
            }
        })?;
        let besides = Besides { read: self.files.iter().collect(), ..Besides::default() };
        let reports = self.reports.settle(&name(&events)?, &besides)?;
        reports.write(&events, |error| harness(error, ""))?;
        self.shown.show(&events)?;
        Ok(events.exit())
    }
}
