//! Changes of files: what a patch says, the decision about it, and the turn's diff.

use serde_json::{Map, Value, json};

use super::faults::Defect;
use super::files::Files;
use super::items::fresh;
use super::player::{Player, Stop};
use super::shell::Sandbox;
use super::tools::Decision;
use crate::reference::engine::Happening;

/// What becomes of a file.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Add(String),
    Delete,
    /// Blocks of lines, and what stands in their place.
    Update(Vec<(String, String)>),
}

/// The changes of a patch, each with its path and its lines.
fn parse(patch: &str) -> Vec<(String, Change, String)> {
    let mut changes: Vec<(String, Change, String)> = Vec::new();
    for line in patch.lines() {
        let head = |name: &str| line.strip_prefix(name).map(|path| path.trim().to_owned());
        if let Some(path) = head("*** Add File:") {
            changes.push((path, Change::Add(String::new()), String::new()));
        } else if let Some(path) = head("*** Delete File:") {
            changes.push((path, Change::Delete, String::new()));
        } else if let Some(path) = head("*** Update File:") {
            changes.push((path, Change::Update(vec![Default::default()]), String::new()));
        } else if let Some((_, change, lines)) = changes.last_mut().filter(|_| !line.starts_with("*** ")) {
            lines.push_str(line);
            lines.push('\n');
            match (change, line.split_at_checked(1)) {
                (Change::Add(text), Some(("+", rest))) => {
                    text.push_str(rest);
                    text.push('\n');
                }
                (Change::Update(blocks), _) if line.starts_with("@@") => blocks.push(Default::default()),
                (Change::Update(blocks), Some((sign, rest))) => {
                    let Some((old, new)) = blocks.last_mut() else { continue };
                    let rest = format!("{rest}\n");
                    if sign != "+" {
                        old.push_str(&rest);
                    }
                    if sign != "-" {
                        new.push_str(&rest);
                    }
                }
                _ => {}
            }
        }
    }
    changes
}

fn apply(files: &mut Files, path: &str, change: &Change) -> Result<(), String> {
    match change {
        Change::Add(text) => files.write(path, text.clone().into_bytes()),
        Change::Delete => files.remove(path, false, false),
        Change::Update(blocks) => {
            let mut text = String::from_utf8_lossy(files.read(path)?).into_owned();
            for (old, new) in blocks.iter().filter(|(old, new)| old != new) {
                let at = text.find(old.as_str()).ok_or_else(|| format!("{path}: the lines are not there"))?;
                text.replace_range(at..at + old.len(), new);
            }
            files.write(path, text.into_bytes())
        }
    }
}

impl Player {
    pub async fn patch(&mut self, args: &Map<String, Value>) -> Result<(), Stop> {
        let input = args.get("input").and_then(Value::as_str).unwrap_or_default();
        let changes: Vec<(String, Change, String)> = parse(input)
            .into_iter()
            .map(|(path, change, lines)| (self.place(&path), change, lines))
            .collect();
        let defect = self.behaviour.striking();
        let told: Vec<Value> = changes
            .iter()
            .map(|(path, change, lines)| {
                let kind = match change {
                    Change::Add(_) => "add",
                    Change::Delete => "delete",
                    Change::Update(_) => "update",
                };
                match defect {
                    Some(Defect::ChangesHaveNoDiff) => json!({ "path": path, "kind": { "type": kind } }),
                    _ => json!({ "path": path, "kind": { "type": kind }, "diff": lines }),
                }
            })
            .collect();
        let id = fresh("item");
        let mut item = json!({ "type": "fileChange", "id": id, "changes": told, "status": "inProgress" });
        if defect == Some(Defect::ChangesAreNotShown) {
            item["changes"] = json!([]);
        }
        self.started(&item);
        item["changes"] = json!(told);
        let key = |path: &str| format!("file:{path}");
        let allowed = {
            let state = self.core.lock();
            let live = state.live.get(&self.thread);
            changes.iter().all(|(path, ..)| live.is_some_and(|live| live.allowed.contains(&key(path))))
        };
        let free = changes.iter().all(|(path, ..)| self.settings.sandbox.allows(&self.settings.cwd, path));
        let never = self.settings.approval == "never";
        let asks = !allowed && !free && !never && defect != Some(Defect::ChangesAreNotAskedAbout);
        if asks {
            if defect == Some(Defect::ChangesBeforeTheAnswer) {
                self.make(&changes);
            }
            let Some(decision) = self.ask_about_files(&id).await else {
                item["status"] = json!("declined");
                self.completed(item);
                return Err(Stop::Cancelled);
            };
            match decision {
                Decision::Decline | Decision::Cancel => {
                    self.behaviour.note(Happening::Denial);
                    let made = match decision {
                        Decision::Cancel => defect == Some(Defect::CancelledChangesAreMade),
                        _ => defect == Some(Defect::DeclinedChangesAreMade),
                    };
                    if made {
                        self.make(&changes);
                    }
                    item["status"] = json!(if defect == Some(Defect::DeclinedChangesFail) {
                        "failed"
                    } else {
                        "declined"
                    });
                    self.completed(item);
                    self.flush();
                    return if decision == Decision::Cancel { Err(Stop::Cancelled) } else { Ok(()) };
                }
                Decision::ForSession if defect != Some(Defect::ChangesAreAcceptedOnce) => {
                    let mut state = self.core.lock();
                    if let Some(live) = state.live.get_mut(&self.thread) {
                        live.allowed.extend(changes.iter().map(|(path, ..)| key(path)));
                    }
                }
                _ => {}
            }
        }
        let may = asks || allowed || free || defect == Some(Defect::ChangesAreNotAskedAbout);
        debug_assert!(self.settings.sandbox != Sandbox::Full || may);
        let made = may && (defect == Some(Defect::AcceptedChangesAreNotMade) || self.make(&changes));
        let done = made || defect == Some(Defect::FailedChangesAreCompleted);
        item["status"] = json!(if done { "completed" } else { "failed" });
        self.completed(item);
        self.flush();
        if made && defect != Some(Defect::NoTurnDiff) {
            for (path, change, lines) in &changes {
                let (old, new) = match change {
                    Change::Add(_) => ("/dev/null".to_owned(), format!("b{path}")),
                    Change::Delete => (format!("a{path}"), "/dev/null".to_owned()),
                    Change::Update(_) => (format!("a{path}"), format!("b{path}")),
                };
                self.diff.push_str(&format!("--- {old}\n+++ {new}\n{lines}"));
            }
            let diff = if defect == Some(Defect::TurnDiffIsEmpty) { "" } else { &self.diff };
            self.publish("turn/diff/updated", json!({ "diff": diff }));
        }
        Ok(())
    }

    /// Makes the changes; whether all could be made.
    fn make(&self, changes: &[(String, Change, String)]) -> bool {
        let mut state = self.core.lock();
        let made = changes.iter().all(|(path, change, _)| apply(&mut state.files, path, change).is_ok());
        state.announce_changes();
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_adds_updates_and_deletes() {
        let patch = "*** Begin Patch\n*** Add File: /a\n+one\n+two\n*** Update File: /b\n@@\n x\n-y\n+z\n*** Delete File: /c\n*** End Patch\n";
        let mut files = Files::with(&[]);
        files.write("/b", b"x\ny\n".to_vec()).expect("written");
        files.write("/c", Vec::new()).expect("written");
        for (path, change, _) in parse(patch) {
            apply(&mut files, &path, &change).expect(&path);
        }
        assert_eq!(files.read("/a"), Ok(b"one\ntwo\n".as_slice()));
        assert_eq!(files.read("/b"), Ok(b"x\nz\n".as_slice()));
        assert!(files.read("/c").is_err());
        assert!(apply(&mut files, "/b", &Change::Update(vec![("no\n".into(), "yes\n".into())])).is_err());
    }
}
