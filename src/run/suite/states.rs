//! What begins and ends with a frame: turns, and the states of a session as the protocol's `fuzzing.phases` name them.

use std::collections::HashMap;

use crate::protocol::Protocol;
use crate::results::event::{FrameRecord, Way};
use crate::run::case::outcome::Batches;
use crate::trace::Direction;

/// Notes it in the lines of a wire log, as each client sees it. What is cut or of no known type tells nothing.
pub(crate) fn note(wire: &mut [FrameRecord], batches: &Batches, protocol: &Protocol) {
    let roles = protocol.roles();
    let mut now: HashMap<String, &str> = HashMap::new();
    for line in wire.iter_mut().filter(|line| line.cut == 0 && !line.ambient) {
        let dir = match line.way {
            Way::ToServer => Direction::Send,
            Way::ToClient => Direction::Recv,
            Way::Connection => continue,
        };
        let message = line.kind.as_deref().and_then(|kind| protocol.index_of(kind, dir));
        let messages = match batches.get(&line.index) {
            Some(batch) => &**batch,
            None if message.is_some() => &[message],
            None => continue,
        };
        for (message, body) in
            messages.iter().zip(protocol.bodies(&line.text, dir)).filter(|(message, _)| message.is_some())
        {
            if dir == Direction::Send && roles.turn_start == *message {
                line.states.push("turn begins".to_owned());
            }
            let state = roles.phases.iter().find(|(_, on)| on.matches(*message, dir, &body));
            if let Some((state, _)) = state
                && now.insert(line.client.clone(), state) != Some(state.as_str())
            {
                line.states.push(state.clone());
            }
            if dir == Direction::Recv && roles.turn_end.matches(*message, dir, &body) {
                line.states.push("turn ends".to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LoadOptions;
    use serde_json::{Value, json};

    #[test]
    fn a_turn_begins_with_the_message_that_the_protocol_says() {
        for name in Protocol::embedded_names() {
            let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("a shipped protocol");
            let start = protocol.roles().turn_start.expect("a turn begins somehow");
            let kind = &protocol.messages[start].name;
            let line = |index: u64, dir: &str, kind: &str, body: &Value| -> FrameRecord {
                let text = body.to_string();
                let line =
                    json!({ "index": index, "ms": 0, "client": "a", "dir": dir, "type": kind, "text": text });
                serde_json::from_value(line).expect("a line")
            };
            let body = &protocol.extension.turn.start;
            let cut = FrameRecord { cut: 1, ..line(1, "->", kind, body) };
            let mut wire = vec![
                line(0, "->", kind, body),
                cut,
                line(2, "->", "unknown", body),
                line(3, "--", kind, body),
            ];
            note(&mut wire, &Batches::default(), &protocol);
            let begins: Vec<bool> =
                wire.iter().map(|line| line.states.iter().any(|state| state == "turn begins")).collect();
            assert_eq!(begins, [true, false, false, false], "{name}");
        }
    }
}
