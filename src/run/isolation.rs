//! Whether what one session is told reaches another: a case made for it, run before all others where several sessions
//! are to run side by side.

use serde_json::{Value, json};

use super::case::Outcome;
use super::event::CaseReport;
use crate::protocol::Protocol;
use crate::scenario::{self, LoadedCase};
use crate::source::Document;
use crate::trace::Direction;

/// What the model is told to say: unlikely enough that nobody else says it.
pub(super) const WORDS: [&str; 3] = ["frameproof ", "was ", "here"];

/// How long the other client listens where the protocol has nothing to ask and no silence that counts.
const WINDOW: &str = "1s";

/// The case.
///
/// # Errors
/// The protocol cannot express it, and why.
pub(super) fn case(protocol: &Protocol) -> Result<LoadedCase, String> {
    let types: Vec<&str> = protocol
        .messages
        .iter()
        .filter(|message| message.dir == Direction::Recv)
        .map(|message| message.name.as_str())
        .collect();
    // A text anywhere in the message that bears the words, or the user's own.
    let told = json!({
        "$ref": "#/$defs/told",
        "$defs": { "told": { "anyOf": [
            { "type": "string", "pattern": r"frameproof|\[\[cue:" },
            { "type": "array", "contains": { "$ref": "#/$defs/told" } },
            { "type": "object", "not": { "additionalProperties": { "not": { "$ref": "#/$defs/told" } } } },
        ] } },
    });
    let mut never = json!({ "never": types, "as": "bob", "where": told });
    if protocol.extension.barrier.is_none() && protocol.extension.turn.quiet_ms.is_none() {
        never["window"] = WINDOW.into();
    }
    made(
        protocol,
        "sessions-apart",
        "What one session is told no other hears",
        json!([{ "say": WORDS }]),
        &Value::Array(
            [
                vec![json!({ "open": "alice" }), json!({ "open": "bob", "session": "other" })],
                start(protocol, "alice"),
                vec![json!({ "expect": "turn-end", "as": "alice" }), never],
            ]
            .concat(),
        ),
    )
}

/// Marks a case that found a leak; false: it found none.
pub(super) fn leaks(outcome: &mut Outcome) -> bool {
    let Some(failure) =
        outcome.failures.iter_mut().find(|failure| failure.message.contains("must not come here"))
    else {
        return false;
    };
    "leak".clone_into(&mut failure.check);
    failure.expected = None;
    "what one session was told came to a client of another: `sessions = 1` in the target's table has cases run one after the \
     other, as this run now does"
        .clone_into(&mut failure.message);
    true
}

/// Tells how to see it again: no filter selects this case.
pub(super) fn reproduce(report: &mut CaseReport) {
    report.reproduce = report.reproduce.replacen(" run", " doctor", 1);
    for option in [" --timeout-scale ", " --quiet-period ", " --strict", " --seed "] {
        if let Some(at) = report.reproduce.find(option) {
            report.reproduce.truncate(at);
        }
    }
}

/// The protocol's own start of a turn as steps, with the cue as the user's text.
pub(super) fn start(protocol: &Protocol, client: &str) -> Vec<Value> {
    let turn = &protocol.extension.turn;
    let before = turn.before.iter().map(|step| match (&step.send, &step.expect) {
        (Some(send), _) => json!({ "send": send, "as": client }),
        (None, expect) => {
            let mut wait = json!({ "expect": expect, "as": client, "save": step.save });
            for (key, value) in [("with", &step.with), ("where", &step.schema)] {
                if let Some(value) = value {
                    wait[key] = value.clone();
                }
            }
            wait
        }
    });
    let start = turn.start.to_string().replace("{{text}}", "{{cue}}");
    let start: Value = serde_json::from_str(&start).unwrap_or_default();
    before.chain([json!({ "send": start, "as": client })]).collect()
}

/// A case that stands in no file.
pub(super) fn made(
    protocol: &Protocol,
    name: &str,
    title: &str,
    turn: Value,
    steps: &Value,
) -> Result<LoadedCase, String> {
    let mut case = json!({ "name": name, "title": title, "settle": false, "steps": steps });
    if !turn.is_null() {
        case["turn"] = turn;
    }
    let file = json!({ "family": "target", "cases": [case] });
    let document =
        Document::parse("made by frameproof", &file.to_string()).map_err(|error| error.to_string())?;
    let mut cases = scenario::from_documents([document], protocol).map_err(|error| error.to_string())?;
    cases.pop().ok_or_else(|| "no case".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_protocol_can_express_it() {
        for name in Protocol::embedded_names() {
            let protocol =
                Protocol::embedded(name, &crate::protocol::LoadOptions::default()).expect("it loads");
            let case = case(&protocol).expect(name);
            assert!(case.case.steps.len() >= 5, "{name}");
        }
    }
}
