//! A protocol that frameproof does not ship, as data only, against a server that knows nothing of frameproof.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use crate::support::{frameproof, own, text};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};

/// What is wrong with the server.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Flaw {
    None,
    NumbersStand,
    ClosesOnRubbish,
    WantsKey,
    OtherSubProtocol,
}

/// Starts the server on a thread of its own; it ends with the test.
pub(crate) fn serve(flaw: Flaw) -> SocketAddr {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            tell.send(listener.local_addr().expect("an address")).expect("the test waits");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, flaw));
            }
        });
    });
    told.recv().expect("an address")
}

async fn converse(stream: TcpStream, flaw: Flaw) {
    #[expect(clippy::result_large_err, reason = "the library says what the callback returns")]
    let upgrade = |request: &Request, mut response: Response| {
        if flaw == Flaw::WantsKey && request.headers().get("x-key").is_none_or(|key| key != "open sesame") {
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            return Err(response.map(|()| None));
        }
        if flaw == Flaw::OtherSubProtocol {
            response.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("other"));
        }
        Ok(response)
    };
    let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, upgrade).await else { return };
    let mut seq = 0;
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(request) = message else { continue };
        let request = serde_json::from_str::<Value>(&request).unwrap_or_default();
        let mut next = || {
            seq += i32::from(flaw != Flaw::NumbersStand || seq == 0);
            seq
        };
        let answers = match request["type"].as_str() {
            Some("hello") => vec![json!({ "type": "welcome", "room": "r1" })],
            Some("say") => vec![
                json!({ "type": "said", "text": request["text"], "seq": next() }),
                json!({ "type": "done", "seq": next() }),
            ],
            _ if flaw == Flaw::ClosesOnRubbish => return,
            _ => vec![json!({ "type": "error", "message": "no such command" })],
        };
        for answer in answers {
            if socket.send(Message::text(answer.to_string())).await.is_err() {
                return;
            }
        }
    }
}

/// A folder with what `init` writes, for a server.
pub(crate) fn project(flaw: Flaw) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("ws://{}/ws", serve(flaw));
    let output = frameproof(folder.path(), &["init", ".", "--url", &url]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("then run `frameproof run`.\n"), "{said}");
    folder
}

/// Puts a line at the top of a project's configuration.
pub(crate) fn configure(project: &tempfile::TempDir, line: &str) {
    let path = project.path().join("frameproof.toml");
    let config = fs::read_to_string(&path).expect("what init wrote");
    fs::write(&path, format!("{line}\n{config}")).expect("written");
}

pub(crate) fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = frameproof(folder, arguments);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn what_init_writes_runs_as_written() {
    let project = project(Flaw::None);
    let (code, shown) = run(project.path(), &["run", "--trace", "t.ndjson"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("5 passed, 0 failed, 0 warned, 0 not exercised"), "{shown}");
    assert!(project.path().join("reports/junit.xml").is_file());
    let (code, shown) = run(project.path(), &["check", "t.ndjson", "--protocol", "mychat"]);
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown) = run(project.path(), &["explain", "CH-2", "--protocol", "mychat"]);
    assert!(code == Some(0) && shown.contains("invariant sequence"), "{shown}");
}

#[test]
fn its_requirements_find_the_defects_of_a_server() {
    for (flaw, id) in [(Flaw::NumbersStand, "CH-2"), (Flaw::ClosesOnRubbish, "CH-5")] {
        let project = project(flaw);
        let (code, shown) = run(project.path(), &["run"]);
        assert_eq!(code, Some(1), "{shown}");
        let failed: Vec<&str> = shown.lines().filter(|line| line.starts_with("  FAIL CH-")).collect();
        assert!(failed.len() == 1 && failed[0].contains(id), "{shown}");
    }
}

#[test]
fn the_wrong_sub_protocol_is_a_verdict() {
    for (flaw, told) in [
        (Flaw::None, "selects none of the sub-protocols that the client offers"),
        (Flaw::OtherSubProtocol, "selects a sub-protocol that the client does not offer"),
    ] {
        let project = project(flaw);
        configure(&project, "header = ['Sec-WebSocket-Protocol: chat.v1']");
        let (code, shown) = run(project.path(), &["run"]);
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains(told) && !shown.contains("does not speak WebSocket"), "{shown}");
    }
    let project = project(Flaw::OtherSubProtocol);
    let (code, shown) = run(project.path(), &["run"]);
    assert!(code == Some(1) && shown.contains("although the client offers none"), "{shown}");
}

#[test]
fn the_doctor_takes_headers_and_pace_from_the_configuration() {
    let project = project(Flaw::WantsKey);
    let (code, shown) = run(project.path(), &["doctor"]);
    assert!(code == Some(1) && shown.contains("HTTP 401"), "{shown}");
    configure(&project, "header = ['X-Key: open sesame']");
    let (_, shown) = run(project.path(), &["doctor"]);
    assert!(shown.contains("good     upgrade?") && shown.contains("good     plain turn?"), "{shown}");
    assert_eq!(run(project.path(), &["run"]).0, Some(0));
}

#[test]
fn its_examples_survive_the_fuzz_target_of_the_parser() {
    let project = project(Flaw::None);
    let options = frameproof::protocol::LoadOptions::default();
    let protocol = frameproof::protocol::Protocol::load(&project.path().join("mychat"), &options)
        .unwrap_or_else(|errors| panic!("{errors}"));
    for example in protocol.messages.iter().flat_map(|message| &message.examples) {
        let bytes = example.to_string().into_bytes();
        for at in 0..bytes.len() {
            for byte in [0, b'"', b'}', b'\\', 0xff, bytes[at] ^ 1] {
                let mut mutant = bytes.clone();
                mutant[at] = byte;
                frameproof::fuzz_targets::frame(&mutant);
            }
            frameproof::fuzz_targets::frame(&bytes[..at]);
        }
    }
}

#[test]
fn init_overwrites_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("frameproof.toml"), "# mine\n").expect("written");
    let (code, shown) = run(folder.path(), &["init", "."]);
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("frameproof.toml exists"), "{shown}");
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1, "nothing was written");
    let (code, shown) = run(folder.path(), &["init", "x", "--name", "My Chat"]);
    assert!(code == Some(2) && shown.contains("cannot be a protocol's name"), "{shown}");
}

/// The same cases as the embedded ones, against a server of the protocol, from files that can be read and changed.
#[test]
fn a_protocol_that_ships_can_be_copied() {
    let server = crate::support::Served::start(&["codelab"]);
    let folder = tempfile::tempdir().expect("a folder");
    let (code, shown) = run(folder.path(), &["init", ".", "--from", "codelab", "--url", &server.url]);
    assert_eq!(code, Some(0), "{shown}");
    let cases = |arguments: &[&str]| {
        let (code, shown) = run(folder.path(), arguments);
        assert_eq!(code, Some(0), "{shown}");
        shown.lines().filter(|line| line.contains('/')).count()
    };
    assert_eq!(
        cases(&["run", "--list", "--config", "frameproof.toml", "--preambles=none"]),
        cases(&["run", "codelab", "--list"])
    );
    let (code, shown) = run(folder.path(), &["run", "streaming/*"]);
    assert!(code == Some(0) && !shown.contains(" 0 passed"), "{shown}");
    let scenario = folder.path().join("scenarios/streaming.yaml");
    let changed = fs::read_to_string(&scenario).expect("the copy").replacen("expect:", "expct:", 1);
    fs::write(&scenario, changed).expect("written");
    let (code, shown) = run(folder.path(), &["run", "streaming/*"]);
    assert!(code == Some(2) && shown.contains("scenarios/streaming.yaml:"), "{shown}");
    let (code, shown) = run(folder.path(), &["init", "x", "--from", "codelap"]);
    assert!(code == Some(2) && shown.contains("codelab"), "{shown}");
}

/// It needs a server that is installed from a registry; here it is loaded, and its baseline is looked at.
#[test]
fn the_example_of_codex_loads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/codex");
    let output = frameproof(&folder, &["run", "--target", "codex", "--list"]);
    let (cases, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(
        cases.lines().last().is_some_and(|last| last.ends_with(" cases")) && cases.lines().count() > 300,
        "{cases}"
    );
    // Every entry of the baseline names a case and a requirement that there are.
    assert!(!errors.contains("known.yaml"), "{errors}");
}

/// What AsyncAPI does not know would be passed over in silence: somebody has mistyped it.
#[test]
fn a_key_that_asyncapi_does_not_know_is_told() {
    const TURN: &str = "  turn: { start: { type: ask }, end: done }\n";
    for (right, wrong, shown) in [
        ("    address: /ws", "    adress: /ws", "a channel has no key `adress`"),
        ("      in-ask: {", "      in-ask: {", ""),
        ("    messages:\n      in", "    mesages:\n      in", "did you mean `messages`?"),
        ("    action: receive", "    action: receive\n    sumary: x", "did you mean `summary`?"),
        ("channels:\n", "chanels:\n", "did you mean `channels`?"),
        ("      name: ask\n", "      name: ask\n      x-framepoof: {}\n", "did you mean `x-frameproof`?"),
        ("x-frameproof:", "x-framepoof:", "did you mean `x-frameproof`?"),
        (
            "    address: /ws",
            "    address: /ws\n    x-frameproof: {}",
            "`x-frameproof` has no effect in a channel",
        ),
        (
            "    address: /ws",
            "    address: /ws\n    x-own: { adress: 1 }\n    bindings: { ws: { query: {} } }",
            "",
        ),
        ("{ const: ask }", "{ const: ask, x-framprof: {} }", "did you mean `x-frameproof`?"),
    ] {
        let folder = own::protocol(&["ask"], &["done"], TURN);
        let path = folder.path().join("own/asyncapi.yaml");
        let api = fs::read_to_string(&path).expect("the protocol");
        assert!(api.contains(right), "{right}");
        fs::write(&path, api.replacen(right, wrong, 1)).expect("written");
        let (code, output) = own::load(&folder);
        assert_eq!(code, Some(if shown.is_empty() { 0 } else { 2 }), "{wrong}\n{output}");
        assert!(output.contains(shown), "{wrong}\n{output}");
        assert_eq!(output.contains("asyncapi.yaml:"), !shown.is_empty(), "the place: {output}");
    }
    // An overlay is a part of the document.
    let folder = own::protocol(&["ask"], &["done"], TURN);
    fs::write(folder.path().join("o.yaml"), "channels: { c: { adress: / } }\n").expect("written");
    let output =
        frameproof(folder.path(), &["list", "--protocol", "own", "--requirements", "--overlay", "o.yaml"]);
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.code() == Some(2) && shown.contains("o.yaml:1:18"), "{shown}");
}
