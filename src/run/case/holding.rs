//! What a case holds in memory of what the server has sent: bounded for each case, and for all that run together.

use std::sync::atomic::{AtomicUsize, Ordering};

/// What one case may hold, in bytes.
const CASE: usize = 64 << 20;
/// What a case may hold whatever the others do.
const FREE: usize = 4 << 20;
/// What all cases may hold together, but for what is free to each.
const TOGETHER: usize = 72 << 20;
/// What is held is counted anew when so much has been added.
const STEP: usize = 1 << 20;

/// What all cases hold.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// What a case holds; nothing any more once this is dropped.
#[derive(Default)]
pub(crate) struct Holding {
    own: usize,
    /// As it was counted last.
    counted: usize,
}

impl Holding {
    /// More is held. `false`: it may be too much, and is to be counted anew.
    pub fn add(&mut self, bytes: usize) -> bool {
        self.own += bytes;
        HELD.fetch_add(bytes, Ordering::Relaxed);
        self.own < self.counted + STEP || self.is_fine()
    }

    /// So much is held. `false`: it is too much.
    pub fn set(&mut self, bytes: usize) -> bool {
        HELD.fetch_add(bytes, Ordering::Relaxed);
        HELD.fetch_sub(self.own, Ordering::Relaxed);
        (self.own, self.counted) = (bytes, bytes);
        self.is_fine()
    }

    fn is_fine(&self) -> bool {
        self.own <= FREE || (self.own <= CASE && HELD.load(Ordering::Relaxed) <= TOGETHER)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        HELD.fetch_sub(self.own, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_holds_no_more_than_its_share() {
        let mut one = Holding::default();
        assert!(one.add(STEP / 2) && one.add(FREE));
        assert!(!one.add(CASE), "more than one case may hold");
        assert!(one.set(FREE), "what was consumed is not held");
        assert!(one.add(10), "it is not counted anew each time");
        assert!(!one.set(CASE + 1));
    }
}
