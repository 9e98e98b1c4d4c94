//! A protocol without a barrier: whatever "did not come" is waited for all the same.

use std::fs;
use std::time::Duration;

use crate::support::{frameproof, hand, own, text};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

/// How long the server takes for an answer.
const LATE: Duration = Duration::from_millis(60);

/// A server of the protocol that `init` writes. It takes its time, answers pings at once, and takes a text that is none.
fn slow() -> String {
    hand::serve(|stream| async move {
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
        let (late, mut due) = tokio::sync::mpsc::unbounded_channel();
        let mut seq = 0;
        loop {
            let answer = tokio::select! {
                frame = socket.next() => match frame {
                    Some(Ok(Message::Text(request))) if request.contains("hello") => {
                        json!({ "type": "welcome", "room": "r1" })
                    }
                    Some(Ok(Message::Text(request))) => {
                        let request: Value = serde_json::from_str(&request).unwrap_or_default();
                        seq += 1;
                        let said = json!({ "type": "said", "text": request["text"], "seq": seq });
                        let late = late.clone();
                        tokio::spawn(async move {
                            tokio::time::sleep(LATE).await;
                            drop(late.send(said));
                        });
                        continue;
                    }
                    Some(Ok(_)) => continue,
                    _ => return,
                },
                Some(answer) = due.recv() => answer,
            };
            if socket.send(Message::text(answer.to_string())).await.is_err() {
                return;
            }
        }
    })
}

/// A case of a file.
fn case(name: &str, settle: bool, steps: &Value) -> Value {
    json!({ "name": name, "title": name, "covers": ["CH-3"], "settle": settle, "steps": steps })
}

/// A project with what `init` writes for that server, and a folder with each case in a file.
fn project(url: &str, cases: &[Value]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), &["init", ".", "--url", url]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    fs::create_dir(folder.path().join("found")).expect("a folder");
    for case in cases {
        let file = json!({ "family": "late", "cases": [case] });
        let name = format!("found/{}.yaml", case["name"].as_str().expect("a name"));
        fs::write(folder.path().join(name), file.to_string()).expect("written");
    }
    folder
}

#[test]
fn what_comes_late_is_seen() {
    let wrong = json!({ "raw": "{\"type\":\"say\"}" });
    let say = json!({ "send": { "type": "say", "text": "secret" } });
    let open = json!({ "open": "alice" });
    let cases = [
        case("never", true, &json!([open, say, { "never": "said" }])),
        case("unseen", true, &json!([open, say, { "unseen": "secret" }])),
        case("end", true, &json!([open, wrong])),
        case("unsettled", false, &json!([open, wrong])),
        case("unopened", true, &json!([{ "open": "alice", "opening": "none" }, wrong])),
        case("alive", false, &json!([open, wrong, { "alive": "alice" }, { "send": { "type": "hello" } }])),
        case("fine", true, &json!([open, say, { "never": "error" }, { "unseen": "public" }])),
    ];
    let folder = project(&slow(), &cases);
    let output = frameproof(folder.path(), &["run", "--scenario", "found", "late/*", "-v"]);
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("7 cases, 1 passed, 6 failed"), "{shown}");
    assert!(shown.lines().any(|line| line.contains("PASS") && line.contains("late/fine")), "{shown}");
}

#[test]
fn a_finding_is_fixed_only_if_it_could_have_failed() {
    let wrong = json!({ "raw": "{\"type\":\"say\"}" });
    let mut needs = case("needs", false, &json!([{ "open": "alice" }, wrong]));
    needs["steps"] = json!([{ "open": "alice" }, { "restart": "hard" }, wrong]);
    let found = case("found", false, &json!([{ "open": "alice" }, wrong, { "alive": "alice" }]));
    let mended = case("mended", false, &json!([{ "open": "alice" }, { "alive": "alice" }]));
    let url = slow();
    let folder = project(&url, &[found, needs, mended]);
    let output =
        frameproof(folder.path(), &["fuzz", "--protocol", "mychat", "--replay", "found", "--url", &url]);
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    for line in ["still fails      late/found", "undecided        late/needs", "fixed            late/mended"]
    {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

/// Heartbeats that clients answer by themselves are neither what the server has to answer, nor what the excerpt is for.
#[test]
fn automatic_messages_are_no_news() {
    let rest = "  turn: { start: { type: ask }, end: done }\n  client: { alive: { message: beat, send: { type: beat-ack } } }\n";
    let folder = own::protocol(&["ask", "beat-ack"], &["done", "beat"], rest);
    let url = own::serve_and(|_| Vec::new(), Some(r#"{"type":"beat"}"#));
    let steps =
        "      - open: alice\n      - send: { type: ask }\n      - expect: done\n        within: 600ms\n";
    let (code, shown) = own::run(&folder, &url, steps);
    assert_eq!(code, Some(1), "{shown}");
    assert!(!shown.contains("`beat-ack`"), "{shown}");
    let frames = |text: &str| text.lines().filter(|line| line.contains("beat")).count();
    let junit = fs::read_to_string(folder.path().join("r.xml")).expect("the report");
    for text in [&shown, &junit] {
        assert!(text.contains(" automatic messages") && frames(text) <= 2, "{text}");
        assert!(text.contains(r#""ask""#) || text.contains("&quot;ask&quot;"), "{text}");
    }
    let report = own::report(&folder);
    let automatic = report["wire"].as_array().expect("lines").iter().filter(|line| line["automatic"] == true);
    assert!(automatic.count() > 4, "{report}");
}
