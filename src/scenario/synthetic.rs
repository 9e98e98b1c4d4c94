//! Cases that stand in no file: the program makes them itself.

use std::sync::Arc;

use serde_json::{Value, json};

use super::recovery::Gaps;
use super::{LoadedCase, compile, file, from_documents};
use crate::protocol::Protocol;
use crate::source::{Document, read};

/// A case in the making.
#[derive(Debug, Clone)]
pub struct Builder<'p> {
    protocol: &'p Protocol,
    name: &'static str,
    title: &'static str,
    turn: Option<Value>,
    steps: Vec<Value>,
    is_unwatched: bool,
}

impl<'p> Builder<'p> {
    /// A case without steps.
    pub fn new(protocol: &'p Protocol, name: &'static str, title: &'static str) -> Self {
        Self { protocol, name, title, turn: None, steps: Vec::new(), is_unwatched: false }
    }

    /// What the scripted model does.
    #[must_use]
    pub fn turn(mut self, turn: Value) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Connects a client, and does the protocol's opening.
    #[must_use]
    pub fn open(self, client: &str) -> Self {
        self.step(json!({ "open": client }))
    }

    /// The same in a session of this name.
    #[must_use]
    pub fn open_in(self, client: &str, session: &str) -> Self {
        self.step(json!({ "open": client, "session": session }))
    }

    /// Waits for a message of this type, or of one of these.
    #[must_use]
    pub fn expect(self, client: &str, names: impl Into<Value>) -> Self {
        self.step(json!({ "expect": names.into(), "as": client }))
    }

    /// None of these messages comes that satisfies the schema.
    #[must_use]
    pub fn never(self, client: &str, names: &[&str], schema: &Value) -> Self {
        self.step(json!({ "never": names, "as": client, "where": schema }))
    }

    /// The protocol's own start of a turn, with the cue as the user's text.
    #[must_use]
    pub fn start_turn(mut self, client: &str) -> Self {
        let turn = &self.protocol.extension.turn;
        for exchange in &turn.before {
            let step = match (&exchange.send, &exchange.expect) {
                (Some(send), _) => json!({ "send": send, "as": client }),
                (None, expect) => {
                    let mut wait = json!({ "expect": expect, "as": client, "save": exchange.save });
                    for (key, value) in [("with", &exchange.with), ("where", &exchange.schema)] {
                        if let Some(value) = value {
                            wait[key] = value.clone();
                        }
                    }
                    wait
                }
            };
            self.steps.push(step);
        }
        let start = turn.start.to_string().replace("{{text}}", "{{cue}}");
        let start: Value = serde_json::from_str(&start).unwrap_or_default();
        self.step(json!({ "send": start, "as": client }))
    }

    /// A step as a scenario file would have it.
    #[must_use]
    pub fn step(mut self, step: Value) -> Self {
        self.steps.push(step);
        self
    }

    /// No invariant of the protocol holds in it.
    #[must_use]
    pub fn unwatched(self) -> Self {
        Self { is_unwatched: true, ..self }
    }

    /// The case, checked as if it stood in a file.
    ///
    /// # Errors
    /// The protocol cannot express it, and why.
    pub fn build(self) -> Result<LoadedCase, String> {
        let Self { protocol, name, title, turn, steps, is_unwatched } = self;
        let mut case = json!({ "name": name, "title": title, "settle": false, "steps": steps });
        if let Some(turn) = turn {
            case["turn"] = turn;
        }
        if is_unwatched {
            case["suspend"] = protocol.extension.invariants.keys().map(String::as_str).collect();
        }
        let file = json!({ "family": "target", "cases": [case] });
        let document =
            Document::parse("made by frameproof", &file.to_string()).map_err(|error| error.to_string())?;
        let mut cases = from_documents([document], protocol).map_err(|error| error.to_string())?;
        cases.pop().ok_or_else(|| "no case".to_owned())
    }
}

/// A case made of its JSON form, which names what the protocol knows and stands in no file: `document` stands for it.
///
/// # Errors
/// It is no case, and why.
pub fn unplaced(
    case: &Value,
    family: &str,
    document: &Arc<Document>,
    protocol: &Protocol,
) -> Result<LoadedCase, String> {
    let given: file::Case = read(case).map_err(|error| error.to_string())?;
    let id = format!("{family}/{}", given.name);
    let (case, mistakes) = compile::case(given, protocol, &Gaps::default());
    if let Some(mistake) = mistakes.into_iter().next() {
        return Err(format!("{}: {}", mistake.at, mistake.message));
    }
    Ok(LoadedCase {
        id,
        family: family.to_owned(),
        case,
        file: document.name.clone(),
        embedded: false,
        document: Arc::clone(document),
        pointer: String::new(),
        line: 1,
        notes: Vec::new(),
        preamble: None,
    })
}
