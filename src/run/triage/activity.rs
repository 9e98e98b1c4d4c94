//! How much a server has been heard to say in a run, over all its cases: what one case waits for in vain means more where no
//! other case has heard anything either.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// How often an optional message must have been waited for in vain, and never have come, until it is not waited for any more.
const ENOUGH: u32 = 3;

/// Shared by the cases of a run.
#[derive(Debug, Default)]
pub struct ServerActivity(AtomicU8, AtomicBool, Mutex<BTreeMap<String, Occasions>>);

/// What became of the waits for one optional message.
#[derive(Debug, Default)]
struct Occasions {
    came: bool,
    missed: u32,
}

/// What became of one wait for an optional message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Optional {
    Came,
    Missed,
}

/// How much was heard, heartbeats and the like apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ActivityLevel {
    /// Not a word, on no connection.
    Nothing,
    /// What belongs to openings, and no more.
    Openings,
    /// It has answered what was sent behind an opening.
    Answers,
    /// It has ended a turn, with more than one frame.
    Turns,
}

impl ServerActivity {
    pub(crate) fn note(&self, extent: ActivityLevel) {
        self.0.fetch_max(extent as u8, Ordering::Relaxed);
    }

    /// Heartbeats and the like have come, which are no answer to anything.
    pub(crate) fn note_ambient(&self) {
        self.1.store(true, Ordering::Relaxed);
    }

    /// An optional message of an opening has come, or has not.
    pub(crate) fn note_optional(&self, label: &str, what: Optional) {
        let mut all = self.2.lock().unwrap_or_else(PoisonError::into_inner);
        let occasions = all.entry(label.to_owned()).or_default();
        match what {
            Optional::Came => occasions.came = true,
            Optional::Missed => occasions.missed += 1,
        }
    }

    /// Whether the server is known to leave out this optional message, so that no case need wait for it.
    pub(crate) fn leaves_out(&self, label: &str) -> bool {
        let all = self.2.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(label).is_some_and(|occasions| !occasions.came && occasions.missed >= ENOUGH)
    }

    /// What a server has said from which nothing but silence was noted.
    pub(crate) fn nothing(&self) -> &'static str {
        if self.1.load(Ordering::Relaxed) { "only heartbeats and other ambient messages" } else { "nothing" }
    }

    pub(crate) fn extent(&self) -> ActivityLevel {
        match self.0.load(Ordering::Relaxed) {
            0 => ActivityLevel::Nothing,
            1 => ActivityLevel::Openings,
            2 => ActivityLevel::Answers,
            _ => ActivityLevel::Turns,
        }
    }
}
