//! What a message shows of the state, and of which time it may be.

use std::sync::Arc;

use serde_json::json;

use super::{event, protocol};
use crate::check::Judge;
use crate::frame::Limits;
use crate::trace::{Direction, Payload};

/// How many violations there are, with the correlation id at `id`. Steps: `ask ID`, `log SEQ`, which is an event, and
/// `state CURSOR NEWEST OPEN ID`, where `log 1` begins and `log 3` ends what is open.
fn broken(id: Option<&str>, steps: &[&str]) -> usize {
    let with = |id: u64| json!({ "type": "log", "with": { "seq": id } });
    let protocol = protocol(&json!({
        "log": { "message": "log", "id": "/seq" },
        "invariants": { "x": { "about": "a", "monitor": { "projection": {
            "message": "output", "cursor": "/seq", "asked": { "type": "ask", "dir": "send" }, "id": id,
            "facts": {
                "newest": { "at": "/newest", "fold": { "newest": {} }, "decides": ["R-1"] },
                "open": { "at": "/open", "decides": ["R-1"], "fold": {
                    "latest": { "set": { "message": with(1), "at": "/seq" }, "clear": with(3) },
                } },
            },
        } } } },
    }));
    let mut judge = Judge::new(Arc::clone(&protocol), Limits::default(), &[]).expect("monitors");
    let broken = steps.iter().map(|step| {
        let words: Vec<&str> = step.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let (dir, frame) = match words[0] {
            "ask" => (Direction::Send, json!({ "type": "ask", "id": number(1) })),
            "log" => (Direction::Recv, json!({ "type": "log", "seq": number(1) })),
            _ => (
                Direction::Recv,
                json!({ "type": "output", "seq": number(1), "newest": number(2), "open": number(3), "id": number(4) }),
            ),
        };
        judge.observe(&event("a", dir, Payload::Text(frame.to_string().into()))).violations.len()
    });
    broken.sum()
}

/// The same behind the first state, and an event.
fn then(more: &[&str]) -> usize {
    broken(None, &[&["state 0 0", "log 1", "log 2"], more].concat())
}

#[test]
fn a_state_is_of_a_time_since_it_was_asked_for() {
    assert_eq!(then(&["state 2 2 1"]), 0);
    assert_eq!(then(&["ask", "log 3", "state 3 3"]), 0);
    assert_eq!(then(&["ask", "log 3", "state 2 2 1"]), 0, "it was being made when the event came");
    assert_eq!(then(&["ask", "ask", "log 3", "state 2 2 1", "state 2 2 1"]), 0, "both were asked for before");
    for (steps, why) in [
        (&["log 3", "state 2 2 1"][..], "nobody has asked"),
        (&["ask", "log 3", "state 2 1 1"], "it is of two times"),
        (&["ask", "log 3", "state 1 1 1"], "that was over when it was asked for"),
        (&["ask", "state 2 2 1", "log 3", "state 2 2 1"], "one question has one answer"),
        (&["log 3", "ask", "state 2 2 1"], "that was over when it was asked for"),
        (&["ask", "log 3", "state 3 3 1"], "it says that it is of now"),
    ] {
        assert_eq!(then(steps), 1, "{steps:?}: {why}");
    }
}

#[test]
fn a_state_that_nobody_asked_for_answers_none_that_was() {
    let then = |more: &[&str]| broken(Some("/id"), &[&["state 0 0", "log 1", "log 2"], more].concat());
    assert_eq!(then(&["ask 7", "state 2 2 1", "log 3", "state 2 2 1 7"]), 0);
    assert_eq!(then(&["ask 7", "ask 8", "log 3", "state 2 2 1 8", "state 2 2 1 7"]), 0);
    assert_eq!(then(&["ask 7", "state 2 2 1", "log 3", "state 2 2 1"]), 0, "either may be the answer");
    assert_eq!(then(&["ask 7", "log 3", "state 2 2 1 8"]), 1, "another question");
    assert_eq!(then(&["ask 7", "log 3", "state 2 2 1 7", "state 2 2 1 7"]), 1, "one question has one answer");
}
