//! `frameproof diff`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::Failure;
use super::report::read;
use crate::exit::{self, Exit};
use crate::report::comparison;
use crate::results::compare::compare;

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
        let comparison = compare(&read(&self.before)?, &read(&self.after)?);
        let mut out = anstream::stdout().lock();
        comparison::show(&comparison, self.quiet, &mut out)?;
        out.flush()?;
        Ok(if comparison.is_worse() { Exit::Failed } else { Exit::Passed })
    }
}
