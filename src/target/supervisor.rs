//! A process of our own that outlives us for a moment: when frameproof is gone, however it went, it ends the servers that frameproof
//! has launched, and removes their scratch folders. It knows that frameproof is gone when the pipe between them is closed.

use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::group::{is_alive, launched_as, signal, signal_detached};

/// How long servers may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a process may take to begin that was about to be started when this program ended: until it has loaded its program it cannot be
/// told from others, and on a busy machine that takes its time.
const STARTING: Duration = Duration::from_secs(10);
/// How often it is looked whether they have.
const POLL: Duration = Duration::from_millis(10);
/// What the name of each scratch folder begins with: nothing else is ever removed.
pub(super) const PREFIX: &str = "frameproof-";

/// The program and its argument that supervise.
static PROGRAM: OnceLock<(PathBuf, &'static str)> = OnceLock::new();

/// Names the program that runs [`supervise`] when it is given this argument. Without it nothing is supervised.
pub fn supervised_by(program: PathBuf, argument: &'static str) {
    // Whoever said it first has said it.
    let _ = PROGRAM.set((program, argument));
}

/// The pipe to a supervisor that runs. Once it is closed, the supervisor does its work and ends.
#[derive(Debug)]
pub(super) struct Supervisor(ChildStdin);

impl Supervisor {
    /// Starts one, if somebody has said by which program. `family`: what the marks of all processes that it is for begin with.
    pub fn start(family: &str) -> Option<Self> {
        let (program, argument) = PROGRAM.get()?;
        // In a group of its own, so that no signal of a terminal reaches it; it holds nothing open but the pipe.
        let child = Command::new(program)
            .arg(argument)
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut this = child.ok()?.stdin.map(Self)?;
        this.write_line(&format!("={family}"));
        Some(this)
    }

    /// A process is about to be started, with this mark in its environment: if this program ends before it knows the process's
    /// group, the mark tells.
    pub fn announce(&mut self, mark: &str) {
        self.write_line(&format!("?{mark}"));
    }

    /// What was announced under this mark was added, or was not started.
    pub fn settle(&mut self, mark: &str) {
        self.write_line(&format!("!{mark}"));
    }

    /// A process group lives.
    pub fn add(&mut self, leader: i32) {
        self.write_line(&format!("+{leader}"));
    }

    /// It has ended; its number may be another's soon.
    pub fn remove(&mut self, leader: i32) {
        self.write_line(&format!("-{leader}"));
    }

    /// A scratch folder is there.
    pub fn folder(&mut self, folder: &Path) {
        self.write_line(&format!("/{}", folder.display()));
    }

    fn write_line(&mut self, line: &str) {
        // A supervisor that is gone cannot be helped.
        let _ = self.0.write_all(format!("{line}\n").as_bytes());
    }
}

/// What is to be ended and removed.
#[derive(Debug, Default)]
struct Left {
    /// What the marks of all processes begin with. Empty: it was not said.
    family: String,
    groups: BTreeSet<u32>,
    /// Marks of processes that were about to be started.
    announced: BTreeSet<String>,
    folders: BTreeSet<PathBuf>,
}

impl Left {
    /// Reads what is said until the pipe is closed.
    fn read(pipe: impl BufRead) -> Self {
        let mut left = Self::default();
        for line in pipe.lines().map_while(Result::ok) {
            match line.split_at_checked(1) {
                Some(("=", family)) => family.clone_into(&mut left.family),
                Some(("+", leader)) => left.groups.extend(leader.parse::<u32>()),
                Some(("-", leader)) => drop(leader.parse().map(|leader: u32| left.groups.remove(&leader))),
                Some(("?", mark)) => drop(left.announced.insert(mark.to_owned())),
                Some(("!", mark)) => drop(left.announced.remove(mark)),
                Some(("/", folder)) => drop(left.folders.insert(PathBuf::from(folder))),
                _ => {}
            }
        }
        left
    }

    /// Signals those that have left their group, too.
    fn signal_detached(&self, signal: Signal) {
        if !self.family.is_empty() {
            signal_detached(&self.family, &self.groups, signal);
        }
    }

    /// Takes up the groups of processes that have started after all.
    fn find_announced(&mut self) {
        let groups = &mut self.groups;
        self.announced.retain(|mark| {
            let found = launched_as(mark);
            groups.extend(found);
            found.is_none()
        });
    }
}

/// Reads what is to be ended until the pipe is closed, and ends it.
pub fn supervise(pipe: impl BufRead) {
    let mut left = Left::read(pipe);
    let mut asked = BTreeSet::new();
    let (until, begun) = (Instant::now() + PATIENCE, Instant::now() + STARTING);
    left.find_announced();
    left.signal_detached(Signal::TERM);
    loop {
        left.find_announced();
        let is_late = Instant::now() >= until;
        for leader in &left.groups {
            if asked.insert(*leader) {
                signal(*leader, Signal::TERM);
            } else if is_late {
                signal(*leader, Signal::KILL);
            }
        }
        let have_begun = left.announced.is_empty() || Instant::now() >= begun;
        if have_begun && (is_late || !left.groups.iter().any(|leader| is_alive(*leader))) {
            break;
        }
        std::thread::sleep(POLL);
    }
    left.groups.iter().for_each(|leader| signal(*leader, Signal::KILL));
    left.signal_detached(Signal::KILL);
    let Left { folders, .. } = left;
    let ours =
        |folder: &PathBuf| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    let until = Instant::now() + PATIENCE;
    for folder in folders.iter().filter(|folder| ours(folder)) {
        // It is gone already where frameproof ended in order; who is being killed may still write there.
        while std::fs::remove_dir_all(folder).is_err() && folder.exists() && Instant::now() < until {
            std::thread::sleep(POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_are_left_are_ended_and_only_scratch_folders_are_removed() {
        let child = |word: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", word]).process_group(0).spawn().expect("it starts")
        };
        let (mut left, mut over) = (child("trap '' TERM; sleep 600 & sleep 600"), child("exec sleep 600"));
        let base = tempfile::tempdir().expect("a folder");
        let folders = [PREFIX, "mine-"].map(|name| base.path().join(format!("{name}x")));
        for folder in &folders {
            std::fs::create_dir(folder).expect("made");
            std::fs::write(folder.join("file"), "x").expect("written");
        }
        let lines = format!(
            "+{}\n+{}\n-{}\n/{}\n/{}\nrubbish\n+rubbish\n?rubbish\n+1\n+0\n\n",
            left.id(),
            over.id(),
            over.id(),
            folders[0].display(),
            folders[1].display()
        );
        supervise(lines.as_bytes());
        assert!(!left.wait().expect("ended").success());
        assert!(over.try_wait().expect("asked").is_none(), "it was no longer ours");
        over.kill().expect("killed");
        over.wait().expect("ended");
        assert_eq!(folders.map(|folder| folder.exists()), [false, true]);
    }

    /// A daemon has a session of its own.
    #[test]
    #[cfg(target_os = "linux")]
    fn what_has_left_its_group_is_found_by_its_family() {
        let [family, other] = ["one", "two"].map(|name| format!("{name}-{}.", uuid::Uuid::new_v4()));
        let start = |family: &str| {
            let mut command = Command::new("setsid");
            let mark = format!("{family}x");
            let started = command
                .args(["--wait", "sleep", "600"])
                .env(super::super::group::MARK, mark)
                .spawn()
                .expect("it starts");
            // While a process becomes another program, the system shows no environment of it.
            let name = format!("/proc/{}/comm", started.id());
            while std::fs::read_to_string(&name).expect("it lives") != "sleep\n" {
                std::thread::yield_now();
            }
            started
        };
        let (mut stray, mut foreign) = (start(&family), start(&other));
        supervise(format!("={family}\n").as_bytes());
        assert!(!stray.wait().expect("ended").success());
        assert!(foreign.try_wait().expect("asked").is_none(), "it is not ours");
        signal_detached(&other, &BTreeSet::new(), Signal::KILL);
        foreign.wait().expect("ended");
    }

    /// On a busy machine a process that was about to be started may become the program that it is to run only after a while.
    #[test]
    #[cfg(target_os = "linux")]
    fn what_was_announced_may_begin_late() {
        let mark = format!("late-{}", uuid::Uuid::new_v4());
        let variable = super::super::group::MARK;
        let late = PATIENCE.as_secs_f64() * 2.0;
        let become_it = format!("trap '' TERM; sleep {late}; exec env {variable}={mark} sleep 600");
        let mut command = Command::new("sh");
        let mut process = command.args(["-c", &become_it]).process_group(0).spawn().expect("it starts");
        supervise(format!("?{mark}\n").as_bytes());
        assert!(!process.wait().expect("ended").success());
    }

    /// Between a start and the news of it, only the mark is known.
    #[test]
    #[cfg(target_os = "linux")]
    fn what_was_announced_is_found_by_its_mark() {
        let marks = ["one", "two"].map(|name| format!("{name}-{}", uuid::Uuid::new_v4()));
        let start = |mark: &str| {
            let mut command = Command::new("sleep");
            command
                .arg("600")
                .env(super::super::group::MARK, mark)
                .process_group(0)
                .spawn()
                .expect("it starts")
        };
        let [mut unknown, mut settled] = [start(&marks[0]), start(&marks[1])];
        supervise(format!("?{}\n?{}\n!{}\n", marks[0], marks[1], marks[1]).as_bytes());
        assert!(!unknown.wait().expect("ended").success());
        assert!(settled.try_wait().expect("asked").is_none(), "it was known, and is not left");
        settled.kill().expect("killed");
        settled.wait().expect("ended");
    }
}
