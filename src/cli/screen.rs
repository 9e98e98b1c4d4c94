//! What is shown while a campaign runs: a line of progress, notes, and findings.

use std::io::{IsTerminal, Write};

use crate::report::escape;

/// The terminal of a campaign.
pub(super) struct Screen {
    is_terminal: bool,
    is_quiet: bool,
    /// Why something could not be kept; the first reason.
    pub failed: Option<String>,
}

impl Screen {
    /// `is_quiet`: shows nothing.
    pub fn new(is_quiet: bool) -> Self {
        Self { is_terminal: std::io::stderr().is_terminal() && !is_quiet, is_quiet, failed: None }
    }

    /// Shows how far the campaign is, in place of the line before.
    pub fn progress(&self, line: impl FnOnce() -> String) {
        if self.is_terminal {
            let width =
                terminal_size::terminal_size_of(std::io::stderr()).map(|(width, _)| usize::from(width.0));
            // A line that wraps would not be cleared.
            let line: String = line().chars().take(width.unwrap_or(80).saturating_sub(1)).collect();
            // Standard error: what is piped stays clean. A terminal that is gone shows nothing.
            let _ = write!(anstream::stderr(), "\r\u{1b}[2K{line}");
        }
    }

    /// Shows a note.
    pub fn note(&self, note: &str) {
        self.clear();
        let _ = writeln!(anstream::stderr(), "note: {}", escape::terminal(note));
    }

    /// What was kept; why something was not is noted.
    pub fn kept<T>(&mut self, kept: Result<T, String>) -> Option<T> {
        match kept {
            Ok(kept) => Some(kept),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }

    /// Shows a finding, whose text begins with a verdict of four letters.
    pub fn finding(&self, text: impl FnOnce() -> String) {
        self.clear();
        if self.is_quiet {
            return;
        }
        let text = text();
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
