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

/// Messages of which more than this has come are long, in bytes. The more connections there are, the less it is: so much for all of them,
/// but not less than this for each.
const LONG: usize = 1 << 20;
const LONG_TOGETHER: usize = 24 << 20;
pub(crate) const LONG_AT_LEAST: usize = 64 << 10;
/// What may have come of long messages together, in units of 1 KiB: of two that are as long as a message may be.
const ARRIVED: usize = 32 << 10;

/// What long messages share that are being received.
struct Arrivals {
    /// Units for what has come. How long a message will be does not count: one that comes slowly holds up nobody.
    arrived: Arc<Semaphore>,
    /// The right to receive a message to its end where no unit is left: there is always one that goes on.
    last: Arc<Semaphore>,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self { arrived: Arc::new(Semaphore::new(ARRIVED)), last: Arc::new(Semaphore::new(1)) }
    }
}

static ARRIVALS: std::sync::LazyLock<Arrivals> = std::sync::LazyLock::new(Arrivals::default);

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

/// The share of a long message that is being received. It is given back when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    units: Option<OwnedSemaphorePermit>,
    last: Option<OwnedSemaphorePermit>,
}

impl Lane {
    /// Waits for the right to receive more, where so much of a message has come that it is long.
    pub async fn grow(&mut self, unfinished: usize) {
        if unfinished > LONG_AT_LEAST {
            self.grow_within(&ARRIVALS, unfinished, long()).await;
        }
    }

    async fn grow_within(&mut self, arrivals: &Arrivals, unfinished: usize, long: usize) {
        if unfinished <= long || self.last.is_some() {
            return;
        }
        let held = self.units.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = (unfinished >> 10).min(ARRIVED).saturating_sub(held);
        let Some(missing) = u32::try_from(missing).ok().filter(|missing| *missing > 0) else { return };
        // The semaphores are never closed.
        tokio::select! {
            biased;
            Ok(more) = Arc::clone(&arrivals.arrived).acquire_many_owned(missing) => match &mut self.units {
                Some(units) => units.merge(more),
                none => *none = Some(more),
            },
            Ok(last) = Arc::clone(&arrivals.last).acquire_owned() => self.last = Some(last),
            else => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MIB: usize = 1 << 20;

    async fn goes_on(lane: &mut Lane, arrivals: &Arrivals, unfinished: usize) -> bool {
        tokio::time::timeout(Duration::ZERO, lane.grow_within(arrivals, unfinished, MIB)).await.is_ok()
    }

    #[tokio::test]
    async fn messages_that_come_slowly_hold_up_no_other() {
        let arrivals = Arrivals::default();
        let mut slow = [Lane::default(), Lane::default(), Lane::default()];
        for lane in &mut slow {
            assert!(goes_on(lane, &arrivals, 2 * MIB).await);
        }
        for _ in 0..3 {
            let mut other = Lane::default();
            for arrived in 1..=16 {
                assert!(goes_on(&mut other, &arrivals, arrived * MIB).await, "{arrived} MiB");
            }
        }
    }

    #[tokio::test]
    async fn what_arrives_is_bounded_and_one_message_always_goes_on() {
        let arrivals = Arrivals::default();
        let mut lanes: Vec<Lane> = std::iter::repeat_with(Lane::default).take(64).collect();
        let mut arrived = vec![MIB; lanes.len()];
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for (lane, arrived) in lanes.iter_mut().zip(&mut arrived) {
                if *arrived < 16 * MIB && goes_on(lane, &arrivals, *arrived + MIB).await {
                    (*arrived, moved) = (*arrived + MIB, true);
                }
            }
        }
        let long = arrived.iter().filter(|arrived| **arrived > MIB).sum::<usize>();
        assert!(long <= (32 + 16) * MIB, "{} MiB", long / MIB);
        let whole = arrived.iter().position(|arrived| *arrived == 16 * MIB).expect("one went on to its end");
        lanes[whole] = Lane::default();
        let mut others = lanes.iter_mut().zip(&arrived).filter(|(_, arrived)| **arrived < 16 * MIB);
        let (next, arrived) = others.next().expect("others");
        assert!(goes_on(next, &arrivals, arrived + MIB).await, "the next one goes on");
    }
}
