//! Room for large messages that come, and that wait to be looked at: so much for all connections together, whatever servers send.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::trace::Payload;

/// Messages with more bytes are large.
const LARGE: usize = 16 << 10;
/// What may wait together, in units of 1 KiB: more than the largest message has.
const UNITS: usize = 20 << 10;

static ROOM: std::sync::LazyLock<Arc<Semaphore>> =
    std::sync::LazyLock::new(|| Arc::new(Semaphore::new(UNITS)));

/// The share of a large message that waits. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Room(#[expect(dead_code, reason = "it is held, and no more")] OwnedSemaphorePermit);

impl Room {
    /// Waits until there is room for a large message; a small one needs none.
    pub async fn of(payload: &Payload) -> Option<Self> {
        let length = match payload {
            Payload::Text(text) => text.len(),
            Payload::Binary(bytes) => bytes.len(),
            _ => 0,
        };
        if length <= LARGE {
            return None;
        }
        let units = u32::try_from((length >> 10).min(UNITS)).ok()?;
        // The semaphore is never closed.
        Arc::clone(&ROOM).acquire_many_owned(units).await.ok().map(Self)
    }
}

/// Messages of which more than this has come are read in few connections at a time, in bytes. The more connections there are, the less
/// it is: so much for all of them, but not less than this for each.
const LONG: usize = 1 << 20;
const LONG_TOGETHER: usize = 24 << 20;
const LONG_AT_LEAST: usize = 64 << 10;
/// So many.
const LANES: usize = 2;

static LANE: std::sync::LazyLock<Arc<Semaphore>> =
    std::sync::LazyLock::new(|| Arc::new(Semaphore::new(LANES)));

/// Connections that are read.
static READERS: AtomicUsize = AtomicUsize::new(0);

/// A connection that is read, until this is dropped.
#[derive(Debug)]
pub(crate) struct Reading(());

impl Reading {
    /// One more.
    pub fn begin() -> Self {
        READERS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        READERS.fetch_sub(1, Ordering::Relaxed);
    }
}

fn long() -> usize {
    (LONG_TOGETHER / READERS.load(Ordering::Relaxed).max(1)).clamp(LONG_AT_LEAST, LONG)
}

/// The right to read a long message to its end. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Lane(#[expect(dead_code, reason = "it is held, and no more")] OwnedSemaphorePermit);

impl Lane {
    /// Waits for the right, where so much of a message has come that it is long.
    pub async fn of(unfinished: usize) -> Option<Self> {
        if unfinished <= LONG_AT_LEAST || unfinished <= long() {
            return None;
        }
        Arc::clone(&LANE).acquire_owned().await.ok().map(Self)
    }
}
