//! What ends a run from outside.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::runtime::Runtime;
use super::target::Chosen;
use crate::exit::Exit;
use crate::target::Groups;

/// Signals within this time are one: `timeout`, npm, make and the runners of CI signal a process and then its group.
const ONE: Duration = Duration::from_secs(1);

/// The signals that end a run. Made before the run, so that none is missed.
struct Handlers {
    interrupt: Signal,
    terminate: Signal,
    /// None: whoever started this process wants it to outlive the terminal (`nohup`).
    hangup: Option<Signal>,
    quit: Signal,
}

impl Handlers {
    fn new() -> Option<Self> {
        let of = |kind| signal(kind).ok();
        Some(Self {
            interrupt: of(SignalKind::interrupt())?,
            terminate: of(SignalKind::terminate())?,
            hangup: (!is_hangup_ignored()).then(|| of(SignalKind::hangup())).flatten(),
            quit: of(SignalKind::quit())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            Some(_) = async { self.hangup.as_mut()?.recv().await } => {}
            _ = self.quit.recv() => {}
        }
    }
}

/// Whether SIGHUP is ignored in this process, as far as the system tells.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Ctrl-C, Ctrl-\, SIGTERM and a closed terminal end a run in order: what is returned becomes `true`. Another one, a second later,
/// ends the process at once, and with it what was launched for the target.
pub(super) fn stop_on_signal(runtime: &Runtime, chosen: Option<&Chosen>) -> watch::Receiver<bool> {
    let (stop, stopped) = watch::channel(false);
    let handlers = runtime.block_on(async { Handlers::new() });
    let groups = chosen.map(|chosen| Arc::clone(&chosen.spec.groups));
    runtime.spawn(wait(handlers, stop, groups));
    stopped
}

/// Waits for the signal to end.
pub(super) async fn stop(mut stopped: watch::Receiver<bool>) {
    if stopped.wait_for(|stopped| *stopped).await.is_err() {
        // Nobody is left who could send one.
        std::future::pending::<()>().await;
    }
}

async fn wait(handlers: Option<Handlers>, stop: watch::Sender<bool>, groups: Option<Arc<Groups>>) {
    let Some(mut handlers) = handlers else { return };
    handlers.next().await;
    let first = Instant::now();
    // An error means that the run is over.
    let _ = stop.send(true);
    loop {
        handlers.next().await;
        if first.elapsed() >= ONE {
            break;
        }
    }
    if let Some(groups) = groups {
        groups.kill_all();
    }
    std::process::exit(Exit::Interrupted.code().into());
}
