//! How late this process itself is: on a busy machine what it measures is off by as much.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

/// How often it is looked.
const TICK: Duration = Duration::from_millis(20);

/// Measures from when it was made until it is dropped.
pub(crate) struct LoopLag {
    began: Instant,
    ticks: Arc<Ticks>,
    task: tokio::task::JoinHandle<()>,
}

/// In microseconds.
#[derive(Default)]
struct Ticks {
    /// When the last one came, since the beginning.
    last: AtomicU64,
    /// The longest that one came late.
    worst: AtomicU64,
}

fn micros(time: Duration) -> u64 {
    time.as_micros().try_into().unwrap_or(u64::MAX)
}

impl LoopLag {
    pub fn new() -> Self {
        let began = Instant::now();
        let ticks = Arc::new(Ticks::default());
        let told = Arc::clone(&ticks);
        let task = tokio::spawn(async move {
            let mut due = interval(TICK);
            due.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                due.tick().await;
                let now = micros(began.elapsed());
                let late = now.saturating_sub(told.last.swap(now, Ordering::Relaxed) + micros(TICK));
                told.worst.fetch_max(late, Ordering::Relaxed);
            }
        });
        Self { began, ticks, task }
    }

    /// The longest that a tick came late, or is late now.
    pub fn worst(&self) -> Duration {
        let due = self.ticks.last.load(Ordering::Relaxed) + micros(TICK);
        let late = micros(self.began.elapsed()).saturating_sub(due);
        Duration::from_micros(late.max(self.ticks.worst.load(Ordering::Relaxed)))
    }
}

impl Drop for LoopLag {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thread_that_is_held_up_is_late() {
        const HELD: Duration = Duration::from_millis(60);
        let lag = LoopLag::new();
        // The only thread of this runtime stands still: no tick comes meanwhile, and that is known before the next one does.
        std::thread::sleep(HELD);
        assert!(lag.worst() >= HELD - TICK, "{:?}", lag.worst());
        tokio::time::sleep(TICK).await;
        assert!(lag.worst() >= HELD - TICK, "it is remembered: {:?}", lag.worst());
    }
}
