//! What the control group of this process (version 2; that of a container, for example) allows.

use std::path::{Component, Path};

/// Where control groups are.
const ROOT: &str = "/sys/fs/cgroup";

/// What a control group limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limited {
    /// Memory, in bytes.
    Memory,
    /// Processes and threads.
    Processes,
}

impl Limited {
    fn file(self) -> &'static str {
        match self {
            Self::Memory => "memory.max",
            Self::Processes => "pids.max",
        }
    }
}

/// The least that this process's group and those above it allow. `None`: nothing is limited, or the system does not tell.
pub(super) fn most(what: Limited) -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    most_of(Path::new(ROOT), &groups, what)
}

/// The same, of the groups that are told as `/proc/self/cgroup` tells them.
fn most_of(root: &Path, groups: &str, what: Limited) -> Option<u64> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mut folder = root.to_owned();
    // Of a group above the container's there is nothing to see: `/../..`.
    folder.extend(Path::new(own).components().filter(|word| matches!(word, Component::Normal(_))));
    let all = folder.ancestors().take_while(|folder| folder.starts_with(root));
    let read = |folder: &Path| std::fs::read_to_string(folder.join(what.file())).ok()?.trim().parse().ok();
    all.filter_map(read).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_all_groups_counts() {
        let root = tempfile::tempdir().expect("a folder");
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).expect("made");
        let write =
            |folder: &Path, file, text: &str| std::fs::write(folder.join(file), text).expect("written");
        let groups = "4:memory:/old\n0::/a/b\n";
        let most = |what| most_of(root.path(), groups, what);
        assert_eq!(most(Limited::Memory), None, "nothing is told");
        write(&inner, "memory.max", "max\n");
        assert_eq!(most(Limited::Memory), None, "nothing is limited");
        write(&root.path().join("a"), "memory.max", "1000\n");
        write(&inner, "memory.max", "2000\n");
        write(&inner, "pids.max", "7\n");
        assert_eq!((most(Limited::Memory), most(Limited::Processes)), (Some(1000), Some(7)));
        assert_eq!(most_of(root.path(), "4:memory:/a/b\n", Limited::Memory), None, "version 1 alone");
        write(root.path(), "memory.max", "10\n");
        assert_eq!(most_of(root.path(), "0::/../..\n", Limited::Memory), Some(10));
    }
}
