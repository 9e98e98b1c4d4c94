//! `frameproof man`.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_mangen::Man as Page;

use super::{Arguments, Failure, unwritable, usage};
use crate::exit::Exit;
use crate::report::file;

/// Print the manual page, or write that of each subcommand.
#[derive(Debug, Args)]
pub(super) struct Man {
    /// Write frameproof.1, frameproof-run.1 and so on to this folder.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub fn run(self) -> Result<Exit, Failure> {
        let mut command = Arguments::command();
        command.build();
        let Some(folder) = self.dir else {
            std::io::stdout().write_all(render(command)?.as_bytes())?;
            return Ok(Exit::Passed);
        };
        let subcommands: Vec<clap::Command> = command.get_subcommands().cloned().collect();
        let shown = subcommands.into_iter().filter(|one| !one.is_hide_set() && one.get_name() != "help");
        for page in std::iter::once(command).chain(shown) {
            let name = page.get_display_name().unwrap_or_else(|| page.get_name()).replace(' ', "-");
            let path = folder.join(format!("{name}.1"));
            file::write_atomically(&path, &render(page)?).map_err(unwritable)?;
        }
        Ok(Exit::Passed)
    }
}

fn render(command: clap::Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    Page::new(command).render(&mut page)?;
    String::from_utf8(page).map_err(|error| usage(error, ""))
}
