//! Signals for the binary under test, and waiting for its end.

use std::process::{Child, Command, ExitStatus};
use std::sync::Once;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};

/// The signals that are ignored in this process, and so in what it starts, as the bits of a mask.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// What this process starts from now on is ended by the signals that end others, also where the tests run under `nohup` or in the
/// background of a script: who starts a program there has it ignore SIGHUP, or SIGINT and SIGQUIT, and frameproof misses one that comes
/// before it listens. A signal that is handled here, if only by doing nothing, is not ignored in a child.
pub fn let_through() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let _context = runtime.enter();
        for kind in [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::quit()] {
            if ignored() >> (kind.as_raw_value() - 1) & 1 == 1 {
                // The handler stays when this is dropped.
                drop(signal(kind).expect("a handler"));
            }
        }
    });
}

/// Sends a signal: `-HUP`.
pub fn send(name: &str, process: u32) {
    let sent = Command::new("kill").args([name, process.to_string().as_str()]).status();
    assert!(sent.expect("kill runs").success(), "{name} cannot be sent");
}

/// How a process ended. One that does not is killed, and told of with what the system says about it: a test never hangs.
pub fn end_of(child: &mut Child, what: &str) -> ExitStatus {
    const PATIENCE: Duration = Duration::from_secs(60);
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if Instant::now() > until {
            let read = |file: &str| {
                std::fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap_or_default()
            };
            let (status, place) = (read("status"), read("wchan"));
            let _ = child.kill();
            panic!("{what}: frameproof has not ended within {PATIENCE:?}; it waits in {place}\n{status}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
