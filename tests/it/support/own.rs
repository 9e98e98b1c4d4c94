//! Protocols of a few messages, described for one test each, and servers that answer by a function.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::{frameproof, hand, text};

/// A folder with a protocol `own`: messages of the client (and the server) by their names, and the rest of `x-frameproof`, indented by two
/// blanks. Its requirements are, each a MUST.
pub fn protocol(sent: &[&str], received: &[&str], extension: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut api = "asyncapi: 3.0.0\ninfo: { title: Own, version: 1.0.0 }\nchannels:\n  c:\n    address: /ws\n    messages:\n".to_owned();
    let (mut operations, mut components) = (String::new(), String::new());
    for (side, action, names) in [("in", "receive", sent), ("out", "send", received)] {
        let _ = write!(
            operations,
            "  {side}:\n    action: {action}\n    channel: {{ $ref: '#/channels/c' }}\n    messages:\n"
        );
        for name in names {
            let key = format!("{side}-{name}");
            let _ = writeln!(api, "      {key}: {{ $ref: '#/components/messages/{key}' }}");
            let _ = writeln!(operations, "      - $ref: '#/channels/c/messages/{key}'");
            let _ = writeln!(
                components,
                "    {key}:\n      name: {name}\n      payload: {{ type: object, properties: {{ type: {{ const: {name} }} }} }}\n      \
                 examples: [{{ payload: {{ type: {name} }} }}]"
            );
        }
    }
    let api = format!(
        "{api}operations:\n{operations}components:\n  messages:\n{components}x-frameproof:\n  discriminator: /type\n  \
         frames: {{ object: [A-4], message: [A-4] }}\n  session: {{ join: connection }}\n{extension}"
    );
    let rules = ["A-1", "A-2", "A-3", "A-4"];
    let rule = |id: &str| format!("  - {{ id: {id}, level: MUST, area: a, text: a rule, source: a line }}\n");
    let catalogue = format!("requirements:\n{}", rules.map(rule).concat());
    fs::create_dir(folder.path().join("own")).expect("a folder");
    fs::write(folder.path().join("own/asyncapi.yaml"), api).expect("written");
    fs::write(folder.path().join("own/requirements.yaml"), catalogue).expect("written");
    folder
}

/// Exit code and output of a case with these steps (indented by six blanks) in such a folder. Silences last 300 ms.
pub fn run(folder: &tempfile::TempDir, url: &str, steps: &str) -> (Option<i32>, String) {
    let case = format!(
        "family: own\ncases:\n  - name: case\n    title: A case\n    covers: [A-1]\n    steps:\n{steps}"
    );
    fs::write(folder.path().join("s.yaml"), case).expect("written");
    let arguments =
        ["run", "--protocol", "own", "--scenario", "s.yaml", "--url", url, "--quiet-period", "300ms"];
    let more = ["--json", "r.jsonl", "--junit", "r.xml", "--jobs", "1"];
    let output = frameproof(folder.path(), &[&arguments[..], &more[..]].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// What the loader says of the protocol.
pub fn load(folder: &tempfile::TempDir) -> (Option<i32>, String) {
    let output = frameproof(folder.path(), &["list", "--protocol", "own", "--requirements"]);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// Exit code and output of `check` on a recording: of each line the direction and the message, a millisecond after the one before.
pub fn check(folder: &tempfile::TempDir, lines: &[(&str, Value)]) -> (Option<i32>, String) {
    let mut trace = String::new();
    for (ms, (dir, body)) in lines.iter().enumerate() {
        let line = serde_json::json!({ "t_ms": ms, "client": "a", "dir": dir, "text": body.to_string() });
        let _ = writeln!(trace, "{line}");
    }
    fs::write(folder.path().join("t.ndjson"), trace).expect("written");
    let output = frameproof(folder.path(), &["check", "t.ndjson", "--protocol", "own"]);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// The report of the only case of the last run.
pub fn report(folder: &tempfile::TempDir) -> Value {
    let lines = fs::read_to_string(folder.path().join("r.jsonl")).expect("the report");
    let mut events = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    events.find(|event| event["event"] == "case-finished").expect("a case")
}

/// A server that answers each text by the texts that the function makes of it, in their order.
pub fn serve(answer: fn(&Value) -> Vec<Value>) -> String {
    serve_and(answer, None)
}

/// The same, which also sends a text again and again.
pub fn serve_and(answer: fn(&Value) -> Vec<Value>, ticks: Option<&'static str>) -> String {
    hand::serve(move |stream| async move {
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
        let mut clock = tokio::time::interval(Duration::from_millis(20));
        loop {
            tokio::select! {
                said = socket.next() => {
                    let said = match said {
                        Some(Ok(said)) => said,
                        Some(Err(error)) => {
                            // What breaks RFC 6455 is told so.
                            let code = match error {
                                Error::Utf8(_) => CloseCode::Invalid,
                                _ => CloseCode::Protocol,
                            };
                            let frame = CloseFrame { code, reason: "".into() };
                            let _ = socket.send(Message::Close(Some(frame))).await;
                            return;
                        }
                        None => return,
                    };
                    let Message::Text(text) = said else { continue };
                    let body: Value = serde_json::from_str(&text).unwrap_or_default();
                    for one in answer(&body) {
                        if socket.send(Message::text(one.to_string())).await.is_err() { return }
                    }
                }
                _ = clock.tick(), if ticks.is_some() => {
                    if socket.send(Message::text(ticks.unwrap_or_default())).await.is_err() { return }
                }
            }
        }
    })
}
