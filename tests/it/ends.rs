//! How connections end that nobody asked to end: no step passes on a dead connection, and a broken frame is a failure
//! with a name.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use crate::support::{frameproof, text};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Message, WebSocket, accept};

/// What the server does with a connection on which something is said.
type Death = fn(WebSocket<TcpStream>);

/// Serves until the test ends. A connection on which `die` is said dies, one on which `err` is said is told an error and
/// dies, and every other lives on in silence.
fn server(death: Death) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, death));
        }
    });
    format!("ws://{address}")
}

fn serve(stream: TcpStream, death: Death) {
    let Ok(mut socket) = accept(stream) else { return };
    // Peeked at and not read: a connection that is closed over unread bytes is reset.
    let mut seen = [0; 1];
    if socket.get_mut().peek(&mut seen).is_err() {
        return;
    }
    // A client's text is masked, so its length tells: `die` has 3 bytes, `err` with a blank 4.
    let mut head = [0; 2];
    let _ = socket.get_mut().peek(&mut head);
    match head[1] & 0x7f {
        3 => death(socket),
        4 => {
            let error = r#"{"type":"error","code":"BAD_ARGUMENT","message":"no"}"#;
            let _ = socket.send(Message::text(error));
            death(socket);
        }
        _ => while socket.read().is_ok() {},
    }
}

fn lingers(mut socket: WebSocket<TcpStream>) {
    while socket.read().is_ok() {}
}

fn closes(mut socket: WebSocket<TcpStream>) {
    let _ = socket.get_mut().read(&mut [0; 64]);
    let _ = socket.close(Some(CloseFrame { code: 1011.into(), reason: "oops".into() }));
    lingers(socket);
}

fn half_closes(mut socket: WebSocket<TcpStream>) {
    let _ = socket.get_mut().read(&mut [0; 64]);
    let _ = socket.get_mut().shutdown(Shutdown::Write);
    lingers(socket);
}

/// Over unread bytes.
fn resets(socket: WebSocket<TcpStream>) {
    drop(socket);
}

fn writes(mut socket: WebSocket<TcpStream>, bytes: &[u8]) {
    let _ = socket.read();
    let _ = socket.get_mut().write_all(bytes);
    lingers(socket);
}

fn masks(socket: WebSocket<TcpStream>) {
    writes(socket, &[0x81, 0x82, 1, 2, 3, 4, b'{' ^ 1, b'}' ^ 2]);
}

fn sends_bad_utf8(socket: WebSocket<TcpStream>) {
    writes(socket, &[0x81, 0x02, 0xff, 0xfe]);
}

fn sends_too_much(socket: WebSocket<TcpStream>) {
    writes(socket, &[0x81, 127, 0, 0, 0, 0, 0x40, 0, 0, 0]);
}

/// The pong comes behind the close frame: a ping is answered until the client's own close frame has come.
fn closes_before_its_pong(mut socket: WebSocket<TcpStream>) {
    let _ = socket.read();
    // The library sends the pong with its next read.
    while !matches!(socket.read(), Ok(Message::Ping(_)) | Err(_)) {}
    let _ = socket.get_mut().write_all(&[0x88, 0x02, 0x03, 0xe8]);
    lingers(socket);
}

/// A frame of which the other half never comes.
fn ends_within_a_frame(mut socket: WebSocket<TcpStream>) {
    let _ = socket.read();
    let _ = socket.get_mut().write_all(&[0x81, 0x0a, b'{']);
    let _ = socket.get_mut().shutdown(Shutdown::Write);
    lingers(socket);
}

const MINICODEX: &str = r#"
family: ends
cases:
  - name: never
    title: Nothing comes
    settle: false
    steps:
      - { open: alice, opening: none }
      - raw: die
      - { never: error, window: 20s }
  - name: sent-raw
    title: Nothing comes on a connection below the messages
    settle: false
    steps:
      - { open: alice, opening: none }
      - frame: { opcode: text, payload: die }
      - { never: error, window: 20s }
  - name: unawaited
    title: The end of a connection that no step looks at any more
    settle: false
    steps:
      - { open: alice, opening: none }
      - { open: bob, opening: none }
      - raw: die
      - { never: error, as: bob, window: 1s }
  - name: abandoned
    title: A connection that the client leaves when it is dead
    settle: false
    steps:
      - { open: alice, opening: none }
      - { open: bob, opening: none }
      - raw: die
      - { never: error, as: bob, window: 1s }
      - drop: alice
  - name: never-closed
    title: The connection stays
    settle: false
    steps:
      - { open: alice, opening: none }
      - raw: die
      - { never: [error, close], window: 20s }
  - name: closed
    title: The connection is closed
    settle: false
    steps:
      - { open: alice, opening: none }
      - raw: die
      - expect: close
      - { never: error }
  - name: tolerated
    title: What comes may be missed, and is looked at
    settle: false
    steps:
      - { open: alice, opening: none }
      - raw: die
      - { expect: error, warns: true, save: { code: /code } }
      - check: { properties: { code: { const: BAD_ARGUMENT } } }
      - assert: { equal: ["{{code}}", BAD_ARGUMENT] }
  - name: left-out
    title: A step that is left out gives no value, which is no mistake of the case
    settle: false
    steps:
      - { open: alice, opening: none }
      - raw: die
      - { expect: error, warns: true, save: { code: /code } }
      - { expect: error, when: { equal: ['{{code|"none"}}', BAD_ARGUMENT] }, save: { more: /message } }
      - assert: { equal: ["{{more}}", "no"] }
  - name: forbidden
    title: A frame that RFC 6455 forbids ends the connection
    settle: false
    steps:
      - { open: alice, opening: none }
      - frame: { opcode: text, rsv: 1, payload: die }
      - expect: close
  - name: either
    title: An error, and the connection may be closed
    settle: false
    steps:
      - { open: alice, opening: none }
      - { open: bob, opening: none }
      - raw: "err "
      - expect: [error, close]
      - { never: error, as: bob, window: 1s }
"#;

const CODELAB: &str = r#"
family: ends
cases:
  - name: silence
    title: Silence settles
    steps:
      - open: alice
      - raw: die
      - settle: alice
  - name: quiet
    title: Nothing comes until it is quiet
    settle: false
    steps:
      - open: alice
      - raw: die
      - never: assistant_message
  - name: may-close
    title: The server may close the connection
    settle: false
    steps:
      - open: alice
      - raw: die
      - { alive: alice, codes: [1000] }
  - name: at-the-end
    title: The case settles
    steps:
      - open: alice
      - raw: die
"#;

/// Runs one case against a server that dies so; gives the exit code and what was shown.
fn run(protocol: &str, death: Death, case: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = if protocol == "codelab" { CODELAB } else { MINICODEX };
    std::fs::write(folder.path().join("ends.yaml"), scenario).expect("written");
    let url = server(death);
    let case = format!("ends/{case}");
    let arguments = ["run", protocol, "--url", &url, "--scenario", "ends.yaml", "--case", &case];
    let output = frameproof(folder.path(), &[&arguments[..], &["--quiet-period", "300ms"]].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// Runs the rows side by side: protocol, how the server dies, case, exit code, what is shown.
fn table(rows: &'static [(&'static str, Death, &'static str, i32, &'static [&'static str])]) {
    let runs: Vec<_> = rows
        .iter()
        .map(|(protocol, death, case, code, expected)| {
            std::thread::spawn(move || {
                let (found, shown) = run(protocol, *death, case);
                assert_eq!(found, Some(*code), "{case}, {expected:?}\n{shown}");
                for expected in *expected {
                    assert!(shown.contains(expected), "{case}: {expected} is not in\n{shown}");
                }
            })
        })
        .collect();
    for run in runs {
        run.join().expect("the run is as expected");
    }
}

const CLOSED: &str = "the server closed the connection with code 1011, which no step awaited";
const ENDED: &str = "the server ended the TCP stream without a close frame, which no step awaited";
const RESET: &str = "the connection was reset, which no step awaited";
const NO_FRAME: &str = "the server sent bytes that are not a WebSocket frame";
const TOO_LONG: &str = "the server sent a message longer than the limit";

#[test]
fn nothing_passes_on_a_connection_that_ended_unasked() {
    table(&[
        ("minicodex", closes, "never", 1, &[CLOSED, "ends.yaml:10"]),
        ("minicodex", half_closes, "never", 1, &[ENDED]),
        ("minicodex", ends_within_a_frame, "never", 1, &[ENDED]),
        ("minicodex", resets, "never", 1, &[RESET]),
        ("minicodex", half_closes, "sent-raw", 1, &[ENDED]),
        ("minicodex", closes, "sent-raw", 1, &[CLOSED]),
        ("minicodex", closes, "unawaited", 1, &[CLOSED]),
        ("minicodex", resets, "unawaited", 1, &[RESET]),
        ("minicodex", half_closes, "abandoned", 1, &[ENDED]),
        ("codelab", closes, "silence", 1, &[CLOSED]),
        ("codelab", half_closes, "silence", 1, &[ENDED]),
        ("codelab", resets, "quiet", 1, &[RESET]),
        ("codelab", closes, "at-the-end", 1, &[CLOSED]),
    ]);
}

#[test]
fn only_a_close_frame_closes() {
    table(&[
        ("minicodex", closes, "closed", 0, &["1 passed"]),
        ("minicodex", half_closes, "closed", 1, &["without a close frame, where a close frame was expected"]),
        ("minicodex", resets, "closed", 1, &["the connection was reset, where a close frame was expected"]),
        ("minicodex", closes, "never-closed", 1, &["with code 1011, which is not allowed here"]),
        ("minicodex", half_closes, "never-closed", 1, &["without a close frame, which is not allowed here"]),
        ("minicodex", closes, "tolerated", 0, &["with code 1011 instead of sending error", "1 warned"]),
        ("minicodex", closes, "left-out", 0, &["with code 1011 instead of sending error", "1 warned"]),
        ("minicodex", closes, "either", 0, &["1 passed"]),
        ("minicodex", closes, "forbidden", 0, &["1 passed"]),
        ("minicodex", half_closes, "forbidden", 0, &["1 passed"]),
        ("codelab", closes_before_its_pong, "may-close", 0, &["1 passed"]),
    ]);
}

#[test]
fn a_broken_frame_fails_the_case_whatever_it_waits_for() {
    const TRN: &str = "MC-TRN-1 MUST";
    table(&[
        ("minicodex", masks, "never", 1, &[NO_FRAME, TRN, "masked"]),
        ("minicodex", masks, "closed", 1, &[NO_FRAME, TRN]),
        ("minicodex", masks, "unawaited", 1, &[NO_FRAME, TRN]),
        ("minicodex", masks, "sent-raw", 1, &[NO_FRAME, TRN, "(RFC 6455, 5.1)"]),
        ("minicodex", sends_bad_utf8, "never", 1, &[NO_FRAME, TRN]),
        ("minicodex", sends_bad_utf8, "closed", 1, &[NO_FRAME, TRN]),
        ("minicodex", sends_too_much, "never", 1, &[TOO_LONG, TRN]),
        ("minicodex", sends_too_much, "closed", 1, &[TOO_LONG, TRN]),
        ("codelab", masks, "silence", 1, &[NO_FRAME, "CL-TRN-5"]),
        ("codelab", sends_too_much, "at-the-end", 1, &[TOO_LONG, "CL-TRN-5"]),
    ]);
}
