//! How long a target takes.

use std::collections::VecDeque;
use std::time::Duration;

/// Cases that count, the last ones.
const CASES: usize = 255;
/// How many times as long as half of the cases took in all an answer may take.
const MARGIN: u32 = 10;
/// The least that it may take.
const LEAST: Duration = Duration::from_millis(250);

/// How long cases took in which all was well.
#[derive(Debug, Default)]
pub struct Pace(VecDeque<Duration>);

impl Pace {
    /// Adds a case.
    pub fn add(&mut self, took: Duration) {
        if self.0.len() == CASES {
            self.0.pop_front();
        }
        self.0.push_back(took);
    }

    /// How long an answer can be expected to take, at most `deadline`.
    pub fn expected(&self, deadline: Duration) -> Duration {
        let mut all: Vec<Duration> = self.0.iter().copied().collect();
        all.sort_unstable();
        let half = all.get(all.len() / 2).copied().unwrap_or(deadline);
        half.saturating_mul(MARGIN).max(LEAST).min(deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_slow_cases_make_no_slow_target_and_many_do() {
        let deadline = Duration::from_millis(1500);
        let mut pace = Pace::default();
        assert_eq!(pace.expected(deadline), deadline, "nothing is known");
        (0..10).for_each(|_| pace.add(Duration::from_millis(40)));
        pace.add(Duration::from_secs(2));
        assert_eq!(pace.expected(deadline), Duration::from_millis(400));
        (0..CASES).for_each(|_| pace.add(Duration::from_millis(2)));
        assert_eq!(pace.expected(deadline), LEAST, "the old ones are forgotten");
        (0..CASES).for_each(|_| pace.add(Duration::from_secs(1)));
        assert_eq!(pace.expected(deadline), deadline);
    }
}
