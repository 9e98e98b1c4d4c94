//! Starting a program without waiting for the system for ever: loading a file that does not come (from a network's file system, or one
//! that somebody holds a lease of) is waited for by the thread that starts it, and nothing in this program ends that wait.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::group::{self, Groups};

/// How long a start that is given up may take to end. Longer takes only one that the kernel does not let go.
const GIVEN_UP: Duration = Duration::from_secs(1);
/// How often it is looked whether it has.
const POLL: Duration = Duration::from_millis(2);

/// Starts a program as leader of a group: it, and the mark that it and all that it starts have in their environment. Dropping the future
/// gives the start up, and ends what there is of the process.
///
/// # Errors
/// The system's.
pub(super) async fn spawn(mut command: Command, groups: &Arc<Groups>) -> io::Result<(Child, String)> {
    let (told, answer) = oneshot::channel();
    // It is ended whatever becomes of us: while it is being started by its mark, then by its group.
    let mark = groups.announce();
    let own_mark = mark.clone();
    let mut pending = Pending { answer, thread: Arc::default(), groups: Arc::clone(groups), is_over: false };
    let (runtime, thread, groups) = (Handle::current(), Arc::clone(&pending.thread), Arc::clone(groups));
    let started = std::thread::Builder::new().name("launch".into()).spawn(move || {
        let _context = runtime.enter();
        // Set once; where the system does not tell, a process that hangs there is not found.
        let _ = thread.set(std::fs::read_link("/proc/thread-self").unwrap_or_default());
        let child = command.env(group::MARK, &mark).spawn();
        child.iter().filter_map(Child::id).for_each(|leader| groups.add(leader));
        groups.settle(&mark);
        if let Err(Ok(child)) = told.send(child) {
            end(&child, &groups);
        }
    });
    if let Err(error) = started {
        pending.is_over = true;
        pending.groups.settle(&own_mark);
        return Err(error);
    }
    let child = (&mut pending.answer).await;
    pending.is_over = true;
    let child = child.unwrap_or_else(|_| Err(io::Error::other("it was not tried to the end")));
    child.map(|child| (child, own_mark))
}

/// A start whose end is not known.
struct Pending {
    answer: oneshot::Receiver<io::Result<Child>>,
    /// The thread that waits, as a folder of /proc: `1/task/2`.
    thread: Arc<OnceLock<PathBuf>>,
    groups: Arc<Groups>,
    is_over: bool,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let until = Instant::now() + GIVEN_UP;
        while !self.is_over && Instant::now() < until {
            match self.answer.try_recv() {
                Ok(child) => {
                    child.iter().for_each(|child| end(child, &self.groups));
                    return;
                }
                Err(oneshot::error::TryRecvError::Closed) => return,
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
            for process in self.thread.get().map(|thread| started_by(thread)).unwrap_or_default() {
                group::signal(process, Signal::KILL);
            }
            std::thread::sleep(POLL);
        }
    }
}

/// The processes that a thread has started: at most the one that becomes the program.
fn started_by(thread: &std::path::Path) -> Vec<u32> {
    let children = std::fs::read_to_string(PathBuf::from("/proc").join(thread).join("children"));
    children.unwrap_or_default().split_whitespace().filter_map(|process| process.parse().ok()).collect()
}

fn end(child: &Child, groups: &Groups) {
    if let Some(leader) = child.id() {
        group::signal(leader, Signal::KILL);
        groups.remove(leader);
    }
}
