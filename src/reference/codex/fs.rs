//! fs/*: the machine's files, and who watches them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::connection::{Answer, Answered, Peer};
use super::faults::Defect;
use super::files::{Files, Kind, Node, absolute};
use super::rpc::{INVALID_PARAMS, Params, Refusal, invalid, refuse, response};
use super::state::{HOME, Watch};
use super::styles::Style;
use crate::reference::faults::mutate;

/// Watches of a connection.
const MOST_WATCHES: usize = 1000;

impl Peer<'_> {
    /// A path of a request.
    fn path(&self, params: &Params<'_>, name: &str) -> Result<String, Refusal> {
        let path = params.text(name)?;
        let fine = || {
            self.has(Defect::RelativePathsAreFine)
                || name == "destinationPath" && self.has(Defect::CopiesMayGoToRelativePaths)
        };
        if !path.starts_with('/') && !fine() {
            return Err(Refusal { code: INVALID_PARAMS, message: format!("{name} is not absolute: {path}") });
        }
        Ok(absolute("/", path))
    }

    pub fn files(&self, id: &Value, method: &str, params: &Params<'_>) -> Answered {
        if self.core.lock().is_ahead(self.client) {
            self.behaviour.took_effect();
        }
        let path = |name: &str| self.path(params, name);
        let wrong = |wrong: String| refuse(wrong);
        let result = match method {
            "fs/readFile" => {
                let path = path("path")?;
                let state = self.core.lock();
                let is_untrusted = state.clients.get(&self.client).is_some_and(|client| client.untrusted);
                if is_untrusted && path == format!("{HOME}/config.toml") {
                    self.behaviour.took_effect();
                }
                let bytes = match state.files.read(&path) {
                    Err(_) if self.has(Defect::MissingFilesAreEmpty) => &[],
                    bytes => bytes.map_err(wrong)?,
                };
                let mut bytes = bytes.to_vec();
                self.behaviour.mutate(&mut bytes, |defect, bytes| match defect {
                    Defect::FilesAreText => *bytes = String::from_utf8_lossy(bytes).into_owned().into_bytes(),
                    Defect::LargeFilesAreCut => bytes.truncate(8192),
                    _ => {}
                });
                match bytes.is_empty() {
                    false if self.has(Defect::ReadsAreText) => {
                        json!({ "dataBase64": String::from_utf8_lossy(&bytes) })
                    }
                    _ => json!({ "dataBase64": STANDARD.encode(bytes) }),
                }
            }
            "fs/writeFile" => self.write_file(&path("path")?, params)?,
            "fs/createDirectory" => {
                let (path, recursive) = (path("path")?, params.flag("recursive")?);
                let mut state = self.core.lock();
                let create = |files: &mut Files, recursive| files.create_directory(&path, recursive);
                let otherwise = match recursive {
                    None => Defect::ParentsAreNotMade,
                    Some(_) => Defect::ParentsAreAlwaysMade,
                };
                let recursive = recursive.unwrap_or(true);
                let due = |files: &mut Files| create(files, recursive);
                let wrongly = |files: &mut Files| create(files, otherwise == Defect::ParentsAreAlwaysMade);
                self.change(&mut state.files, due, otherwise, wrongly).map_err(wrong)?;
                json!({})
            }
            "fs/getMetadata" => {
                let path = path("path")?;
                let state = self.core.lock();
                let node = state.files.node(&path).map_err(wrong)?;
                let mut told = metadata(node, None);
                self.behaviour.mutate(&mut told, |defect, told| *told = metadata(node, Some(defect)));
                told
            }
            "fs/readDirectory" => self.read_directory(&path("path")?)?,
            "fs/remove" => {
                let path = path("path")?;
                let (recursive, force) = (params.flag("recursive")?, params.flag("force")?);
                let mut state = self.core.lock();
                let is_missing = state.files.entry(&path).is_none();
                let remove = |files: &mut Files, recursive, force| files.remove(&path, recursive, force);
                let plain = (recursive.unwrap_or(true), force.unwrap_or(true));
                let (otherwise, other) = match (is_missing, plain, recursive) {
                    (true, (recursive, true), _) => (Defect::MissingIsNeverRemoved, (recursive, false)),
                    (true, (recursive, false), _) => (Defect::MissingIsAlwaysRemoved, (recursive, true)),
                    (false, (_, force), None) => (Defect::TreesAreNotRemoved, (false, force)),
                    (false, (_, force), Some(_)) => (Defect::AlwaysRemovesTrees, (true, force)),
                };
                let due = |files: &mut Files| remove(files, plain.0, plain.1);
                let wrongly = |files: &mut Files| remove(files, other.0, other.1);
                let is_tree = state.files.children(&path).is_ok_and(|children| !children.is_empty());
                self.change(&mut state.files, due, otherwise, wrongly).map_err(wrong)?;
                if is_tree && self.has(Defect::RemovedTreesLeaveTheirRoot) {
                    state.files.create_directory(&path, false).map_err(wrong)?;
                }
                json!({})
            }
            "fs/copy" => self.copy(&path("sourcePath")?, &path("destinationPath")?, params)?,
            "fs/watch" => self.watch(&path("path")?, params)?,
            "fs/unwatch" => {
                let watch = params.text("watchId")?;
                let mut state = self.core.lock();
                let others = |each: &Watch| each.client != self.client || each.id != watch;
                let all = std::mem::take(&mut state.watches);
                state.watches = all.iter().filter(|each| others(each)).cloned().collect();
                self.behaviour.mutate(&mut state.watches, |defect, watches| match defect {
                    Defect::UnwatchDoesNothing => watches.clone_from(&all),
                    Defect::UnwatchEndsAll => watches.retain(|each| each.client != self.client),
                    Defect::UnwatchReachesOthers => watches.retain(|each| each.id != watch),
                    _ => {}
                });
                json!({})
            }
            method => return self.unknown(method),
        };
        let mut state = self.core.lock();
        let first = self.behaviour.style(Style::ChangesFirst);
        if first {
            state.announce_changes();
        }
        state.send(self.client, response(id, &Ok(result)));
        state.announce_changes();
        Ok(Answer::Elsewhere)
    }

    fn write_file(&self, path: &str, params: &Params<'_>) -> Result<Value, Refusal> {
        let text = params.text("dataBase64")?;
        let bytes = match STANDARD.decode(text) {
            Err(_) if self.has(Defect::AnyBase64) => text.as_bytes().to_vec(),
            bytes => bytes.map_err(|error| invalid(&format!("dataBase64: {error}")))?,
        };
        let mut state = self.core.lock();
        let old = state.files.read(path).map(<[u8]>::to_vec).unwrap_or_default();
        let mut bytes = bytes;
        self.behaviour.mutate(&mut bytes, |defect, bytes| match defect {
            Defect::WritesAppend => drop(bytes.splice(0..0, old)),
            Defect::ShortWritesLeaveATail if !bytes.is_empty() && bytes.len() < old.len() => {
                let at = bytes.len();
                bytes.extend_from_slice(&old[at..]);
            }
            Defect::EmptyWritesAreIgnored if bytes.is_empty() => *bytes = old,
            _ => {}
        });
        state.files.write(path, bytes).map_err(refuse)?;
        Ok(if self.has(Defect::WritesReturnNull) { Value::Null } else { json!({}) })
    }

    fn read_directory(&self, path: &str) -> Result<Value, Refusal> {
        let state = self.core.lock();
        let children = match state.files.children(path) {
            Err(_) if self.has(Defect::MissingFoldersAreEmpty) => Vec::new(),
            children => children.map_err(refuse)?,
        };
        let mut entries: Vec<Value> = children
            .iter()
            .map(|(name, node)| {
                json!({
                    "fileName": name, "isDirectory": node.kind == Kind::Directory,
                    "isFile": matches!(node.kind, Kind::File(_)),
                })
            })
            .collect();
        self.behaviour.mutate(&mut entries, |defect, entries| match defect {
            Defect::HiddenFilesAreNotListed => {
                entries.retain(|each| !each["fileName"].as_str().unwrap_or_default().starts_with('.'));
            }
            Defect::FolderNamesEndInASlash => {
                for each in entries.iter_mut().filter(|each| each["isDirectory"] == true) {
                    each["fileName"] = json!(format!("{}/", each["fileName"].as_str().unwrap_or_default()));
                }
            }
            Defect::FileNamesAreAscii => {
                for each in entries {
                    let name = each["fileName"].as_str().unwrap_or_default();
                    each["fileName"] = json!(mutate::limit(name, mutate::ASCII));
                }
            }
            _ => {}
        });
        if self.has(Defect::FoldersListThemselves) {
            entries.push(json!({ "fileName": ".", "isDirectory": true, "isFile": false }));
        }
        if self.behaviour.style(Style::FoldersBackwards) {
            entries.reverse();
        }
        Ok(json!({ "entries": entries }))
    }

    /// Changes files, or as a defect does where that comes to something else.
    fn change(
        &self,
        files: &mut Files,
        due: impl Fn(&mut Files) -> Result<(), String>,
        defect: Defect,
        wrongly: impl Fn(&mut Files) -> Result<(), String>,
    ) -> Result<(), String> {
        if !self.behaviour.prepares(defect) {
            return due(files);
        }
        if due(&mut files.clone()).is_ok() != wrongly(&mut files.clone()).is_ok() {
            self.behaviour.took_effect();
        }
        wrongly(files)
    }

    fn copy(&self, from: &str, to: &str, params: &Params<'_>) -> Result<Value, Refusal> {
        let recursive = params.flag("recursive")?.unwrap_or(false);
        let mut state = self.core.lock();
        let files = &mut state.files;
        let due = |files: &mut Files| files.copy(from, to, recursive);
        let wrongly = |files: &mut Files| files.copy(from, to, true);
        let copied = self.change(files, due, Defect::AlwaysCopiesTrees, wrongly);
        if copied.is_err() && !recursive && files.node(from).is_ok() && self.has(Defect::CopyLeavesAFolder) {
            let _ = files.create_directory(to, false);
        }
        copied.map_err(refuse)?;
        if !recursive && self.has(Defect::CopyMoves) {
            files.remove(from, false, true).map_err(refuse)?;
        }
        let empty: Vec<String> = match files.children(to) {
            Ok(children) if recursive => {
                let paths = children.iter().map(|(name, _)| format!("{to}/{name}"));
                paths.filter(|path| files.children(path).is_ok_and(|inner| inner.is_empty())).collect()
            }
            _ => Vec::new(),
        };
        if !empty.is_empty() && self.has(Defect::EmptyFoldersAreNotCopied) {
            empty.iter().try_for_each(|path| files.remove(path, false, true)).map_err(refuse)?;
        }
        let link = format!("{to}/link");
        if let Ok(bytes) = files.read(&link).map(<[u8]>::to_vec)
            && self.has(Defect::CopyFollowsLinks)
        {
            files.remove(&link, false, true).and_then(|()| files.write(&link, bytes)).map_err(refuse)?;
        }
        Ok(json!({}))
    }

    fn watch(&self, path: &str, params: &Params<'_>) -> Result<Value, Refusal> {
        let id = params.text("watchId")?.to_owned();
        let mut state = self.core.lock();
        let mine = || state.watches.iter().filter(|watch| watch.client == self.client);
        if mine().any(|watch| watch.id == id) || mine().count() >= MOST_WATCHES {
            return Err(refuse("the watchId is in use, or there are too many"));
        }
        let given = path;
        let path = state.files.canonical(path);
        let told = if given != path && self.has(Defect::WatchReturnsTheLink) {
            given.to_owned()
        } else if self.has(Defect::WatchReturnsTheName) {
            path.rsplit('/').next().unwrap_or_default().to_owned()
        } else {
            path.clone()
        };
        state.watches.push(Watch { client: self.client, id, path });
        Ok(json!({ "path": told }))
    }
}

fn metadata(node: &Node, defect: Option<Defect>) -> Value {
    let directory = node.kind == Kind::Directory;
    let (created, modified) = match defect {
        Some(Defect::TimesAreSeconds) => (node.created / 1000, node.modified / 1000),
        Some(Defect::ModifiedIsCreated) => (node.created, node.created),
        _ => (node.created, node.modified),
    };
    let created = if defect == Some(Defect::MetadataHasNoTimes) { Value::Null } else { json!(created) };
    let directory_told = directory && defect != Some(Defect::FoldersAreFiles);
    let modified = match defect {
        Some(Defect::FoldersHaveNoTimes) if directory => Value::Null,
        _ => json!(modified),
    };
    let is_none = match (&node.kind, defect) {
        (Kind::File(bytes), Some(Defect::EmptyFilesAreNone)) => bytes.is_empty(),
        (kind, _) => matches!(kind, Kind::Pipe),
    };
    json!({
        "isDirectory": directory_told, "isFile": !directory_told && !is_none,
        "isSymlink": matches!(node.kind, Kind::Link(_)), "createdAtMs": created, "modifiedAtMs": modified,
    })
}
