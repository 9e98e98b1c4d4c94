//! What `{{NAME}}` stands for in a running case.

use std::collections::HashMap;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::run::case::context::CaseContext;
use crate::run::case::interpreter::{Runner, Stop};
use crate::run::case::server_ids::Seen;
use crate::scenario::{template, turn};
use crate::source::Diagnostics;

/// The values that templates stand for. The same seed gives the same ones.
pub(crate) struct Variables {
    pub values: HashMap<String, Value>,
    pub rng: ChaCha8Rng,
    /// Ids that the server has told, for `{{seen.NAME}}`.
    pub seen: Seen,
}

impl Variables {
    /// # Errors
    /// A pattern that does not compile (found when the protocol is loaded, too).
    pub fn new(cx: &CaseContext<'_>, seed: u64) -> Result<Self, Diagnostics> {
        let given = cx.loaded.case.vars.iter();
        Ok(Self {
            values: given.map(|(name, value)| (name.clone(), value.clone())).collect(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            seen: Seen::new(&cx.protocol)?,
        })
    }
}

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
        if let Some(value) = self.vars.values.get(root) {
            return match rest {
                Some(rest) => template::dig(value, rest),
                None => Some(value.clone()),
            };
        }
        match root {
            "uuid" => Some(json!(self.uuid())),
            "uid" => {
                let uid = format!("u{:08x}", self.vars.rng.next_u32());
                self.vars.values.insert("uid".into(), json!(uid));
                Some(json!(uid))
            }
            "cue" => self.cue(rest),
            "tools" => {
                let tool = json!(self.cx.protocol.extension.tools.get(rest?.split('.').next()?)?);
                match rest?.split_once('.') {
                    Some((_, field)) => template::dig(&tool, field),
                    None => Some(tool),
                }
            }
            "session" => {
                let own = self.conns.clients.get(&self.step.client).map(|client| client.session.clone());
                let session = rest.map(str::to_owned).or(own)?;
                Some(json!(self.conns.sessions.ids.get(&session).cloned().flatten()))
            }
            "seen" => self.vars.seen.value(rest?, &self.step.client),
            "last_seen" => {
                let client = self.conns.clients.get(rest.unwrap_or(&self.step.client));
                Some(json!(client.and_then(|client| client.last_seen)))
            }
            _ => None,
        }
    }

    fn cue(&mut self, name: Option<&str>) -> Option<Value> {
        let case = &self.cx.loaded.case;
        let steps = match name {
            Some(name) => case.turns.get(name)?,
            None => case.turn.as_ref()?,
        };
        let protocol = Arc::clone(&self.cx.protocol);
        if let Some(prompt) = self.cx.run.options.prompts.of(&self.cx.loaded.id, name) {
            return Some(Value::from(prompt));
        }
        let cue = turn::cue_text(steps, &protocol, &mut |name| self.lookup(name, None)).ok()?;
        self.note_marker(&cue);
        Some(Value::String(cue))
    }

    pub fn uuid(&mut self) -> String {
        let mut bytes = [0; 16];
        self.vars.rng.fill_bytes(&mut bytes);
        let uuid = uuid::Builder::from_random_bytes(bytes).into_uuid().to_string();
        self.note_marker(&uuid);
        uuid
    }

    /// Notes that nobody else says this.
    pub fn note_marker(&self, text: &str) {
        if let Some(probe) = &self.cx.probe {
            probe.says(&self.step.client, text);
        }
    }
}
