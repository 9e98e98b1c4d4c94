//! How long a step waits.

use std::time::{Duration, Instant};

/// How long a wait goes on: a deadline is for silence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// When it is over, unless something comes.
    pub until: Instant,
    /// Each message that comes prolongs the wait by this, until `last`.
    silence: Duration,
    last: Instant,
}

/// A wait that messages prolong takes this many deadlines at most: a server that never pauses is not heard for ever.
const MOST_DEADLINES: u32 = 10;

impl Patience {
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

    /// What to say of a server that was still talking when the wait was over.
    pub fn note(&self) -> &'static str {
        let still_came = !self.silence.is_zero() && self.until == self.last;
        if still_came { ". Messages kept coming: for a slow server, use --timeout-scale" } else { "" }
    }

    pub fn is_over(&self) -> bool {
        Instant::now() > self.until
    }
}
