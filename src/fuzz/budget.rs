//! The time of a campaign.

use std::time::{Duration, Instant};

/// What is given to one failure at least: a silence takes its time to be shown.
const LEAST: Duration = Duration::from_secs(15);

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

    /// The time in which cases may begin.
    pub fn whole(&self) -> Option<Duration> {
        self.time
    }

    /// Until when one failure may be shrunk: a quarter of the whole time, so that one defect does not take it from the others, and not
    /// all of what is left.
    pub fn end_of_share(&self) -> Option<Instant> {
        let now = Instant::now();
        let left = self.end()?.saturating_duration_since(now);
        let whole = self.time?.saturating_add(self.slack);
        Some(now + left.mul_f64(0.75).min((whole / 4).max(LEAST)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_does_not_take_the_time_of_all() {
        let share = |time: u64| {
            let budget = Budget::start(Some(Duration::from_secs(time)), Duration::ZERO);
            budget.end_of_share().expect("an end").saturating_duration_since(budget.start).as_secs_f64()
        };
        for (time, most) in [(400, 100.5), (40, 15.5), (8, 6.5)] {
            assert!(share(time) <= most && share(time) > most - 1.0, "{time}: {}", share(time));
        }
        assert!(Budget::start(None, Duration::ZERO).end_of_share().is_none());
    }
}
