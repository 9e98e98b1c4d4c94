//! A connection that joins in the midst of a turn, and others that are told later what it has missed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{event, protocol};
use crate::check::Judge;
use crate::frame::Limits;
use crate::trace::{Direction, End, Payload};

/// How many violations of three monitors in one session. Each step is a client with what it does or is told: `join`; `ask`, which begins a
/// turn, and `done`, which ends it; `leave`; `say TEXT` and `log TEXT`, the pieces and the whole; another word is the state of run 1.
fn broken(steps: &[(&str, &str)]) -> usize {
    let protocol = protocol(&json!({
        "session": { "id": [{ "on": "output", "at": "/room" }] },
        "invariants": {
            "states": { "about": "a", "monitor": { "states": {
                "message": "work", "key": "/id", "at": "/state", "initial": "starting",
                "transitions": { "starting": ["running"], "running": ["over"], "over": [] },
                "transition": ["R-1"], "start": ["R-1"], "terminal": ["R-1"], "overlap": ["R-1"],
            } } },
            "whole": { "about": "a", "monitor": { "concatenation": {
                "piece": { "message": "say", "at": "/text" }, "whole": { "message": "log", "at": "/text" }, "decides": ["R-1"],
            } } },
            "known": { "about": "a", "monitor": { "precedence": {
                "first": { "type": "work", "with": { "state": "running" } }, "then": { "type": "work", "with": { "state": "over" } },
                "key": "/id", "decides": ["R-1"],
            } } },
        },
    }));
    let mut judge = Judge::new(Arc::clone(&protocol), Limits::default(), &[]).expect("monitors");
    let broken = steps.iter().map(|(client, step)| {
        let frame = |frame: Value| Payload::Text(frame.to_string().into());
        let payload = match step.split_once(' ').unwrap_or((step, "")) {
            ("join", _) => frame(json!({ "type": "output", "room": "r" })),
            ("leave", _) => Payload::End(End::Eof),
            (kind @ ("ask" | "done"), _) => frame(json!({ "type": kind })),
            (kind @ ("say" | "log"), text) => frame(json!({ "type": kind, "text": text })),
            (state, _) => frame(json!({ "type": "work", "id": 1, "state": state })),
        };
        let dir = if *step == "ask" { Direction::Send } else { Direction::Recv };
        let event = event(client, dir, payload);
        judge.observe(&event).violations.len()
    });
    broken.sum()
}

/// After `before`, what is shown.
fn then<'s>(before: &[(&'s str, &'s str)], more: &[(&'s str, &'s str)]) -> usize {
    broken(&[before, more].concat())
}

#[test]
fn who_joins_in_the_midst_of_a_turn_may_be_told_the_rest_first() {
    let midst = [("a", "join"), ("a", "ask"), ("b", "join")];
    assert_eq!(then(&midst, &[("b", "running"), ("a", "starting"), ("a", "running")]), 0);
    assert_eq!(then(&midst, &[("b", "over"), ("a", "starting"), ("a", "running"), ("a", "over")]), 0);
    assert_eq!(then(&midst, &[("b", "say two"), ("b", "log one two"), ("a", "say one ")]), 0);
    assert_eq!(then(&midst, &[("b", "say two"), ("b", "log two one")]), 1, "that is not the end of it");
    assert_eq!(then(&midst, &[("b", "running"), ("a", "running")]), 1, "a was there");
    assert_eq!(then(&midst, &[("b", "starting"), ("b", "over")]), 1, "what b itself was told is judged");
    // Whoever comes by the one that came late is late, too.
    let later = [&midst[..], &[("a", "leave"), ("c", "join"), ("c", "over")]].concat();
    assert_eq!(broken(&later), 0);
}

#[test]
fn who_was_there_when_the_turn_began_has_missed_nothing() {
    for before in [
        &[("a", "join"), ("b", "join"), ("a", "ask")][..],
        &[("a", "join"), ("a", "ask"), ("b", "join"), ("b", "done")],
        &[("a", "join"), ("a", "ask"), ("a", "done"), ("b", "join")],
    ] {
        assert_eq!(then(before, &[("b", "running"), ("a", "starting")]), 1, "{before:?}");
        assert_eq!(then(before, &[("b", "over"), ("a", "starting")]), 2, "{before:?}");
        assert_eq!(then(before, &[("b", "say two"), ("b", "log one two")]), 1, "{before:?}");
    }
}
