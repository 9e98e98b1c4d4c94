//! The time of a campaign.

use std::time::{Duration, Instant};

/// When a campaign began, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    start: Instant,
    /// No case begins after this time.
    time: Option<Duration>,
    /// How long after that failures may be confirmed.
    slack: Duration,
}

impl Budget {
    /// A budget that begins now.
    pub fn start(time: Option<Duration>, slack: Duration) -> Self {
        Self { start: Instant::now(), time, slack }
    }

    /// The time since the campaign began.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Whether no further case may begin.
    pub fn is_spent(&self) -> bool {
        self.time.is_some_and(|time| self.elapsed() >= time)
    }

    /// When the campaign is over at the latest.
    pub fn end(&self) -> Option<Instant> {
        self.time.and_then(|time| self.start.checked_add(time.saturating_add(self.slack)))
    }
}
