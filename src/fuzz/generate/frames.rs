//! Inputs below the messages: commands in unusual frames that every server must take, and frames that break RFC 6455.

use serde_json::{Value, json};

use crate::fuzz::input::{Action, Input, Obligation};
use crate::scenario::frame::{RawFrame, unhex};
use crate::source::read;
use crate::wire::{Breach, Messages, Writer};

/// What the inputs of this file are called in the table of states and commands.
pub const COMMAND: &str = "frames";

/// The kinds of input, by their mutation's name.
pub const KINDS: &[&str] = &[
    // Valid, each in an unusual way.
    "fragmented",
    "fragmented-around-pings",
    "fragmented-around-pongs",
    "empty-fragments",
    "byte-by-byte",
    "padded",
    "many-pings",
    "longest-ping",
    "unsolicited-pong",
    // A client's close, which the server returns.
    "close",
    // Left open by the RFC.
    "binary",
    "long-length-form",
    // Forbidden.
    "unmasked",
    "reserved-bits",
    "reserved-opcode",
    "long-control",
    "fragmented-control",
    "continues-nothing",
    "message-within",
    "bad-utf8",
    "bad-utf8-in-fragments",
    "bad-close-code",
    "half-close-code",
    "bad-close-reason",
    "behind-close",
    // Aborted: the client drops its connection in the end.
    "short-length",
    "noise",
    "half-frame",
    "half-message",
    "long-length",
    "endless-length",
    // The same with a reset, which the server does not notice in order.
    "reset-in-frame",
    "reset-in-message",
    // And with silence: a connection of its own says no more, and stays while the rest of the case runs.
    "silence-in-frame",
    "silence-in-message",
];

/// A client that goes silent, beside those that go on.
const SILENT: &str = "silent";
/// Bytes that are no UTF-8: a stray continuation, a lead byte alone, overlong forms, a surrogate, beyond the last character.
const INVALID_UTF8: &[&str] = &[
    "80",
    "c3",
    "c3 28",
    "c0 af",
    "e0 80 af",
    "f0 80 80 af",
    "ed a0 80",
    "f4 90 80 80",
    "f8 88 80 80 80",
    "ff",
];
/// So many pings every server answers, however late it reads them: who bounds the pongs that wait to be written (npm's `ws`
/// does, at 60) ends the connection of a client that floods it.
const PINGS: usize = 16;
/// As many characters as the templates that commands use are expanded to, at most: a UUID.
const EXPANDED: usize = 36;
/// Close codes that may not be sent.
const INVALID_CODES: &[u16] = &[0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535];
/// Close codes that may be sent.
const VALID_CODES: &[u16] = &[1000, 1001, 1003, 1007, 1008, 1011, 3000, 3999, 4000, 4999];
/// Lengths about the borders of the three forms.
const BORDERS: &[u64] = &[125, 126, 127, 65_535, 65_536, 65_537];

/// One input of this kind (see [`KINDS`]; an unknown one is taken for the first): `message` is a valid command, with
/// templates, and `below(n)` is a random number from 0 to n - 1. An input that ends with a `drop` leaves the client without a
/// connection; after one that [may](Obligation::MayClose) or [must](Obligation::MustClose) close it may be without one.
pub fn input(
    client: &str,
    kind: &'static str,
    message: &Value,
    below: &mut dyn FnMut(usize) -> usize,
) -> Input {
    let (steps, obligation) = valid_frames(kind, message, below)
        .map(|steps| (steps, Obligation::Survive))
        .or_else(|| closing_handshake(kind, below))
        .or_else(|| optional_frames(kind, below))
        .or_else(|| forbidden_frames(kind, message, below))
        .or_else(|| aborted_frames(client, kind, message, below))
        .unwrap_or_else(|| (vec![fragmented(message, 1, None)], Obligation::Survive));
    Input {
        client: client.to_owned(),
        action: Action::Steps(steps),
        command: COMMAND.to_owned(),
        mutation: kind.to_owned(),
        obligation,
    }
}

/// What a server that goes by RFC 6455 makes of the frames of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// What is wrong with them.
    pub breach: Option<Breach>,
    /// They end with a whole message.
    pub whole: bool,
    /// What they complete, without the contents: text, binary, ping, pong, close and its code.
    pub kinds: Vec<String>,
}

/// The meaning of steps; `None`: they are none that the DSL knows. Templates stand as they are.
pub fn meaning(steps: &[Value]) -> Option<Meaning> {
    use crate::trace::Payload;
    let mut mirror = Messages::new(Writer::Client, usize::MAX);
    for step in steps {
        let count = step.get("count").and_then(Value::as_u64).unwrap_or(1);
        let bytes = if let Some(frame) = step.get("frame") {
            let raw: RawFrame = read(frame).ok()?;
            let mut bytes = raw.encode(&mut |value| Ok(value.clone())).ok()?;
            bytes.truncate(raw.cut.map_or(usize::MAX, |cut| usize::try_from(cut).unwrap_or(usize::MAX)));
            bytes
        } else if let Some(digits) = step.get("bytes") {
            unhex(digits.as_str()?).ok()?
        } else {
            continue;
        };
        (0..count).for_each(|_| mirror.feed(&bytes));
    }
    let mut kinds: Vec<String> = Vec::new();
    let breach = loop {
        match mirror.take() {
            Ok(Some(Payload::Close { code, .. })) => kinds.push(format!("close {code:?}")),
            Ok(Some(payload)) => kinds.push(
                match payload {
                    Payload::Text(_) => "text",
                    Payload::Binary(_) => "binary",
                    Payload::Ping(_) => "ping",
                    _ => "pong",
                }
                .to_owned(),
            ),
            Ok(None) => break None,
            Err(breach) => break Some(breach),
        }
        // How many there are of a kind is what shrinking may change.
        kinds.dedup();
    };
    Some(Meaning { breach, whole: mirror.is_between_messages(), kinds })
}

fn frame(frame: Value) -> Value {
    json!({ "frame": frame })
}

fn fragmented(message: &Value, size: usize, between: Option<Value>) -> Value {
    let mut fields = json!({ "opcode": "text", "fragment": size, "payload": message });
    if let Some(between) = between {
        fields["between"] = between;
    }
    frame(fields)
}

/// What a server must take.
fn valid_frames(kind: &str, message: &Value, below: &mut dyn FnMut(usize) -> usize) -> Option<Vec<Value>> {
    let size = 1 + below(8);
    Some(match kind {
        "fragmented" => vec![fragmented(message, size, None)],
        "fragmented-around-pings" => {
            // One ping goes before each fragment but the first.
            let text = message.to_string();
            let length = text.len() + EXPANDED * text.matches("{{").count();
            let size = size.max(length.div_ceil(PINGS));
            vec![fragmented(message, size, Some(json!({ "opcode": "ping", "payload": "p" })))]
        }
        "fragmented-around-pongs" => vec![fragmented(message, size, Some(json!({ "opcode": "pong" })))],
        "empty-fragments" => vec![
            frame(json!({ "opcode": "text", "fin": false })),
            json!({ "frame": { "opcode": "continuation", "fin": false }, "count": 1 + below(20) }),
            frame(json!({ "opcode": "continuation", "payload": message })),
        ],
        "byte-by-byte" => vec![frame(json!({ "opcode": "text", "piece": size, "payload": message }))],
        "padded" => {
            let pad = BORDERS[below(BORDERS.len())];
            vec![frame(json!({ "opcode": "text", "pad": pad, "payload": message }))]
        }
        "many-pings" => {
            vec![json!({ "frame": { "opcode": "ping", "payload": "p" }, "count": 2 + below(PINGS - 1) })]
        }
        "longest-ping" => vec![frame(json!({ "opcode": "ping", "pad": 125 }))],
        "unsolicited-pong" => vec![frame(json!({ "opcode": "pong", "payload": "unasked" }))],
        _ => return None,
    })
}

/// A closing handshake: the code is returned, or the server's own says that all is well.
fn closing_handshake(kind: &str, below: &mut dyn FnMut(usize) -> usize) -> Option<(Vec<Value>, Obligation)> {
    if kind != "close" {
        return None;
    }
    let code = VALID_CODES[below(VALID_CODES.len())];
    let reason = ["", "bye", "\u{1f44b}"][below(3)];
    let steps = vec![frame(json!({ "opcode": "close", "code": code, "payload": reason }))];
    Some((steps, Obligation::MustClose { codes: vec![code, 1000], covers: Vec::new() }))
}

/// What a server may take or not.
fn optional_frames(kind: &str, below: &mut dyn FnMut(usize) -> usize) -> Option<(Vec<Value>, Obligation)> {
    let (fields, codes) = match kind {
        // 1003: it cannot take this kind of data. No command: it is open whether one in a binary frame counts.
        "binary" => {
            let bytes: Vec<String> = (0..below(20)).map(|_| format!("{:02x}", below(256))).collect();
            (json!({ "opcode": "binary", "hex": format!("00 {}", bytes.join(" ")) }), vec![1003, 1007, 1008])
        }
        "long-length-form" => {
            let bits = [16, 64][below(2)];
            (json!({ "opcode": "ping", "payload": "p", "length-bits": bits }), vec![1002])
        }
        _ => return None,
    };
    Some((vec![frame(fields)], Obligation::MayClose { codes }))
}

/// What a server must refuse; RFC 6455 names the code that it ought to give.
fn forbidden_frames(
    kind: &str,
    message: &Value,
    below: &mut dyn FnMut(usize) -> usize,
) -> Option<(Vec<Value>, Obligation)> {
    let mut pick = |from: &[&str]| from[below(from.len())].to_owned();
    let (steps, codes) = match kind {
        "unmasked" => (vec![json!({ "opcode": "text", "masked": false, "payload": message })], vec![1002]),
        "reserved-bits" => {
            (vec![json!({ "opcode": "text", "rsv": 1 + below(7), "payload": message })], vec![1002])
        }
        "reserved-opcode" => {
            let opcode = [3, 4, 5, 6, 7, 11, 12, 13, 14, 15][below(10)];
            (vec![json!({ "opcode": opcode, "payload": message })], vec![1002])
        }
        "long-control" => {
            let opcode = pick(&["ping", "pong", "close"]);
            (vec![json!({ "opcode": opcode, "code": 1000, "pad": 126 + below(200) })], vec![1002])
        }
        "fragmented-control" => {
            let opcode = pick(&["ping", "pong", "close"]);
            (vec![json!({ "opcode": opcode, "fin": false })], vec![1002])
        }
        "continues-nothing" => (vec![json!({ "opcode": "continuation", "payload": message })], vec![1002]),
        "message-within" => {
            let begin = json!({ "opcode": "text", "fin": false, "payload": "{" });
            (vec![begin, json!({ "opcode": "text", "payload": message })], vec![1002])
        }
        "bad-utf8" => {
            let hex = format!("22 {} 22", pick(INVALID_UTF8));
            (vec![json!({ "opcode": "text", "hex": hex })], vec![1007])
        }
        "bad-utf8-in-fragments" => {
            let hex = format!("22 {} 22", pick(INVALID_UTF8));
            (vec![json!({ "opcode": "text", "hex": hex, "fragment": 1 })], vec![1007])
        }
        "bad-close-code" => (
            vec![json!({ "opcode": "close", "code": INVALID_CODES[below(INVALID_CODES.len())] })],
            vec![1002],
        ),
        "half-close-code" => (vec![json!({ "opcode": "close", "hex": "03" })], vec![1002]),
        "bad-close-reason" => {
            let hex = format!("03 e8 {}", pick(INVALID_UTF8));
            (vec![json!({ "opcode": "close", "hex": hex })], vec![1000, 1002, 1007])
        }
        "behind-close" => {
            let close = json!({ "opcode": "close", "code": 1000 });
            (vec![close, json!({ "opcode": "text", "payload": message })], vec![1000, 1002])
        }
        _ => return None,
    };
    Some((steps.into_iter().map(frame).collect(), Obligation::MustClose { codes, covers: Vec::new() }))
}

/// The client is gone, and the server has noticed: what is asked next is asked of a server that was harmed.
fn drop_client(client: &str) -> Value {
    json!({ "drop": client, "noticed": true })
}

/// What a client aborts: it goes silent in the middle, and drops its connection.
fn aborted_frames(
    client: &str,
    kind: &str,
    message: &Value,
    below: &mut dyn FnMut(usize) -> usize,
) -> Option<(Vec<Value>, Obligation)> {
    // A cut resets the connection (see `wire::connect`), whatever is under way on it.
    let reset = json!({ "drop": client });
    let begun = || json!({ "opcode": "text", "payload": message, "fin": false });
    // At least one byte, and never the whole frame: its header and mask alone have six.
    let mut cut = || json!({ "opcode": "text", "payload": message, "cut": 1 + below(6) });
    let silent = |frame: Value| vec![json!({ "open": SILENT }), json!({ "frame": frame, "as": SILENT })];
    let steps = match kind {
        "reset-in-frame" => Some(vec![frame(cut()), reset]),
        "reset-in-message" => Some(vec![frame(begun()), reset]),
        "silence-in-frame" => Some(silent(cut())),
        "silence-in-message" => Some(silent(begun())),
        "half-frame" => Some(vec![frame(cut()), drop_client(client)]),
        _ => None,
    };
    if let Some(steps) = steps {
        return Some((steps, Obligation::Survive));
    }
    let fields = match kind {
        // What is behind the claimed length may be taken for a frame that never ends.
        "short-length" => json!({ "opcode": "text", "payload": message, "length": below(4) }),
        "noise" => {
            let bytes: Vec<String> = (0..2 + below(40)).map(|_| format!("{:02x}", below(256))).collect();
            return Some((
                vec![json!({ "bytes": bytes.join(" ") }), drop_client(client)],
                Obligation::Survive,
            ));
        }
        "half-message" => begun(),
        "long-length" => json!({ "opcode": "text", "payload": message, "length": 100_000 + below(100_000) }),
        "endless-length" => {
            json!({ "opcode": "text", "payload": message, "length": (1_u64 << 62) + below(9) as u64 })
        }
        _ => return None,
    };
    Some((vec![frame(fields), drop_client(client)], Obligation::Survive))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{LoadOptions, Protocol};

    /// Every kind, several times, with other random numbers each time.
    fn all() -> Vec<Input> {
        let message = json!({ "type": "{{kind|\"x\"}}", "n": 1 });
        let mut state = 1_u64;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound.max(1)
        };
        (0..20).flat_map(|_| KINDS).map(|kind| input("alice", kind, &message, &mut below)).collect()
    }

    #[test]
    fn every_kind_is_steps_that_the_loader_takes() {
        let name = Protocol::embedded_names()[0];
        let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("it loads");
        let mut cases = Vec::new();
        for (index, input) in all().into_iter().enumerate() {
            let mut steps = vec![json!({ "open": "alice" })];
            steps.extend(input.steps());
            cases.push(json!({ "name": format!("c{index}"), "title": input.mutation, "steps": steps }));
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("wire.yaml");
        std::fs::write(&path, json!({ "family": "wire", "cases": cases }).to_string()).expect("written");
        let loaded = crate::scenario::load(&path, &protocol).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(loaded.len(), 20 * KINDS.len());
    }

    #[test]
    fn each_kind_does_what_it_is_called() {
        for input in all() {
            let Action::Steps(steps) = &input.action else { panic!("steps") };
            let survives = input.obligation == Obligation::Survive;
            let place = KINDS.iter().position(|kind| *kind == input.mutation).expect("known");
            let broken_off = place >= KINDS.len() - 10;
            assert_eq!(survives, place < 9 || broken_off, "{}", input.mutation);
            let meaning = meaning(steps).expect("frames");
            let must = matches!(input.obligation, Obligation::MustClose { .. });
            let closes = meaning.kinds.iter().any(|kind| kind.starts_with("close"));
            assert_eq!(
                must,
                !broken_off && (meaning.breach.is_some() && place > 11 || closes),
                "{input:?} {meaning:?}"
            );
            assert!(meaning.whole == (place < 9 || input.mutation == "binary") || broken_off, "{input:?}");
            let drops = steps.iter().any(|step| step.get("drop").is_some());
            assert_eq!(drops, broken_off && place < KINDS.len() - 2, "{}", input.mutation);
            assert_eq!(drops, input.hangs_up(), "{}", input.mutation);
            if input.mutation == "fragmented-around-pings" {
                let size = steps[0]["frame"]["fragment"].as_u64().expect("a size");
                let length = steps[0]["frame"]["payload"].to_string().len() as u64;
                assert!(length.div_ceil(size) <= PINGS as u64 + 1, "{input:?}");
            }
        }
        let kinds: std::collections::BTreeSet<&&str> = KINDS.iter().collect();
        assert_eq!(kinds.len(), KINDS.len(), "no kind stands twice");
    }
}
