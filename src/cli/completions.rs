//! `frameproof completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Arguments, Failure, out};
use crate::exit::Exit;

/// Print a shell's completions.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub fn run(self) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "frameproof", &mut script);
        std::io::Write::write_all(&mut out(), &script)?;
        Ok(Exit::Passed)
    }
}
