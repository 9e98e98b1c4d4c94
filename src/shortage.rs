//! What this machine has no more of for frameproof itself. No server is to blame for what follows from it, so whoever meets a
//! shortage notes it here, and whoever judges looks here first.

use std::fmt;
use std::io;
use std::sync::LazyLock;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tokio::sync::watch;

/// What there is no more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// File descriptors of this process.
    Descriptors,
    /// File descriptors of the whole system.
    SystemDescriptors,
    /// Memory.
    Memory,
    /// Processes or threads.
    Processes,
    /// Room on the disk.
    Disk,
    /// Room in a file: this process may make none that is longer.
    FileSize,
}

/// The first that was noted. What a process lacks it lacks everywhere, so that there is one for all of it.
static FIRST: LazyLock<watch::Sender<Option<Shortage>>> = LazyLock::new(|| watch::Sender::new(None));

impl Shortage {
    /// The shortage that an error tells of.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        match errno(error)? {
            Errno::MFILE => Some(Self::Descriptors),
            Errno::NFILE => Some(Self::SystemDescriptors),
            Errno::NOMEM | Errno::NOBUFS => Some(Self::Memory),
            Errno::NOSPC | Errno::DQUOT => Some(Self::Disk),
            Errno::FBIG => Some(Self::FileSize),
            _ => None,
        }
    }

    /// The same of an error with which a process or thread does not start.
    #[must_use]
    pub fn of_start(error: &io::Error) -> Option<Self> {
        // Elsewhere it means: later.
        let is_full = errno(error) == Some(Errno::AGAIN);
        Self::of(error).or(is_full.then_some(Self::Processes))
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::Descriptors => {
                "allow more in this shell (`ulimit -n 4096`), or run fewer cases at the same time (--jobs 2)"
            }
            Self::SystemDescriptors => "end other programs, or run fewer cases at the same time (--jobs 2)",
            Self::Memory => {
                "end other programs, allow more (`ulimit -v`), or run fewer cases at the same time (--jobs 2)"
            }
            Self::Processes => {
                "end other programs, allow more (`ulimit -u`), or run fewer cases at the same time (--jobs 2)"
            }
            Self::Disk => "make room where temporary files are kept (TMPDIR)",
            Self::FileSize => "allow longer files in this shell (`ulimit -f unlimited`)",
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Descriptors => {
                f.write_str("frameproof itself has no file descriptor left")?;
                let most = getrlimit(Resource::Nofile).current;
                return most.map_or(Ok(()), |most| write!(f, ": this process may have {most}"));
            }
            Self::SystemDescriptors => "this machine has no file descriptor left for frameproof",
            Self::Memory => "this machine has no memory left for frameproof",
            Self::Processes => "this machine has no process or thread left for frameproof",
            Self::Disk => "this machine has no room on its disk left for frameproof",
            Self::FileSize => "frameproof itself may write no file as long as it needs",
        })
    }
}

/// The system's number of an error, also of one that was wrapped to name a path.
fn errno(error: &io::Error) -> Option<Errno> {
    let mut inner = error.get_ref().map(|inner| inner as &(dyn std::error::Error + 'static));
    let mut found = Errno::from_io_error(error);
    while let (None, Some(error)) = (found, inner) {
        found = error.downcast_ref().and_then(Errno::from_io_error);
        inner = error.source();
    }
    found
}

/// Notes the shortage that an error of this process tells of, if it does.
pub fn note(error: &io::Error) -> Option<Shortage> {
    Shortage::of(error).inspect(|shortage| keep(*shortage))
}

/// Hands on what the system has answered, and notes the shortage that it tells of, if it does.
///
/// # Errors
/// Those of the result.
pub fn heed<T>(result: io::Result<T>) -> io::Result<T> {
    if let Err(error) = &result {
        note(error);
    }
    result
}

/// The same of an error with which a process or thread does not start.
pub fn note_start(error: &io::Error) -> Option<Shortage> {
    Shortage::of_start(error).inspect(|shortage| keep(*shortage))
}

fn keep(shortage: Shortage) {
    FIRST.send_if_modified(|first| {
        let is_first = first.is_none();
        first.get_or_insert(shortage);
        is_first
    });
}

/// The first shortage that was noted.
#[must_use]
pub fn seen() -> Option<Shortage> {
    *FIRST.borrow()
}

/// Waits for the first shortage.
pub async fn came() -> Shortage {
    let mut first = FIRST.subscribe();
    loop {
        if let Some(shortage) = *first.borrow_and_update() {
            return shortage;
        }
        // The sender is never gone.
        let _ = first.changed().await;
    }
}

/// What is wrong with something that is written, and what to do about it where this process lacks something. It is noted nowhere: the
/// verdict does not hang on what is written.
#[must_use]
pub fn told(error: &io::Error) -> String {
    match Shortage::of(error) {
        Some(Shortage::FileSize) => format!("{error}: {}", Shortage::FileSize.advice()),
        Some(Shortage::Disk) => format!("{error}: make room on its disk"),
        _ => error.to_string(),
    }
}

/// How much of the memory that this process may have is left for what is being done when the rest is used, in bytes: with less, an
/// allocation may fail, and that ends a process at once.
const LEFT: u64 = 96 << 20;
/// How much must be left to begin with: each thread reserves some, and a run may take 300 MiB.
const TO_BEGIN: u64 = 256 << 20;
/// How often it is looked at.
const OFTEN: std::time::Duration = std::time::Duration::from_millis(10);

/// Whether less than this is left of the memory that this process may have (`ulimit -v`).
fn memory_is_short(least: u64) -> bool {
    let Some(most) = getrlimit(Resource::As).current else { return false };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let used = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let used = used.and_then(|used| used.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0);
    used.saturating_mul(1 << 10).saturating_add(least) > most
}

/// Notes at once that there is too little memory to begin with, if that is so.
pub fn look_at_memory() -> Option<Shortage> {
    note_memory(TO_BEGIN)
}

fn note_memory(least: u64) -> Option<Shortage> {
    memory_is_short(least).then(|| {
        keep(Shortage::Memory);
        Shortage::Memory
    })
}

/// Notes it when the memory that this process may have is nearly used, where it is limited.
pub async fn watch_memory() {
    if getrlimit(Resource::As).current.is_none() {
        return;
    }
    while note_memory(LEFT).is_none() {
        tokio::time::sleep(OFTEN).await;
    }
}

/// What a command reads.
#[derive(Debug, Clone, Copy)]
pub enum Reads {
    /// What is embedded in the program.
    Embedded,
    /// Documents (scenarios, protocols, overlays) of at most so many bytes.
    Documents(u64),
    /// Recordings, whose lines are long.
    Recordings,
}

impl Reads {
    /// What must be left, in bytes: what is taken between two looks, and the longest that is read at once.
    fn needs(self) -> u64 {
        match self {
            Self::Embedded => BETWEEN_LOOKS,
            Self::Documents(longest) => BETWEEN_LOOKS + longest,
            Self::Recordings => LEFT,
        }
    }
}

/// What a command takes at most between two looks, in bytes.
const BETWEEN_LOOKS: u64 = 16 << 20;

/// Ends this process with this code once the memory that it may have is nearly used, where it is limited; `told`: says why before. For
/// commands that have nothing to lose by it: what they write is in its place once it is complete, or not at all.
pub fn end_when_memory_is_short(code: u8, reads: Reads, told: fn(Shortage)) {
    let least = reads.needs();
    if getrlimit(Resource::As).current.is_none() {
        return;
    }
    let look = move || {
        if let Some(shortage) = note_memory(least) {
            told(shortage);
            std::process::exit(i32::from(code));
        }
    };
    // Before anything is done: a thread may come to it only when a short command is over.
    look();
    let watched = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        loop {
            look();
            std::thread::sleep(OFTEN);
        }
    });
    if let Err(error) = watched {
        note_start(&error);
    }
}

/// What such a thread needs, in bytes.
const STACK: usize = 256 << 10;

/// Lets a write fail that would make a file longer than this process may make it (`ulimit -f`): by itself the system ends the process.
/// Whatever is launched has its own way again. Without an effect where no descriptor is left for it.
pub fn survive_long_files() {
    if getrlimit(Resource::Fsize).current.is_none() {
        return;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    let _context = runtime.enter();
    let signal = tokio::signal::unix::SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    // What this is told is not needed: from now on, and for as long as the process lives, there is a handler.
    let _ = tokio::signal::unix::signal(signal);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_known_by_its_number_wherever_it_is_wrapped() {
        let full = |number: i32| io::Error::from_raw_os_error(number);
        #[derive(Debug, thiserror::Error)]
        #[error("at a path")]
        struct Wrapped(#[source] io::Error);
        let number = Errno::MFILE.raw_os_error();
        assert_eq!(Shortage::of(&full(number)), Some(Shortage::Descriptors));
        assert_eq!(Shortage::of(&io::Error::other(Wrapped(full(number)))), Some(Shortage::Descriptors));
        assert_eq!(Shortage::of(&full(Errno::CONNREFUSED.raw_os_error())), None);
        let again = full(Errno::AGAIN.raw_os_error());
        assert_eq!(
            (Shortage::of(&again), Shortage::of_start(&again)),
            (None, Some(Shortage::Processes)),
            "elsewhere it means: later"
        );
    }
}
