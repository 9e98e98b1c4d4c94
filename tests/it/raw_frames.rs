//! Below the messages: what the suite writes there reaches a server byte for byte, and a server that does not go by
//! RFC 6455 is found out.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use crate::support::{Served, frameproof, text};
use frameproof::trace::Payload;
use frameproof::wire::frame::Frame;
use frameproof::wire::{Messages, Writer};

const WELCOME: &str = r#"{"type":"welcome","room":"r1"}"#;

/// A protocol of its own: the hand-made servers speak it in a line.
const PROTOCOL: &str = r"
asyncapi: 3.0.0
info: { title: Echo, version: 1.0.0 }
channels:
  chat:
    address: /
    messages:
      hello: { $ref: '#/components/messages/hello' }
      welcome: { $ref: '#/components/messages/welcome' }
operations:
  commands: { action: receive, channel: { $ref: '#/channels/chat' }, messages: [{ $ref: '#/channels/chat/messages/hello' }] }
  events: { action: send, channel: { $ref: '#/channels/chat' }, messages: [{ $ref: '#/channels/chat/messages/welcome' }] }
components:
  messages:
    hello:
      payload: { type: object, required: [type], properties: { type: { const: hello }, room: { type: string } } }
      examples: [{ payload: { type: hello } }]
    welcome:
      payload: { type: object, required: [type], properties: { type: { const: welcome }, room: { type: string } } }
      examples: [{ payload: { type: welcome, room: r1 } }]
x-frameproof:
  discriminator: /type
  frames: { object: [E-1], message: [E-1] }
  session: { id: [{ on: welcome, at: /room }], join: { field: /room } }
  openings: { hello: [{ send: { type: hello } }, { expect: welcome }] }
  turn: { start: { type: hello }, end: welcome, covers: [E-1] }
";
const REQUIREMENTS: &str = "requirements:\n  - { id: E-1, level: MUST, area: schema, text: Everything is a message., source: here }\n";

/// How a hand-made server misbehaves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// It answers unmasked frames like any other.
    TakesUnmasked,
    /// It never answers a ping.
    NoPong,
    /// It closes without a code.
    ClosesWithoutCode,
    /// It hangs up without a close frame.
    HangsUp,
    /// It masks its own frames.
    Masks,
    /// It answers a close, and speaks on behind that.
    SpeaksBehindClose,
    /// It pings once, in the middle of what the client writes second, and wants its pong.
    Pings,
}

/// Serves every connection, in threads of their own, until the test ends.
fn server(way: Way) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || drop(serve(stream, way)));
        }
    });
    url
}

fn upgrade(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap_or_default();
    let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.trim().as_bytes());
    write!(
        stream,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    )
}

fn serve(mut stream: TcpStream, way: Way) -> std::io::Result<()> {
    upgrade(&mut stream)?;
    let out = |opcode, payload: &[u8]| Frame { mask: None, ..Frame::new(opcode, payload) }.encode();
    let mut messages = Messages::new(Writer::Client, 1 << 20);
    let mut chunk = [0; 4096];
    let mut count = 0;
    let mut pinged = false;
    loop {
        let length = stream.read(&mut chunk)?;
        if length == 0 {
            return Ok(());
        }
        let mut bytes = &chunk[..length];
        if way == Way::TakesUnmasked && bytes[0] == 0x81 && bytes[1] & 0x80 == 0 {
            stream.write_all(&out(1, WELCOME.as_bytes()))?;
            bytes = &[];
        }
        if way == Way::Pings && count > 0 && !pinged {
            pinged = true;
            stream.write_all(&out(9, b"are you there"))?;
        }
        messages.feed(bytes);
        loop {
            match messages.take() {
                Ok(None) => break,
                Ok(Some(Payload::Text(_))) => {
                    count += 1;
                    match way {
                        Way::ClosesWithoutCode if count == 2 => stream.write_all(&out(8, b""))?,
                        Way::Masks if count == 2 => stream.write_all(&Frame::new(1, WELCOME).encode())?,
                        _ => stream.write_all(&out(1, WELCOME.as_bytes()))?,
                    }
                }
                Ok(Some(Payload::Ping(bytes))) if way != Way::NoPong => stream.write_all(&out(10, &bytes))?,
                Ok(Some(Payload::Pong(bytes))) if way == Way::Pings => {
                    assert_eq!(&bytes[..], b"are you there");
                    stream.write_all(&out(1, br#"{"type":"welcome","room":"ponged"}"#))?;
                }
                Ok(Some(Payload::Close { .. })) if way == Way::SpeaksBehindClose => {
                    stream.write_all(&[out(8, b""), out(1, WELCOME.as_bytes())].concat())?;
                    while stream.read(&mut chunk)? > 0 {}
                    return Ok(());
                }
                Ok(Some(Payload::Close { .. })) => {
                    // The answer to its own close is the end.
                    if way != Way::ClosesWithoutCode {
                        stream.write_all(&out(8, b""))?;
                    }
                    return Ok(());
                }
                Ok(Some(_)) => {}
                Err(_) if way == Way::HangsUp => return Ok(()),
                Err(_) => {
                    stream.write_all(&out(8, &1002u16.to_be_bytes()))?;
                    while stream.read(&mut chunk)? > 0 {}
                    return Ok(());
                }
            }
        }
    }
}

fn folder(steps: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let protocol = folder.path().join("echo");
    std::fs::create_dir(&protocol).expect("a folder");
    std::fs::write(protocol.join("asyncapi.yaml"), PROTOCOL).expect("written");
    std::fs::write(protocol.join("requirements.yaml"), REQUIREMENTS).expect("written");
    let scenario = format!(
        "family: f\ncases:\n  - name: c\n    title: It holds\n    settle: false\n    steps:\n{steps}"
    );
    std::fs::write(folder.path().join("s.yaml"), scenario).expect("written");
    folder
}

/// A run whose waits are `scale` times as long: short where nothing will come, long where a loaded machine may be late.
fn run(folder: &Path, url: &str, scale: &str) -> (Option<i32>, String) {
    let arguments =
        ["run", "--protocol", "echo", "--scenario", "s.yaml", "--url", url, "--timeout-scale", scale];
    let output = frameproof(folder, &arguments);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

const UNMASKED: &str = "
      - open: alice
      - frame: { opcode: text, masked: false, payload: { type: hello } }
      - expect: close
      - check: { properties: { code: { const: 1002 } } }
        warns: true
";
const PING: &str = "
      - open: alice
      - frame: { opcode: text, fragment: 4, payload: { type: hello } }
      - expect: welcome
      - ping: there
";
const SECOND: &str = "
      - open: alice
      - frame: { opcode: text, piece: 1, payload: { type: hello } }
      - expect: [welcome, close]
      - check: { properties: { code: { const: 1000 } } }
        warns: true
";
const HALF: &str = "
      - open: alice
      - frame: { opcode: text, payload: { type: hello }, cut: 9 }
      - never: close
        window: 20ms
      - bytes: 44 47 9f 03 07 15 92 44 51 5b 95 03 40
      - expect: welcome
        with: { room: ponged }
        past-errors: true
";

/// On each connection that a case closes, not only on the last.
const CLOSES: &str = "
      - open: alice
      - close: alice
";

#[test]
fn a_server_that_does_not_go_by_the_rfc_is_found_out() {
    let table: &[(Way, &str, i32, &str)] = &[
        (Way::NoPong, UNMASKED, 0, "1 passed"),
        (Way::TakesUnmasked, UNMASKED, 1, "close did not come within"),
        (Way::HangsUp, UNMASKED, 0, "without a close frame, where code 1002 was expected"),
        (Way::HangsUp, PING, 0, "1 passed"),
        (Way::NoPong, PING, 1, "no pong repeated the ping's text"),
        (Way::HangsUp, SECOND, 0, "1 passed"),
        (Way::ClosesWithoutCode, SECOND, 0, "without a code, where code 1000 was expected"),
        (Way::SpeaksBehindClose, CLOSES, 1, "a frame follows a close frame (RFC 6455, 5.5.1)"),
        (Way::Masks, PING, 1, "bytes that are not a WebSocket frame"),
        // A pong that waited until the half frame was whole.
        (Way::Pings, HALF, 0, "1 passed"),
    ];
    for (way, steps, code, expected) in table {
        let folder = folder(steps.trim_start_matches('\n'));
        let scale = if *code == 0 { "10" } else { "0.4" };
        let (status, shown) = run(folder.path(), &server(*way), scale);
        assert_eq!(status, Some(*code), "{way:?} {steps}\n{shown}");
        assert!(shown.contains(expected), "{way:?}: {expected} is not in\n{shown}");
    }
}

/// What is asked behind a hang-up that the server has noticed is asked afterwards: a fault of later connections shows each time.
#[test]
fn a_hang_up_that_is_noticed_comes_before_what_follows() {
    let folder = tempfile::tempdir().expect("a folder");
    let case = "family: f\ncases:\n  - name: c\n    title: A case.\n    steps:\n      - open: alice\n      \
        - { frame: { opcode: text, payload: '{}', cut: 3 }, as: alice }\n      \
        - { drop: alice, noticed: true }\n      - { open: bob, covers: [TV-ERR-9] }\n";
    std::fs::write(folder.path().join("c.yaml"), case).expect("written");
    let run = |fault: &[&str]| {
        let arguments = [&["run", "tinyvex", "--scenario", "c.yaml", "--repeat", "8"], fault].concat();
        let output = frameproof(folder.path(), &arguments);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (code, shown) = run(&["--fault", "fuzz-closed-door-behind-half-a-frame"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("TV-ERR-9") && !shown.to_lowercase().contains("flaky"), "{shown}");
    let (code, shown) = run(&[]);
    assert_eq!(code, Some(0), "{shown}");

    std::fs::write(folder.path().join("c.yaml"), case.replace("drop: alice", "close: alice"))
        .expect("written");
    let (code, shown) = run(&[]);
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("noticed"), "{shown}");
}

#[test]
fn mistakes_in_frames_have_places() {
    let steps = "
      - open: alice
      - frame: { opcode: txt }
      - frame: { opcode: 16 }
";
    let first = folder(steps.trim_start_matches('\n'));
    let (status, shown) = run(first.path(), "ws://127.0.0.1:1/", "0.4");
    assert_eq!(status, Some(2), "{shown}");
    assert!(shown.contains("s.yaml:8:"), "{shown}");
    let steps = "
      - open: alice
      - frame: { opcode: ping, rsv: 3, between: { opcode: ping, hex: f } }
      - bytes: 8x
      - frame: { opcode: text, payload: '{{nope}}' }
      - frame: { opcode: text, length-bits: 12 }
        within: 1s
";
    let second = folder(steps.trim_start_matches('\n'));
    let (status, shown) = run(second.path(), "ws://127.0.0.1:1/", "0.4");
    assert_eq!(status, Some(2), "{shown}");
    for part in [
        "`between` needs fragments",
        "odd number of hexadecimal digits",
        "s.yaml:9:16",
        "undefined variable `nope`",
        "a length has 7, 16 or 64 bits, not 12",
        "`within` does not go with `frame`",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
}

#[test]
fn what_is_sent_into_half_a_frame_is_the_case_s_mistake() {
    let steps = "
      - open: alice
      - frame: { opcode: text, payload: { type: hello }, cut: 3 }
      - send: { type: hello }
";
    let folder = folder(steps.trim_start_matches('\n'));
    let (status, shown) = run(folder.path(), &server(Way::HangsUp), "10");
    assert_eq!(status, Some(3), "{shown}");
    assert!(shown.contains("`alice` has written half a frame"), "{shown}");
}

#[test]
fn the_trace_has_the_bytes_and_the_messages_that_they_make() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Served::start(&["minicodex"]);
    let arguments = ["run", "minicodex", "--url", &server.url, "--case", "transport/fragments"];
    let output = frameproof(folder.path(), &[&arguments[..], &["--trace", "t.ndjson"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let trace = std::fs::read_to_string(folder.path().join("t.ndjson")).expect("a trace");
    assert_eq!(trace.matches(r#""kind":"raw""#).count(), 1, "{trace}");
    assert_eq!(
        trace.matches(r#"\"get_snapshot\",\"include_transcript_window\":true,\"req_id\":\"q1\""#).count(),
        1,
        "the message, once: {trace}"
    );
    let output = frameproof(folder.path(), &["check", "t.ndjson", "--protocol", "minicodex"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn the_reference_servers_survive_every_kind_of_frame_that_the_fuzzer_knows() {
    let commands = [
        ("agentloop", serde_json::json!({ "id": "{{uuid}}", "type": "get_context_info" })),
        ("codelab", serde_json::json!({ "type": "user_message", "content": "{{cue}}", "role": "user" })),
        ("codex", serde_json::json!({ "id": "{{uuid}}", "method": "thread/loaded/list" })),
        ("codey", serde_json::json!({ "type": "Ping" })),
        ("minicodex", serde_json::json!({ "type": "get_snapshot" })),
        (
            "tinyvex",
            serde_json::json!({ "jsonrpc": "2.0", "id": "{{uuid}}", "method": "tinyvex/ping", "params": { "t": 1 } }),
        ),
    ];
    for (protocol, command) in commands {
        let folder = tempfile::tempdir().expect("a folder");
        let mut cases = Vec::new();
        let mut throw = 7;
        for kind in frameproof::fuzz::generate::frames::KINDS {
            for round in 0..2 {
                let mut below = |bound: usize| {
                    throw = (throw * 31 + 17) % 10_007;
                    throw % bound.max(1)
                };
                let input = frameproof::fuzz::generate::frames::input("alice", kind, &command, &mut below);
                let mut steps = vec![serde_json::json!({ "open": "alice" })];
                steps.extend(input.steps());
                // Somebody else is served as ever.
                steps.push(serde_json::json!({ "open": "bob", "session": "other" }));
                steps.push(serde_json::json!({ "ping": "there", "as": "bob" }));
                cases.push(serde_json::json!({
                    "name": format!("{kind}-{round}"), "title": kind, "steps": steps, "turn": [{ "say": ["hi"] }],
                }));
            }
        }
        let scenario = serde_json::json!({ "family": "wire", "cases": cases }).to_string();
        std::fs::write(folder.path().join("s.yaml"), scenario).expect("written");
        let output = frameproof(folder.path(), &["run", protocol, "--scenario", "s.yaml", "--strict"]);
        let failed: Vec<String> = text(&output.stdout)
            .lines()
            .filter(|line| {
                line.starts_with("FAIL") || line.starts_with("ERROR") || line.starts_with("conformant")
            })
            .map(str::to_owned)
            .collect();
        assert_eq!(output.status.code(), Some(0), "{protocol}: {failed:#?}{}", text(&output.stderr));
        assert!(
            failed[0].contains(&format!("{} passed", 2 * frameproof::fuzz::generate::frames::KINDS.len())),
            "{failed:?}"
        );
    }
}
