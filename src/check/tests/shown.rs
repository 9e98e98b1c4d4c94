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

#[test]
fn what_is_asked_before_the_first_state_is_answered_behind_it() {
    let broken = |more: &[&str]| broken(Some("/id"), more);
    assert_eq!(broken(&["ask 7", "state 0 0", "log 1", "state 0 0 0 7"]), 0);
    assert_eq!(
        broken(&["ask 7", "state 0 0 0 7", "log 1", "state 0 0 0 7"]),
        1,
        "one question has one answer"
    );
    assert_eq!(broken(&["ask 7", "state 0 0", "log 1", "state 0 0 0 8"]), 1, "another question");
}

#[test]
fn neighbours_may_be_shown_as_one_item() {
    /// Whether a list is told as wrong behind these events; an item is a kind and a text.
    fn is_wrong(join: Option<&str>, events: &[(&str, &str)], list: &[(&str, &str)]) -> bool {
        let protocol = protocol(&json!({
            "log": { "message": "log", "id": "/seq" },
            "invariants": { "x": { "about": "a", "monitor": { "projection": {
                "message": "output", "cursor": "/seq", "facts": { "list": { "at": "/list", "decides": ["R-1"], "fold": {
                    "items": { "of": "log", "drop": ["/seq"], "join": join },
                } } },
            } } } },
        }));
        let mut judge = Judge::new(Arc::clone(&protocol), Limits::default(), &[]).expect("monitors");
        let item = |(kind, text): &(&str, &str)| json!({ "type": "log", "kind": kind, "text": text });
        let events = events.iter().enumerate().map(|(at, event)| {
            let mut event = item(event);
            event["seq"] = json!(at + 1);
            event
        });
        let list: Vec<_> = list.iter().map(item).collect();
        let shown = json!({ "type": "output", "seq": events.len(), "list": list });
        let begin = json!({ "type": "output", "seq": 0, "list": [] });
        let frames: Vec<_> = [begin].into_iter().chain(events).chain([shown]).collect();
        let broken = frames.iter().map(|frame| {
            judge
                .observe(&event("a", Direction::Recv, Payload::Text(frame.to_string().into())))
                .violations
                .len()
        });
        broken.sum::<usize>() > 0
    }
    let events = [("u", "hi"), ("a", "on"), ("a", "e two"), ("c", "x"), ("a", "é")];
    for (list, apart, joined) in [
        (&events[..], false, false),
        (&[("u", "hi"), ("a", "one two"), ("c", "x"), ("a", "é")], true, false),
        (&[("u", "hi"), ("a", "one "), ("a", "two"), ("c", "x"), ("a", "é")], true, false),
        (&[("u", "earlier hi"), ("a", "one two"), ("c", "x"), ("a", "é")], true, false),
        (&[("a", "z"), ("u", "hi"), ("a", "one two"), ("c", "x"), ("a", "é")], true, false),
        (&[("u", "hi"), ("a", "one two!"), ("c", "x"), ("a", "é")], true, true),
        (&[("u", "hi"), ("a", "e two"), ("c", "x"), ("a", "é")], true, true),
        (&[("u", "hi"), ("a", "e twoon"), ("c", "x"), ("a", "é")], true, true),
        (&[("u", "hi"), ("a", "one two"), ("a", "é")], true, true),
        (&[("u", "hi"), ("a", "one two"), ("c", "x")], true, true),
        (&[("u", "hi"), ("c", "x"), ("a", "one twoé")], true, true),
    ] {
        assert_eq!(is_wrong(None, &events, list), apart, "{list:?}");
        assert_eq!(is_wrong(Some("/text"), &events, list), joined, "{list:?}");
    }
}
