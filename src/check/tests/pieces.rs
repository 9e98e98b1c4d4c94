//! Texts that come in pieces on several connections.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{event, protocol};
use crate::check::Judge;
use crate::frame::Limits;
use crate::protocol::Protocol;
use crate::trace::{Direction, End, Payload};

fn rule() -> Arc<Protocol> {
    protocol(&json!({
        "session": { "id": [{ "on": "log", "at": "/room" }] },
        "invariants": { "whole": { "about": "a", "monitor": { "concatenation": {
            "piece": { "message": "say", "at": "/text" }, "whole": { "message": "done", "at": "/text" }, "key": "/id",
            "decides": ["R-1"],
        } } } },
    }))
}

/// How many violations: what each client sees; `None` opens its connection, a null ends it.
fn broken(frames: &[(&str, Option<Value>)]) -> usize {
    let mut judge = Judge::new(rule(), Limits::default(), &[]).expect("monitors");
    let mut broken = 0;
    for (client, frame) in frames {
        let payload = match frame {
            None => Payload::Open { url: "ws://x/".into() },
            Some(Value::Null) => Payload::End(End::Eof),
            Some(frame) => Payload::Text(frame.to_string().into()),
        };
        let event = event(client, Direction::Recv, payload);
        broken += judge.observe(&event).violations.len();
    }
    broken + judge.finish(true).violations.len()
}

fn room() -> Option<Value> {
    Some(json!({ "type": "log", "room": "r" }))
}

fn say(text: &str) -> Option<Value> {
    Some(json!({ "type": "say", "id": 1, "text": text }))
}

fn done(text: &str) -> Option<Value> {
    Some(json!({ "type": "done", "id": 1, "text": text }))
}

#[test]
fn a_connection_that_joins_in_the_midst_gets_the_end_of_the_whole() {
    let cut = [("a", None), ("a", room()), ("a", say("one ")), ("a", Some(Value::Null))];
    let resumed = |frames: &[Option<Value>]| {
        let later = [None, room()].into_iter().chain(frames.iter().cloned()).map(|frame| ("b", frame));
        broken(&cut.iter().cloned().chain(later).collect::<Vec<_>>())
    };
    assert_eq!(resumed(&[say("two "), say("three"), done("one two three")]), 0);
    assert_eq!(resumed(&[say("one "), say("two"), done("one two")]), 0, "from the beginning");
    assert_eq!(resumed(&[say("two "), done("one two three")]), 1, "the end lacks");
    assert_eq!(resumed(&[say("tow"), done("one two")]), 1, "other words");
    // The session went on while nobody was there.
    let gone = [("a", None), ("a", room()), ("a", Some(Value::Null)), ("b", None), ("b", room())];
    let later = |text| gone.iter().cloned().chain([("b", say("two")), ("b", done(text))]).collect::<Vec<_>>();
    assert_eq!(broken(&later("one two")), 0);
    assert_eq!(broken(&later("two one")), 1);
}

#[test]
fn a_connection_that_was_there_gets_all_pieces() {
    let both = [("a", None), ("b", None), ("a", room()), ("b", room())];
    let with = |frames: &[(&'static str, Option<Value>)]| {
        broken(&both.iter().cloned().chain(frames.iter().cloned()).collect::<Vec<_>>())
    };
    let all = [("a", say("one ")), ("a", say("two")), ("a", done("one two"))];
    assert_eq!(
        with(&[&all[..], &[("b", say("one ")), ("b", say("two")), ("b", done("one two"))]].concat()),
        0
    );
    assert_eq!(with(&[&all[..], &[("b", say("two")), ("b", done("one two"))]].concat()), 1);
}
