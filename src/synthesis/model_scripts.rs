//! What the scripted model does in fuzzed turns.

use serde_json::{Map, Value, json};

use super::fresh;
use crate::protocol::Protocol;

/// The script of a clean turn.
pub const CLEAN: &str = "clean";

/// Every script, by the name under which a case has it (`{{cue.NAME}}`).
pub fn all(protocol: &Protocol) -> Map<String, Value> {
    let mut scripts = Map::new();
    scripts.insert(CLEAN.to_owned(), json!([{ "say": ["all", " is well"] }]));
    scripts.insert("think".to_owned(), json!([{ "think": ["hm"] }, { "say": ["so", " be it"] }]));
    scripts.insert("hang".to_owned(), json!([{ "say": ["so far"] }, { "hang": true }]));
    scripts.insert(
        "fail".to_owned(),
        json!([{ "say": ["so far"] }, { "fail": { "status": 500, "message": "overloaded" } }]),
    );
    scripts.insert("flood".to_owned(), json!([{ "flood": { "chunks": 40, "chars": 50 } }]));
    for class in protocol.extension.tools.keys() {
        let name = format!("call-{class}");
        scripts.insert(name, json!([{ "call": { "class": class } }, { "say": ["done"] }]));
    }
    if protocol.extension.tools.contains_key("guarded") {
        let call = json!({ "call": { "class": "guarded" } });
        scripts.insert("call-twice".to_owned(), json!([call, call, { "say": ["done"] }]));
    }
    scripts
}

/// The message that starts a turn of a client, with this text. What it bears that must be new each time is new.
pub fn start(protocol: &Protocol, client: &str, text: &str) -> Value {
    let fuzzing = &protocol.extension.fuzzing;
    let mut message = protocol.extension.turn.start.clone();
    fresh::renew(protocol, &mut message);
    let mut written = message.to_string().replace("{{text}}", text);
    for name in fuzzing.prepare.iter().flat_map(|step| step.save.keys()) {
        written = written.replace(&format!("{{{{{name}}}}}"), &format!("{{{{{name}_{client}}}}}"));
    }
    serde_json::from_str(&written).unwrap_or(message)
}

/// The name of the command that starts a turn.
pub fn command(protocol: &Protocol) -> Option<&str> {
    protocol.extension.discriminator.get(&protocol.extension.turn.start).and_then(Value::as_str)
}
