//! Barriers that order a part only, windows that the report names, and operations that a case leaves running.

use std::fs;

use serde_json::{Value, json};

use crate::support::own::{load, protocol, report, run, serve, serve_and};

const SENT: [&str; 4] = ["start", "ping", "sync", "hello"];
const RECEIVED: [&str; 5] = ["item", "end", "pong", "synced", "tick"];
const TURN: &str = "  turn: { start: { type: start, id: '{{uid}}', text: '{{text}}' }, end: end }\n";
const PING: &str = "query: [{ send: { type: ping } }, { expect: pong, covers: [A-2] }]";
const SYNC: &str =
    "query: [{ send: { type: sync, id: '{{per}}' } }, { expect: synced, echo: /id, covers: [A-2] }]";

fn with_barrier(barrier: &str) -> tempfile::TempDir {
    protocol(&SENT, &RECEIVED, &format!("{TURN}  barrier: {{ {barrier} }}\n"))
}

/// Results of operations come when they come: a pong overtakes them. What is said of one operation is in order.
fn overtaking(asked: &Value) -> Vec<Value> {
    let id = &asked["id"];
    match asked["type"].as_str() {
        // Ends only after the client has asked something else.
        Some("ping") => vec![json!({ "type": "pong" }), json!({ "type": "item", "id": "a" })],
        Some("sync") => vec![json!({ "type": "item", "id": id }), json!({ "type": "synced", "id": id })],
        _ => Vec::new(),
    }
}

/// The same, and sends no items.
fn silent(asked: &Value) -> Vec<Value> {
    overtaking(asked).into_iter().filter(|one| one["type"] != "item").collect()
}

/// Answers nothing.
fn deaf(_: &Value) -> Vec<Value> {
    Vec::new()
}

fn never(what: &str) -> String {
    format!("      - open: a\n      - send: {{ type: start, id: a }}\n      - never: {what}\n")
}

/// Where the report says that a silence stood for a barrier: lines, and none for the end of the case.
fn silences(folder: &tempfile::TempDir) -> Vec<Value> {
    let report = report(folder);
    let windows = report["windows"].as_array().cloned().unwrap_or_default();
    windows.iter().filter(|one| one["silence"] == true).map(|one| one["line"].clone()).collect()
}

#[test]
fn what_the_barrier_does_not_order_takes_a_window() {
    let folder = with_barrier(&format!("{PING}, orders: [end]"));
    let (code, shown) = run(&folder, &serve(overtaking), &never("item"));
    assert!(code == Some(1) && shown.contains("item came, which is not allowed here"), "{shown}");
    let (code, shown) = run(&folder, &serve(silent), &never("item"));
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(silences(&folder), [Value::Null, json!(9)], "{shown}");
    assert!(shown.contains("hint: what did not come is known in some cases by a silence"), "{shown}");
    let junit = fs::read_to_string(folder.path().join("r.xml")).expect("a report");
    assert!(junit.contains("line 9: 300 ms of silence"), "{junit}");
    // What it orders, it proves; at the end of the case there is more than that.
    let (code, shown) = run(&folder, &serve(silent), &never("end"));
    assert_eq!((code, silences(&folder)), (Some(0), vec![Value::Null]), "{shown}");
    // It must be answered in any case.
    let (code, shown) = run(&folder, &serve(deaf), &never("end"));
    assert!(code == Some(1) && shown.contains("A-2"), "{shown}");
}

#[test]
fn a_whole_barrier_needs_no_window() {
    let folder = protocol(
        &SENT,
        &RECEIVED,
        &format!("{TURN}  barrier: [{{ send: {{ type: ping }} }}, {{ expect: pong }}]\n"),
    );
    let (code, shown) = run(&folder, &serve(silent), &never("item"));
    assert_eq!((code, silences(&folder)), (Some(0), vec![]), "{shown}");
    assert!(!shown.contains("hint:"), "{shown}");
    let (_, shown) = run(&folder, &serve(silent), &never("item\n        window: 50ms"));
    let windows = report(&folder)["windows"].clone();
    assert_eq!(windows, json!([{ "line": 9, "ms": 50, "silence": false }]), "{shown}");
    assert!(!shown.contains("hint:"), "{shown}");
}

#[test]
fn a_barrier_is_made_for_a_value() {
    let folder = with_barrier(&format!("{SYNC}, per: /id"));
    let (code, shown) = run(&folder, &serve(overtaking), &never("item\n        with: { id: a }"));
    assert!(code == Some(1) && shown.contains("item came, which is not allowed here"), "{shown}");
    let (code, shown) = run(&folder, &serve(silent), &never("item\n        with: { id: a }"));
    assert_eq!((code, silences(&folder)), (Some(0), vec![Value::Null]), "{shown}");
    let (code, shown) = run(&folder, &serve(deaf), &never("item\n        with: { id: a }"));
    assert!(code == Some(1) && shown.contains("synced did not come"), "{shown}");
    // Without the value there is nobody to ask.
    let (code, shown) = run(&folder, &serve(deaf), &never("item"));
    assert_eq!((code, silences(&folder)), (Some(0), vec![Value::Null, json!(9)]), "{shown}");
}

#[test]
fn a_barrier_says_what_it_orders() {
    for (barrier, error) in [
        (PING.to_owned(), "the barrier does not say what it orders"),
        (format!("{PING}, orders: [end], per: /id"), "a barrier has `orders` or `per`, not both"),
        (format!("{PING}, orders: []"), "the barrier orders nothing"),
        (format!("{PING}, orders: [edn]"), "did you mean `end`?"),
        (format!("{PING}, per: /id"), "the query does not ask for the value at /id"),
        ("query: [{ send: { type: ping } }], orders: [end]".to_owned(), "it needs a message to `expect`"),
        (format!("{PING}, order: [end]"), "barrier"),
    ] {
        let (code, shown) = load(&with_barrier(&barrier));
        assert!(code == Some(2) && shown.contains(error), "{barrier}: {shown}");
        assert!(shown.contains("asyncapi.yaml:"), "{shown}");
    }
}

/// Every operation ends, and has one item.
const ENDS: &str = "  invariants:\n    ends:\n      about: an operation ends\n      monitor: { response: { first: { type: start, dir: send }, \
                    then: end, key: /id, decides: [A-3] } }\n";

/// Ends the operation `b`, and no other.
fn ending(asked: &Value) -> Vec<Value> {
    if asked["id"] == "b" { vec![json!({ "type": "end", "id": "b" })] } else { Vec::new() }
}

#[test]
fn a_case_may_end_with_operations_running() {
    let folder = protocol(&SENT, &RECEIVED, &format!("{TURN}{ENDS}"));
    let start = |id: &str, more: &str| format!("      - send: {{ type: start, id: {id} }}\n{more}");
    let abandon = "        abandon: true\n";
    let run =
        |url: &str, steps: &[String]| run(&folder, url, &format!("      - open: a\n{}", steps.concat()));
    let ticking = || serve_and(ending, Some(r#"{"type":"tick"}"#));
    let (code, shown) = run(&serve(ending), &[start("a", ""), start("b", "")]);
    assert!(code == Some(1) && shown.contains("A-3"), "{shown}");
    let (code, shown) = run(&serve(ending), &[start("a", abandon), start("b", "")]);
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(report(&folder)["exercised"]["A-3"], 1, "what was abandoned proves nothing: {shown}");
    let raw = "      - raw: '{\"type\":\"start\",\"id\":\"a\"}'\n        abandon: true\n".to_owned();
    assert_eq!(run(&serve(ending), &[raw]).0, Some(0));
    // What is owed for other operations is.
    let (code, shown) = run(&serve(ending), &[start("a", abandon), start("c", "")]);
    assert!(code == Some(1) && shown.contains("A-3"), "{shown}");
    // What runs on is no reason to wait for a silence that never comes.
    let (code, shown) = run(&ticking(), &[start("a", abandon), start("b", "")]);
    assert_eq!(code, Some(0), "{shown}");
    let (_, shown) = run(&ticking(), &[start("b", "")]);
    assert!(shown.contains("the server does not stop sending"), "{shown}");
}

/// The answer has the id of the message elsewhere; one about another message comes before it.
fn elsewhere(asked: &Value) -> Vec<Value> {
    let answer = |id: &Value| json!({ "type": "synced", "meta": { "to": id } });
    match asked["type"].as_str() {
        Some("sync") => vec![answer(&json!("of another")), json!({ "type": "item" }), answer(&asked["id"])],
        _ => Vec::new(),
    }
}

#[test]
fn an_answer_may_have_the_id_elsewhere() {
    let barrier = |echo: &str| {
        let steps =
            format!("[{{ send: {{ type: sync, id: '{{{{uid}}}}' }} }}, {{ expect: synced, echo: {echo} }}]");
        protocol(&SENT, &RECEIVED, &format!("{TURN}  barrier: {steps}\n"))
    };
    let folder = barrier("[/id, /meta/to]");
    let (code, shown) = run(&folder, &serve(elsewhere), &never("item"));
    assert!(code == Some(1) && shown.contains("item came, which is not allowed here"), "{shown}");
    let (code, shown) = run(&barrier("/meta/to"), &serve(elsewhere), &never("item"));
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("nothing at /meta/to") && shown.contains("[PLACE, PLACE]"), "{shown}");
}
