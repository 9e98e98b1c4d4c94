//! How late this process itself is: on a busy machine what it measures is off by as much.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often it is looked.
const TICK: Duration = Duration::from_millis(20);

/// Measures from when it was made until it is dropped.
pub(super) struct Lag {
    worst: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

impl Lag {
    pub fn new() -> Self {
        let worst = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&worst);
        let task = tokio::spawn(async move {
            let mut ticks = interval(TICK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                let due = ticks.tick().await;
                let late = Instant::now().saturating_duration_since(due);
                told.fetch_max(late.as_micros().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
            }
        });
        Self { worst, task }
    }

    /// The longest that a tick came late.
    pub fn worst(&self) -> Duration {
        Duration::from_micros(self.worst.load(Ordering::Relaxed))
    }
}

impl Drop for Lag {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thread_that_is_held_up_is_late() {
        let lag = Lag::new();
        let mut worst = Duration::ZERO;
        // The only thread of this runtime stands still: no other tick comes meanwhile.
        while worst < Duration::from_millis(40) {
            tokio::time::sleep(TICK).await;
            std::thread::sleep(Duration::from_millis(60));
            tokio::task::yield_now().await;
            worst = lag.worst();
        }
    }
}
