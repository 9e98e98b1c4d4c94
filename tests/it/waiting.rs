//! What steps make of the frames that come: their order decides, and not when they come.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::support::{frameproof, hand, text};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

/// How a server puts its frames on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Flush {
    /// All that answers a message at once.
    Burst,
    /// Each frame alone, so long after the one before.
    Alone(u64),
}

/// What a server says to a message.
type Script = fn(&Value) -> Vec<Value>;

fn serve(flush: Flush, script: Script) -> String {
    hand::serve(move |stream| async move {
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
        while let Some(Ok(message)) = socket.next().await {
            let Message::Text(request) = message else { continue };
            let request = serde_json::from_str::<Value>(&request).unwrap_or_default();
            for answer in script(&request) {
                if let Flush::Alone(pause) = flush {
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                    drop(socket.flush().await);
                }
                if socket.feed(Message::text(answer.to_string())).await.is_err() {
                    return;
                }
                if flush != Flush::Burst {
                    drop(socket.flush().await);
                }
            }
            drop(socket.flush().await);
        }
    })
}

/// What `init` writes, for a server, with these steps as the only case, and this requirement a SHOULD.
fn project(url: &str, steps: &str, should: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), &["init", ".", "--url", url]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let case = format!("family: own\ncases:\n  - name: case\n    title: A case\n    steps:\n{steps}");
    fs::write(folder.path().join("scenarios/first.yaml"), case).expect("written");
    let path = folder.path().join("mychat/requirements.yaml");
    let catalogue = fs::read_to_string(&path).expect("the catalogue");
    let lighter = catalogue
        .replace(&format!("- id: {should}\n    level: MUST"), &format!("- id: {should}\n    level: SHOULD"));
    fs::write(&path, lighter).expect("written");
    folder
}

/// Exit code, what is shown, and the verdict on each requirement.
fn run(folder: &Path, more: &[&str]) -> (Option<i32>, String, Value) {
    let arguments = ["run", "--json", "out.jsonl", "--timeout-scale", "0.1", "--quiet-period", "300ms"];
    let output = frameproof(folder, &[&arguments[..], more].concat());
    let report = fs::read_to_string(folder.join("out.jsonl")).unwrap_or_default();
    let last = report.lines().last().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let requirements = last.map(|last| last["requirements"].clone()).unwrap_or_default();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr), requirements)
}

fn greeted(request: &Value, then: Vec<Value>) -> Vec<Value> {
    match request["type"].as_str() {
        Some("hello") => vec![json!({ "type": "welcome", "room": "r1" })],
        _ => then,
    }
}

fn repeats_a_number(request: &Value) -> Vec<Value> {
    let said = |seq| json!({ "type": "said", "text": "hi", "seq": seq });
    greeted(request, vec![said(1), json!({ "type": "done", "seq": 2 }), said(2), said(3)])
}

/// The frames before the one that breaks a MUST are looked at first, however they come.
#[test]
fn only_the_order_of_frames_decides() {
    let steps = "      - open: a\n      - send: { type: say, text: hi }\n      - expect: said\n        covers: [CH-5]\n      \
                 - expect: done\n        covers: [CH-3]\n      - check: { required: [never] }\n        covers: [CH-1]\n";
    // The last step would warn, and is looked at in every run: it waits for nothing.
    let verdicts = [Flush::Burst, Flush::Alone(0), Flush::Alone(30)].map(|flush| {
        let project = project(&serve(flush, repeats_a_number), steps, "CH-1");
        let (code, shown, requirements) = run(project.path(), &[]);
        assert_eq!(code, Some(1), "{flush:?}\n{shown}");
        let verdict = |id: &str| requirements[id]["verdict"].as_str().unwrap_or_default().to_owned();
        ["CH-1", "CH-2", "CH-3", "CH-5"].map(verdict)
    });
    for verdict in &verdicts {
        assert_eq!(verdict, &["warned", "failed", "passed", "passed"], "{verdicts:?}");
    }
}

fn is_odd(request: &Value) -> Vec<Value> {
    greeted(
        request,
        vec![json!({ "type": "said", "text": 5, "seq": 1 }), json!({ "type": "done", "seq": 2 })],
    )
}

#[test]
fn a_warning_takes_no_requirement_away() {
    let steps = "      - open: a\n      - send: { type: say, text: hi }\n      - expect: said\n        covers: [CH-5]\n      - expect: turn-end\n";
    let project = project(&serve(Flush::Alone(20), is_odd), steps, "CH-3");
    let (code, shown, requirements) = run(project.path(), &[]);
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(requirements["CH-3"]["verdict"], "warned", "{shown}");
    assert_eq!(requirements["CH-5"]["verdict"], "passed", "{shown}");
}

fn never_ends(request: &Value) -> Vec<Value> {
    greeted(request, vec![json!({ "type": "said", "text": "hi", "seq": 1 })])
}

#[test]
fn a_turn_without_an_end_is_no_warning() {
    let ways =
        [("turn-end", "covers: [CH-3]"), ("turn-end", "warns: true"), ("[error, done]", "covers: [CH-3]")];
    for (end, lightly) in ways {
        let steps = format!(
            "      - open: a\n      - send: {{ type: say, text: hi }}\n      - expect: said\n      - expect: {end}\n        {lightly}\n"
        );
        let project = project(&serve(Flush::Burst, never_ends), &steps, "CH-3");
        let (code, shown, requirements) = run(project.path(), &[]);
        assert_eq!(code, Some(1), "{lightly}\n{shown}");
        assert_eq!(requirements["CH-4"]["verdict"], "failed", "{lightly}\n{shown}");
    }
}

/// What is tolerated not to come leaves nothing to look at: that is no error, and exercises nothing.
#[test]
fn what_did_not_come_is_not_checked() {
    let beginning = "      - open: a\n      - send: { type: say, text: hi }\n      - expect: said\n        covers: [CH-3]\n      \
                     - expect: error\n        warns: true\n        within: 300ms\n        save: { why: /message }\n";
    for rest in [
        "      - check: { required: [message] }\n        covers: [CH-2]\n",
        "      - send: { type: say, text: \"{{why}}\" }\n      - expect: error\n        covers: [CH-2]\n",
    ] {
        let project = project(&serve(Flush::Burst, never_ends), &format!("{beginning}{rest}"), "CH-1");
        let (code, shown, requirements) = run(project.path(), &[]);
        assert_eq!(code, Some(0), "{rest}\n{shown}");
        assert_eq!(requirements["CH-2"]["verdict"], "not-exercised", "{rest}\n{shown}");
        assert_eq!(requirements["CH-3"]["verdict"], "passed", "{rest}\n{shown}");
    }
}

fn talks_on(request: &Value) -> Vec<Value> {
    let said = |seq| json!({ "type": "said", "text": "hi", "seq": seq });
    greeted(request, (1..=10).map(said).chain([json!({ "type": "done", "seq": 11 })]).collect())
}

fn talks_for_ever(request: &Value) -> Vec<Value> {
    greeted(request, (1..=200).map(|seq| json!({ "type": "said", "text": "hi", "seq": seq })).collect())
}

/// Deadlines are for silence: the deadline is 0.5 s here, and the whole turn takes 1.1 s.
#[test]
fn a_wait_goes_on_while_messages_come() {
    let steps = "      - open: a\n      - send: { type: say, text: hi }\n      - expect: turn-end\n";
    let (code, shown, _) = run(project(&serve(Flush::Alone(100), talks_on), steps, "").path(), &[]);
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown, _) = run(project(&serve(Flush::Alone(100), talks_for_ever), steps, "").path(), &[]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("turn-end did not come within 5.0s") && shown.contains("--timeout-scale"),
        "{shown}"
    );
    let within = steps.replace("turn-end\n", "turn-end\n        within: 4s\n");
    let (code, shown, _) = run(project(&serve(Flush::Alone(100), talks_on), &within, "").path(), &[]);
    // On a busy machine it may take twice as long, whatever comes.
    let waited = shown.split("did not come within ").nth(1).and_then(|rest| rest.split("ms").next());
    let waited: Option<f64> = waited.and_then(|waited| waited.parse().ok());
    assert!(
        code == Some(1) && waited.is_some_and(|ms| (400.0..=800.1).contains(&ms)),
        "what a step says holds: {shown}"
    );
}

fn refuses(request: &Value) -> Vec<Value> {
    greeted(request, vec![json!({ "type": "error", "message": "no" })])
}

#[test]
fn the_wrong_error_is_told_as_that() {
    let steps = "      - open: a\n      - send: { type: say, text: hi }\n      - expect: [error, done]\n        with: { message: yes }\n";
    let (code, shown, _) = run(project(&serve(Flush::Burst, refuses), steps, "").path(), &[]);
    assert_eq!(code, Some(1), "{shown}");
    // Which of its fields is wrong is told, too.
    assert!(
        shown.contains("error came, but did not match: /message differs") && !shown.contains("instead of"),
        "{shown}"
    );
    let without = steps.replace("message: yes", "req_id: r1");
    let (_, shown, _) = run(project(&serve(Flush::Burst, refuses), &without, "").path(), &[]);
    assert!(shown.contains("error came, but did not match: /req_id is missing"), "{shown}");
}

fn says_something_else(request: &Value) -> Vec<Value> {
    greeted(request, vec![json!({ "type": "said", "seq": 1, "text": "ok" })])
}

/// Where none of several types came, none is told to have come.
#[test]
fn what_did_not_come_is_not_told_to_have_come() {
    let steps = "      - open: a\n      - send: { type: say, text: hi }\n      - expect: [error, done]\n        with: { message: yes }\n";
    let (code, shown, _) = run(project(&serve(Flush::Burst, says_something_else), steps, "").path(), &[]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("neither error nor done came within") && !shown.contains("came, but"), "{shown}");
}

const RPC: &str = r#"
asyncapi: 3.0.0
info: { title: RPC, version: 1.0.0 }
channels: { c: { address: / } }
operations:
  up: { action: receive, messages: [{ $ref: '#/components/messages/add' }, { $ref: '#/components/messages/sub' }] }
  down: { action: send, messages: [{ $ref: '#/components/messages/add.result' }, { $ref: '#/components/messages/sub.result' }, { $ref: '#/components/messages/error' }] }
components:
  messages:
    add: { payload: { type: object, properties: { method: { const: add } } }, examples: [{ payload: { id: 1, method: add } }] }
    sub: { payload: { type: object, properties: { method: { const: sub } } }, examples: [{ payload: { id: 1, method: sub } }] }
    add.result: { payload: { type: object }, examples: [{ payload: { id: 1, result: 1 } }] }
    sub.result: { payload: { type: object }, examples: [{ payload: { id: 1, result: 1 } }] }
    error: { payload: { type: object }, examples: [{ payload: { id: 1, error: {} } }] }
x-frameproof:
  discriminator: /method
  replies: { id: /id, result: /result, error: /error, unmatched: [R-1] }
  errors: { on: error }
  session: { join: connection }
  openings: { plain: [] }
  turn: { start: { id: 9, method: add }, end: add.result }
"#;

fn refuses_to_subtract(request: &Value) -> Vec<Value> {
    match request["method"].as_str() {
        Some("sub") => vec![json!({ "id": request["id"], "error": {} }), json!({ "id": 1, "result": 3 })],
        _ => Vec::new(),
    }
}

/// An error that answers another request does not end a wait.
#[test]
fn an_error_is_for_the_request_that_it_answers() {
    let url = serve(Flush::Burst, refuses_to_subtract);
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
    fs::create_dir(folder.path().join("rpc")).expect("created");
    write("rpc/asyncapi.yaml", RPC);
    write("rpc/requirements.yaml", "requirements: [{ id: R-1, level: MUST, area: a, text: t, source: s }]\n");
    for (name, steps, code) in [
        ("by-method", "      - expect: add.result\n", 0),
        ("by-id", "      - expect: [add.result, sub.result]\n        with: { id: 1 }\n", 0),
        ("own", "      - expect: sub.result\n", 1),
    ] {
        let sends =
            "      - open: a\n      - send: { id: 1, method: add }\n      - send: { id: 2, method: sub }\n";
        let case = format!(
            "family: own\ncases:\n  - name: {name}\n    title: A case\n    covers: [R-1]\n    steps:\n{sends}{steps}"
        );
        write("s.yaml", &case);
        let arguments = ["--protocol", "rpc", "--scenario", "s.yaml", "--url", &url];
        let (got, shown, _) = run(folder.path(), &arguments);
        assert_eq!(got, Some(code), "{name}\n{shown}");
    }
}

fn refuses_late(request: &Value) -> Vec<Value> {
    let refusal = json!({ "type": "error", "message": "busy" });
    let [said, done] =
        [json!({ "type": "said", "text": "hi", "seq": 1 }), json!({ "type": "done", "seq": 2 })];
    greeted(request, vec![said, done, refusal])
}

fn goes_on(request: &Value) -> Vec<Value> {
    let mut all = refuses_late(request);
    all.extend(greeted(request, vec![json!({ "type": "said", "text": "more", "seq": 3 })]));
    all
}

/// Where silence ends a turn, a refusal that comes in it does not continue the turn; anything else does.
#[test]
fn a_late_refusal_does_not_continue_a_turn() {
    let steps = |before: &str| {
        format!(
            "      - open: a\n      - send: {{ type: say, text: hi }}\n{before}      - expect: turn-end\n        past-errors: true\n"
        )
    };
    for (script, before, expected) in [
        (refuses_late as Script, "", 0),
        (refuses_late, "      - expect: done\n", 0),
        (goes_on, "", 1),
        (goes_on, "      - expect: done\n", 1),
    ] {
        let project = project(&serve(Flush::Alone(60), script), &steps(before), "CH-5");
        let path = project.path().join("mychat/asyncapi.yaml");
        let api = fs::read_to_string(&path).expect("the protocol");
        fs::write(&path, api.replace("    end: done\n", "    end: done\n    quiet-ms: 300\n"))
            .expect("written");
        // The quiet period is scaled, too: 300 ms.
        let output = frameproof(project.path(), &["run", "--timeout-scale", "0.1", "--quiet-period", "3s"]);
        assert_eq!(output.status.code(), Some(expected), "{before:?}: {}", text(&output.stdout));
    }
}
