//! What is shown while an exploration runs, and what is kept as it goes.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use crate::cli::source::quote;
use crate::explore::campaign::ExploreEvent;
use crate::explore::finding::Finding;
use crate::report::{escape, explore as show, file};

/// What is shown while an exploration runs, and what is kept as it goes.
pub(super) struct Screen {
    is_terminal: bool,
    is_quiet: bool,
    /// Where findings are kept.
    folder: PathBuf,
    /// The target on the command line.
    reproduce: String,
    /// Why something could not be kept.
    pub failed: Option<String>,
}

impl Screen {
    /// `is_quiet`: shows nothing.
    pub fn new(is_quiet: bool, folder: PathBuf, reproduce: String) -> Self {
        let is_terminal = std::io::stderr().is_terminal() && !is_quiet;
        Self { is_terminal, is_quiet, folder, reproduce, failed: None }
    }

    /// Shows an event, and keeps findings.
    pub fn event(&mut self, event: &ExploreEvent<'_>) {
        match event {
            ExploreEvent::Progress(progress) => {
                if self.is_terminal {
                    // Standard error: what is piped stays clean. A terminal that is gone shows nothing.
                    let _ = write!(anstream::stderr(), "\r\u{1b}[2K{}", show::progress(progress));
                }
            }
            ExploreEvent::Finding(found, scenario) => self.found(found, scenario),
            ExploreEvent::Note(note) => {
                self.clear();
                let _ = writeln!(anstream::stderr(), "note: {}", escape::terminal(note));
            }
        }
    }

    /// Keeps a finding and shows it.
    fn found(&mut self, found: &Finding, scenario: &str) {
        let path = self.folder.join(found.file_name());
        let made = std::fs::create_dir_all(&self.folder)
            .map_err(|error| format!("{} cannot be written: {error}", self.folder.display()));
        let kept = made.and_then(|()| file::write_atomically(&path, scenario));
        let name = kept.is_ok().then(|| path.display().to_string());
        self.failed = self.failed.take().or(kept.err());
        self.clear();
        if self.is_quiet {
            return;
        }
        let run = name
            .as_deref()
            .map(|name| format!("frameproof run {} --scenario {}", self.reproduce, quote(name)));
        let text = show::finding(found, name.as_deref(), &run.unwrap_or_default());
        let (first, rest) = text.split_at(4);
        let word = if first == "WARN" { anstyle::AnsiColor::Yellow } else { anstyle::AnsiColor::Red };
        let style = word.on_default().bold();
        let _ = write!(anstream::stdout(), "{style}{first}{style:#}{rest}");
    }

    /// Clears the line of progress.
    pub fn clear(&self) {
        if self.is_terminal {
            let _ = write!(anstream::stderr(), "\r\u{1b}[2K");
        }
    }
}
