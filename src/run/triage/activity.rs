//! How much a server has been heard to say in a run, over all its cases: what one case waits for in vain means more where no
//! other case has heard anything either.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often an optional message must have been waited for in vain, and never have come, until it is not waited for any more.
const ENOUGH: u32 = 3;

/// Openings that are kept until somebody asks.
const OPENINGS: usize = 1000;

/// Shared by the cases of a run.
#[derive(Debug, Default)]
pub struct ServerActivity(
    AtomicU8,
    AtomicBool,
    Mutex<BTreeMap<String, Occasions>>,
    Mutex<Upgrades>,
    Mutex<Vec<Duration>>,
);

/// What became of the upgrades.
#[derive(Debug, Default)]
struct Upgrades {
    answered: u32,
    /// So many were not since the last that was.
    unanswered: u32,
}

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

    /// An opening was done, and took so long.
    pub(crate) fn note_opening(&self, took: Duration) {
        let mut openings = self.4.lock().unwrap_or_else(PoisonError::into_inner);
        if openings.len() < OPENINGS {
            openings.push(took);
        }
    }

    /// How long the openings took that were done since this was asked last.
    pub(crate) fn take_openings(&self) -> Vec<Duration> {
        std::mem::take(&mut *self.4.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An upgrade was answered, in whatever way; or it was not, within the deadline.
    pub(crate) fn note_upgrade(&self, answered: bool) {
        let mut upgrades = self.3.lock().unwrap_or_else(PoisonError::into_inner);
        match answered {
            true => *upgrades = Upgrades { answered: upgrades.answered.saturating_add(1), unanswered: 0 },
            false => upgrades.unanswered = upgrades.unanswered.saturating_add(1),
        }
    }

    /// That the server has stopped answering upgrades, if so many in a row were not answered.
    pub(crate) fn is_frozen(&self, most: u32) -> Option<String> {
        let upgrades = self.3.lock().unwrap_or_else(PoisonError::into_inner);
        (upgrades.unanswered >= most).then(|| {
            let before = match upgrades.answered {
                0 => "the server has answered no upgrade of a case".to_owned(),
                1 => "the server has answered the upgrade of one connection and none since".to_owned(),
                many => format!("the server has answered the upgrades of {many} connections and none since"),
            };
            format!("{before}: it accepts TCP connections, and then sends nothing")
        })
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
