//! A client that knows nothing of frameproof talks to a reference server, frame by frame: what the suite takes for right
//! is right by somebody else's reading, too.

use crate::support::{Served, frameproof, text};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    async fn connect(server: &Served) -> Self {
        Self(tokio_tungstenite::connect_async(&server.url).await.expect("a connection").0)
    }

    async fn send(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.expect("it takes it");
    }

    /// The next message that is not a heartbeat.
    async fn next(&mut self) -> Value {
        loop {
            let message = self.0.next().await.expect("the connection is open").expect("a frame");
            let Message::Text(text) = message else { continue };
            let message: Value = serde_json::from_str(&text).expect("JSON");
            if message["type"] != "heartbeat" {
                return message;
            }
        }
    }

    /// All messages up to one of this type, which is the last.
    async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            seen.push(self.next().await);
            if seen.last().is_some_and(|message| message["type"] == kind) {
                return seen;
            }
        }
    }
}

/// The cue for a guarded `write_note` and a word, written out: `{"v":1,"turn":[{"call":…},{"say":["done"]}]}`.
fn guarded() -> String {
    use base64::Engine;
    let cue = json!({ "v": 1, "turn": [
        { "call": { "name": "write_note", "args": { "key": "k", "text": "t" } } }, { "say": ["done"] },
    ] });
    format!("[[cue:{}]]", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(cue.to_string()))
}

#[tokio::test]
async fn a_minicodex_turn_with_an_approval_and_a_resume() {
    let server = Served::start(&["minicodex"]);
    let mut client = Client::connect(&server).await;
    client.send(json!({ "type": "hello", "v": "1.0.0" })).await;
    let welcome = client.next().await;
    assert_eq!(welcome["type"], "welcome");
    let session = welcome["session_state"]["session_id"].clone();
    assert_eq!(client.next().await["type"], "snapshot");

    client.send(json!({ "type": "send", "text": guarded(), "req_id": "r1" })).await;
    let asked = client.until("approval_pending").await;
    assert_eq!(asked[0], json!({ "type": "accepted", "req_id": "r1" }));
    let call = asked.last().expect("it asked")["call_id"].clone();
    client.send(json!({ "type": "approve", "call_id": call })).await;
    let rest = client.until("function_call_output").await;
    let kinds: Vec<&str> = rest.iter().filter_map(|message| message["type"].as_str()).collect();
    assert!(kinds.contains(&"approval_decision"), "{kinds:?}");
    let cursor = rest.last().expect("an output")["event_id"].as_u64().expect("a logged event");
    let mut live = Vec::new();
    loop {
        let message = client.next().await;
        let over = message["run_state"]["status"] == "finished";
        live.push(message);
        if over {
            break;
        }
    }
    assert!(live.iter().any(|message| message["text"] == "done"), "{live:?}");

    let mut other = Client::connect(&server).await;
    other.send(json!({ "type": "resume", "session_id": session, "last_seen_event_id": cursor })).await;
    other.until("snapshot").await;
    for expected in live {
        assert_eq!(other.next().await, expected, "the replay is what was sent live");
    }
}

#[test]
fn legal_styles_are_listed_served_and_passed() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let output = frameproof(folder.path(), arguments);
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, listed, _) = run(&["serve", "codey", "--list-styles"]);
    assert_eq!(code, Some(0));
    assert!(listed.contains("no-tool-deltas") && listed.contains("[RFC 6455 5.4]"), "{listed}");

    let (code, out, _) = run(&["selftest", "codey", "--styles", "--style", "fragments,reordered-json"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("passed  fragments ") && out.contains("2 of 2 styles"), "{out}");

    let (code, out, _) = run(&["run", "codey", "--style", "no-tool-deltas", "--case", "ping/*"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("the reference server in style no-tool-deltas"), "{out}");

    let (code, _, error) = run(&["run", "codey", "--style", "no-tool-delta"]);
    assert!(code == Some(2) && error.contains("did you mean `no-tool-deltas`?"), "{error}");
    let (code, _, error) = run(&["run", "codey", "--style", "each-alone,coalesced"]);
    assert!(code == Some(2) && error.contains("contradict each other"), "{error}");
}

#[test]
fn legal_styles_pass_under_other_readings() {
    let folder = tempfile::tempdir().expect("a folder");
    for (protocol, style, reading) in [
        ("minicodex", "ping-accepted", "strict"),
        ("tinyvex", "seq-per-subscription", "lenient"),
        ("codelab", "ide-runs-what-is-approved", "lenient"),
    ] {
        let arguments = ["selftest", protocol, "--styles", "--style", style, "--reading", reading];
        let output = frameproof(folder.path(), &arguments);
        let out = text(&output.stdout);
        assert!(output.status.code() == Some(0) && out.contains("1 of 1 styles"), "{reading} {out}");
    }
}

/// Cases that await the end of a turn do not rely on which of its last messages the protocol calls so.
#[test]
fn a_suite_passes_with_another_end_of_turns() {
    let folder = tempfile::tempdir().expect("a folder");
    let overlay =
        "x-frameproof: { turn: { end: { type: loading_state, with: { payload: { loading: false } } } } }\n";
    std::fs::write(folder.path().join("end.yaml"), overlay).expect("written");
    let output = frameproof(folder.path(), &["run", "agentloop", "--overlay", "end.yaml"]);
    let out = text(&output.stdout);
    assert!(output.status.code() == Some(0) && out.contains(", 0 failed"), "{out}");
}

/// A place that asks for a defect before it knows whether that would change anything counts moments at which nothing is wrong.
#[test]
fn a_fault_that_would_change_nothing_is_not_met() {
    let folder = tempfile::tempdir().expect("a folder");
    let of_codelab = "family: own\ncases:\n  - name: calls\n    title: A call and a decision, both valid\n    turn: [{ call: { class: open } }, { say: [hi] }]\n    \
                      turns: { guarded: [{ call: { class: guarded } }, { say: [ok] }] }\n    steps:\n      - open: alice\n      \
                      - send: { type: user_message, content: '{{cue}}', role: user }\n      - expect: tool_call\n        save: { one: /call_id }\n      \
                      - send: { type: tool_result, call_id: '{{one}}', result: { content: found } }\n      - expect: turn-end\n      \
                      - send: { type: user_message, content: '{{cue.guarded}}', role: user }\n      - expect: tool_call\n        save: { two: /call_id }\n      \
                      - send: { type: hitl_decision, call_id: '{{two}}', decision: reject, feedback: not now }\n      - expect: turn-end\n";
    let of_minicodex = "family: own\ncases:\n  - name: alone\n    title: One client, one call\n    turn: [{ call: { class: guarded } }, { say: [hi] }]\n    steps:\n      \
                        - open: alice\n      - send: { type: frobnicate, req_id: r1 }\n      - expect: error\n      - send: { type: send, text: '{{cue}}' }\n      \
                        - expect: approval_pending\n        save: { call: /call_id }\n      - send: { type: approve, call_id: '{{call}}' }\n      - expect: turn-end\n";
    let of_tinyvex = "family: own\ncases:\n  - name: alone\n    title: One subscription\n    steps:\n      - open: alice\n      \
                      - send: { jsonrpc: '2.0', id: 1, method: tinyvex/subscribe, params: { subId: s1, name: messagesByThread, params: { threadId: t } } }\n      \
                      - expect: tinyvex/subscribe.result\n";
    let codelab = "any-modified-arguments any-result-error any-role calls-never-time-out decides-without-call-id drops-dotted-calls \
                   one-decision-for-all results-by-arrival users-only wrong-code";
    let minicodex = "acks-to-everyone ascii-only decides-again errors-to-everyone long-text-is-cut one-decision-for-all pending-stays";
    let tinyvex = "any-cursor key-order-matters params-may-lack refuses-journals sends-unchanged";
    for (protocol, case, faults) in [
        ("codelab", of_codelab, codelab),
        ("minicodex", of_minicodex, minicodex),
        ("tinyvex", of_tinyvex, tinyvex),
    ] {
        std::fs::write(folder.path().join("own.yaml"), case).expect("written");
        let faults: Vec<&str> = faults.split_whitespace().collect();
        let named = faults.iter().flat_map(|fault| ["--fault", fault]);
        let most = ["selftest", protocol, "--scenario", "own.yaml", "--triggers", "--trigger", "first-turn"];
        let arguments: Vec<&str> = most.into_iter().chain(named).collect();
        let output = frameproof(folder.path(), &arguments);
        let shown = text(&output.stdout) + &text(&output.stderr);
        let expected = format!(
            "0 of 0 killed, 0 of them by another requirement; 0 warned of only, 0 survived; 0 declared harmless; {} not met",
            faults.len()
        );
        assert!(shown.contains(&expected), "{protocol}\n{shown}");
    }
}

#[test]
fn a_fault_strikes_at_its_moments_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let output = frameproof(folder.path(), arguments);
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, listed, _) = run(&["serve", "codey", "--list-triggers"]);
    assert!(code == Some(0) && listed.contains("after-denial"), "{listed}");

    let faulty = |fault| run(&["run", "codey", "--fault", fault, "--case", "streaming/*", "-q"]).0;
    assert_eq!(faulty("finishes-twice"), Some(1));
    assert_eq!(faulty("finishes-twice@after-reconnect"), Some(0));

    // One case, which a busy machine runs in time, too.
    let case = "family: own\ncases:\n  - name: text\n    title: A turn of text\n    turn: [{ say: [hi] }]\n    steps:\n      - open: alice\n      \
                - send: { type: SendMessage, content: '{{cue}}' }\n      - expect: turn-end\n";
    std::fs::write(folder.path().join("own.yaml"), case).expect("written");
    let pairs = ["--fault", "finishes-twice", "--fault", "same-session-id", "--trigger", "first-turn"];
    let more = ["--trigger", "after-reconnect", "--scenario", "own.yaml"];
    let triggers = [&["selftest", "codey", "--triggers"], &pairs[..], &more[..]].concat();
    let (code, out, _) = run(&triggers);
    assert!(out.contains("killed     finishes-twice@first-turn"), "{out}");
    assert!(out.contains("SURVIVED   same-session-id@first-turn"), "{out}");
    assert!(out.contains("1 of 2 killed") && out.contains("2 not met") && !out.contains("unmet"), "{out}");
    assert_eq!(code, Some(1));
    let (_, out, _) = run(&[&triggers[..], &["-v"]].concat());
    assert!(out.contains("unmet      finishes-twice@after-reconnect"), "{out}");

    let (code, _, error) = run(&["serve", "codey", "--fault", "pongs-twice@after-denail"]);
    assert!(code == Some(2) && error.contains("did you mean `after-denial`?"), "{error}");
    let (code, _, error) = run(&["serve", "codey", "--fault", "fuzz-ignores-close@late"]);
    assert!(code == Some(2) && error.contains("a trigger of its own"), "{error}");
}

/// Each was a survivor: a step or a rule notices it now, or nothing is wrong at such a moment and it does not count.
#[test]
fn defects_at_later_moments_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    for (protocol, pairs) in [
        (
            "codey",
            &[
                ("killed", "silent-after-tools", "while-running"),
                ("killed", "second-decision-counts", "parallel-calls"),
                ("killed", "denial-takes-back", "second-turn"),
                ("killed", "hangs-up-late", "second-turn"),
                ("killed", "runs-denied", "first-turn"),
                ("killed", "speaks-after-failure", "third-turn"),
                ("unmet", "denial-takes-back", "non-ascii"),
                ("unmet", "cancel-spares-tools", "long-message"),
            ][..],
        ),
        (
            "agentloop",
            &[
                ("harmless", "fails-twice", "late"),
                ("killed", "compacts-twice", "again"),
                ("killed", "gone-runs-late", "second-turn"),
                ("harmless", "answers-twice", "while-asking"),
                ("unmet", "id-per-chunk", "while-asking"),
                ("unmet", "response-id-repeats", "first-turn"),
            ][..],
        ),
        (
            "minicodex",
            &[
                ("killed", "no-aborting-status", "while-running"),
                ("killed", "stale-abort-is-remembered", "after-abort"),
                ("killed", "refused-id-is-remembered", "blank"),
                ("killed", "reasoning-as-text", "again"),
                ("killed", "long-text-is-cut", "second-turn"),
                ("unmet", "output-before-call", "while-asking"),
            ][..],
        ),
        (
            "codelab",
            &[
                ("killed", "rejected-calls-run", "non-ascii"),
                ("killed", "feedback-is-lost", "while-running"),
                ("killed", "unknown-decisions-are-ignored", "while-running"),
                ("unmet", "results-approve", "non-ascii"),
            ][..],
        ),
        (
            "codex",
            &[
                ("killed", "broken-off-messages-stay-open", "second-client"),
                ("killed", "no-usage", "after-abort"),
                ("killed", "requests-have-no-command", "third-turn"),
                ("killed", "never-active", "second-turn"),
                ("killed", "archive-leaves-the-file", "second-turn"),
                ("killed", "new-threads-have-a-preview", "second-client"),
                ("killed", "read-status-is-idle", "while-asking"),
                ("killed", "totals-are-the-last", "while-asking"),
                ("harmless", "no-request-is-ignored", "once"),
                ("unmet", "request-ids-repeat", "second-client"),
            ][..],
        ),
    ] {
        for &(result, fault, trigger) in pairs {
            let of = ["--fault", fault, "--trigger", trigger, "-v"];
            let output =
                frameproof(folder.path(), &[&["selftest", protocol, "--triggers"], &of[..]].concat());
            let out = text(&output.stdout);
            let line = format!("{result:<10} {fault}@{trigger}");
            assert!(out.lines().any(|shown| shown.starts_with(&line)), "{line}\n{out}");
        }
    }
}
