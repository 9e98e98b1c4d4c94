//! Changes of files: what a patch says, the decision about it, and the turn's diff.

use serde_json::{Map, Value, json};

use super::faults::Defect;
use super::files::Files;
use super::items::fresh;
use super::player::{Player, Stop};
use super::shell::Sandbox;
use super::state::Grant;
use super::tools::Decision;

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
        let told: Vec<Value> = changes
            .iter()
            .map(|(path, change, lines)| {
                let kind = match change {
                    Change::Add(_) => "add",
                    Change::Delete => "delete",
                    Change::Update(_) => "update",
                };
                let mut told = json!({ "path": path, "kind": { "type": kind }, "diff": lines });
                self.behaviour.mutate(&mut told, |defect, told| {
                    if defect == Defect::ChangesHaveNoDiff {
                        drop(told.as_object_mut().map(|told| told.remove("diff")))
                    }
                });
                told
            })
            .collect();
        let id = fresh("item");
        let mut item = json!({ "type": "fileChange", "id": id, "changes": told, "status": "inProgress" });
        if !told.is_empty() && self.has(Defect::ChangesAreNotShown) {
            item["changes"] = json!([]);
        }
        self.started(&item);
        item["changes"] = json!(told);
        let key = |path: &str| format!("file:{path}");
        let grant = |path: &str| {
            let state = self.core.lock();
            state.live.get(&self.thread).and_then(|live| live.allowed.get(&key(path)).copied())
        };
        let free = changes.iter().all(|(path, ..)| self.settings.sandbox.allows(&self.settings.cwd, path));
        let allowed = !free
            && changes
                .iter()
                .all(|(path, ..)| grant(path).is_some_and(|grant| grant.counts(&self.behaviour)));
        let never = self.settings.approval == "never";
        let asks = !allowed && !free && !never;
        let unasked = asks && self.has(Defect::ChangesAreNotAskedAbout);
        if asks && !unasked {
            if self.behaviour.prepares(Defect::ChangesBeforeTheAnswer) {
                let made = self.make(&changes);
                self.set_done_early(made);
            }
            let decision = self.ask_about_files(&id).await;
            let done_early = self.set_done_early(false);
            let Some(decision) = decision else {
                if done_early {
                    self.behaviour.took_effect();
                }
                item["status"] = json!("declined");
                self.completed(item);
                return Err(Stop::Cancelled);
            };
            match decision {
                Decision::Decline | Decision::Cancel => {
                    self.denied(&decision, done_early);
                    let made = match decision {
                        Decision::Cancel => self.has(Defect::CancelledChangesAreMade),
                        _ => self.has(Defect::DeclinedChangesAreMade),
                    };
                    if made {
                        self.make(&changes);
                    }
                    item["status"] =
                        json!(if self.has(Defect::DeclinedChangesFail) { "failed" } else { "declined" });
                    self.completed(item);
                    self.flush();
                    return if decision == Decision::Cancel { Err(Stop::Cancelled) } else { Ok(()) };
                }
                Decision::ForSession | Decision::Confused(_) => {
                    let grant = match decision {
                        Decision::Confused(grant) => grant,
                        _ if self.behaviour.prepares(Defect::ChangesAreAcceptedOnce) => Grant::Forgotten,
                        _ => Grant::Given,
                    };
                    let mut state = self.core.lock();
                    if let Some(live) = state.live.get_mut(&self.thread) {
                        live.allowed.extend(changes.iter().map(|(path, ..)| (key(path), grant)));
                    }
                }
                Decision::Accept | Decision::Amendment(_) => {}
            }
        }
        let may = asks || allowed || free;
        debug_assert!(self.settings.sandbox != Sandbox::Full || may);
        let some = match asks && changes.len() > 1 && self.has(Defect::OneOfSeveralChangesIsMade) {
            true => &changes[..1],
            false => &changes[..],
        };
        let made = may && (self.has(Defect::AcceptedChangesAreNotMade) || self.make(some));
        let done = made || self.has(Defect::FailedChangesAreCompleted);
        item["status"] = json!(if done { "completed" } else { "failed" });
        self.completed(item);
        self.flush();
        if made && !self.has(Defect::NoTurnDiff) {
            for (path, change, lines) in &changes {
                let (old, new) = match change {
                    Change::Add(_) => ("/dev/null".to_owned(), format!("b{path}")),
                    Change::Delete => (format!("a{path}"), "/dev/null".to_owned()),
                    Change::Update(_) => (format!("a{path}"), format!("b{path}")),
                };
                self.diff.push_str(&format!("--- {old}\n+++ {new}\n{lines}"));
            }
            let diff = if self.has(Defect::TurnDiffIsEmpty) { "" } else { &self.diff };
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
