//! What a case holds in memory of what the server has sent: bounded for each case, and for all that run together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What one case may hold, in bytes.
const CASE: usize = 48 << 20;
/// What a case may hold whatever the others do: so much for all of them, but not more than this for each.
const FREE: usize = 2 << 20;
const FREE_TOGETHER: usize = 32 << 20;
/// What all cases may hold together, but for what is free to each.
const TOGETHER: usize = 56 << 20;
/// What a block of memory takes besides what is asked for, about, in bytes: the allocator's own data, and rounding up.
pub(crate) const BLOCK: usize = 24;

/// What was passed, as the sentence that tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Bound {
    /// That of one case.
    #[error("the server sent more in one case than is kept of it: {} MiB", CASE >> 20)]
    Case,
    /// That of all cases: the server may be right, and only fewer of them may run together.
    #[error(
        "the server sent more than is kept of all cases that run together: {} MiB; fewer --jobs leave more to each",
        TOGETHER >> 20
    )]
    Together,
}

/// What all cases hold.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// How many cases there are that hold something.
static CASES: AtomicUsize = AtomicUsize::new(0);

/// The account of one case, of which every [`Share`] is a part.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holding(Arc<Account>);

#[derive(Debug)]
struct Account(AtomicUsize);

impl Default for Account {
    fn default() -> Self {
        CASES.fetch_add(1, Ordering::Relaxed);
        Self(AtomicUsize::new(0))
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        CASES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// So many bytes that a case holds, until this is dropped: it lies beside what it stands for, wherever that goes.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// None: of nothing that came from a server.
    of: Option<Holding>,
    bytes: usize,
}

impl Holding {
    /// The case holds so many bytes more.
    pub fn share(&self, bytes: usize) -> Share {
        let mut share = Share { of: Some(self.clone()), bytes: 0 };
        share.grow(bytes);
        share
    }

    /// The bound that is passed, if one is.
    pub fn passed(&self) -> Option<Bound> {
        let own = self.0.0.load(Ordering::Relaxed);
        if own > CASE {
            return Some(Bound::Case);
        }
        let all = HELD.load(Ordering::Relaxed);
        let free = FREE.min(FREE_TOGETHER / CASES.load(Ordering::Relaxed).max(1));
        (own > free && all > TOGETHER).then_some(Bound::Together)
    }
}

impl Share {
    /// It stands for so many bytes more.
    pub fn grow(&mut self, bytes: usize) {
        let Some(of) = &self.of else { return };
        self.bytes += bytes;
        of.0.0.fetch_add(bytes, Ordering::Relaxed);
        HELD.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Share {
    /// It stands for so many bytes less; it stands for that many.
    pub fn shrink(&mut self, bytes: usize) {
        let Some(of) = &self.of else { return };
        self.bytes -= bytes;
        of.0.0.fetch_sub(bytes, Ordering::Relaxed);
        HELD.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Clone for Share {
    fn clone(&self) -> Self {
        self.of.as_ref().map(|of| of.share(self.bytes)).unwrap_or_default()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some(of) = &self.of else { return };
        of.0.0.fetch_sub(self.bytes, Ordering::Relaxed);
        HELD.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_holds_no_more_than_its_share() {
        let holding = Holding::default();
        let first = holding.share(CASE / 2);
        let mut second = first.clone();
        assert_eq!(holding.passed(), None);
        second.grow(1);
        let said = holding.passed().expect("more than a case may hold").to_string();
        assert!(said.ends_with("48 MiB"), "{said}");
        drop(first);
        assert_eq!(holding.passed(), None, "what is gone is not held");
        let others = [Holding::default(), Holding::default()];
        let held = [others[0].share(CASE), others[1].share(1 << 10)];
        let said = others[0].passed().expect("more than all cases may hold").to_string();
        assert!(said.contains("56 MiB"), "{said}");
        assert_eq!(others[1].passed(), None, "a case that holds little is not to blame");
        drop((second, held));
    }
}
