//! What the scripted model does in the turns of walks.

use serde_json::{Map, Value, json};

use crate::protocol::Protocol;
use crate::synthesis::model_scripts;

/// The scripts after which a turn ends without the client's doing, by name.
pub(super) fn turns(protocol: &Protocol) -> Map<String, Value> {
    let mut all = model_scripts::all(protocol);
    // The others hang, fail, or call what the client has a part in.
    all.retain(|name, _| matches!(name.as_str(), model_scripts::CLEAN | "think"));
    for (name, script) in [
        ("say-non-ascii", json!([{ "say": ["Gr\u{fc}", "\u{df}e \u{4e16}", "\u{754c} \u{1f389}"] }])),
        ("say-long", json!([{ "say": ["word ".repeat(500)] }])),
        ("say-bit-by-bit", json!([{ "say": (0..24).map(|n| format!("{n} ")).collect::<Vec<_>>() }])),
        ("say-twice-the-same", json!([{ "say": ["again ", "again "] }])),
        ("pause", json!([{ "say": ["a "] }, { "pause_ms": 20 }, { "say": ["b"] }])),
    ] {
        all.insert(name.to_owned(), script);
    }
    // An overlay may say that the server has no tool of a class.
    let tools = &protocol.extension.tools;
    let classes =
        || protocol.extension.explore.calls.iter().filter(|class| tools.contains_key(class.as_str()));
    let calls: Vec<Value> = classes().map(|class| call(class)).collect();
    for (class, call) in classes().zip(&calls) {
        all.insert(format!("call-{class}"), json!([call, { "say": ["done"] }]));
        all.insert(format!("say-call-{class}"), json!([{ "say": ["well "] }, call, { "say": ["done"] }]));
        // Calls next to each other are made together.
        all.insert(format!("two-at-once-{class}"), json!([call, call, { "say": ["done"] }]));
        all.insert(
            format!("one-by-one-{class}"),
            json!([call, { "say": ["now "] }, call, { "say": ["done"] }]),
        );
    }
    if calls.len() > 1 {
        let mut together = calls;
        together.push(json!({ "say": ["done"] }));
        all.insert("each-class-at-once".to_owned(), Value::Array(together));
    }
    all
}

fn call(class: &str) -> Value {
    json!({ "call": { "class": class } })
}

/// The name under which a case has the script of a state.
pub(super) fn of_state(state: &str) -> String {
    format!("state-{state}")
}

/// The name under which a case has the script of a turn of the protocol's own.
pub(super) fn of_turn(turn: &str) -> String {
    format!("turn-{turn}")
}

/// Every script, by the name under which cases have it.
pub(super) fn all(protocol: &Protocol) -> Map<String, Value> {
    let mut all = turns(protocol);
    let states = protocol.extension.fuzzing.states.iter();
    all.extend(states.map(|(name, state)| (of_state(name), json!(state.turn))));
    let own = protocol.extension.explore.turns.iter();
    all.extend(own.map(|(name, turn)| (of_turn(name), json!(turn.turn))));
    all
}
