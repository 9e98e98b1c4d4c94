//! Named lengths of time: in steps, in monitors, scaled, and changed by an overlay.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::support::{frameproof, hand, text};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

const CASE: &str = "family: own\ncases:\n  - name: case\n    title: A case\n    covers: [CH-2]\n    steps:\n      - open: a\n      \
                    - send: { type: say, text: hi }\n      - expect: said\n        within: soon\n";

/// A server that answers after some time.
fn slow() -> String {
    hand::serve(|stream| async move {
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
        while let Some(Ok(message)) = socket.next().await {
            let Message::Text(request) = message else { continue };
            if request.contains("hello") {
                drop(socket.send(Message::text(r#"{"type":"welcome","room":"r1"}"#)).await);
            } else {
                tokio::time::sleep(Duration::from_millis(400)).await;
                for answer in [r#"{"type":"said","text":"hi","seq":1}"#, r#"{"type":"done","seq":2}"#] {
                    drop(socket.send(Message::text(answer)).await);
                }
            }
        }
    })
}

fn project(url: &str, soon: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), &["init", ".", "--url", url]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    fs::write(folder.path().join("scenarios/first.yaml"), CASE).expect("written");
    fs::write(folder.path().join("o.yaml"), format!("x-frameproof: {{ times: {soon} }}\n")).expect("written");
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = frameproof(folder, &[arguments, &["--overlay", "o.yaml"]].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn a_step_waits_for_a_named_time() {
    let folder = project(&slow(), "{ soon: 100ms }");
    let (code, shown) = run(folder.path(), &["run", "--quiet-period", "20ms"]);
    assert!(code == Some(1) && shown.contains("said did not come"), "{shown}");
    let (code, shown) = run(folder.path(), &["run", "--quiet-period", "20ms", "--timeout-scale", "100"]);
    assert_eq!(code, Some(0), "{shown}");
    fs::write(folder.path().join("o.yaml"), "x-frameproof: { times: { soon: 10s } }\n").expect("written");
    assert_eq!(run(folder.path(), &["run"]).0, Some(0), "an overlay says how long it is");
}

#[test]
fn a_time_that_is_none_is_refused() {
    for (times, error) in [
        ("{ sooner: 50ms }", "did you mean `sooner`?"),
        ("{}", "`soon` is not a length of time"),
        ("{ soon: 50 ms long }", "`50 ms long` is not a length of time"),
        ("{ soon: 50ms, 3s: 4s }", "cannot be the name of one"),
    ] {
        let folder = project("ws://127.0.0.1:1", times);
        let (code, shown) = run(folder.path(), &["run", "--list"]);
        assert!(code == Some(2) && shown.contains(error), "{times}: {shown}");
    }
}

#[test]
fn a_recording_is_judged_by_a_monitor_with_a_named_time() {
    let folder = project("ws://127.0.0.1:1", "{ soon: 250ms }");
    let rule = |within: &str| {
        format!(
            "x-frameproof:\n  times: {{ soon: 250ms }}\n  invariants:\n    prompt:\n      about: a\n      monitor: \
             {{ response: {{ first: {{ type: say, dir: send }}, then: said, within: {within}, decides: [CH-4] }} }}\n"
        )
    };
    let line = |ms: u64, dir: &str, body: serde_json::Value| {
        json!({ "t_ms": ms, "client": "a", "dir": dir, "text": body.to_string() }).to_string() + "\n"
    };
    for (ms, broken) in [(240, false), (260, true)] {
        let trace = line(0, "send", json!({ "type": "hello" }))
            + &line(1, "recv", json!({ "type": "welcome", "room": "r" }))
            + &line(10, "send", json!({ "type": "say", "text": "x" }))
            + &line(10 + ms, "recv", json!({ "type": "said", "text": "x", "seq": 1 }));
        fs::write(folder.path().join("t.ndjson"), trace).expect("written");
        fs::write(folder.path().join("o.yaml"), rule("soon")).expect("written");
        let (code, shown) = run(folder.path(), &["check", "t.ndjson", "--protocol", "mychat"]);
        assert_eq!((code, shown.contains("CH-4")), (Some(i32::from(broken)), broken), "{shown}");
    }
    fs::write(folder.path().join("o.yaml"), rule("son")).expect("written");
    let (code, shown) = run(folder.path(), &["check", "t.ndjson", "--protocol", "mychat"]);
    assert!(code == Some(2) && shown.contains("did you mean `soon`?"), "{shown}");
}
