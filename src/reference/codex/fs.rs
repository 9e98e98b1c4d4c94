//! fs/*: the machine's files, and who watches them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::connection::{Answer, Answered, Peer};
use super::faults::Defect;
use super::files::{Kind, Node, absolute};
use super::rpc::{INVALID_PARAMS, Params, Refusal, invalid, refuse, response};
use super::state::Watch;
use super::styles::Style;

/// Watches of a connection.
const MOST_WATCHES: usize = 1000;

impl Peer<'_> {
    /// A path of a request.
    fn path(&self, params: &Params<'_>, name: &str) -> Result<String, Refusal> {
        let path = params.text(name)?;
        if !path.starts_with('/') && !self.has(Defect::RelativePathsAreFine) {
            return Err(Refusal { code: INVALID_PARAMS, message: format!("{name} is not absolute: {path}") });
        }
        Ok(absolute("/", path))
    }

    pub fn files(&self, id: &Value, method: &str, params: &Params<'_>) -> Answered {
        let path = |name: &str| self.path(params, name);
        let defect = self.behaviour.striking();
        let wrong = |wrong: String| refuse(wrong);
        let result = match method {
            "fs/readFile" => {
                let path = path("path")?;
                let state = self.core.lock();
                let bytes = match state.files.read(&path) {
                    Err(_) if defect == Some(Defect::MissingFilesAreEmpty) => &[],
                    bytes => bytes.map_err(wrong)?,
                };
                let bytes = match defect {
                    Some(Defect::FilesAreText) => String::from_utf8_lossy(bytes).into_owned().into_bytes(),
                    Some(Defect::LargeFilesAreCut) => bytes[..bytes.len().min(8192)].to_vec(),
                    _ => bytes.to_vec(),
                };
                match defect {
                    Some(Defect::ReadsAreText) => json!({ "dataBase64": String::from_utf8_lossy(&bytes) }),
                    _ => json!({ "dataBase64": STANDARD.encode(bytes) }),
                }
            }
            "fs/writeFile" => self.write_file(&path("path")?, params)?,
            "fs/createDirectory" => {
                let (path, recursive) = (path("path")?, params.flag("recursive")?);
                let recursive = recursive.unwrap_or(defect != Some(Defect::ParentsAreNotMade))
                    || defect == Some(Defect::ParentsAreAlwaysMade);
                self.core.lock().files.create_directory(&path, recursive).map_err(wrong)?;
                json!({})
            }
            "fs/getMetadata" => {
                let path = path("path")?;
                let state = self.core.lock();
                metadata(state.files.node(&path).map_err(wrong)?, defect)
            }
            "fs/readDirectory" => self.read_directory(&path("path")?)?,
            "fs/remove" => {
                let path = path("path")?;
                let recursive =
                    params.flag("recursive")?.unwrap_or(defect != Some(Defect::TreesAreNotRemoved))
                        || defect == Some(Defect::AlwaysRemovesTrees);
                let force = match defect {
                    Some(Defect::MissingIsAlwaysRemoved) => true,
                    Some(Defect::MissingIsNeverRemoved) => false,
                    _ => params.flag("force")?.unwrap_or(true),
                };
                self.core.lock().files.remove(&path, recursive, force).map_err(wrong)?;
                json!({})
            }
            "fs/copy" => self.copy(&path("sourcePath")?, &path("destinationPath")?, params)?,
            "fs/watch" => self.watch(&path("path")?, params)?,
            "fs/unwatch" => {
                let watch = params.text("watchId")?;
                let mut state = self.core.lock();
                match defect {
                    Some(Defect::UnwatchDoesNothing) => {}
                    Some(Defect::UnwatchEndsAll) => state.watches.retain(|each| each.client != self.client),
                    Some(Defect::UnwatchReachesOthers) => state.watches.retain(|each| each.id != watch),
                    _ => state.watches.retain(|each| each.client != self.client || each.id != watch),
                }
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
        let bytes = match self.behaviour.striking() {
            Some(Defect::WritesAppend) => [old, bytes].concat(),
            Some(Defect::EmptyWritesAreIgnored) if bytes.is_empty() => old,
            _ => bytes,
        };
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
        if self.has(Defect::FoldersListThemselves) {
            entries.push(json!({ "fileName": ".", "isDirectory": true, "isFile": false }));
        }
        if self.behaviour.style(Style::FoldersBackwards) {
            entries.reverse();
        }
        Ok(json!({ "entries": entries }))
    }

    fn copy(&self, from: &str, to: &str, params: &Params<'_>) -> Result<Value, Refusal> {
        let recursive = params.flag("recursive")?.unwrap_or(false);
        let mut state = self.core.lock();
        let files = &mut state.files;
        match self.behaviour.striking() {
            Some(Defect::AlwaysCopiesTrees) => files.copy(from, to, true),
            Some(Defect::CopyMoves) if !recursive => {
                files.copy(from, to, false).and_then(|()| files.remove(from, false, true))
            }
            Some(Defect::CopyLeavesAFolder) if !recursive => {
                let copied = files.copy(from, to, false);
                if copied.is_err() && files.node(from).is_ok() {
                    let _ = files.create_directory(to, false);
                }
                copied
            }
            Some(Defect::CopyFollowsLinks) => files.copy(from, to, recursive).and_then(|()| {
                let link = format!("{to}/link");
                match files.read(&link).map(<[u8]>::to_vec) {
                    Ok(bytes) => files.remove(&link, false, true).and_then(|()| files.write(&link, bytes)),
                    Err(_) => Ok(()),
                }
            }),
            _ => files.copy(from, to, recursive),
        }
        .map_err(refuse)?;
        Ok(json!({}))
    }

    fn watch(&self, path: &str, params: &Params<'_>) -> Result<Value, Refusal> {
        let id = params.text("watchId")?.to_owned();
        let mut state = self.core.lock();
        let mine = || state.watches.iter().filter(|watch| watch.client == self.client);
        if mine().any(|watch| watch.id == id) || mine().count() >= MOST_WATCHES {
            return Err(refuse("the watchId is in use, or there are too many"));
        }
        let path = state.files.canonical(path);
        let told = if self.has(Defect::WatchReturnsTheName) {
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
    json!({
        "isDirectory": directory_told, "isFile": !directory_told && !matches!(node.kind, Kind::Pipe),
        "isSymlink": matches!(node.kind, Kind::Link(_)), "createdAtMs": created, "modifiedAtMs": modified,
    })
}
