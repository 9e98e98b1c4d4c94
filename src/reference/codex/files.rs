//! The files of the machine that the server is on: they are in memory, so that whoever talks to a reference server cannot touch
//! those of the real one.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// All files together, in bytes. What is beyond is refused, as on a full disk.
const MOST_BYTES: usize = 256 << 20;
/// Files and directories.
const MOST_NODES: usize = 200_000;
/// Links that are followed, one after the other.
const MOST_LINKS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File(Vec<u8>),
    /// A symbolic link, and where it points.
    Link(String),
    Pipe,
}

/// What is at a path. Times in Unix milliseconds.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub kind: Kind,
    pub created: u64,
    pub modified: u64,
}

/// A file system.
#[derive(Debug, Clone)]
pub(super) struct Files {
    nodes: BTreeMap<String, Node>,
    bytes: usize,
    /// The paths that have changed since they were asked for last.
    changes: Vec<String>,
    /// How often something was changed.
    writes: u64,
}

/// Unix milliseconds.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A path without `.`, `..` and doubled slashes; relative ones begin at `cwd`.
pub(super) fn absolute(cwd: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{cwd}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

/// What every path below a directory begins with.
fn below(path: &str) -> String {
    if path == "/" { path.to_owned() } else { format!("{path}/") }
}

impl Files {
    /// A disk with these directories.
    pub fn with(directories: &[&str]) -> Self {
        let mut files = Self { nodes: BTreeMap::new(), bytes: 0, changes: Vec::new(), writes: 0 };
        files.put("/", Kind::Directory);
        for directory in directories {
            // A fresh disk has room for them.
            let _ = files.create_directory(directory, true);
        }
        files.changes.clear();
        files
    }

    fn put(&mut self, path: &str, kind: Kind) {
        let at = now();
        let size = |kind: &Kind| if let Kind::File(bytes) = kind { bytes.len() } else { 0 };
        self.bytes += size(&kind);
        let old = self.nodes.remove(path);
        let created = old.as_ref().map_or(at, |old| old.created);
        self.bytes = self.bytes.saturating_sub(old.map_or(0, |old| size(&old.kind)));
        self.nodes.insert(path.to_owned(), Node { kind, created, modified: at });
        self.writes += 1;
        self.changes.push(path.to_owned());
    }

    fn take(&mut self, path: &str) -> Option<Node> {
        let node = self.nodes.remove(path)?;
        if let Kind::File(bytes) = &node.kind {
            self.bytes = self.bytes.saturating_sub(bytes.len());
        }
        self.writes += 1;
        self.changes.push(path.to_owned());
        Some(node)
    }

    /// How often something was changed.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// What has changed since this was asked last.
    pub fn changes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.changes)
    }

    /// A path whose last part is no link.
    pub fn canonical(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            let Some(Node { kind: Kind::Link(target), .. }) = self.nodes.get(&path) else { break };
            path = absolute(parent(&path), target);
        }
        path
    }

    /// What is there; links are followed.
    pub fn node(&self, path: &str) -> Result<&Node, String> {
        self.nodes.get(&self.canonical(path)).ok_or_else(|| format!("{path}: no such file or directory"))
    }

    /// What is there itself, be it a link.
    pub fn entry(&self, path: &str) -> Option<&Node> {
        self.nodes.get(path)
    }

    pub fn read(&self, path: &str) -> Result<&[u8], String> {
        match &self.node(path)?.kind {
            Kind::File(bytes) => Ok(bytes),
            _ => Err(format!("{path}: is not a file")),
        }
    }

    pub fn write(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), String> {
        let path = self.canonical(path);
        match self.nodes.get(&path).map(|node| &node.kind) {
            Some(Kind::Directory) => return Err(format!("{path}: is a directory")),
            Some(_) => {}
            None => self.room(&path)?,
        }
        if self.bytes + bytes.len() > MOST_BYTES {
            return Err("no space left on device".to_owned());
        }
        self.put(&path, Kind::File(bytes));
        Ok(())
    }

    /// Whether a new name has a directory to be in.
    fn room(&self, path: &str) -> Result<(), String> {
        if self.nodes.len() >= MOST_NODES {
            return Err("no space left on device".to_owned());
        }
        match self.nodes.get(parent(path)).map(|node| &node.kind) {
            Some(Kind::Directory) => Ok(()),
            Some(_) => Err(format!("{}: is not a directory", parent(path))),
            None => Err(format!("{}: no such directory", parent(path))),
        }
    }

    pub fn create_directory(&mut self, path: &str, recursive: bool) -> Result<(), String> {
        match self.nodes.get(path).map(|node| &node.kind) {
            Some(Kind::Directory) if recursive => return Ok(()),
            Some(_) => return Err(format!("{path}: exists")),
            None => {}
        }
        if recursive && path != "/" {
            self.create_directory(parent(path), true)?;
        }
        self.room(path)?;
        self.put(path, Kind::Directory);
        Ok(())
    }

    /// The names directly below a directory.
    pub fn children(&self, path: &str) -> Result<Vec<(String, &Node)>, String> {
        let Kind::Directory = self.node(path)?.kind else {
            return Err(format!("{path}: is not a directory"));
        };
        let start = below(&self.canonical(path));
        let inside = self.nodes.range(start.clone()..).take_while(|(name, _)| name.starts_with(&start));
        let direct = inside.filter_map(|(name, node)| {
            let name = &name[start.len()..];
            (!name.is_empty() && !name.contains('/')).then(|| (name.to_owned(), node))
        });
        Ok(direct.collect())
    }

    /// Everything from a path on downwards, the path first.
    fn tree(&self, path: &str) -> Vec<String> {
        let start = below(path);
        let inside = self.nodes.range(start.clone()..).take_while(|(name, _)| name.starts_with(&start));
        let inside = inside.map(|(name, _)| name.clone()).filter(|name| name != path);
        std::iter::once(path.to_owned()).chain(inside).collect()
    }

    pub fn remove(&mut self, path: &str, recursive: bool, force: bool) -> Result<(), String> {
        if !self.nodes.contains_key(path) {
            return if force { Ok(()) } else { Err(format!("{path}: no such file or directory")) };
        }
        let tree = self.tree(path);
        if path == "/" || (tree.len() > 1 && !recursive) {
            return Err(format!("{path}: the directory is not empty"));
        }
        tree.iter().rev().for_each(|path| drop(self.take(path)));
        Ok(())
    }

    /// Copies a file, or a tree: links stay links, and pipes are left out.
    pub fn copy(&mut self, from: &str, to: &str, recursive: bool) -> Result<(), String> {
        let kind = self.node(from)?.kind.clone();
        let Kind::Directory = kind else {
            let bytes = self.read(from)?.to_vec();
            return self.write(to, bytes);
        };
        if !recursive {
            return Err(format!("{from}: is a directory, and recursive is not true"));
        }
        if to == from || to.starts_with(&below(from)) {
            return Err(format!("{to}: is inside of {from}"));
        }
        for path in self.tree(from) {
            let target = format!("{to}{}", &path[from.len()..]);
            let Some(node) = self.nodes.get(&path).cloned() else { continue };
            match node.kind {
                Kind::Directory => self.create_directory(&target, true)?,
                Kind::File(bytes) => self.write(&target, bytes)?,
                link @ Kind::Link(_) => self.put(&target, link),
                Kind::Pipe => {}
            }
        }
        Ok(())
    }

    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), String> {
        let to = match self.nodes.get(to).map(|node| &node.kind) {
            Some(Kind::Directory) => format!("{to}/{}", from.rsplit('/').next().unwrap_or_default()),
            _ => to.to_owned(),
        };
        if !self.nodes.contains_key(from) {
            return Err(format!("{from}: no such file or directory"));
        }
        self.room(&to)?;
        if to == from || to.starts_with(&below(from)) {
            return Err(format!("{to}: is inside of {from}"));
        }
        for path in self.tree(from) {
            let target = format!("{to}{}", &path[from.len()..]);
            if let Some(node) = self.take(&path) {
                self.put(&target, node.kind);
            }
        }
        Ok(())
    }

    /// Makes a link or a pipe.
    pub fn make(&mut self, path: &str, kind: Kind) -> Result<(), String> {
        if self.nodes.contains_key(path) {
            return Err(format!("{path}: exists"));
        }
        self.room(path)?;
        self.put(path, kind);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised() {
        assert_eq!(absolute("/a", "b/../c"), "/a/c");
        assert_eq!(absolute("/a", "/x//y/./z/.."), "/x/y");
        assert_eq!(absolute("/", "../.."), "/");
    }

    #[test]
    fn trees_are_listed_copied_and_removed() {
        let mut files = Files::with(&["/d/sub"]);
        files.write("/d/sub/f", b"x".to_vec()).expect("written");
        files.make("/d/link", Kind::Link("sub/f".to_owned())).expect("a link");
        files.make("/d/pipe", Kind::Pipe).expect("a pipe");
        assert_eq!(files.read("/d/link"), Ok(b"x".as_slice()));
        assert!(files.copy("/d", "/e", false).is_err() && files.node("/e").is_err());
        files.copy("/d", "/e", true).expect("copied");
        let names: Vec<String> =
            files.children("/e").expect("a list").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["link", "sub"]);
        assert!(files.remove("/d", false, true).is_err());
        files.remove("/d", true, false).expect("removed");
        assert!(files.node("/d/sub/f").is_err() && files.remove("/d", true, false).is_err());
        assert!(files.write("/no/such", Vec::new()).is_err() && files.write("/e", Vec::new()).is_err());
        files.rename("/e/sub/f", "/e/g").expect("renamed");
        assert_eq!(files.read("/e/g"), Ok(b"x".as_slice()));
    }
}
