//! What is shown while a campaign runs, and what is kept as it goes.

use std::io::{IsTerminal, Write};
use std::path::Path;

use crate::fuzz::corpus;
use crate::fuzz::events::CampaignEvent;
use crate::fuzz::finding::Finding;
use crate::report::{escape, fuzz as show};

/// What is shown while a campaign runs, and what is kept as it goes.
pub(super) struct Screen {
    is_terminal: bool,
    is_quiet: bool,
    /// Why something could not be kept.
    pub failed: Option<String>,
}

impl Screen {
    /// `is_quiet`: shows nothing.
    pub fn new(is_quiet: bool) -> Self {
        Self { is_terminal: std::io::stderr().is_terminal() && !is_quiet, is_quiet, failed: None }
    }

    /// Shows an event, and keeps programs and findings.
    pub fn event(&mut self, event: &CampaignEvent<'_>, folder: &Path, corpus: Option<&Path>) {
        match event {
            CampaignEvent::Progress(progress) => {
                if self.is_terminal {
                    // Standard error: what is piped stays clean. A terminal that is gone shows nothing.
                    let _ = write!(anstream::stderr(), "\r\u{1b}[2K{}", show::progress(progress));
                }
            }
            CampaignEvent::Novel(program) => {
                let kept = corpus.map_or(Ok(()), |folder| corpus::store(folder, program));
                self.failed = self.failed.take().or(kept.err());
            }
            CampaignEvent::Finding(found, scenario) => self.found(found, scenario, folder, show::finding),
            CampaignEvent::Joined(found, scenario) => self.found(found, scenario, folder, show::joined),
            CampaignEvent::Note(note) => {
                self.clear();
                let _ = writeln!(anstream::stderr(), "note: {}", escape::terminal(note));
            }
        }
    }

    /// Keeps a finding and shows it.
    fn found(
        &mut self,
        found: &Finding,
        scenario: &str,
        folder: &Path,
        show: fn(&Finding, Option<&str>) -> String,
    ) {
        let kept = found.write(folder, scenario);
        let file = kept.as_ref().ok().map(|path| path.display().to_string());
        self.failed = self.failed.take().or(kept.err());
        self.clear();
        if self.is_quiet {
            return;
        }
        let text = show(found, file.as_deref());
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
