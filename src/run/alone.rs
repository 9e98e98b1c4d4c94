//! Large frames, one at a time: each takes much more memory while it is looked at than it has bytes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::shortage;

/// Frames with more bytes are large.
const LARGE: usize = 256 << 10;
/// Whose large frame is looked at.
static ALONE: Mutex<()> = Mutex::new(());

/// The right to look at a large frame, until this is dropped.
pub(crate) struct Alone(#[expect(dead_code, reason = "it is held, and no more")] MutexGuard<'static, ()>);

impl Alone {
    /// Waits for the right to look at a frame of so many bytes; a small one needs none.
    pub fn wait(length: usize) -> Option<Self> {
        (length > LARGE).then(|| Self(ALONE.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Does it on a thread of its own. Allocators keep memory for each thread: what one large frame needed, the next one finds again,
    /// whichever case it is for. Where no thread can be had, it is done here.
    pub fn look<T: Send>(&self, look: impl FnOnce() -> T + Send) -> T {
        let mut look = Some(look);
        let done = std::thread::scope(|scope| {
            let own = || look.take().map(|look| look());
            let started = std::thread::Builder::new().spawn_scoped(scope, own);
            let started = started.map_err(|error| shortage::note_start(&error)).ok()?;
            started.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        match (done, look) {
            (Some(done), _) => done,
            (None, Some(look)) => look(),
            (None, None) => unreachable!("it was either done or is still to be done"),
        }
    }
}

/// Looks at a frame of so many bytes: alone, if it is large.
pub(crate) fn look_at<T: Send>(length: usize, look: impl FnOnce() -> T + Send) -> T {
    match Alone::wait(length) {
        Some(alone) => alone.look(look),
        None => look(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn large_frames_are_looked_at_one_at_a_time() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let look = || {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            now.fetch_sub(1, Ordering::SeqCst);
            std::thread::current().id()
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        assert_ne!(look_at(LARGE + 1, look), std::thread::current().id(), "not here");
                    }
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 1);
        assert_eq!(look_at(LARGE, look), std::thread::current().id(), "a small one is looked at here");
    }
}
