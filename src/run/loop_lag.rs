//! How late this process itself is: on a busy machine what it measures is off by as much.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// How often it is looked.
const TICK: Duration = Duration::from_millis(20);
/// What is remembered is as fine as this.
const GRAIN: u64 = 1_000;
/// Timers are late by as much on a machine that has nothing else to do, in microseconds.
const TIMER: u64 = 2_000;

/// Measures for a whole run, from when it is first asked until it is dropped. Whoever wants to know asks for a span of time.
#[derive(Default)]
pub(crate) struct LoopLag(OnceLock<Meter>);

/// Where a span of time begins, in microseconds since the first one did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LagMark(u64);

struct Meter {
    began: Instant,
    ticks: Arc<Ticks>,
    task: JoinHandle<()>,
}

/// In microseconds since the beginning.
#[derive(Default)]
struct Ticks {
    /// When the last one came.
    last: AtomicU64,
    /// How late all of them were together.
    total: AtomicU64,
    /// When ticks came, and how late: those behind which none was as late. Memory: each is later by less than the one before, by
    /// [`GRAIN`] at least.
    late: Mutex<VecDeque<(u64, u64)>>,
}

impl Ticks {
    fn came(&self, now: u64) {
        let late = now.saturating_sub(self.last.swap(now, Ordering::Relaxed) + micros(TICK));
        self.total.fetch_add(late.saturating_sub(TIMER), Ordering::Relaxed);
        let late = late - late % GRAIN;
        if late == 0 {
            return;
        }
        let mut known = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        while known.back().is_some_and(|(_, other)| *other <= late) {
            known.pop_back();
        }
        known.push_back((now, late));
    }

    /// How late the next tick is already.
    fn missing(&self, now: u64) -> u64 {
        now.saturating_sub(self.last.load(Ordering::Relaxed) + micros(TICK))
    }

    /// How late the ticks were together, the next one included, by more than timers always are.
    fn total(&self, now: u64) -> u64 {
        self.total.load(Ordering::Relaxed) + self.missing(now).saturating_sub(TIMER)
    }

    /// The longest since `from` that a tick was late, or is at `now`. What was late before is none of this span's.
    fn worst(&self, from: u64, now: u64) -> u64 {
        let span = |at: u64, late: u64| late.min(at.saturating_sub(from));
        let missing = self.missing(now);
        let known = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        let within = known.iter().rev().take_while(|(at, _)| *at >= from);
        within.map(|(at, late)| span(*at, *late)).fold(span(now, missing), u64::max)
    }
}

fn micros(time: Duration) -> u64 {
    time.as_micros().try_into().unwrap_or(u64::MAX)
}

impl LoopLag {
    /// A span begins now. Within a runtime only.
    pub fn mark(&self) -> LagMark {
        LagMark(self.0.get_or_init(Meter::start).now())
    }

    /// How long this process was late in all, since it is measured. It grows by less than the time that passes. Within a runtime only.
    pub fn total(&self) -> Duration {
        let meter = self.0.get_or_init(Meter::start);
        Duration::from_micros(meter.ticks.total(meter.now()))
    }

    /// The longest that this process was late since then.
    pub fn since(&self, mark: LagMark) -> Duration {
        let worst = self.0.get().map(|meter| meter.ticks.worst(mark.0, meter.now()));
        Duration::from_micros(worst.unwrap_or_default())
    }
}

impl Meter {
    fn start() -> Self {
        let began = Instant::now();
        let ticks = Arc::new(Ticks::default());
        let told = Arc::clone(&ticks);
        let task = tokio::spawn(async move {
            let mut due = interval(TICK);
            due.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                due.tick().await;
                told.came(micros(began.elapsed()));
            }
        });
        Self { began, ticks, task }
    }

    fn now(&self) -> u64 {
        micros(self.began.elapsed())
    }
}

impl Drop for Meter {
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
        let lag = LoopLag::default();
        let mark = lag.mark();
        // The only thread of this runtime stands still: no tick comes meanwhile, and that is known before the next one does.
        std::thread::sleep(HELD);
        assert!(lag.since(mark) >= HELD - TICK, "{:?}", lag.since(mark));
        assert!(lag.total() >= HELD - TICK * 2, "{:?}", lag.total());
        tokio::time::sleep(TICK).await;
        assert!(lag.since(mark) >= HELD - TICK * 2, "it is remembered: {:?}", lag.since(mark));
    }

    #[test]
    fn each_span_has_its_own_worst() {
        const MS: u64 = 1_000;
        let ticks = Ticks::default();
        let tick = micros(TICK);
        // In time; 50 ms late; 10 ms late; in time.
        for at in [tick, tick * 2 + 50 * MS, tick * 3 + 60 * MS, tick * 4 + 60 * MS] {
            ticks.came(at);
        }
        let now = tick * 4 + 60 * MS;
        assert_eq!(ticks.total(now), 56 * MS, "without the 2 ms of each");
        assert_eq!(ticks.total(now + tick + 7 * MS), 61 * MS, "one is missing now");
        assert_eq!(ticks.total(now + tick + MS), 56 * MS, "timers are as late as that");
        assert_eq!(ticks.worst(0, now), 50 * MS);
        assert_eq!(ticks.worst(tick * 2 + 50 * MS + 1, now), 10 * MS, "the worst was before");
        assert_eq!(ticks.worst(tick * 2 + 45 * MS, now), 10 * MS, "5 ms of it were in this span");
        assert_eq!(ticks.worst(now, now), 0);
        assert_eq!(ticks.worst(0, now + tick + 70 * MS), 70 * MS, "one is missing now");
        assert_eq!(ticks.worst(now, now + tick + 7 * MS), 7 * MS);
    }
}
