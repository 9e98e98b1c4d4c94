//! `frameproof diff`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::recordings::Recordings;
use super::report::{gone, look_through};
use super::{Failure, unreadable, usage};
use crate::exit::{self, Exit};
use crate::report::comparison;
use crate::results::compare::compare;
use crate::results::event::RunEvent;
use crate::results::recorded::Recorded;

/// Compare two runs, or two recordings.
///
/// Of two runs: what is newly failing, fixed, flaky, changed or slower. The exit code is 1 where the second run is worse: a case fails,
/// is warned of or is flaky that was not, or a case or requirement is no longer tried.
///
/// Of two recordings: what was said in one and not in the other, at another place, or with other values. Ids, times, and where a text is
/// cut into pieces, are no difference. The exit code is 1 where they differ.
#[derive(Debug, Args)]
#[command(after_long_help = exit::help(exit::Command::Diff))]
pub(super) struct Diff {
    /// The earlier run, as `run --json FILE` wrote it; or the earlier recording, as `run --trace FILE` did.
    before: PathBuf,
    /// The later one.
    after: PathBuf,
    #[command(flatten)]
    recordings: Recordings,
    /// Show the last line only.
    #[arg(long, short)]
    quiet: bool,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Events of a run.
    Run,
    /// Frames.
    Recording,
}

/// The keys by which the first line of a file is known.
#[derive(Deserialize)]
struct Keys {
    event: Option<IgnoredAny>,
    t_ms: Option<IgnoredAny>,
}

impl Diff {
    pub fn run(self) -> Result<Exit, Failure> {
        match (content(&self.before)?, content(&self.after)?) {
            (Some(one), Some(other)) if one != other => {
                let named = |path: &Path, content| match content {
                    Content::Run => format!("{} is a run", path.display()),
                    Content::Recording => format!("{} is a recording", path.display()),
                };
                let message = format!("{}, {}", named(&self.before, one), named(&self.after, other));
                let hint = "give two files of `run --json`, or two of `run --trace`";
                Err(usage(message, hint))
            }
            (Some(Content::Recording), _) | (_, Some(Content::Recording)) => {
                self.recordings.compare(&self.before, &self.after, self.quiet)
            }
            _ => self.runs(),
        }
    }

    fn runs(&self) -> Result<Exit, Failure> {
        self.recordings.refuse()?;
        let (before, after) = (look_through(&self.before)?, look_through(&self.after)?);
        let (one, other) = (protocols(&before)?, protocols(&after)?);
        if one.is_disjoint(&other) {
            let name = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(", ");
            let message = format!("the runs have nothing in common: {} and {}", name(one), name(other));
            return Err(usage(message, "give two runs of the same protocol"));
        }
        let comparison = compare(&before, &after).map_err(gone)?;
        let mut out = anstream::stdout().lock();
        comparison::show(&comparison, self.quiet, &mut out)?;
        out.flush()?;
        Ok(if comparison.is_worse() { Exit::Failed } else { Exit::Passed })
    }
}

/// Longest line that is looked at to see what a file holds, in bytes.
const MAX_LINE: u64 = 64 << 20;

/// What a file holds, by its first line; none: it cannot be seen there.
fn content(path: &Path) -> Result<Option<Content>, Failure> {
    let file = crate::input::open(path).map_err(|error| unreadable(path, &error))?;
    let mut input = BufReader::new(file).take(MAX_LINE);
    let mut line = Vec::new();
    while line.iter().all(u8::is_ascii_whitespace) {
        line.clear();
        if input.read_until(b'\n', &mut line).map_err(|error| unreadable(path, &error))? == 0 {
            return Ok(None);
        }
    }
    let text = String::from_utf8_lossy(&line);
    let keys: Option<Keys> = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok();
    Ok(keys.and_then(|keys| match keys {
        Keys { event: Some(_), .. } => Some(Content::Run),
        Keys { t_ms: Some(_), .. } => Some(Content::Recording),
        Keys { .. } => None,
    }))
}

/// The protocols that were run.
fn protocols(events: &impl Recorded) -> Result<BTreeSet<String>, Failure> {
    let mut names = BTreeSet::new();
    for at in events.starts().map_err(gone)? {
        if let RunEvent::RunStarted(started) = &*events.event(at).map_err(gone)? {
            names.insert(started.protocol.clone());
        }
    }
    Ok(names)
}
