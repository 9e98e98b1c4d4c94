//! What `{{NAME}}` stands for in a running case.

use rand_chacha::rand_core::Rng;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::run::case::interpreter::{Runner, Stop};
use crate::scenario::{template, turn};

impl Runner<'_> {
    /// Fills in the templates of a value, for the current client.
    pub fn expand(&mut self, value: &Value, with: Option<&Value>) -> Result<Value, Stop> {
        template::expand(value, &mut |name| self.lookup(name, with))
            .map_err(|error| Stop::Error(error.to_string()))
    }

    fn lookup(&mut self, name: &str, with: Option<&Value>) -> Option<Value> {
        if let Some(value) = with.and_then(|with| template::dig(with, name)) {
            return Some(value);
        }
        let (root, rest) = name.split_once('.').map_or((name, None), |(root, rest)| (root, Some(rest)));
        if let Some(value) = self.vars.get(root) {
            return match rest {
                Some(rest) => template::dig(value, rest),
                None => Some(value.clone()),
            };
        }
        match root {
            "uuid" => Some(json!(self.uuid())),
            "uid" => {
                let uid = format!("u{:08x}", self.rng.next_u32());
                self.vars.insert("uid".into(), json!(uid));
                Some(json!(uid))
            }
            "cue" => self.cue(rest),
            "tools" => {
                let tool = json!(self.protocol.extension.tools.get(rest?.split('.').next()?)?);
                match rest?.split_once('.') {
                    Some((_, field)) => template::dig(&tool, field),
                    None => Some(tool),
                }
            }
            "session" => {
                let own = self.clients.get(&self.current).map(|client| client.session.clone());
                let session = rest.map(str::to_owned).or(own)?;
                Some(json!(self.sessions.get(&session).cloned().flatten()))
            }
            "seen" => self.seen.value(rest?, &self.current),
            "last_seen" => {
                let client = self.clients.get(rest.unwrap_or(&self.current));
                Some(json!(client.and_then(|client| client.last_seen)))
            }
            _ => None,
        }
    }

    fn cue(&mut self, name: Option<&str>) -> Option<Value> {
        let case = &self.loaded.case;
        let steps = match name {
            Some(name) => case.turns.get(name)?,
            None => case.turn.as_ref()?,
        };
        let protocol = Arc::clone(&self.protocol);
        if let Some(prompt) = self.options.prompts.of(&self.loaded.id, name) {
            return Some(Value::from(prompt));
        }
        let cue = turn::cue_text(steps, &protocol, &mut |name| self.lookup(name, None)).ok()?;
        self.makes_up(&cue);
        Some(Value::String(cue))
    }

    pub fn uuid(&mut self) -> String {
        let mut bytes = [0; 16];
        self.rng.fill_bytes(&mut bytes);
        let uuid = uuid::Builder::from_random_bytes(bytes).into_uuid().to_string();
        self.makes_up(&uuid);
        uuid
    }

    /// Notes that nobody else says this.
    pub fn makes_up(&self, text: &str) {
        if let Some(ear) = &self.ear {
            ear.says(&self.current, text);
        }
    }
}
