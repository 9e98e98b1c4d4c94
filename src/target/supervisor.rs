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

use super::group::{is_alive, signal};

/// How long servers may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_millis(500);
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
    /// Starts one, if somebody has said by which program.
    pub fn start() -> Option<Self> {
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
        child.ok()?.stdin.map(Self)
    }

    /// A process group lives.
    pub fn add(&mut self, leader: i32) {
        self.tell(&format!("+{leader}"));
    }

    /// It has ended; its number may be another's soon.
    pub fn remove(&mut self, leader: i32) {
        self.tell(&format!("-{leader}"));
    }

    /// A scratch folder is there.
    pub fn folder(&mut self, folder: &Path) {
        self.tell(&format!("/{}", folder.display()));
    }

    fn tell(&mut self, line: &str) {
        // A supervisor that is gone cannot be helped.
        let _ = self.0.write_all(format!("{line}\n").as_bytes());
    }
}

/// Reads what is to be ended until the pipe is closed, and ends it.
pub fn supervise(pipe: impl BufRead) {
    let (mut groups, mut folders) = (BTreeSet::<u32>::new(), BTreeSet::new());
    for line in pipe.lines().map_while(Result::ok) {
        match line.split_at_checked(1) {
            Some(("+", leader)) => groups.extend(leader.parse::<u32>()),
            Some(("-", leader)) => drop(leader.parse().map(|leader: u32| groups.remove(&leader))),
            Some(("/", folder)) => drop(folders.insert(PathBuf::from(folder))),
            _ => {}
        }
    }
    groups.iter().for_each(|leader| signal(*leader, Signal::TERM));
    let until = Instant::now() + PATIENCE;
    while groups.iter().any(|leader| is_alive(*leader)) && Instant::now() < until {
        std::thread::sleep(POLL);
    }
    groups.iter().for_each(|leader| signal(*leader, Signal::KILL));
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
            "+{}\n+{}\n-{}\n/{}\n/{}\nrubbish\n+rubbish\n+1\n+0\n\n",
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
}
