//! A server that tells again what it has told: steps about something else skip that, where the protocol says so.

use serde_json::{Value, json};

use crate::docs::{blocks, read};
use crate::support::own::{load, protocol, run, serve_and};

const TICK: &str = r#"{"type":"data","of":"a","value":[1,{"b":1,"a":null}]}"#;
const RULES: &str = "  turn: { start: { type: ping, text: '{{text}}' }, end: pong }
  barrier: [{ send: { type: ping } }, { expect: pong }]
  readings: { A-AMB-1: { topic: again, strict: 'no', default: 'no, with a warning', lenient: 'yes' } }
";
const REPEATS: &str = "  repeats: [{ message: data, key: /of, value: /value, renewed-by: [{ type: set, dir: send }], reading: A-AMB-1 }]\n";

/// Sends the same value every 20 ms, written differently after a message, and another one when it is set.
fn ticking() -> String {
    let answer = |asked: &Value| match asked["type"].as_str() {
        Some("ping") => vec![
            json!({ "of": "a", "type": "data", "value": [1.0, { "a": null, "b": 1 }] }),
            json!({ "type": "pong" }),
        ],
        Some("set") => vec![json!({ "type": "data", "of": asked["of"], "value": asked["value"] })],
        _ => Vec::new(),
    };
    serve_and(answer, Some(TICK))
}

fn folder(rules: &str) -> tempfile::TempDir {
    protocol(&["ping", "set"], &["data", "pong"], &format!("{RULES}{rules}"))
}

#[test]
fn a_value_that_comes_again_is_skipped() {
    let steps = "      - open: a\n      - expect: data\n      - never: data\n";
    let (code, shown) = run(&folder(""), &ticking(), steps);
    assert!(code == Some(1) && shown.contains("data came, which is not allowed here"), "{shown}");
    let (code, shown) = run(&folder(REPEATS), &ticking(), steps);
    assert_eq!(code, Some(0), "{shown}");
    // The value of something else is none.
    let other = "      - open: a\n      - expect: data\n      - send: { type: set, of: b, value: 7 }\n      - never: data\n";
    let (code, shown) = run(&folder(REPEATS), &ticking(), other);
    assert!(code == Some(1) && shown.contains("data came, which is not allowed here"), "{shown}");
}

#[test]
fn a_step_about_the_reading_looks_at_it() {
    let steps = "      - open: a\n      - expect: data\n      - never: data\n        tolerated: A-AMB-1\n";
    let (code, shown) = run(&folder(REPEATS), &ticking(), steps);
    assert!(code == Some(0) && shown.contains("1 warned") && shown.contains("data came"), "{shown}");
}

#[test]
fn what_was_asked_for_anew_repeats_nothing() {
    let again = "      - open: a\n      - expect: data\n      - expect: data\n        within: 300ms\n";
    let (code, shown) = run(&folder(REPEATS), &ticking(), again);
    assert!(code == Some(1) && shown.contains("data did not come"), "{shown}");
    let asked = "      - open: a\n      - expect: data\n      - send: { type: set, of: a, value: [1, { a: null, b: 1 }] }\n      - expect: data\n";
    let (code, shown) = run(&folder(REPEATS), &ticking(), asked);
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn its_reading_is_declared() {
    let (code, shown) = load(&folder(&REPEATS.replace("reading: A-AMB-1", "reading: A-AMB-2")));
    assert!(code == Some(2) && shown.contains("unknown reading `A-AMB-2`"), "{shown}");
    assert!(shown.contains("did you mean `A-AMB-1`?") && shown.contains("asyncapi.yaml:"), "{shown}");
}

#[test]
fn the_example_of_the_reference_page_loads() {
    let [example] = &blocks(&read("docs/protocol-reference.md"), "yaml repeats")[..] else { panic!("one") };
    let example: String =
        example.replace("X-AMB-1", "A-AMB-1").lines().map(|line| format!("  {line}\n")).collect();
    let sent = ["ping", "set", "subscribe", "unsubscribe"];
    let (code, shown) = load(&protocol(&sent, &["data", "pong"], &format!("{RULES}{example}")));
    assert_eq!(code, Some(0), "{shown}");
}
