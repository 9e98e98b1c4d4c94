//! `frameproof merge`.

use std::path::PathBuf;

use clap::Args;

use super::report::{Shown, check_distinct, read};
use super::reports::Reports;
use super::{Failure, usage};
use crate::exit::{self, Exit};
use crate::results::event::RunEvent;
use crate::results::merge;

/// Put the shards of a run together: one verdict, one set of reports.
#[derive(Debug, Args)]
#[command(after_long_help = exit::help(exit::Command::Run))]
pub(super) struct Merge {
    /// The files that `run --shard I/N --json FILE` wrote: all N of them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the events of the whole run as JSON lines.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write one page of HTML, with a sequence diagram of each failure.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    shown: Shown,
}

impl Merge {
    pub fn run(self) -> Result<Exit, Failure> {
        let outputs = [&self.junit, &self.json, &self.html];
        check_distinct(&self.files, outputs.into_iter().flatten())?;
        let files = self.files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
        let events = merge::merge(files).map_err(|error| {
            let hint = "give the --json file of each shard of one run, each once";
            match error.file().and_then(|file| self.files.get(file)) {
                Some(path) => usage(format!("{}: {error}", path.display()), hint),
                None => usage(error, hint),
            }
        })?;
        let [junit, json, html] = outputs.map(Option::as_deref);
        Reports { junit, json, html }.write(&events, |error| usage(error, ""))?;
        self.shown.show(&events)?;
        let codes = events.iter().filter_map(|event| match event {
            RunEvent::RunFinished(summary) => Some(summary.exit_code),
            _ => None,
        });
        Ok(Exit::heaviest(codes))
    }
}
