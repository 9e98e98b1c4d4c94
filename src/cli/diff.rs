//! `frameproof diff`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::report::read;
use super::{Failure, usage};
use crate::exit::{self, Exit};
use crate::report::comparison;
use crate::results::compare::compare;
use crate::results::event::RunEvent;

/// Compare two runs: what is newly failing, fixed, flaky, changed or slower.
///
/// The exit code is 1 where the second run is worse: a case fails, is warned of or is flaky that was not, or a case or requirement is no
/// longer tried.
#[derive(Debug, Args)]
#[command(after_long_help = exit::help(exit::Command::Diff))]
pub(super) struct Diff {
    /// The earlier run, as `run --json FILE` wrote it.
    before: PathBuf,
    /// The later one.
    after: PathBuf,
    /// Show the last line only.
    #[arg(long, short)]
    quiet: bool,
}

impl Diff {
    pub fn run(self) -> Result<Exit, Failure> {
        let (before, after) = (read(&self.before)?, read(&self.after)?);
        let (one, other) = (protocols(&before), protocols(&after));
        if one.is_disjoint(&other) {
            let name = |set: BTreeSet<&str>| set.into_iter().collect::<Vec<_>>().join(", ");
            let message = format!("the runs have nothing in common: {} and {}", name(one), name(other));
            return Err(usage(message, "give two runs of the same protocol"));
        }
        let comparison = compare(&before, &after);
        let mut out = anstream::stdout().lock();
        comparison::show(&comparison, self.quiet, &mut out)?;
        out.flush()?;
        Ok(if comparison.is_worse() { Exit::Failed } else { Exit::Passed })
    }
}

/// The protocols that were run.
fn protocols(events: &[RunEvent]) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for event in events {
        if let RunEvent::RunStarted(started) = event {
            names.insert(started.protocol.as_str());
        }
    }
    names
}
