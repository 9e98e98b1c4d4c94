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
    /// What the wait is given besides when this process was late itself: so much at most, and how late it was in all before.
    leeway: Duration,
    lag: Duration,
}

/// A wait that messages prolong takes this many deadlines at most: a server that never pauses does not extend it without end.
const MOST_DEADLINES: u32 = 10;

/// A wait for a time takes so many times longer at most.
const LEEWAY: u32 = 1;

impl WaitDeadline {
    /// Until nothing has come for so long.
    pub fn for_silence(silence: Duration) -> Self {
        let now = Instant::now();
        let last = now + silence * MOST_DEADLINES;
        Self { until: now + silence, silence, last, leeway: Duration::ZERO, lag: Duration::ZERO }
    }

    /// For so long, whatever comes: the step says so. `lag`: how late this process was in all until now.
    pub fn for_time(time: Duration, lag: Duration) -> Self {
        let until = Instant::now() + time;
        Self { until, silence: Duration::ZERO, last: until, leeway: time * LEEWAY, lag }
    }

    /// On a busy machine the server is late, too: a wait for a time takes as much longer as this process was late during it, as long as the
    /// time once more at most. Whether that is later than now. `lag`: how late it was in all.
    pub fn concede(&mut self, lag: Duration) -> bool {
        let late = lag.saturating_sub(self.lag).min(self.leeway);
        self.leeway -= late;
        self.lag = lag;
        self.until += late;
        self.last = self.last.max(self.until);
        !late.is_zero() && !self.is_over()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_a_time_takes_longer_on_a_busy_machine() {
        const TIME: Duration = Duration::from_secs(60);
        let ms = Duration::from_millis;
        let mut wait = WaitDeadline::for_time(TIME, ms(500));
        let until = wait.until;
        assert!(!wait.concede(ms(500)), "what was late before is none of it");
        assert_eq!(wait.until, until);
        assert!(wait.concede(ms(740)));
        assert_eq!(wait.until, until + ms(240));
        assert!(wait.concede(ms(750)));
        assert_eq!(wait.until, until + ms(250), "each delay counts once");
        assert!(wait.concede(TIME * 5));
        assert_eq!(wait.until, until + TIME, "not without end");
    }

    #[test]
    fn a_wait_for_silence_is_long_enough_by_itself() {
        let mut wait = WaitDeadline::for_silence(Duration::from_secs(60));
        let until = wait.until;
        assert!(!wait.concede(Duration::from_secs(9)));
        assert_eq!(wait.until, until);
    }
}
