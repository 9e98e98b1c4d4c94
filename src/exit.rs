//! The exit codes: one table for the program, its `--help` and its documentation.

use std::fmt::Write as _;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Nothing is wrong with the server.
    Passed = 0,
    /// Something is.
    Failed = 1,
    /// The command line or a file is wrong.
    Usage = 2,
    /// The server cannot be tested.
    Harness = 3,
    /// There is nothing to give a verdict on.
    Nothing = 4,
    /// Ended by Ctrl-C or SIGTERM.
    Interrupted = 130,
}

/// The commands whose verdicts differ; the others end as `run` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `run`, `check`, and whatever has no verdict of its own.
    Run,
    /// `doctor`.
    Doctor,
    /// `fuzz`.
    Fuzz,
    /// `explore`.
    Explore,
    /// `diff`.
    Diff,
}

impl Exit {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::Passed, Self::Failed, Self::Usage, Self::Harness, Self::Nothing, Self::Interrupted];

    /// From the mildest on: a run without a judged case is no verdict, and a failure outweighs an error.
    const WEIGHTS: [Self; 5] = [Self::Nothing, Self::Passed, Self::Harness, Self::Failed, Self::Interrupted];

    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What it means, in a few words; `None`: this command does not end so.
    pub const fn meaning(self, command: Command) -> Option<&'static str> {
        Some(match (self, command) {
            (Self::Passed, Command::Run) => "conformant, except for the failures that the baseline lists",
            (Self::Passed, Command::Doctor) => "nothing is missing, except for what the baseline lists",
            (Self::Passed, Command::Fuzz | Command::Explore) => "no finding",
            (Self::Failed, Command::Run) => "not conformant, or a stale baseline entry",
            (Self::Failed, Command::Doctor) => "something is missing",
            (Self::Failed, Command::Fuzz) => "a finding; with `--replay`: one that is not fixed",
            (Self::Failed, Command::Explore) => "a finding",
            (Self::Passed, Command::Diff) => "the second run is not worse; the recordings do not differ",
            (Self::Failed, Command::Diff) => "the second run is worse; the recordings differ",
            (Self::Harness | Self::Nothing | Self::Interrupted, Command::Diff) => return None,
            (Self::Usage, _) => "usage, configuration or scenario error",
            (Self::Harness, Command::Fuzz | Command::Explore) => {
                "target unreachable, it no longer accepts connections, or harness error"
            }
            (Self::Harness, _) => "target unreachable, or harness error",
            (Self::Nothing, Command::Run) => "no case selected, or none that applies to the server",
            (Self::Nothing, Command::Doctor) => return None,
            (Self::Nothing, Command::Fuzz) => {
                "no case was run, or most of them failed and no replay reproduced it; with `--replay`: no finding to run"
            }
            (Self::Nothing, Command::Explore) => "no walk was run",
            (Self::Interrupted, Command::Doctor) => "interrupted",
            (Self::Interrupted, _) => "interrupted; the reports are written",
        })
    }

    /// The exit of several runs together, from their codes.
    #[must_use]
    pub fn most_severe(codes: impl IntoIterator<Item = u8>) -> Self {
        let weight = |exit: &Self| Self::WEIGHTS.iter().position(|one| one == exit);
        let known = |code| Self::ALL.into_iter().find(|exit| exit.code() == code).unwrap_or(Self::Failed);
        codes.into_iter().map(known).max_by_key(weight).unwrap_or(Self::Passed)
    }
}

/// One sentence about the exit codes of a command, for its `--help`.
pub fn help(command: Command) -> String {
    let mut text = String::from("Exit codes:");
    for (exit, meaning) in Exit::ALL.into_iter().filter_map(|exit| Some((exit, exit.meaning(command)?))) {
        let end = if exit == Exit::Interrupted { '.' } else { ';' };
        // Writing to a string does not fail.
        let _ = write!(text, " {} {}{end}", exit.code(), meaning.replace(';', ","));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_outweighs_the_rest() {
        for (codes, together) in
            [(&[0, 4][..], 0), (&[4, 4], 4), (&[0, 3], 3), (&[3, 1, 0], 1), (&[1, 130], 130), (&[], 0)]
        {
            assert_eq!(Exit::most_severe(codes.iter().copied()).code(), together, "{codes:?}");
        }
    }

    #[test]
    fn the_help_names_each_code() {
        let help = help(Command::Doctor);
        assert!(help.starts_with("Exit codes: 0 nothing is missing"), "{help}");
        assert!(help.ends_with("130 interrupted.") && !help.contains(" 4 "), "{help}");
    }
}
