//! A turn that goes on behind the message that the protocol takes for its end.

use serde_json::{Value, json};

use super::finding::{StepFinding, StepState};
use crate::protocol::Protocol;
use crate::results::event::{FrameRecord, Way};
use crate::trace::Direction;

/// How long a server is listened to behind the end of a turn, in milliseconds.
pub(super) const LISTENS_MS: u64 = 1500;

/// A step that waits for so long, whatever comes.
pub(super) fn listening(protocol: &Protocol, client: &str) -> Value {
    let received = protocol.messages.iter().filter(|message| message.dir == Direction::Recv);
    let names: Vec<&str> = received.map(|message| message.name.as_str()).collect();
    json!({ "never": names, "as": client, "where": { "not": {} }, "window": format!("{LISTENS_MS}ms") })
}

fn from_server(line: &FrameRecord) -> bool {
    line.way == Way::ToClient && !line.ambient
}

/// The first message of a frame of the server: null, if there is none.
pub(super) fn body(protocol: &Protocol, line: &FrameRecord) -> Value {
    protocol.bodies(&line.text, Direction::Recv).into_iter().next().unwrap_or_default()
}

/// Which of the frames the protocol takes for the end of a turn, first.
pub(super) fn end_of_turn(protocol: &Protocol, frames: &[FrameRecord]) -> Option<usize> {
    let ends = |body: &Value| {
        let message = protocol.message_of(body, Direction::Recv);
        protocol.roles().turn_end.matches(message, Direction::Recv, body)
    };
    frames.iter().position(|line| from_server(line) && ends(&body(protocol, line)))
}

/// The finding, if the words that are looked for came behind a turn's end only. `frames`: of a case with one turn.
pub(super) fn late_words(
    protocol: &Protocol,
    step: &'static str,
    frames: &[FrameRecord],
    words: &str,
) -> Option<StepFinding> {
    let end = end_of_turn(protocol, frames)?;
    let (before, after) = frames.split_at(end + 1);
    let has_words = |line: &&FrameRecord| from_server(line) && line.text.contains(words);
    let is_late = after.iter().find(has_words).filter(|_| !before.iter().any(|line| has_words(&line)))?;
    let (end, began) = (before.last()?, before.iter().rposition(|line| line.way == Way::ToServer)?);
    let name = protocol.type_of(&body(protocol, end))?.to_owned();
    let text = format!(
        "the model's text came {:.1} ms after `{name}`, which the protocol takes for the end of the turn",
        is_late.ms - end.ms
    );
    let turn: Vec<Value> =
        frames[began..].iter().filter(|line| from_server(line)).map(|line| body(protocol, line)).collect();
    let advice = match last_message(protocol, &turn) {
        Some(last) => format!(
            "the protocol demands `{name}` last. Where the server deviates on purpose, an overlay names what ends its turns: \
             `x-frameproof: {{ turn: {{ end: {last} }} }}` (see docs/targets.md)"
        ),
        None => "the protocol demands it last. Where the server deviates on purpose, an overlay names what ends its turns: \
                 `x-frameproof: { turn: { end: … } }` (see docs/targets.md)"
            .to_owned(),
    };
    let mut finding = StepFinding::new(step, StepState::Problem, text, &advice);
    finding.frames = frames.to_vec();
    Some(finding)
}

/// The pattern of the last message of a turn, if it distinguishes it from those before.
fn last_message(protocol: &Protocol, turn: &[Value]) -> Option<Value> {
    let (last, before) = turn.split_last()?;
    let name = protocol.type_of(last)?;
    let alike: Vec<&Value> = before.iter().filter(|body| protocol.type_of(body) == Some(name)).collect();
    if alike.is_empty() {
        return Some(name.into());
    }
    let with = telling(last, &alike)?;
    Some(json!({ "type": name, "with": with }))
}

/// A truth value of a message that no other of its type has, in its place.
fn telling(last: &Value, others: &[&Value]) -> Option<Value> {
    let fields = last.as_object()?;
    fields.iter().find_map(|(key, value)| {
        let theirs: Vec<&Value> = others.iter().map(|other| other.get(key).unwrap_or(&Value::Null)).collect();
        let part = match value {
            Value::Bool(_) if !theirs.contains(&value) => value.clone(),
            Value::Object(_) => telling(value, &theirs)?,
            _ => return None,
        };
        Some(json!({ (key): part }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_is_told_from_those_before_by_a_truth_value() {
        let last = json!({ "id": "2", "type": "s", "payload": { "loading": false, "n": 1 } });
        let before = json!({ "id": "1", "type": "s", "payload": { "loading": true, "n": 1 } });
        assert_eq!(telling(&last, &[&before]), Some(json!({ "payload": { "loading": false } })));
        assert_eq!(telling(&last, &[&last, &before]), None);
    }
}
