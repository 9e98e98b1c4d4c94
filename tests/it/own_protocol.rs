//! A protocol that frameproof does not ship, as data only, against a server that knows nothing of frameproof.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use crate::support::{frameproof, text};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

/// What is wrong with the server.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    NumbersStand,
    ClosesOnRubbish,
}

/// Starts the server on a thread of its own; it ends with the test.
fn serve(flaw: Flaw) -> SocketAddr {
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
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
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
fn project(flaw: Flaw) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("ws://{}/ws", serve(flaw));
    let output = frameproof(folder.path(), &["init", ".", "--url", &url]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
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
        cases(&["run", "--list", "--config", "frameproof.toml"]),
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
