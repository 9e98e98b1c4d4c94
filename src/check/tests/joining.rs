//! A connection that joins late, and another one that is told later what it has missed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::protocol;
use crate::check::Judge;
use crate::frame::Limits;
use crate::trace::{Direction, End, Event, Payload};

/// How many violations of a monitor of states, `starting` to `running` to `done`: the state that each client is shown of run 1. An empty
/// one joins, `say` says something, `-` ends the connection.
fn broken(steps: &[(&str, &str)]) -> usize {
    let protocol = protocol(&json!({
        "session": { "id": [{ "on": "log", "at": "/room" }] },
        "invariants": { "states": { "about": "a", "monitor": { "states": {
            "message": "work", "key": "/id", "at": "/state", "initial": "starting",
            "transitions": { "starting": ["running"], "running": ["done"], "done": [] },
            "transition": ["R-1"], "start": ["R-1"], "terminal": ["R-1"], "overlap": ["R-1"],
        } } } },
    }));
    let mut judge = Judge::new(Arc::clone(&protocol), Limits::default(), &[]).expect("monitors");
    let broken = steps.iter().map(|(client, state)| {
        let frame = |frame: Value| Payload::Text(frame.to_string().into());
        let payload = match *state {
            "" => frame(json!({ "type": "log", "room": "r" })),
            "say" => frame(json!({ "type": "say" })),
            "-" => Payload::End(End::Eof),
            state => frame(json!({ "type": "work", "id": 1, "state": state })),
        };
        let client = (*client).into();
        let event =
            Event { at: Duration::ZERO, case: None, client, dir: Direction::Recv, payload, why: None };
        judge.observe(&event).violations.len()
    });
    broken.sum()
}

#[test]
fn the_one_that_was_there_is_judged() {
    let both = [("a", ""), ("b", "")];
    let then = |more: &[(&'static str, &'static str)]| broken(&[&both[..], more].concat());
    assert_eq!(then(&[("a", "starting"), ("b", "running")]), 0);
    assert_eq!(then(&[("b", "running"), ("a", "starting"), ("a", "running")]), 0, "a reads it later");
    assert_eq!(then(&[("b", "running"), ("a", "running")]), 1, "neither was told the beginning");
    assert_eq!(then(&[("a", "-"), ("b", "running")]), 1, "nobody else can be told it");
    assert_eq!(then(&[("b", "starting"), ("b", "done")]), 1, "what came to b itself is judged");
}

#[test]
fn a_connection_is_as_old_as_its_place_in_the_session() {
    // `b` is opened first, and joins last.
    let late = [("b", "say"), ("a", ""), ("b", "")];
    let then = |more: &[(&'static str, &'static str)]| broken(&[&late[..], more].concat());
    assert_eq!(then(&[("b", "running"), ("a", "starting")]), 0);
    assert_eq!(then(&[("a", "running"), ("b", "running")]), 1);
}
