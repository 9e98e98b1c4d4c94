//! One launched process: started in a group of its own, its input held open, its output kept, its end noticed.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::io::BufReader;
use tokio::process::{ChildStdin, Command};
use tokio::sync::watch;

use super::error::LaunchError;
use super::group::{self, Groups};
use super::log::Log;
use super::setup::fill;
use super::spawn::spawn;
use super::spec::{Process, Vars};
use crate::shortage;

/// How often it is looked whether the rest of a group is gone. There is no event for that.
const POLL: Duration = Duration::from_millis(10);
/// How long grandchildren may outlive the process itself after SIGTERM.
const ORPHANS: Duration = Duration::from_secs(1);

/// How long what it wrote last is read after its end, should somebody else hold its output open: else it ends.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A process that was started. Dropping it kills it with all that it started.
pub(super) struct Running {
    pub name: String,
    /// Its id, which is its group's, too.
    leader: u32,
    /// What it and all that it starts have in their environment.
    mark: String,
    /// Held open: many servers end when it is closed.
    _stdin: Option<ChildStdin>,
    exited: Exited,
    groups: Arc<Groups>,
    /// When it was started.
    pub since: Instant,
}

/// Tells how a process ended, once it has.
#[derive(Clone)]
pub(super) struct Exited {
    exit: watch::Receiver<Option<Exit>>,
    /// All that it has written is read.
    read: watch::Receiver<bool>,
}

/// How a process ended.
#[derive(Debug, Clone)]
pub(super) struct Exit {
    pub success: bool,
    /// `exited with status 1`, `was ended by signal 9`.
    pub how: String,
    /// Nothing that it started was left: its number may be another's by now.
    group_is_gone: bool,
}

/// Where tools of developers look for what they have installed: by a variable, or else in a folder of the user's home. A server that
/// is started by such a tool needs it, whatever its own home is.
const TOOLS: &[(&str, &str)] = &[
    ("CARGO_HOME", ".cargo"),
    ("RUSTUP_HOME", ".rustup"),
    ("GOPATH", "go"),
    ("PYENV_ROOT", ".pyenv"),
    ("PYTHONUSERBASE", ".local"),
    ("NVM_DIR", ".nvm"),
    ("npm_config_cache", ".npm"),
    ("VOLTA_HOME", ".volta"),
    ("ASDF_DATA_DIR", ".asdf"),
];
/// What leads past a home of one's own to the user's files.
const PAST_HOME: &[&str] = &["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];

/// Gives a process a home of its own.
fn settle_in(command: &mut Command, home: &Path) {
    let own = std::env::var_os("HOME").map(PathBuf::from);
    for (name, folder) in TOOLS {
        let installed = own.as_ref().map(|own| own.join(folder)).filter(|folder| folder.is_dir());
        if let Some(installed) = installed.filter(|_| std::env::var_os(name).is_none()) {
            command.env(name, installed);
        }
    }
    for name in PAST_HOME {
        command.env_remove(name);
    }
    command.env("HOME", home);
}

/// Makes a path of a word that names a file beside the configuration: the process does not run there. `program`: it is looked up in
/// PATH unless it has a slash.
fn with_full_path(word: &mut String, program: bool, folder: &Path) {
    let is_path = word.contains('/') || (!program && word.contains('.'));
    let file = folder.join(&*word);
    if is_path && Path::new(word).is_relative() && file.is_file() {
        *word = std::path::absolute(&file).unwrap_or(file).display().to_string();
    }
}

impl Running {
    /// Starts a process. The system may take `patience` to load its program. Dropping the future gives that up.
    pub async fn start(
        process: &Process,
        vars: &Vars,
        log: &Log,
        groups: &Arc<Groups>,
        patience: Duration,
    ) -> Result<Self, LaunchError> {
        let mut words = process.command.iter().map(|word| fill(word, vars)).collect::<Result<Vec<_>, _>>()?;
        if process.cwd.is_none() {
            words
                .iter_mut()
                .enumerate()
                .for_each(|(at, word)| with_full_path(word, at == 0, &process.folder));
        }
        let program = words.first().cloned().unwrap_or_default();
        let mut command = Command::new(&program);
        let folder = process.folder.join(fill(process.cwd.as_deref().unwrap_or("{{scratch}}"), vars)?);
        if folder != Path::new("") {
            command.current_dir(&folder);
        }
        match process.home.as_deref() {
            Some("~") => {}
            Some(home) => settle_in(&mut command, &process.folder.join(fill(home, vars)?)),
            None if process.has_scratch_home() => {
                settle_in(&mut command, Path::new(&fill("{{scratch}}", vars)?))
            }
            None => {}
        }
        for (name, value) in &process.env {
            command.env(name, fill(value, vars)?);
        }
        command.args(&words[1..]).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let since = Instant::now();
        let failed = |reason: String| LaunchError::NotStarted {
            process: process.name.clone(),
            program: program.clone(),
            reason,
        };
        let spawned = tokio::time::timeout(patience, spawn(command, groups)).await;
        let spawned =
            spawned.map_err(|_| failed(format!("the system has not loaded it within {patience:?}")))?;
        let (mut child, mark) = spawned.map_err(|error| {
            if let Some(shortage) = shortage::note_start(&error) {
                return LaunchError::Shortage(shortage);
            }
            let missing = error.kind() == std::io::ErrorKind::NotFound && !folder.is_dir();
            let reason = match missing && folder != Path::new("") {
                true => format!("its working folder {} does not exist", folder.display()),
                false => error.to_string(),
            };
            failed(reason)
        })?;
        // It was not waited for yet, so it has an id.
        let leader = child.id().unwrap_or_default();
        let name: Arc<str> = process.name.as_str().into();
        let out = child
            .stdout
            .take()
            .map(|out| tokio::spawn(log.clone().follow(Arc::clone(&name), false, BufReader::new(out))));
        let error = child
            .stderr
            .take()
            .map(|error| tokio::spawn(log.clone().follow(name, true, BufReader::new(error))));
        let stdin = child.stdin.take();
        let (ended, exit) = watch::channel(None);
        let (was_read, read) = watch::channel(false);
        let watched = Arc::clone(groups);
        tokio::spawn(async move {
            let how = child.wait().await;
            // What is left of its group is still ours; when nothing is, its number may soon be another's.
            let group_is_gone = !group::is_alive(leader);
            if group_is_gone {
                watched.remove(leader);
            }
            ended.send_replace(Some(Exit { group_is_gone, ..describe(how) }));
            let read = futures_util::future::join_all([out, error].into_iter().flatten());
            let _ = tokio::time::timeout(LAST_WORDS, read).await;
            was_read.send_replace(true);
        });
        let exited = Exited { exit, read };
        let groups = Arc::clone(groups);
        Ok(Self { name: process.name.clone(), leader, mark, _stdin: stdin, exited, groups, since })
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.exited.exit.borrow().clone()
    }

    /// Where its end will be told.
    pub fn watch(&self) -> Exited {
        self.exited.clone()
    }

    /// Waits for its end.
    async fn ended(&self) {
        let _ = self.watch().exit.wait_for(Option::is_some).await;
    }

    /// Waits until what it has written is read, after its end.
    pub async fn was_read(&self) {
        let _ = self.watch().read.wait_for(|read| *read).await;
    }

    /// Waits for the end of the process whose end is told there, and until what it has written is read.
    pub async fn end_of(mut exited: Exited) -> Exit {
        let exit = exited.exit.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone());
        let _ = exited.read.wait_for(|read| *read).await;
        exit.unwrap_or(Exit { success: false, how: "is gone".to_owned(), group_is_gone: false })
    }

    /// Memory that the whole group has resident, in bytes.
    pub fn memory(&self) -> Option<u64> {
        group::memory(self.leader)
    }

    fn signal(&self, signal: Signal) {
        if !self.exit().is_some_and(|exit| exit.group_is_gone) {
            group::signal(self.leader, signal);
        }
    }

    /// The same to what it has started and has left its group.
    fn signal_detached(&self, signal: Signal) {
        group::signal_detached(&self.mark, &[self.leader].into(), signal);
    }

    /// Asks the whole group to end, and what has left it.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal_detached(Signal::TERM);
    }

    /// Waits for the group to end, and kills what is left of it after `patience`.
    pub async fn finish(self, patience: Duration) {
        let _ = tokio::time::timeout(patience, self.ended()).await;
        let until = Instant::now() + patience.min(ORPHANS);
        while group::is_alive(self.leader) && Instant::now() < until && self.exit().is_some() {
            tokio::time::sleep(POLL).await;
        }
        self.signal(Signal::KILL);
        // After SIGKILL it ends at once, but for a process that hangs in the kernel.
        let _ = tokio::time::timeout(ORPHANS, self.ended()).await;
    }

    /// Kills the whole group and waits for its leader's end.
    pub async fn kill(self) {
        self.signal(Signal::KILL);
        let _ = tokio::time::timeout(ORPHANS, self.ended()).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        self.signal_detached(Signal::KILL);
        self.groups.remove(self.leader);
    }
}

fn describe(status: std::io::Result<ExitStatus>) -> Exit {
    let Ok(status) = status else {
        return Exit { success: false, how: "is gone".to_owned(), group_is_gone: false };
    };
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    Exit { success: status.success(), how, group_is_gone: false }
}
