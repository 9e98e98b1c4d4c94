//! The beginning and the end of a connection in the patterns of monitors: live, and in recordings.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::{frameproof, hand, own, text};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

/// `bye` is answered by a close frame with 4000 that says why, and nothing else ends a connection before it.
const INVARIANTS: &str = r#"
x-frameproof:
  invariants:
    bye-closes:
      about: bye is answered by a close frame with code 4000
      monitor:
        response:
          first: { type: say, dir: send, with: { text: bye } }
          then: { type: close, with: { code: 4000, clean: true, by: server } }
          before: close
          decides: [CH-4]
    closes-with-a-reason:
      about: a close frame of the server's says why
      monitor: { holds: { on: { type: close, with: { by: server } }, schema: { properties: { reason: { type: string, minLength: 1 } } }, decides: [CH-5] } }
    greets-first:
      about: a connection begins with the greeting
      monitor: { absence: { of: said, after: open, until: welcome, decides: [CH-1] } }
"#;

fn project(url: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), &["init", ".", "--url", url]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    fs::write(folder.path().join("o.yaml"), INVARIANTS).expect("written");
    folder
}

/// Exit code of `check`, and what it shows.
fn check(folder: &Path, lines: &[Value]) -> (Option<i32>, String) {
    let trace: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(folder.join("t.ndjson"), trace).expect("written");
    let output = frameproof(folder, &["check", "t.ndjson", "--protocol", "mychat", "--overlay", "o.yaml"]);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn recordings_are_judged_by_how_connections_end() {
    let folder = project("ws://127.0.0.1:1");
    let line = |dir: &str, body: Value| {
        let mut line = json!({ "t_ms": 0, "client": "a", "dir": dir });
        if let (Some(line), Value::Object(body)) = (line.as_object_mut(), body) {
            line.extend(body);
        }
        line
    };
    let message = |dir: &str, body: Value| line(dir, json!({ "text": body.to_string() }));
    let close =
        |code: u16, reason: &str| line("recv", json!({ "kind": "close", "code": code, "reason": reason }));
    let end = |how: &str| line("recv", json!({ "kind": "end", "how": how }));
    let begun = [
        line("send", json!({ "kind": "open", "url": "ws://h/" })),
        message("send", json!({ "type": "hello" })),
        message("recv", json!({ "type": "welcome", "room": "r" })),
        message("send", json!({ "type": "say", "text": "bye" })),
    ];
    let own = line("send", json!({ "kind": "close", "code": 1000 }));
    for (name, last, broken) in [
        ("as it must be", vec![close(4000, "bye"), end("closed")], ""),
        ("another code", vec![close(4001, "bye"), end("closed")], "CH-4"),
        ("no reason", vec![close(4000, ""), end("closed")], "CH-5"),
        ("no close frame", vec![end("eof")], "CH-4"),
        // Our own close frame was first: its answer is not the server's to choose.
        ("an answer to ours", vec![own, close(1000, ""), end("closed")], "CH-4"),
        ("a code that nobody may send", vec![close(1005, "bye"), end("closed")], "may not be sent"),
        ("an unassigned code", vec![close(5000, "bye"), end("closed")], "the code 5000"),
    ] {
        let lines = [&begun[..], &last[..]].concat();
        let (code, shown) = check(folder.path(), &lines);
        assert_eq!(code, Some(i32::from(!broken.is_empty())), "{name}\n{shown}");
        assert!(shown.contains(broken), "{name}\n{shown}");
        for id in ["CH-4", "CH-5"].into_iter().filter(|id| broken.starts_with("CH") && *id != broken) {
            assert!(!shown.contains(&format!("VIOLATION {id}")), "{name}: {id}\n{shown}");
        }
    }
    let early = [begun[0].clone(), message("recv", json!({ "type": "said", "text": "x", "seq": 1 }))];
    let (code, shown) = check(folder.path(), &early);
    assert!(code == Some(1) && shown.contains("CH-1"), "{shown}");
}

/// A server that answers `bye` by a close frame with this code.
fn closing(code: u16) -> String {
    hand::serve(move |stream| async move {
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
        while let Some(Ok(message)) = socket.next().await {
            let Message::Text(request) = message else { continue };
            if request.contains("hello") {
                drop(socket.send(Message::text(r#"{"type":"welcome","room":"r1"}"#)).await);
            } else if request.contains("bye") {
                drop(socket.close(Some(CloseFrame { code: code.into(), reason: "bye".into() })).await);
            }
        }
    })
}

#[test]
fn a_live_server_is_judged_by_how_it_ends_a_connection() {
    let case = "family: own\ncases:\n  - name: case\n    title: A case\n    covers: [CH-2]\n    steps:\n      - open: a\n      \
                - send: { type: say, text: bye }\n      - expect: close\n";
    for (code, expected) in [(4000, 0), (4001, 1)] {
        let folder = project(&closing(code));
        fs::write(folder.path().join("scenarios/first.yaml"), case).expect("written");
        let output = frameproof(folder.path(), &["run", "--overlay", "o.yaml"]);
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{shown}");
        assert_eq!(shown.contains("CH-4 MUST"), expected == 1, "{shown}");
    }
}

#[test]
fn what_a_connection_does_not_have_is_refused() {
    let folder = project("ws://127.0.0.1:1");
    for (patch, error) in [
        (
            "{ monitor: { absence: { of: { type: close, with: { cod: 1 } }, after: open, decides: [CH-1] } }, about: a }",
            "no `cod`",
        ),
        (
            "{ monitor: { absence: { of: { type: open, dir: send }, after: close, decides: [CH-1] } }, about: a }",
            "no `dir: send`",
        ),
        (
            "{ monitor: { absence: { of: { type: close, dir: send, with: { code: 1 } }, after: open, decides: [CH-1] } }, about: a }",
            "",
        ),
    ] {
        fs::write(
            folder.path().join("o.yaml"),
            format!("x-frameproof: {{ invariants: {{ x: {patch} }} }}\n"),
        )
        .expect("written");
        let output = frameproof(
            folder.path(),
            &["list", "--protocol", "mychat", "--scenario", "scenarios", "--overlay", "o.yaml"],
        );
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code() == Some(0), error.is_empty(), "{shown}");
        assert!(shown.contains(error), "{shown}");
    }
    fs::write(folder.path().join("o.yaml"), "x-frameproof: { turn: { end: close } }\n").expect("written");
    let output = frameproof(
        folder.path(),
        &["list", "--protocol", "mychat", "--scenario", "scenarios", "--overlay", "o.yaml"],
    );
    assert!(
        text(&output.stderr).contains("which only patterns of invariants and of `errors` can name"),
        "{}",
        text(&output.stderr)
    );
}

/// The end of the connection is one of the protocol's errors: it is a refusal as an error message is.
#[test]
fn an_end_can_be_an_error() {
    let case = |step: &str| {
        format!(
            "family: own\ncases:\n  - name: case\n    title: A case\n    covers: [CH-2]\n    steps:\n      - open: a\n      \
             - send: {{ type: say, text: bye }}\n      - {step}\n"
        )
    };
    const ERRORS: &str =
        "x-frameproof: { errors: { on: { type: close, with: { code: 4000, by: server } } } }\n";
    for (server, errors, step, expected, shown) in [
        (4000, ERRORS, "rejected: 1", 0, "1 passed"),
        (4001, ERRORS, "rejected: 1", 1, "the server closed the connection with code 4001"),
        (4000, ERRORS, "rejected: 2", 1, "code 4000 instead of refusing what was sent"),
        (4000, "{}\n", "rejected: 1", 1, "code 4000"),
    ] {
        let folder = project(&closing(server));
        fs::write(folder.path().join("o.yaml"), errors).expect("written");
        fs::write(folder.path().join("scenarios/first.yaml"), case(step)).expect("written");
        let output = frameproof(folder.path(), &["run", "--overlay", "o.yaml", "--quiet-period", "100ms"]);
        let output = text(&output.stdout) + &text(&output.stderr);
        assert!(output.contains(shown), "{server} {errors} {step}\n{output}");
        assert!(
            output.contains("conformant: 1 case") && output.contains("not conformant") == (expected == 1),
            "{output}"
        );
    }
}

/// A server that closes with this code on whatever it cannot read, and otherwise answers.
fn strict(code: u16, once: bool) -> String {
    hand::serve(move |stream| async move {
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
        let (mut seq, mut greeted) = (0, false);
        while let Some(Ok(message)) = socket.next().await {
            let Message::Text(request) = message else { continue };
            let request = serde_json::from_str::<Value>(&request).unwrap_or_default();
            let kind = request["type"].as_str();
            if kind == Some("hello") && std::mem::replace(&mut greeted, true) && once {
                drop(socket.close(Some(CloseFrame { code: 4429.into(), reason: "again?".into() })).await);
                return;
            }
            let answers = match kind {
                Some("hello") => vec![json!({ "type": "welcome", "room": "r1" })],
                Some("say") if request["text"].is_string() => {
                    seq += 2;
                    vec![
                        json!({ "type": "said", "text": "hi", "seq": seq - 1 }),
                        json!({ "type": "done", "seq": seq }),
                    ]
                }
                _ => {
                    drop(socket.close(Some(CloseFrame { code: code.into(), reason: "what?".into() })).await);
                    return;
                }
            };
            for answer in answers {
                drop(socket.send(Message::text(answer.to_string())).await);
            }
        }
    })
}

/// `closes` of `fuzzing`: a command that is valid may end the connection.
/// `fuzzing.refused`: a close frame with this code for each kind of mistake.
fn refused(code: u16) -> String {
    let kinds = [
        "no-json",
        "no-object",
        "no-type",
        "unknown-type",
        "server-type",
        "missing",
        "invalid",
        "undeclared",
    ];
    let kinds = kinds.map(|kind| format!("{kind}: {{ covers: [CH-4], close: [{code}] }}"));
    format!("{{ {} }}", kinds.join(", "))
}

#[test]
fn the_fuzzer_lets_a_command_end_the_connection_where_it_may() {
    for (closes, fails) in [("{ hello: [4429] }", false), ("{}", true)] {
        let folder = project(&strict(4400, true));
        let patch =
            format!("x-frameproof: {{ fuzzing: {{ closes: {closes}, refused: {} }} }}\n", refused(4400));
        fs::write(folder.path().join("o.yaml"), patch).expect("written");
        let arguments = ["fuzz", "--iterations", "48", "--overlay", "o.yaml", "--quiet-period", "50ms"];
        // Under load a warning may come first.
        let output = frameproof(folder.path(), &[&arguments[..], &["--max-findings", "8"]].concat());
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(shown.contains("FAIL alive"), fails, "{shown}");
        assert_eq!(shown.contains("FAIL"), fails, "{shown}");
    }
}

/// `close` of `fuzzing.refused`: the server refuses by ending the connection, with a code for each kind of mistake.
#[test]
fn the_fuzzer_judges_refusals_by_close() {
    for (server, fails) in [(4400, false), (4499, true)] {
        let folder = project(&strict(server, false));
        let patch = format!("x-frameproof: {{ fuzzing: {{ refused: {} }} }}\n", refused(4400));
        fs::write(folder.path().join("o.yaml"), patch).expect("written");
        let arguments = ["fuzz", "--iterations", "48", "--overlay", "o.yaml", "--quiet-period", "50ms"];
        let output = frameproof(folder.path(), &[&arguments[..], &["--max-findings", "3"]].concat());
        let shown = text(&output.stdout) + &text(&output.stderr);
        // The server cuts the connection after frames that RFC 6455 forbids, which is warned of.
        assert!(output.status.code().is_some_and(|code| code < 2), "{shown}");
        assert_eq!(shown.contains("FAIL refused [CH-4]"), fails, "{shown}");
        assert_eq!(shown.contains("FAIL"), fails, "{shown}");
    }
    let folder = project("ws://127.0.0.1:1");
    for (patch, error) in [
        ("no-json: { covers: [CH-4], close: [1005] }", "no server may send the close code 1005"),
        ("no-json: { covers: [CH-4] }", "has no effect: the protocol has no `errors`"),
        ("fields: [{ at: /text, missing: [CH-4] }]", "has no effect: the protocol has no `errors`"),
        (
            "missing: { covers: [CH-4], close: [4400] }, fields: [{ at: /text, missing: [CH-4], invalid: [CH-4] }]",
            "has no effect: the protocol has no `errors`",
        ),
        ("fields: [{ at: /text, close: [4400] }]", "says nothing of a missing or an invalid field"),
    ] {
        let overlay = format!("x-frameproof: {{ errors: null, fuzzing: {{ refused: {{ {patch} }} }} }}\n");
        fs::write(folder.path().join("o.yaml"), overlay).expect("written");
        let output = frameproof(folder.path(), &["list", "--overlay", "o.yaml"]);
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.code() == Some(2) && shown.contains(error), "{patch}\n{shown}");
    }
    for patch in [
        "fields: [{ at: /text, missing: [CH-4], close: [4400] }]",
        "missing: { covers: [CH-4], close: [4400] }, fields: [{ at: /text, missing: [CH-4], invalid: [] }]",
    ] {
        let overlay = format!("x-frameproof: {{ errors: null, fuzzing: {{ refused: {{ {patch} }} }} }}\n");
        fs::write(folder.path().join("o.yaml"), overlay).expect("written");
        let output = frameproof(folder.path(), &["list", "--overlay", "o.yaml"]);
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{patch}\n{shown}");
    }
}

/// Waits until a newer connection than this has the room.
async fn replaced(newest: &mut watch::Receiver<u64>, own: u64) {
    drop(newest.wait_for(|newest| *newest != own).await);
}

/// A server whose rooms have one connection each: a newer one takes the room over, and the older one is closed with 4411.
fn taking_over() -> String {
    let rooms: Arc<Mutex<HashMap<String, watch::Sender<u64>>>> = Arc::default();
    hand::serve(move |stream| {
        let rooms = Arc::clone(&rooms);
        async move {
            let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
            let (mut own, mut seq) = (0, 0);
            // Nobody else has the one that it begins with.
            let (room, mut newest) = watch::channel(0);
            loop {
                let message = tokio::select! {
                    biased;
                    () = replaced(&mut newest, own) => {
                        let reason = "session taken over".into();
                        drop(socket.close(Some(CloseFrame { code: 4411.into(), reason })).await);
                        // What the client sends meanwhile is read, so that the frame arrives.
                        while let Some(Ok(_)) = socket.next().await {}
                        return;
                    }
                    message = socket.next() => message,
                };
                let Some(Ok(message)) = message else { return };
                let Message::Text(request) = message else { continue };
                let request = serde_json::from_str::<Value>(&request).unwrap_or_default();
                let answers = match request["type"].as_str() {
                    Some("hello") if own == 0 => {
                        let mut rooms = rooms.lock().expect("no panic");
                        let new = format!("room-{}", rooms.len() + 1);
                        let name = request["room"].as_str().unwrap_or(&new).to_owned();
                        let room = rooms.entry(name.clone()).or_insert_with(|| room.clone());
                        room.send_modify(|newest| *newest += 1);
                        (own, newest) = (*room.borrow(), room.subscribe());
                        vec![json!({ "type": "welcome", "room": name })]
                    }
                    Some("say") if request["text"].is_string() => {
                        seq += 2;
                        vec![
                            json!({ "type": "said", "text": "hi", "seq": seq - 1 }),
                            json!({ "type": "done", "seq": seq }),
                        ]
                    }
                    _ => vec![json!({ "type": "error", "message": "no" })],
                };
                for answer in answers {
                    drop(socket.send(Message::text(answer.to_string())).await);
                }
            }
        }
    })
}

/// `taken-over` of `fuzzing`: the fuzzer's own second client ends the connection of its first one.
#[test]
fn the_fuzzer_lets_a_client_take_a_session_over_where_it_may() {
    for (codes, fails) in [("[4411]", false), ("[4410]", true)] {
        let folder = project(&taking_over());
        let patch = format!(
            "x-frameproof: {{ session: {{ join: {{ field: /room }} }}, fuzzing: {{ taken-over: {codes} }} }}\n"
        );
        fs::write(folder.path().join("o.yaml"), patch).expect("written");
        let arguments = ["fuzz", "--iterations", "48", "--overlay", "o.yaml", "--quiet-period", "50ms"];
        let output = frameproof(folder.path(), &[&arguments[..], &["--max-findings", "8"]].concat());
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code < 2), "{shown}");
        assert_eq!(shown.contains("code 4411"), fails, "{shown}");
        assert_eq!(shown.contains("FAIL"), fails, "{shown}");
    }
    let folder = project("ws://127.0.0.1:1");
    fs::write(folder.path().join("o.yaml"), "x-frameproof: { fuzzing: { taken-over: [1006] } }\n")
        .expect("written");
    let output = frameproof(folder.path(), &["list", "--overlay", "o.yaml"]);
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert!(
        output.status.code() == Some(2) && shown.contains("no server may send the close code 1006"),
        "{shown}"
    );
}

#[test]
fn steps_ask_only_for_what_an_end_can_have() {
    let folder = own::protocol(&["ask"], &["done"], "  turn: { start: { type: ask }, end: done }\n");
    let open = "      - open: alice\n";
    for (step, error) in [
        ("- expect: close\n        with: { code: 99999 }", "99999 is no close code"),
        ("- expect: close\n        with: { code: \"4400\" }", "\"4400\" is no close code"),
        ("- expect: close\n        with: { code: 2000 }", "no server may send the close code 2000"),
        ("- expect: close\n        with: { by: sever }", "no connection is ended by \"sever\""),
        ("- never: close\n        with: { clean: 1 }", "`clean` is never 1"),
        ("- expect: close\n        where: { properties: { cod: { const: 4400 } } }", "did you mean `code`?"),
        (
            "- expect: close\n        where: { properties: { code: { type: integer, minimum: 5000 } } }",
            "no `code` of the end",
        ),
        ("- expect: close\n      - check: { properties: { code: { enum: [410] } } }", "the close code 410"),
        ("- ended: alice\n        codes: [410]", "the close code 410"),
        // Of several names, none has it.
        ("- expect: [done, close]\n        with: { code: 1006 }", "no server may send the close code 1006"),
        ("- never: [done, close]\n        with: { clean: 1 }", "`clean` is never 1"),
        (
            "- expect: [done, close]\n        where: { properties: { code: { const: 2000 } } }",
            "no server may send the close code 2000",
        ),
        ("- expect: refused\n        with: { status: 4401 }", "4401 is no HTTP status"),
        (
            "- expect: refused\n        where: { properties: { status: { const: 99 } } }",
            "99 is no HTTP status",
        ),
        ("- get: /\n        with: { status: 600 }", "600 is no HTTP status"),
        ("- alive: alice\n        codes: [4400, 99]", "the close code 99"),
    ] {
        let (code, shown) = own::run(&folder, "ws://127.0.0.1:1", &format!("{open}      {step}\n"));
        assert!(code == Some(2) && shown.contains(error), "{step}\n{code:?} {shown}");
    }
    // The message may have what the end has not.
    let folder = own::protocol(&["ask"], &["done"], "  turn: { start: { type: ask }, end: done }\n");
    let path = folder.path().join("own/asyncapi.yaml");
    let api = fs::read_to_string(&path).expect("the protocol");
    fs::write(&path, api.replace("{ const: done } }", "{ const: done }, code: { type: integer } }"))
        .expect("written");
    let steps = format!("{open}      - expect: [done, close]\n        with: {{ code: 7 }}\n");
    let (code, shown) = own::run(&folder, "ws://127.0.0.1:1", &steps);
    assert!(code != Some(2) && !shown.contains("close code"), "{code:?} {shown}");
    let rest =
        "  turn: { start: { type: ask }, end: done }\n  invariants:\n    x: { about: a, monitor: MONITOR }\n";
    for (monitor, error) in [
        (
            "{ absence: { of: { type: close, with: { code: 2000 } }, after: open, decides: [A-1] } }",
            "code 2000",
        ),
        (
            "{ absence: { of: { type: close, where: { required: [cod] } }, after: open, decides: [A-1] } }",
            "has no `cod`",
        ),
        (
            "{ holds: { message: close, schema: { properties: { by: { const: sever } } }, decides: [A-1] } }",
            "sever",
        ),
        (
            "{ absence: { of: { type: close, dir: send, with: { code: 2000 } }, after: open, decides: [A-1] } }",
            "",
        ),
    ] {
        let (code, shown) = own::load(&own::protocol(&["ask"], &["done"], &rest.replace("MONITOR", monitor)));
        assert!(
            (code == Some(0)) == error.is_empty() && shown.contains(error),
            "{monitor}\n{code:?} {shown}"
        );
    }
}
