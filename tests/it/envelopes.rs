//! Servers that put every message into a larger object: an overlay says so, and then they are tested like any other.

use std::path::Path;

use crate::support::{Served, frameproof, hand, text};
use serde_json::{Value, json};

const OVERLAY: &str = "x-frameproof: { envelope: { server: /event/msg, client: /op, with: { v: 1 } } }\n";

/// What clients of the server send, without its envelope. What has none is refused by the server behind.
fn opened(text: &str) -> String {
    let whole = serde_json::from_str::<Value>(text).unwrap_or_default();
    match whole.get("op").filter(|_| whole["v"] == 1) {
        Some(message) => message.to_string(),
        None => "{\"bare\":".to_owned(),
    }
}

fn enclosed(text: &str) -> String {
    let message = serde_json::from_str::<Value>(text).expect("the reference server sends JSON");
    json!({ "id": "e", "event": { "msg": message } }).to_string()
}

/// All but one kind of message.
fn mostly_enclosed(text: &str) -> String {
    if text.contains("\"welcome\"") { text.to_owned() } else { enclosed(text) }
}

fn told(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = frameproof(folder, arguments);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("overlay.yaml"), OVERLAY).expect("written");
    folder
}

#[test]
fn a_server_with_an_envelope_is_tested() {
    let folder = folder();
    let server = Served::start(&["minicodex"]);
    let url = hand::translated(&server.url, opened, enclosed);
    let of = ["minicodex", "--url", &url];
    let with = ["--overlay", "overlay.yaml"];
    // As the document spells it, the server understands nothing.
    let (code, shown) = told(folder.path(), &[&["run"], &of[..], &["handshake/*"]].concat());
    assert_ne!(code, Some(0), "{shown}");
    let suite =
        ["handshake/*", "streaming/*", "approval/*", "abort/*", "fanout/*", "--trace", "trace.ndjson"];
    let (code, shown) = told(folder.path(), &[&["run"], &of[..], &with, &suite].concat());
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("excused by the overlay:"), "{shown}");
    let (code, shown) = told(folder.path(), &[&["doctor"], &of[..], &with].concat());
    assert_eq!(code, Some(0), "{shown}");
    // The recording has what was on the wire.
    let trace = std::fs::read_to_string(folder.path().join("trace.ndjson")).expect("a trace");
    assert!(trace.contains(r#"\"event\":{\"msg\":{"#) && trace.contains(r#"\"op\":{"#));
    let check = ["check", "trace.ndjson", "--protocol", "minicodex"];
    assert_eq!(told(folder.path(), &[&check[..], &with].concat()).0, Some(0));
    assert_eq!(told(folder.path(), &check).0, Some(1));
    // What the relay does with broken frames is its own.
    let (_, shown) = told(folder.path(), &[&["fuzz"], &of[..], &with, &["--iterations", "40"]].concat());
    assert!(shown.contains(" in 40 cases") && shown.contains("awaiting-approval"), "{shown}");
    assert!(!shown.contains("FAIL"), "{shown}");
}

#[test]
fn a_defect_behind_an_envelope_is_found() {
    let folder = folder();
    let server = Served::start(&["minicodex", "--fault", "executes-denied"]);
    let url = hand::translated(&server.url, opened, enclosed);
    let run = ["run", "minicodex", "--url", &url, "--overlay", "overlay.yaml"];
    let (code, shown) = told(folder.path(), &[&run[..], &["approval/*"]].concat());
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("FAIL MC-APR-"), "{shown}");
    // So is a message without the envelope.
    let server = Served::start(&["minicodex"]);
    let url = hand::translated(&server.url, opened, mostly_enclosed);
    let run = ["run", "minicodex", "--url", &url, "--overlay", "overlay.yaml"];
    let (code, shown) = told(folder.path(), &[&run[..], &["handshake/*"]].concat());
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("/event/msg is missing: the frame has no message in its envelope"), "{shown}");
}

#[test]
fn an_envelope_that_cannot_be_is_refused() {
    let folder = folder();
    for (envelope, expected) in [
        ("{ server: '' }", "an envelope is larger than its message"),
        ("{ client: /op/it, with: { op: 1 } }", "no message can be at `/op/it`"),
        ("{ from: /event }", "from"),
    ] {
        let overlay = format!("x-frameproof:\n  envelope: {envelope}\n");
        std::fs::write(folder.path().join("overlay.yaml"), overlay).expect("written");
        let (code, shown) =
            told(folder.path(), &["run", "minicodex", "--overlay", "overlay.yaml", "handshake/*"]);
        assert_eq!(code, Some(2), "{shown}");
        assert!(shown.contains(expected) && shown.contains("overlay.yaml:2"), "{shown}");
    }
}
