//! Memory stays bounded, whatever a trace is like, and what was forgotten is neither held against anyone nor counted.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::{Value, json};

use super::bounded::ENTRIES;
use super::tests::protocol;
use super::{Judge, Outcome};
use crate::frame::Limits;
use crate::protocol::Protocol;
use crate::trace::{Direction, End, Event, Payload};

/// One monitor of each kind that remembers ids, all fed with the same frames.
static ALL: LazyLock<Arc<Protocol>> = LazyLock::new(|| {
    let ask = json!({ "type": "ask", "dir": "send" });
    let rules = json!({
        "increasing": { "on": "say", "at": "/n", "key": "/id", "order": ["R-1"], "repeat": ["R-1"] },
        "precedence": { "first": ask, "then": "say", "key": "/id", "decides": ["R-1"] },
        "absence": { "of": "done", "after": "say", "key": "/id", "scope": "session", "decides": ["R-1"] },
        "bracket": {
            "open": ask, "close": "done", "inside": "output", "exempt": { "on": "say", "at": "/id" },
            "before": ["R-1"], "after": ["R-1"],
        },
        "response": { "first": "say", "then": "work", "key": "/id", "decides": ["R-1"] },
        "unique": { "on": "say", "at": "/id", "identity": "/n", "decides": ["R-1"] },
        "constant": { "values": [{ "on": "say", "at": "/s" }], "key": "/id", "decides": ["R-1"] },
        "states": {
            "on": "say", "key": "/id", "at": "/s", "initial": "new", "transitions": { "new": ["end"], "end": [] },
            "transition": ["R-1"], "start": ["R-1"], "terminal": ["R-1"],
        },
        "echo": { "request": ask, "reply": "output", "id": "/id", "asked": "/n", "told": "/n", "decides": ["R-1"] },
        "series": {
            "on": "say", "key": "/id", "part": "/n", "total": "/total", "text": "/s", "complete": ["R-1"], "json": ["R-1"],
        },
        "increments": { "on": "say", "at": "/s", "key": "/id", "decides": ["R-1"] },
        "concatenation": {
            "piece": { "on": "say", "at": "/s" }, "whole": { "on": "output", "at": "/s" }, "key": "/id", "decides": ["R-1"],
        },
        "cued": {
            "prompt": { "on": ask, "at": "/s" }, "piece": { "on": "output", "at": "/s" }, "key": "/id", "over": "say",
            "decides": ["R-1"],
        },
        "correlation": { "request": ask, "reply": "output", "id": "/id", "foreign": ["R-1"], "missing": ["R-1"] },
        "dialogue": {
            "history": { "on": "log", "at": "/list" }, "text": "/t", "asked": {}, "answered": {},
            "question": { "on": ask, "at": "/s" }, "piece": { "on": "output", "at": "/s" }, "over": "say",
            "decides": ["R-1"],
        },
        "agreement": { "content": ["R-1"], "complete": ["R-1"] },
        "replay": {
            "resume": { "on": ask, "at": "/since" }, "floor": ["R-1"], "complete": ["R-1"], "content": ["R-1"],
        },
        "projection": { "on": "log", "cursor": "/n", "facts": { "open": {
            "at": "/list",
            "fold": { "open": {
                "add": { "on": "say", "at": "/id" }, "remove": { "on": "work", "at": "/id" }, "clear": "done", "item": "/id",
            } },
            "decides": ["R-1"],
        } } },
    });
    let rules = rules.as_object().expect("rules").iter();
    let invariants: serde_json::Map<String, Value> = rules
        .map(|(kind, rule)| (kind.clone(), json!({ "about": "a", "monitor": { kind: rule } })))
        .collect();
    protocol(&json!({ "log": { "on": "say", "id": "/n", "volatile": [] }, "invariants": invariants }))
});

fn frame(client: &str, body: &Value) -> Event {
    let dir = if body["type"] == "ask" { Direction::Send } else { Direction::Recv };
    let payload = Payload::Text(body.to_string().into());
    Event { at: Duration::ZERO, case: None, client: client.into(), dir, payload, why: None }
}

fn judge(protocol: &Arc<Protocol>) -> Judge {
    Judge::new(Arc::clone(protocol), Limits::default(), &[]).expect("monitors")
}

fn run(id: u64) -> [Value; 2] {
    [
        json!({ "type": "ask", "id": id, "n": id, "s": "hello" }),
        json!({ "type": "say", "id": id, "n": id, "s": "new", "total": u64::MAX }),
    ]
}

#[test]
fn every_monitor_keeps_a_window_of_many_runs() {
    let mut judge = judge(&ALL);
    judge.observe(&frame("a", &json!({ "type": "log", "n": 0, "list": [] })));
    let count = ENTRIES as u64 + 10_000;
    for id in 1..=count {
        for body in run(id) {
            let found = judge.observe(&frame("a", &body)).violations;
            assert_eq!(found, [], "{body}");
        }
    }
    for (check, memory) in judge.memory() {
        assert!(memory.entries <= 2 * ENTRIES, "{check}: {memory:?}");
        let bounded_otherwise = ["agreement", "replay", "requests", "sessions"].contains(&check);
        assert!(bounded_otherwise || memory.forgotten > 0, "{check}: {memory:?}");
    }
    // Of run 1 all is forgotten: what would be wrong if it had not been is not held against the server …
    for body in [
        json!({ "type": "output", "id": 1, "n": 9, "s": "other" }),
        json!({ "type": "say", "id": 1, "n": 1, "s": "end", "total": 2 }),
        json!({ "type": "log", "n": count, "list": [] }),
    ] {
        assert_eq!(judge.observe(&frame("a", &body)).violations, [], "{body}");
    }
    // … but what is remembered is judged as ever,
    let found =
        judge.observe(&frame("a", &json!({ "type": "say", "id": count, "n": 7, "s": "odd", "total": 2 })));
    let mut checks: Vec<_> = found.violations.iter().map(|violation| violation.check.name()).collect();
    checks.sort_unstable();
    checks.dedup();
    assert_eq!(checks, ["constant", "increasing", "states", "unique"], "{:?}", found.violations);
    // and so is a connection of which nothing was forgotten.
    let found = judge.observe(&frame("b", &run(1)[1])).violations;
    assert!(found.iter().any(|violation| violation.check.name() == "precedence"), "{found:?}");
    let Outcome { limits, .. } = judge.finish(true);
    assert!(
        limits.iter().any(|limit| limit.check == "precedence" && limit.forgotten >= 10_000),
        "{limits:?}"
    );
}

#[test]
fn connections_that_are_gone_leave_nothing_but_windows() {
    let mut judge = judge(&ALL);
    let bodies = run(1);
    for number in 0..20_000 {
        for body in &bodies {
            judge.observe(&frame("a", body));
        }
        judge.observe(&Event { payload: Payload::End(End::Closed), ..frame("a", &bodies[1]) });
        assert!(judge.is_idle(), "connection {number} is still there");
    }
    for (check, memory) in judge.memory() {
        // What a session is known by stays, and the places that agreement and replay are judged by at the end.
        let most = if [
            "absence",
            "agreement",
            "concatenation",
            "cued",
            "log",
            "precedence",
            "replay",
            "states",
            "unique",
        ]
        .contains(&check)
        {
            ENTRIES
        } else {
            0
        };
        assert!(memory.entries <= most, "{check}: {memory:?}");
    }
}
