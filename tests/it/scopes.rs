//! Scopes that begin with an answer: what was on its way is allowed, what comes later is not.

use serde_json::{Value, json};

use crate::support::own::{check, load, protocol, run, serve};

const SENT: [&str; 4] = ["start", "stop", "ping", "ask"];
const RECEIVED: [&str; 4] = ["item", "pong", "told", "hello"];
const TURN: &str = "  turn: { start: { type: start, id: '{{uid}}', text: '{{text}}' }, end: item }\n";

fn with(answered: &str) -> tempfile::TempDir {
    let rule = format!(
        "of: item, after: {{ type: stop, dir: send }}, until: {{ type: start, dir: send }}, key: /id, {answered}, decides: [A-2]"
    );
    let invariants = format!(
        "  invariants:\n    stopped:\n      about: nothing more of a stopped operation\n      monitor: {{ absence: {{ {rule} }} }}\n"
    );
    protocol(&SENT, &RECEIVED, &format!("{TURN}{invariants}"))
}

const IN_ORDER: &str = "answered: { request: { type: ping, dir: send }, reply: pong }";
const BY_ID: &str = "answered: { request: { type: ask, dir: send }, reply: told, id: /n }";

fn sent(kind: &str, id: &str) -> (&'static str, Value) {
    ("send", json!({ "type": kind, "id": id }))
}

fn item(id: &str) -> (&'static str, Value) {
    ("recv", json!({ "type": "item", "id": id }))
}

#[test]
fn what_was_on_its_way_is_allowed_and_nothing_later() {
    let folder = with(IN_ORDER);
    let (ping, pong) = (sent("ping", ""), ("recv", json!({ "type": "pong" })));
    let stopped = [sent("start", "a"), sent("stop", "a")];
    for (rest, code, why) in [
        (vec![item("a"), ping.clone(), item("a"), pong.clone()], 0, "it was on its way"),
        (vec![ping.clone(), pong.clone(), item("a")], 1, "the server has read what was sent before the ping"),
        (vec![ping.clone(), pong.clone(), item("b")], 0, "another operation"),
        (vec![pong.clone(), item("a")], 0, "a pong that nobody asked for"),
        (vec![ping.clone(), pong.clone(), sent("start", "a"), item("a")], 0, "started again"),
        (vec![ping.clone(), sent("stop", "a"), pong.clone(), item("a")], 1, "the first stop counts"),
    ] {
        let (found, shown) = check(&folder, &[&stopped[..], &rest].concat());
        assert_eq!((found, shown.contains("A-2")), (Some(code), code == 1), "{why}: {shown}");
    }
    // The ping was sent before.
    let before = [sent("start", "a"), ping, sent("stop", "a"), pong, item("a")];
    let (code, shown) = check(&folder, &before);
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn answers_are_told_apart_by_their_ids() {
    let folder = with(BY_ID);
    let ask = |n: u64| ("send", json!({ "type": "ask", "n": n }));
    let told = |n: u64| ("recv", json!({ "type": "told", "n": n }));
    let (start, stop) = (sent("start", "a"), sent("stop", "a"));
    for (lines, code) in [
        (vec![start.clone(), ask(1), stop.clone(), ask(2), told(1), item("a"), told(2)], 0),
        (vec![start.clone(), ask(1), stop.clone(), ask(2), told(2), item("a"), told(1)], 1),
        (vec![start, stop, ask(1), told(7), item("a")], 0),
    ] {
        let (found, shown) = check(&folder, &lines);
        assert_eq!(found, Some(code), "{lines:?}: {shown}");
    }
}

/// Sends two items behind a stop: one before the answer to a ping, and one after it.
fn late(asked: &Value) -> Vec<Value> {
    match asked["type"].as_str() {
        Some("stop") => vec![json!({ "type": "item", "id": "a" })],
        Some("ping") => vec![json!({ "type": "pong" }), json!({ "type": "item", "id": "a" })],
        _ => Vec::new(),
    }
}

/// The first of them only.
fn prompt(asked: &Value) -> Vec<Value> {
    late(asked).into_iter().take(1).collect()
}

#[test]
fn a_server_is_judged_from_the_answer_on() {
    let steps = "      - open: a\n      - send: { type: start, id: a }\n      - send: { type: stop, id: a }\n      - send: { type: ping }\n      - expect: pong\n";
    let (code, shown) = run(&with(IN_ORDER), &serve(late), steps);
    assert!(code == Some(1) && shown.contains("A-2"), "{shown}");
    let (code, shown) = run(&with(IN_ORDER), &serve(prompt), steps);
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn an_answer_that_says_nothing_is_refused() {
    for (answered, error) in [
        ("answered: { request: { type: pin, dir: send }, reply: pong }", "did you mean `ping`?"),
        ("answered: { request: { type: ping, dir: send } }", "reply"),
        ("answered: { request: { type: ping, dir: send }, reply: pong, id: [] }", "a key has no place"),
        (
            "answered: { request: { type: ping, dir: send }, reply: pong }, scope: session",
            "`answered` does not go with `scope: session`",
        ),
        ("answered: { request: ping, reply: pong }", "the server sends no message `ping`"),
    ] {
        let (code, shown) = load(&with(answered));
        assert!(code == Some(2) && shown.contains(error), "{answered}: {shown}");
    }
}
