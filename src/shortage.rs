//! What this machine has no more of for frameproof itself. No server is to blame for what follows from it, so whoever meets a
//! shortage notes it here, and whoever judges looks here first.

mod cgroup;

use std::fmt;
use std::io;
use std::sync::{LazyLock, Once, OnceLock};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tokio::sync::watch;

use self::cgroup::Limited;

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
                "end other programs, allow more (`ulimit -v`, the limit of the container), or run fewer cases at the same time (--jobs 2)"
            }
            Self::Processes => {
                "end other programs, allow more (`ulimit -u`, the limit of the container), or run fewer cases at the same time (--jobs 2)"
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
            Self::Memory => {
                f.write_str("this machine has no memory left for frameproof")?;
                let most = cgroup::most(Limited::Memory);
                return most
                    .map_or(Ok(()), |most| write!(f, ": its control group may have {} MiB", most >> 20));
            }
            Self::Processes => {
                f.write_str("this machine has no process or thread left for frameproof")?;
                let most = cgroup::most(Limited::Processes);
                return most.map_or(Ok(()), |most| write!(f, ": its control group may have {most}"));
            }
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
    Shortage::of(error).inspect(|shortage| record_first(*shortage))
}

/// Hands on what the system has answered, and notes the shortage that it tells of, if it does.
///
/// # Errors
/// Those of the result.
pub fn note_result<T>(result: io::Result<T>) -> io::Result<T> {
    if let Err(error) = &result {
        note(error);
    }
    result
}

/// The same of an error with which a process or thread does not start.
pub fn note_start(error: &io::Error) -> Option<Shortage> {
    Shortage::of_start(error).inspect(|shortage| record_first(*shortage))
}

fn record_first(shortage: Shortage) {
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
pub fn describe(error: &io::Error) -> String {
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
/// How much of what its control group allows must be left. Only what is used counts there, not what is reserved, so that less is enough.
const LEFT_IN_GROUP: u64 = 32 << 20;
/// How often it is looked at.
const OFTEN: std::time::Duration = std::time::Duration::from_millis(10);

/// How much memory this process may have, in bytes.
#[derive(Debug, Clone, Copy)]
struct Allowed {
    /// To reserve (`ulimit -v`).
    reserved: Option<u64>,
    /// To use, together with what else is in its control group: the system ends a process of a group that uses more.
    used: Option<u64>,
}

/// Read once: it is looked at often.
static ALLOWED: LazyLock<Allowed> = LazyLock::new(|| Allowed {
    reserved: getrlimit(Resource::As).current,
    used: cgroup::most(Limited::Memory),
});

impl Allowed {
    fn is_limited(self) -> bool {
        self.reserved.or(self.used).is_some()
    }

    /// Whether less than this is left of what may be reserved, or too little of what may be used. `status`: as `/proc/self/status` has it.
    fn is_short(self, least: u64, status: &str) -> bool {
        let size = |name: &str| {
            let size = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let size =
                size.and_then(|size| size.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0);
            size.saturating_mul(1 << 10)
        };
        let is_beyond =
            |most: Option<u64>, size: u64, least| most.is_some_and(|most| size.saturating_add(least) > most);
        is_beyond(self.reserved, size("VmSize"), least)
            || is_beyond(self.used, size("RssAnon"), least.min(LEFT_IN_GROUP))
    }
}

/// Notes at once that there is too little memory to begin with, if that is so.
pub fn look_at_memory() -> Option<Shortage> {
    note_memory(TO_BEGIN)
}

fn note_memory(least: u64) -> Option<Shortage> {
    let is_short = ALLOWED.is_limited()
        && ALLOWED.is_short(least, &std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    is_short.then(|| {
        record_first(Shortage::Memory);
        Shortage::Memory
    })
}

/// Notes it when the memory that this process may have is nearly used, where it is limited.
pub async fn watch_memory() {
    if !ALLOWED.is_limited() {
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

/// What such a command does when it looks.
struct Look {
    least: u64,
    code: u8,
    report: fn(Shortage),
}

static LOOK: OnceLock<Look> = OnceLock::new();
static ENDS: Once = Once::new();

impl Look {
    fn look(&self) {
        if let Some(shortage) = note_memory(self.least) {
            // Whichever thread comes second waits for the end.
            ENDS.call_once(|| {
                (self.report)(shortage);
                std::process::exit(i32::from(self.code));
            });
        }
    }
}

/// Looks in between, where much is taken at once: on a busy machine, the thread that looks may come too late. Without an effect in other
/// commands.
pub fn look_at_once() {
    if let Some(look) = LOOK.get() {
        look.look();
    }
}

/// Ends this process with this code once the memory that it may have is nearly used, where it is limited; `told`: says why before. For
/// commands that have nothing to lose by it: what they write is in its place once it is complete, or not at all.
pub fn end_when_memory_is_short(code: u8, reads: Reads, report: fn(Shortage)) {
    let least = reads.needs();
    if !ALLOWED.is_limited() {
        return;
    }
    // Before anything is done: a thread may come to it only when a short command is over.
    LOOK.get_or_init(|| Look { least, code, report }).look();
    let watched = std::thread::Builder::new().stack_size(STACK).spawn(|| {
        loop {
            look_at_once();
            std::thread::sleep(OFTEN);
        }
    });
    if let Err(error) = watched {
        note_start(&error);
    }
}

/// What such a thread needs, in bytes.
const STACK: usize = 256 << 10;

/// Whether so many threads can be had at the same time: some libraries panic where one cannot.
///
/// # Errors
/// The system's.
pub fn try_threads(count: usize) -> io::Result<()> {
    let gate = std::sync::Mutex::new(());
    std::thread::scope(|scope| {
        let closed = gate.lock();
        let wait = || drop(gate.lock());
        let started =
            (0..count).map(|_| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, wait));
        let started: io::Result<Vec<_>> = started.collect();
        drop(closed);
        started.map(|threads| threads.into_iter().for_each(|thread| drop(thread.join())))
    })
}

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
    fn memory_is_short_by_what_is_reserved_or_by_what_is_used() {
        let status = "VmSize:\t  204800 kB\nVmRSS:\t 102400 kB\nRssAnon:\t  51200 kB\n";
        let mib = |mib: u64| Some(mib << 20);
        for (reserved, used, is_short) in [
            (None, None, false),
            (mib(296), None, false),
            (mib(295), None, true),
            // 50 of them are used.
            (None, mib(82), false),
            (None, mib(81), true),
            (mib(296), mib(81), true),
        ] {
            assert_eq!(Allowed { reserved, used }.is_short(LEFT, status), is_short, "{reserved:?} {used:?}");
        }
    }

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
