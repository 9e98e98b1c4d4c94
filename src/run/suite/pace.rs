//! How many cases run at a time: few at first, more while openings stay as quick as they were, fewer where they do not.

use std::time::Duration;

/// Cases that run at a time until something is known of the server.
const START: usize = 4;
/// So many times as long as the quickest opening, and so much longer: the server is short of something that openings need.
const FACTOR: u32 = 4;
const SLACK: Duration = Duration::from_millis(200);

/// How many cases may run at a time.
#[derive(Debug)]
pub(crate) struct Pace {
    most: usize,
    now: usize,
    adapts: bool,
    quickest: Option<Duration>,
    /// It was as low as this because openings took long.
    lowest: Option<usize>,
    /// Openings that are waited for before it grows again: those that had begun before.
    hold: usize,
}

impl Pace {
    /// As many as are wanted, at once, however long openings take.
    pub fn fixed(most: usize) -> Self {
        Self { most, now: most, adapts: false, quickest: None, lowest: None, hold: 0 }
    }

    /// At most as many as are wanted.
    pub fn adaptive(most: usize) -> Self {
        Self { now: most.min(START), adapts: true, ..Self::fixed(most) }
    }

    /// How many may run now.
    pub fn now(&self) -> usize {
        self.now
    }

    /// Never more than so many from now on.
    pub fn at_most(&mut self, most: usize) {
        self.most = self.most.min(most).max(1);
        self.now = self.now.min(self.most);
    }

    /// An opening was done, and took so long.
    pub fn opened(&mut self, took: Duration) {
        if !self.adapts {
            return;
        }
        let quickest = self.quickest.map_or(took, |quickest| quickest.min(took));
        self.quickest = Some(quickest);
        if self.hold > 0 {
            self.hold -= 1;
        } else if took > (quickest * FACTOR).max(quickest + SLACK) && self.most > 1 {
            self.hold = self.now;
            self.now = (self.now / 2).max(1);
            self.lowest = Some(self.lowest.map_or(self.now, |lowest| lowest.min(self.now)));
        } else if self.now < self.most {
            self.now += 1;
        }
    }

    /// What is to be said of it.
    pub fn hint(&self) -> Option<String> {
        let (lowest, quickest) = (self.lowest?, self.quickest?);
        Some(format!(
            "openings took {quickest:.1?}, and more than {FACTOR} times as long while {} ran: no more than {lowest} ran at a time then. `sessions` \
             of the target (or --jobs) says how many it bears",
            if lowest == 1 { "two cases" } else { "more cases" },
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_while_openings_are_quick_and_shrinks_when_they_are_not() {
        let ms = Duration::from_millis;
        let mut pace = Pace::adaptive(8);
        assert_eq!(pace.now(), 4);
        (0..20).for_each(|_| pace.opened(ms(100)));
        assert_eq!(pace.now(), 8);
        assert!(pace.hint().is_none());
        pace.opened(ms(900));
        assert_eq!(pace.now(), 4);
        // Those that had begun before say nothing of the four.
        (0..8).for_each(|_| pace.opened(ms(900)));
        assert_eq!(pace.now(), 4);
        pace.opened(ms(900));
        assert_eq!(pace.now(), 2);
        assert!(pace.hint().is_some_and(|hint| hint.contains("no more than 2 ran")), "{:?}", pace.hint());
        // A little slower is not slow.
        let mut quick = Pace::adaptive(4);
        (0..9).for_each(|_| quick.opened(ms(1)));
        quick.opened(ms(150));
        assert_eq!(quick.now(), 4);
        let mut fixed = Pace::fixed(8);
        [1, 1, 900].map(ms).into_iter().for_each(|took| fixed.opened(took));
        assert_eq!((fixed.now(), fixed.hint()), (8, None));
        assert_eq!(Pace::adaptive(1).now(), 1);
    }
}
