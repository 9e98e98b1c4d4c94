//! Process groups: signalling a server with all that it started, and knowing which are alive.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tempfile::{Builder, TempDir};

use super::supervisor::{PREFIX, Supervisor};

/// The process groups that were started and not yet ended. Whoever ends the program in a hurry kills them first.
#[derive(Debug, Default)]
pub struct Groups(Mutex<Alive>);

#[derive(Debug)]
struct Alive {
    /// What the marks of all processes begin with that are started here.
    family: String,
    leaders: BTreeSet<i32>,
    /// Ends them if this program cannot. None: it was not needed yet, or cannot be had.
    supervisor: Option<Supervisor>,
}

impl Default for Alive {
    fn default() -> Self {
        let family = format!("{}.", uuid::Uuid::new_v4().simple());
        Self { family, leaders: BTreeSet::new(), supervisor: None }
    }
}

impl Groups {
    fn alive(&self) -> MutexGuard<'_, Alive> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a scratch folder, for a server that is about to be launched, say. Neither it nor any group that is added later outlives this
    /// program.
    ///
    /// # Errors
    /// The file system's.
    pub fn scratch(&self) -> std::io::Result<TempDir> {
        let mut alive = self.alive();
        if alive.supervisor.is_none() {
            alive.supervisor = Supervisor::start(&alive.family);
        }
        let base = std::path::absolute(std::env::temp_dir())?;
        let name = format!("{PREFIX}{}", uuid::Uuid::new_v4().simple());
        // Told before it is there: this program may end at any moment.
        if let Some(supervisor) = &mut alive.supervisor {
            supervisor.folder(&base.join(&name));
        }
        Builder::new().prefix(&name).rand_bytes(0).tempdir_in(base)
    }

    /// A process is about to be started: a mark for its environment (see [`MARK`]), by which it is found if this program is
    /// killed before it [adds](Self::add) the process's group. To be [settled](Self::settle) then.
    pub(super) fn announce(&self) -> String {
        let mut alive = self.alive();
        let mark = format!("{}{}", alive.family, uuid::Uuid::new_v4().simple());
        if let Some(supervisor) = &mut alive.supervisor {
            supervisor.announce(&mark);
        }
        mark
    }

    /// What was announced is added now, or was not started.
    pub(super) fn settle(&self, mark: &str) {
        if let Some(supervisor) = &mut self.alive().supervisor {
            supervisor.settle(mark);
        }
    }

    /// A process that leads a group was started: the group does not outlive this program.
    pub fn add(&self, leader: u32) {
        let Ok(leader) = i32::try_from(leader) else { return };
        let mut alive = self.alive();
        alive.leaders.insert(leader);
        if let Some(supervisor) = &mut alive.supervisor {
            supervisor.add(leader);
        }
    }

    /// The group has ended.
    pub fn remove(&self, leader: u32) {
        let Ok(leader) = i32::try_from(leader) else { return };
        let mut alive = self.alive();
        alive.leaders.remove(&leader);
        if let Some(supervisor) = &mut alive.supervisor {
            supervisor.remove(leader);
        }
    }

    /// Kills all that are left.
    pub fn kill_all(&self) {
        let mut alive = self.alive();
        for leader in std::mem::take(&mut alive.leaders) {
            signal(leader.unsigned_abs(), Signal::KILL);
        }
        signal_detached(&alive.family, &BTreeSet::new(), Signal::KILL);
    }
}

/// Signals every process of a group. One that is gone needs none.
pub(super) fn signal(leader: u32, signal: Signal) {
    if let Some(group) = group(leader) {
        let _ = kill_process_group(group, signal);
    }
}

/// Whether a process of the group is left.
pub(super) fn is_alive(leader: u32) -> bool {
    group(leader).is_some_and(|group| test_kill_process_group(group).is_ok())
}

/// The variable of the environment that says which launch a process comes from.
pub(super) const MARK: &str = "FRAMEPROOF_LAUNCH";

/// The leader of the group that was started with this mark. None: there is none (yet), or the system does not tell (only Linux
/// does).
pub(super) fn launched_as(mark: &str) -> Option<u32> {
    marked(mark).find(|process| group_of(&folder_of(*process)) == Some(*process))
}

/// Signals the processes whose mark begins like this and that are in none of these groups: what has left the group of its server ends with
/// it all the same. Only Linux tells which these are.
pub(super) fn signal_detached(mark: &str, groups: &BTreeSet<u32>, signal: Signal) {
    for process in marked(mark) {
        let own = group_of(&folder_of(process));
        if own.is_some_and(|own| !groups.contains(&own))
            && let Some(process) = group(process)
        {
            let _ = kill_process(process, signal);
        }
    }
}

fn folder_of(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// The processes whose mark begins like this.
fn marked(mark: &str) -> impl Iterator<Item = u32> {
    let wanted = format!("{MARK}={mark}");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(move |entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        let is_marked = environment.split(|byte| *byte == 0).any(|one| one.starts_with(wanted.as_bytes()));
        is_marked.then_some(process)
    })
}

/// The group of a process, by its folder in /proc.
fn group_of(process: &Path) -> Option<u32> {
    // Behind the name, which is in brackets and may hold anything: state, parent, group.
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok()
}

/// Memory that the processes of a group have resident, in bytes; what they share counts for each. None: the system does not
/// tell, or none is left.
pub(super) fn memory(leader: u32) -> Option<u64> {
    let mut found = None;
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let path = entry.path();
        if group_of(&path) != Some(leader) {
            continue;
        }
        let status = std::fs::read_to_string(path.join("status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
        *found.get_or_insert(0) += kilobytes.unwrap_or(0) * 1024;
    }
    found
}

fn group(leader: u32) -> Option<Pid> {
    // Group 1 and less are not ours, whatever happened.
    i32::try_from(leader).ok().filter(|leader| *leader > 1).and_then(Pid::from_raw)
}
