//! How a run ends when the server does not behave: each way told apart, each bounded, never a hang.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::support::{frameproof, text};
use tokio_tungstenite::tungstenite::{Message, WebSocket, accept};

/// Serves every connection with `behave`, in threads of their own, until the test ends.
fn server(behave: fn(TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/ws", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || behave(stream));
        }
    });
    url
}

fn upgraded(stream: TcpStream) -> Option<WebSocket<TcpStream>> {
    accept(stream).ok()
}

/// Answers the upgrade with an HTTP status of its own.
fn forbids(mut stream: TcpStream) {
    let mut request = [0; 1024];
    let _ = stream.read(&mut request);
    let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nnot today");
}

/// Speaks no HTTP at all.
fn babbles(mut stream: TcpStream) {
    let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
}

/// Takes the upgrade and never says a word.
fn is_silent(stream: TcpStream) {
    if let Some(mut socket) = upgraded(stream) {
        while socket.read().is_ok() {}
    }
}

/// Never answers the upgrade.
fn hangs(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
}

/// Closes with a code as soon as something is said.
fn closes(stream: TcpStream) {
    if let Some(mut socket) = upgraded(stream) {
        let _ = socket.read();
        let code = tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode::Error;
        let frame = tokio_tungstenite::tungstenite::protocol::CloseFrame { code, reason: "oops".into() };
        let _ = socket.close(Some(frame));
        while socket.read().is_ok() {}
    }
}

/// Ends the TCP stream as soon as something is said.
fn hangs_up(stream: TcpStream) {
    if let Some(mut socket) = upgraded(stream) {
        let _ = socket.read();
    }
}

/// Answers with text that is not UTF-8.
fn sends_bad_text(stream: TcpStream) {
    if let Some(mut socket) = upgraded(stream) {
        let _ = socket.read();
        let _ = socket.get_mut().write_all(&[0x81, 0x02, 0xff, 0xfe]);
        while socket.read().is_ok() {}
    }
}

/// Announces a message of a gigabyte.
fn sends_too_much(stream: TcpStream) {
    if let Some(mut socket) = upgraded(stream) {
        let _ = socket.read();
        let _ = socket.get_mut().write_all(&[0x81, 127, 0, 0, 0, 0, 0x40, 0, 0, 0]);
        while socket.read().is_ok() {}
    }
}

/// Sends one message in fragments that never end.
fn sends_endless_fragments(stream: TcpStream) {
    if let Some(mut socket) = upgraded(stream) {
        let _ = socket.read();
        let mut fragment = vec![0, 127, 0, 0, 0, 0, 0, 0x10, 0, 0];
        fragment.resize(10 + (1 << 20), b' ');
        let _ = socket.get_mut().write_all(&[0x01, 1, b'{']);
        while socket.get_mut().write_all(&fragment).is_ok() {}
    }
}

/// Answers with frames and never stops.
fn floods(stream: TcpStream) {
    if let Some(mut socket) = upgraded(stream) {
        let _ = socket.read();
        while socket.send(Message::text(r#"{"type":"heartbeat","interval_ms":1}"#)).is_ok() {}
    }
}

/// Answers with JSON that is no message of the protocol.
fn speaks_another_protocol(stream: TcpStream) {
    if let Some(mut socket) = upgraded(stream) {
        let _ = socket.read();
        let _ = socket.send(Message::text("{\"kind\":\"hi\\u001b[31m\"}"));
        while socket.read().is_ok() {}
    }
}

#[test]
fn each_way_to_fail_is_told_apart_and_bounded() {
    type Row = (fn(TcpStream), i32, &'static str);
    let table: &[Row] = &[
        (forbids, 3, "HTTP 403: not today"),
        (babbles, 3, "does not speak WebSocket"),
        (hangs, 3, "the server accepted the TCP connection and sent no HTTP answer to the upgrade within"),
        (is_silent, 1, "welcome did not come within"),
        (closes, 1, "closed the connection with code 1011 instead of sending welcome"),
        (hangs_up, 1, "instead of sending welcome"),
        (sends_bad_text, 1, "the server sent bytes that are not a WebSocket frame"),
        (sends_too_much, 1, "the server sent a message longer than the limit"),
        (sends_endless_fragments, 1, "the server sent a message longer than the limit"),
        // Whichever comes first: a fast machine, or a fast build, reads so many, or so much, within the deadline.
        (
            floods,
            1,
            "welcome did not come within|the server sent more than 100000 frames in one case|\
             the server sent more in one case than is kept of it",
        ),
        (speaks_another_protocol, 1, "/type is missing: the frame has no type"),
    ];
    let runs: Vec<_> = table
        .iter()
        .map(|(behave, code, expected)| {
            let (behave, code, expected) = (*behave, *code, *expected);
            std::thread::spawn(move || {
                let folder = tempfile::tempdir().expect("a folder");
                let url = server(behave);
                let clock = Instant::now();
                let arguments = [
                    "run",
                    "minicodex",
                    "--url",
                    &url,
                    "--case",
                    "streaming/text-turn",
                    "--timeout-scale",
                    "0.2",
                ];
                let output = frameproof(folder.path(), &arguments);
                let shown = text(&output.stdout) + &text(&output.stderr);
                assert_eq!(output.status.code(), Some(code), "{expected}\n{shown}");
                assert!(
                    expected.split('|').any(|part| shown.contains(part)),
                    "{expected} is not in\n{shown}"
                );
                assert!(!shown.contains('\u{1b}'), "{shown}");
                // A hang would last as long as the test runner; the deadlines are at most a few seconds.
                assert!(clock.elapsed() < Duration::from_secs(60), "{expected} took {:?}", clock.elapsed());
            })
        })
        .collect();
    for run in runs {
        run.join().expect("the run is as expected");
    }
}

#[test]
fn one_root_cause_is_one_story() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = server(closes);
    let output = frameproof(folder.path(), &["run", "minicodex", "--url", &url, "--case", "streaming/*"]);
    let shown = text(&output.stdout);
    assert_eq!(shown.matches("\nFAIL ").count(), 1, "{shown}");
    assert!(shown.contains("same reason as streaming/"), "{shown}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_still_writes_its_reports() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().expect("a folder");
    let url = server(is_silent);
    let mut child = Command::new(env!("CARGO_BIN_EXE_frameproof"))
        .args(["run", "minicodex", "--url", &url, "--junit", "out.xml", "--timeout-scale", "100"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    // The first line comes when the run has begun.
    output.read_line(&mut line).expect("a line");
    assert!(line.contains("MiniCodex"), "{line}");
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("text");
    assert!(rest.contains("stopped: interrupted"), "{rest}");
    assert!(folder.path().join("out.xml").is_file());
}
