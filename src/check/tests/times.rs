//! Duties that must be met in time.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::protocol;
use crate::check::Judge;
use crate::frame::Limits;
use crate::protocol::Protocol;
use crate::trace::{Direction, End, Event, Payload};

/// Messages with their times in milliseconds, `close` for the end of the connection; a scale, and how late the process was.
fn judged(
    protocol: &Arc<Protocol>,
    frames: &[(u64, Value)],
    scale: f64,
    delays: u64,
) -> Vec<(Option<u64>, String)> {
    let mut judge = Judge::new(Arc::clone(protocol), Limits::default(), &[]).expect("monitors");
    judge.scaled(scale);
    judge.delayed(Duration::from_millis(delays));
    let mut found = Vec::new();
    for (at, frame) in frames {
        let dir = if frame["type"] == "ask" { Direction::Send } else { Direction::Recv };
        let payload = match frame["type"] == "close" {
            true => Payload::End(End::Eof),
            false => Payload::Text(frame.to_string().into()),
        };
        let event =
            Event { at: Duration::from_millis(*at), case: None, client: "a".into(), dir, payload, why: None };
        found.extend(judge.observe(&event).violations);
    }
    found.extend(judge.finish(false).violations);
    found.into_iter().map(|violation| (violation.event, violation.message)).collect()
}

fn rule(kind: &str, rule: Value) -> Arc<Protocol> {
    let monitor = json!({ kind: rule });
    let times = json!({ "immediately": "250ms" });
    protocol(&json!({ "times": times, "invariants": { "x": { "about": "a", "monitor": monitor } } }))
}

#[test]
fn a_duty_is_met_in_time() {
    let protocol = rule(
        "response",
        json!({ "first": { "type": "ask", "dir": "send" }, "then": "done", "unless": "say", "key": "/id", "within": "immediately", "decides": ["R-1"] }),
    );
    let frame = |name: &str| json!({ "type": name, "id": 1 });
    let asked = (1000, frame("ask"));
    let found = |frames: &[(u64, Value)], scale: f64, delays: u64| {
        let found = judged(&protocol, &[std::slice::from_ref(&asked), frames].concat(), scale, delays);
        assert!(found.len() <= 1, "{found:?}");
        found.into_iter().next()
    };
    let broken_at = |frames: &[(u64, Value)]| found(frames, 1.0, 0).map(|(event, _)| event);
    assert_eq!(broken_at(&[(1250, frame("done"))]), None);
    assert_eq!(broken_at(&[(1251, frame("done"))]), Some(Some(1)), "the late answer");
    assert_eq!(broken_at(&[(1251, frame("close"))]), Some(Some(0)), "what was never answered");
    assert_eq!(broken_at(&[(1250, frame("close"))]), None, "it may have been under way");
    assert_eq!(broken_at(&[(1200, frame("say"))]), None);
    assert_eq!(broken_at(&[(1300, frame("say"))]), Some(Some(0)), "it was too late by then");
    assert_eq!(
        broken_at(&[(1100, frame("ask")), (1350, frame("work"))]),
        None,
        "a later one takes the duty over"
    );
    assert_eq!(broken_at(&[]), None, "nobody has waited");
    assert_eq!(broken_at(&[(1251, json!({ "type": "log" }))]), Some(Some(0)), "the trace goes on");
    let (event, message) = found(&[(2000, frame("done"))], 1.0, 0).expect("broken");
    assert_eq!(
        (event, message.contains("1s after") && message.contains("within 250ms")),
        (Some(1), true),
        "{message}"
    );
    for (scale, delays, late) in [(2.0, 0, false), (1.0, 250, false), (1.9, 0, true), (1.0, 249, true)] {
        assert_eq!(found(&[(1500, frame("done"))], scale, delays).is_some(), late, "{scale} {delays}");
    }
}

#[test]
fn only_what_comes_in_time_is_counted() {
    let protocol = |min: u32, max: u32| {
        rule(
            "existence",
            json!({ "of": "say", "from": { "type": "ask", "dir": "send" }, "to": "done", "within": "0.25s", "min": min, "max": max, "decides": ["R-1"] }),
        )
    };
    let frame = |name: &str| json!({ "type": name });
    let turn = |says: &[u64]| {
        let says = says.iter().map(|at| (*at, frame("say")));
        let all = [(0, frame("ask"))].into_iter().chain(says);
        all.chain([(900, frame("done")), (1000, frame("ask"))]).collect::<Vec<_>>()
    };
    let broken = |min, max, says: &[u64], delays| judged(&protocol(min, max), &turn(says), 1.0, delays).len();
    assert_eq!(broken(1, 2, &[250, 260, 270], 0), 0);
    assert_eq!(broken(1, 2, &[251], 0), 1, "too late");
    assert_eq!(broken(1, 2, &[10, 20, 250], 0), 1, "too many in time");
    // Whoever measured them was late: both are given the benefit of the doubt.
    assert_eq!(broken(1, 2, &[300], 100), 0);
    assert_eq!(broken(1, 2, &[10, 20, 240], 100), 0);
    assert_eq!(broken(1, 2, &[10, 20, 30], 100), 1);
}
