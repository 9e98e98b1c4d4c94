//! The deadline of a wait.

use std::time::{Duration, Instant};

/// The deadline of a wait. It limits silence: each message extends it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitDeadline {
    /// When it is over, unless something comes.
    pub until: Instant,
    /// Each message that comes prolongs the wait by this, until `last`.
    silence: Duration,
    last: Instant,
}

/// A wait that messages prolong takes this many deadlines at most: a server that never pauses does not extend it without end.
const MOST_DEADLINES: u32 = 10;

impl WaitDeadline {
    /// Until nothing has come for so long.
    pub fn for_silence(silence: Duration) -> Self {
        let now = Instant::now();
        Self { until: now + silence, silence, last: now + silence * MOST_DEADLINES }
    }

    /// For so long, whatever comes: the step says so.
    pub fn for_time(time: Duration) -> Self {
        let until = Instant::now() + time;
        Self { until, silence: Duration::ZERO, last: until }
    }

    /// Something came.
    pub fn prolong(&mut self) {
        self.until = self.until.max(Instant::now() + self.silence).min(self.last);
    }

    /// A note about a server that was still sending at the end of the wait.
    pub fn note(&self) -> &'static str {
        let still_came = !self.silence.is_zero() && self.until == self.last;
        if still_came { ". Messages kept coming: for a slow server, use --timeout-scale" } else { "" }
    }

    pub fn is_over(&self) -> bool {
        Instant::now() > self.until
    }
}
