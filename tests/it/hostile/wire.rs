//! What a server writes is told as it was written.

use super::process::measured;
use super::server::{Behaviour, Then, frame, said};

/// What a server writes, and what of it every verdict, report and trace names.
fn breaches() -> Vec<(&'static str, Vec<u8>, String)> {
    let welcome = said(r#"{"type":"heartbeat","interval_ms":1000}"#);
    let mut rows = Vec::new();
    for code in [0u16, 999, 1004, 1005, 1006, 1015, 2999, 65535] {
        rows.push((
            "a close code",
            frame(8, &code.to_be_bytes()),
            format!("a close frame has the code {code}"),
        ));
    }
    rows.push(("half a close code", frame(8, &[3]), "one byte, which is no code".to_owned()));
    let text = r#"{"type":"heartbeat","interval_ms":1000}"#.as_bytes();
    let long = u8::try_from(text.len()).expect("short");
    rows.push((
        "a length of 16 bits",
        [&[0x81, 126, 0, long], text].concat(),
        "not in its shortest form".to_owned(),
    ));
    rows.push((
        "a length of 64 bits",
        [&[0x81, 127, 0, 0, 0, 0, 0, 0, 0, long], text].concat(),
        "not in its shortest form".to_owned(),
    ));
    rows.push(("a reserved bit", [&[0xc1, long], text].concat(), "a reserved bit is set".to_owned()));
    rows.push(("a reserved opcode", vec![0x83, 0], "the opcode 3 is reserved".to_owned()));
    rows.push((
        "data after a close",
        [frame(8, &1000u16.to_be_bytes()), welcome.clone()].concat(),
        "follows a close frame".to_owned(),
    ));
    rows.push(("a masked frame", vec![0x81, 0x80, 0, 0, 0, 0], "frame is masked".to_owned()));
    rows.push(("no UTF-8", frame(1, b"\xff"), "not UTF-8".to_owned()));
    rows.push(("a fragment of nothing", frame(0, b"x"), "continues nothing".to_owned()));
    rows.push((
        "a long ping",
        [&[0x89, 126, 0, 126][..], &[0; 126]].concat(),
        "longer than 125 bytes".to_owned(),
    ));
    rows
}

#[test]
fn what_breaks_the_framing_is_named_on_every_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes, told) in breaches() {
        let url = Behaviour { first: bytes.clone(), each: Vec::new(), then: Then::Reads }.serve();
        let arguments = [
            "run",
            "minicodex",
            "handshake/*",
            "--url",
            &url,
            "--fail-fast",
            "--trace",
            "t.ndjson",
            "--junit",
            "j.xml",
        ];
        let ran = measured(folder.path(), &arguments);
        assert_eq!(ran.code, Some(1), "{name}: {}", ran.shown());
        assert!(ran.out.contains(&told), "{name}: {told}: {}", ran.out);
        let junit = std::fs::read_to_string(folder.path().join("j.xml")).expect("written");
        assert!(junit.contains(&told), "{name}: {told}: {junit}");
        let trace = std::fs::read_to_string(folder.path().join("t.ndjson")).expect("written");
        assert!(trace.contains(r#""kind":"raw""#), "{name}: {trace}");
        assert!(!trace.contains("\"code\":1002"), "{name}: what this side answers is not what came: {trace}");
    }
}

#[test]
fn an_extension_that_was_not_asked_for_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = Behaviour::says(Vec::new()).serve_with("Sec-WebSocket-Extensions: permessage-deflate\r\n");
    let ran = measured(folder.path(), &["run", "minicodex", "--url", &url]);
    assert_eq!(ran.code, Some(3), "{}", ran.shown());
    assert!(ran.err.contains("an extension that was not asked for: permessage-deflate"), "{}", ran.err);
}
