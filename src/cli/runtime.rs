//! The runtime of commands that talk to a network.

use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::{Failure, harness};
use crate::shortage;

/// Descriptors without which nothing is begun.
const RESERVE: usize = 16;
/// Threads without which nothing is begun, besides those of the runtime: one that resolves names, one that launches a server, and others.
const SPARE_THREADS: usize = 4;

/// How long the end of a command waits for work that cannot be given up: a resolver of names that does not answer, for example.
const LEFT: Duration = Duration::from_millis(500);
/// How long a future sleeps at most.
const POLLED: Duration = Duration::from_secs(1);

/// A runtime whose end nothing holds up.
pub(super) struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    /// Runs a future to its end on this thread, and what it spawns on others.
    ///
    /// It is polled once a second though nothing wakes it. A campaign of the fuzzer has stood still for ever (twice in some 15,000 runs)
    /// with cases that were ready and the thread asleep: neither futures-util's `buffered` nor tokio's `block_on` explains it, and a gate
    /// of a CI must not hang.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        (**self).block_on(async {
            let mut future = std::pin::pin!(future);
            let mut polls = tokio::time::interval(POLLED);
            polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    biased;
                    output = &mut future => return output,
                    _ = polls.tick() => {}
                }
            }
        })
    }
}

impl std::ops::Deref for Runtime {
    type Target = tokio::runtime::Runtime;
    fn deref(&self) -> &Self::Target {
        self.0.as_ref().expect("it is there until this is dropped")
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(LEFT);
        }
    }
}

/// A runtime for commands that talk to a network.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    // The runtime takes some of its descriptors in a way that panics where there are none.
    let reserve: std::io::Result<Vec<_>> = (0..RESERVE).map(|_| std::fs::File::open("/dev/null")).collect();
    // It does so with its threads, too.
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let builder = || tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    let threads = || shortage::try_threads(workers + SPARE_THREADS);
    let runtime = reserve.map(drop).and_then(|()| threads()).and_then(|()| builder());
    let runtime = runtime.map_err(|error| match shortage::note_start(&error) {
        Some(_) => Failure::Shortage,
        None => harness(format!("no runtime: {error}"), ""),
    })?;
    if shortage::look_at_memory().is_some() {
        return Err(Failure::Shortage);
    }
    runtime.spawn(shortage::watch_memory());
    Ok(Runtime(Some(runtime)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a resolver of names does that does not answer: the thread that asks it waits in the system.
    #[test]
    fn what_cannot_be_given_up_does_not_hold_up_the_end() {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let runtime = runtime().expect("a runtime");
        runtime.spawn_blocking(move || held.recv());
        drop(runtime);
        drop(hold);
    }

    #[test]
    fn a_future_whose_wakeup_is_lost_ends_all_the_same() {
        let mut polls = 0;
        let asleep = std::future::poll_fn(|_| {
            polls += 1;
            // It has nobody who wakes it.
            if polls < 4 { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
        });
        runtime().expect("a runtime").block_on(asleep);
    }
}
