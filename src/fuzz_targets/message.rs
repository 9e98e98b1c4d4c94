//! Message validation.

use serde_json::Value;

use super::shipped;
use crate::frame::{Limits, Pointer, parse};
use crate::protocol::{Counts, Message, Protocol, SchemaFinding};
use crate::trace::Direction;

/// A frame is validated as the message of `protocol` that it says it is, from either side.
///
/// # Panics
/// A protocol of that name is not shipped, or the property does not hold.
pub fn message(protocol: &str, bytes: &[u8]) {
    let index = shipped().iter().position(|known| known.name == protocol);
    message_of(index.unwrap_or_else(|| panic!("{protocol} is not shipped")), bytes);
}

/// As [`message`], by the protocol's place among the shipped ones.
pub(super) fn message_of(protocol: usize, bytes: &[u8]) {
    let protocol = &shipped()[protocol];
    let Ok(body) = parse(bytes, &Limits::default()) else { return };
    for dir in [Direction::Send, Direction::Recv] {
        if let Some(message) = protocol.message_of(&body, dir) {
            holds(protocol, &protocol.messages[message], &body);
        }
        if protocol.is_reply(&body) {
            // A reply may answer any request; each has a schema of its own.
            let requests = protocol.messages.iter().filter(|message| message.dir == dir.other());
            for request in requests {
                if let Some(message) = protocol.reply_of(&body, dir, Some(&request.name)) {
                    holds(protocol, &protocol.messages[message], &body);
                }
            }
        }
    }
}

/// What must hold for every body of a message: the verdict does not depend on how the text is written, and every finding
/// names requirements that exist and a place that can be pointed at.
pub(super) fn holds(protocol: &Protocol, message: &Message, body: &Value) {
    let findings = message.validate(body);
    for SchemaFinding { requirements, at, message } in &findings {
        for id in requirements {
            assert!(protocol.requirements.get(id).is_some(), "{id} is no requirement");
        }
        let pointer = Pointer::new(at).unwrap_or_else(|error| panic!("{error}"));
        let parent = Pointer::new(at.rsplit_once('/').map_or("", |(parent, _)| parent));
        let exists = pointer.get(body).is_some() || parent.is_ok_and(|parent| parent.get(body).is_some());
        assert!(exists, "{at} points at nothing in {body}");
        assert!(!message.is_empty(), "a finding says what is wrong");
    }
    // The second time the layout is known.
    let (mut counts, mut known) = (Counts::default(), Counts::default());
    for _ in 0..2 {
        message.count(body, None, &mut counts);
        message.count(body, Some(0), &mut known);
    }
    let counted: Vec<_> = message.counted(&counts).collect();
    for id in counted.iter().flat_map(|(ids, _)| *ids) {
        assert!(protocol.requirements.get(id).is_some(), "{id} is no requirement");
    }
    assert_eq!(message.counted(&known).collect::<Vec<_>>(), counted, "a known layout changes the counts");
    let again = parse(reversed(body).to_string().as_bytes(), &Limits::default());
    let again = again.unwrap_or_else(|error| panic!("what was parsed can be written and parsed: {error}"));
    assert_eq!(sorted(message.validate(&again)), sorted(findings), "the order of keys changes the verdict");
}

/// The same value with the keys of every object in the opposite order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect())
        }
        Value::Array(items) => items.iter().map(reversed).collect(),
        scalar => scalar.clone(),
    }
}

/// Places and requirements; the sentences quote values, in which the order of keys shows.
fn sorted(findings: Vec<SchemaFinding>) -> Vec<(String, Vec<String>)> {
    let mut places: Vec<_> = findings.into_iter().map(|one| (one.at, one.requirements)).collect();
    places.sort();
    places
}
