//! `frameproof supervise`: what frameproof starts beside a server that it launches. Not for people.

use std::path::PathBuf;

use clap::Args;

use super::Failure;
use crate::exit::Exit;
use crate::target;

/// Its name.
const NAME: &str = "supervise";

/// End what is named on standard input, as soon as that is closed.
#[derive(Debug, Args)]
pub(super) struct Supervise {}

impl Supervise {
    #[expect(clippy::unnecessary_wraps, reason = "all commands have the same shape")]
    pub fn run(self) -> Result<Exit, Failure> {
        target::supervise(std::io::stdin().lock());
        Ok(Exit::Passed)
    }
}

/// Says that this program supervises the servers that it launches.
pub(super) fn offer() {
    // The file may be replaced while we run.
    let own = PathBuf::from("/proc/self/exe");
    let program = if own.exists() { Ok(own) } else { std::env::current_exe() };
    if let Ok(program) = program {
        target::supervised_by(program, NAME);
    }
}
