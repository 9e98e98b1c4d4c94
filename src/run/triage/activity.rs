//! How much a server has been heard to say in a run, over all its cases: what one case waits for in vain means more where no
//! other case has heard anything either.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Shared by the cases of a run.
#[derive(Debug, Default)]
pub struct ServerActivity(AtomicU8, AtomicBool);

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
