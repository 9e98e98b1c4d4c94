//! Threads as they are stored.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Behaviour;
use super::files::now;
use super::shell::Sandbox;

/// The provider of every thread.
pub(super) const PROVIDER: &str = "scripted";

/// What a thread's turns run with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub model: String,
    pub cwd: String,
    /// As it was given: a name, or an object.
    pub approval: Value,
    pub sandbox: Sandbox,
    /// The names of the client's own tools.
    pub tools: Vec<String>,
}

/// A turn: what was completed of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turn {
    pub id: String,
    pub status: &'static str,
    pub items: Vec<Value>,
    pub error: Value,
}

impl Turn {
    pub fn new(id: String) -> Self {
        Self { id, status: "inProgress", items: Vec::new(), error: Value::Null }
    }

    pub fn to_json(&self, items: bool) -> Value {
        let items = if items { self.items.as_slice() } else { &[] };
        json!({ "id": self.id, "status": self.status, "items": items, "error": self.error })
    }
}

/// What is known of a thread beside its turns. Times in Unix milliseconds.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub id: String,
    /// Its place among all threads.
    pub number: u64,
    pub created: u64,
    pub updated: u64,
    pub preview: String,
    pub name: Option<String>,
    pub forked_from: Option<String>,
    pub git: Map<String, Value>,
    pub ephemeral: bool,
    pub archived: bool,
}

/// A thread.
#[derive(Debug, Clone)]
pub(super) struct Thread {
    pub about: About,
    pub settings: Settings,
    pub turns: Vec<Turn>,
    /// That of the session which it belongs to, also after a restart; none: of no session yet.
    pub behaviour: Option<Behaviour>,
}

impl Thread {
    pub fn new(number: u64, settings: Settings, ephemeral: bool) -> Self {
        let at = now();
        let about = About {
            id: format!("thr_{}", uuid::Uuid::new_v4().simple()),
            number,
            created: at,
            updated: at,
            preview: String::new(),
            name: None,
            forked_from: None,
            git: Map::new(),
            ephemeral,
            archived: false,
        };
        Self { about, settings, turns: Vec::new(), behaviour: None }
    }

    /// The file that it is stored in, below the server's home.
    pub fn path(&self, home: &str) -> Option<String> {
        let folder = if self.about.archived { "archived_sessions" } else { "sessions" };
        (!self.about.ephemeral).then(|| format!("{home}/{folder}/rollout-{}.jsonl", self.about.id))
    }

    /// The thread as it is told.
    pub fn to_json(&self, home: &str, status: &Value, turns: bool) -> Value {
        let About { id, preview, name, forked_from, git, ephemeral, created, updated, .. } = &self.about;
        let turns: Vec<Value> = self.turns.iter().filter(|_| turns).map(|turn| turn.to_json(true)).collect();
        json!({
            "id": id, "forkedFromId": forked_from, "preview": preview, "ephemeral": ephemeral,
            "modelProvider": PROVIDER, "createdAt": created / 1000, "updatedAt": updated / 1000,
            "status": status, "path": self.path(home), "cwd": self.settings.cwd,
            "cliVersion": env!("CARGO_PKG_VERSION"), "source": "vscode",
            "gitInfo": if git.is_empty() { Value::Null } else { json!(git) }, "name": name, "turns": turns,
        })
    }

    /// The turn of this id.
    pub fn turn(&mut self, id: &str) -> Option<&mut Turn> {
        self.turns.iter_mut().rev().find(|turn| turn.id == id)
    }

    /// Whether a turn is in progress.
    pub fn is_open(&self) -> bool {
        self.turns.iter().any(|turn| turn.status == "inProgress")
    }

    /// Ends the turns that nobody goes on with.
    pub fn break_off(&mut self) {
        for turn in self.turns.iter_mut().filter(|turn| turn.status == "inProgress") {
            turn.status = "interrupted";
        }
    }
}

/// Threads by id.
pub(super) type Threads = BTreeMap<String, Thread>;
