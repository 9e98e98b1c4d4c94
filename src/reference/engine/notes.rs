//! The notes tools: five tools whose effects a client can see.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

/// How a tool may be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reference) enum Class {
    /// Without asking.
    Open,
    /// After an approval.
    Guarded,
    /// Never: refused by rule.
    Denied,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::reference) struct Outcome {
    pub text: String,
    pub is_error: bool,
}

/// The notes of one session.
#[derive(Debug, Default)]
pub(in crate::reference) struct Notes(BTreeMap<String, String>);

/// The class of a tool; an unknown one is open and ends in a tool error.
pub(in crate::reference) fn class(tool: &str) -> Class {
    match tool {
        "write_note" => Class::Guarded,
        "secret_note" => Class::Denied,
        _ => Class::Open,
    }
}

/// How long a call takes.
pub(in crate::reference) fn duration(tool: &str, args: &Map<String, Value>) -> Duration {
    let asked = args.get("ms").and_then(Value::as_u64).filter(|_| tool == "slow_note");
    Duration::from_millis(asked.unwrap_or(0).min(60_000))
}

impl Notes {
    /// Runs a tool.
    pub(in crate::reference) fn run(&mut self, tool: &str, args: &Map<String, Value>) -> Outcome {
        let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let done = |text: String| Outcome { text, is_error: false };
        let failed = |text: String| Outcome { text, is_error: true };
        match tool {
            "read_note" => match self.0.get(&text("key")) {
                Some(note) => done(note.clone()),
                None => failed(format!("no note {:?}", text("key"))),
            },
            "write_note" => {
                self.0.insert(text("key"), text("text"));
                done(format!("wrote {:?}", text("key")))
            }
            "slow_note" => done("done at last".to_owned()),
            "secret_note" => failed("refused by rule".to_owned()),
            "fail_note" => failed(text("message")),
            other => failed(format!("no tool {other:?}")),
        }
    }
}
