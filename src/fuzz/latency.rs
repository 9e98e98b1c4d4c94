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
pub struct Latency {
    took: VecDeque<Duration>,
    /// Answers took longer than was expected.
    misled: bool,
}

impl Latency {
    /// Adds a case.
    pub fn add(&mut self, took: Duration) {
        if self.took.len() == CASES {
            self.took.pop_front();
        }
        self.took.push_back(took);
    }

    /// Nothing is expected any more.
    pub fn was_misleading(&mut self) {
        self.misled = true;
    }

    /// In which time an answer can be expected; `None`: that is not known, or not before `deadline`.
    pub fn expected(&self, deadline: Duration) -> Option<Duration> {
        let mut all: Vec<Duration> = self.took.iter().copied().collect();
        all.sort_unstable();
        let half = all.get(all.len() / 2).filter(|_| !self.misled)?;
        Some(half.saturating_mul(MARGIN).max(LEAST)).filter(|expected| *expected < deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_slow_cases_make_no_slow_target_and_many_do() {
        let deadline = Duration::from_millis(1500);
        let mut latency = Latency::default();
        assert_eq!(latency.expected(deadline), None, "nothing is known");
        (0..10).for_each(|_| latency.add(Duration::from_millis(40)));
        latency.add(Duration::from_secs(2));
        assert_eq!(latency.expected(deadline), Some(Duration::from_millis(400)));
        (0..CASES).for_each(|_| latency.add(Duration::from_millis(2)));
        assert_eq!(latency.expected(deadline), Some(LEAST), "the old ones are forgotten");
        assert_eq!(latency.expected(LEAST), None);
        (0..CASES).for_each(|_| latency.add(Duration::from_secs(1)));
        assert_eq!(latency.expected(deadline), None);
        assert_eq!(latency.expected(deadline * 10), Some(Duration::from_secs(10)));
        latency.was_misleading();
        assert_eq!(latency.expected(deadline * 10), None);
    }
}
