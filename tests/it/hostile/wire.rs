//! What a server writes is told as it was written.

use std::path::Path;

use super::process::{Measured, measured};
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

/// Connections that come before the one that breaks the framing: the two with which a run begins, and that of a first case.
const BEFORE: usize = 3;

/// What a run against such a server says: on the console, and in each of its files.
fn told_by(folder: &Path, url: &str, further: &[&str]) -> (Measured, Vec<(&'static str, String)>) {
    let files = ["t.ndjson", "j.xml", "e.jsonl", "h.html"];
    let reports = ["--trace", files[0], "--junit", files[1], "--json", files[2], "--html", files[3]];
    let run = ["run", "minicodex", "handshake/*", "--url", url];
    let ran = measured(folder, &[&run[..], &reports, further].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.shown());
    let read = |name| (name, std::fs::read_to_string(folder.join(name)).expect("written"));
    // The recording says the same as the run that made it.
    let checked = measured(folder, &["check", files[0], "--protocol", "minicodex"]);
    assert_eq!(checked.code, Some(1), "{}", checked.shown());
    (ran, files.map(read).into_iter().chain([("check", checked.out)]).collect())
}

fn is_named(name: &str, told: &str, ran: &Measured, files: &[(&str, String)]) {
    assert!(ran.out.contains(told), "{name}: {told}: {}", ran.out);
    for (file, text) in files {
        match *file {
            "t.ndjson" => {
                assert!(text.contains(r#""kind":"raw""#), "{name}: {text}");
                assert!(!text.contains(r#""base64":"""#), "{name}: the bytes are shown: {text}");
                assert!(text.contains(told), "{name}: {told}: {file}: {text}");
                let answered = text.contains("\"code\":1002");
                assert!(!answered, "{name}: what this side answers is not what came: {text}");
            }
            _ => assert!(text.contains(told), "{name}: {told}: {file}: {text}"),
        }
    }
}

#[test]
fn what_breaks_the_framing_is_named_on_every_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes, told) in breaches() {
        let url = Behaviour { first: bytes.clone(), each: Vec::new(), then: Then::Reads }.serve();
        let (ran, files) = told_by(folder.path(), &url, &["--fail-fast"]);
        is_named(name, &told, &ran, &files);
    }
}

#[test]
fn what_breaks_the_framing_later_is_named_too() {
    let rows = breaches();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for part in rows.chunks(rows.len().div_ceil(4)) {
            threads.push(scope.spawn(move || {
                let folder = tempfile::tempdir().expect("a folder");
                for (name, bytes, told) in part {
                    let url = Behaviour::says(bytes.clone()).serve_after(BEFORE, "");
                    let (ran, files) = told_by(folder.path(), &url, &["-j", "1", "--timeout-scale", "0.1"]);
                    is_named(name, told, &ran, &files);
                    assert!(
                        ran.out.contains("has sent nothing"),
                        "{name}: the first case is mute: {}",
                        ran.out
                    );
                }
            }));
        }
        threads.into_iter().for_each(|thread| thread.join().expect("each is named"));
    });
}

/// A heartbeat behind a close frame.
fn behind_a_close() -> Vec<u8> {
    let beat = said(r#"{"type":"heartbeat","interval_ms":1000}"#);
    [frame(8, &1000u16.to_be_bytes()), beat].concat()
}

#[test]
fn data_after_a_close_is_named_by_every_command() {
    let told = "a frame follows a close frame (RFC 6455, 5.5.1)";
    let folder = tempfile::tempdir().expect("a folder");
    // At once, and as the answer to whatever the client says.
    for url in [Behaviour::says(behind_a_close()).serve(), Behaviour::answers(behind_a_close()).serve()] {
        let server = ["minicodex", "--url", &url];
        for command in [
            &["run", "handshake/*", "--trace", "t.ndjson"][..],
            &["doctor"],
            &["fuzz", "--iterations", "8"],
            &["explore", "--walks", "2"],
        ] {
            let (name, further) = command.split_first().expect("a name");
            let ran = measured(folder.path(), &[&[*name], &server[..], further].concat());
            assert_eq!(ran.code, Some(1), "{command:?}: {}", ran.shown());
            assert!(ran.out.contains(told), "{command:?}: {}", ran.shown());
        }
        let ran = measured(folder.path(), &["check", "t.ndjson", "--protocol", "minicodex"]);
        assert_eq!(ran.code, Some(1), "{}", ran.shown());
        assert!(ran.out.contains(told), "{}", ran.out);
    }
}

/// One that somebody else has made has the messages, and no raw bytes.
#[test]
fn data_after_a_close_is_named_in_any_recording() {
    let told = "a frame follows a close frame (RFC 6455, 5.5.1)";
    let folder = tempfile::tempdir().expect("a folder");
    let beat = r#"{"t_ms":2,"client":"a","dir":"recv","text":"{\"type\":\"heartbeat\",\"v\":\"1.0.0\",\"interval_ms\":1000}"}"#;
    let close = r#"{"t_ms":1,"client":"a","dir":"recv","kind":"close","code":1000}"#;
    let answer = close.replace("recv", "send");
    let opened = r#"{"t_ms":2,"client":"a","dir":"send","kind":"open","url":"ws://h/"}"#;
    for (lines, is_wrong) in [
        (&[beat, close][..], false),
        (&[close, beat], true),
        (&[close, &answer, beat], true),
        (&[close, close], true),
        // The client's own close frame forbids the server nothing.
        (&[&answer, beat, close], false),
        // Another connection.
        (&[close, opened, beat], false),
    ] {
        std::fs::write(folder.path().join("t.ndjson"), lines.join("\n")).expect("written");
        let ran = measured(folder.path(), &["check", "t.ndjson", "--protocol", "minicodex"]);
        assert_eq!(ran.out.contains(told), is_wrong, "{lines:?}: {}", ran.shown());
        assert!(!is_wrong || ran.code == Some(1), "{lines:?}: {}", ran.shown());
    }
}

#[test]
fn an_extension_that_was_not_asked_for_is_named_on_every_connection() {
    const EXTENSION: &str = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
    let folder = tempfile::tempdir().expect("a folder");
    let told = "it agrees to an extension that was not asked for: permessage-deflate (RFC 6455, 4.1)";
    for (before, further) in [(0, &["--fail-fast"][..]), (BEFORE, &["-j", "1", "--timeout-scale", "0.1"])] {
        // What an extension makes of the bytes behind the answer is nobody's business.
        let behind = Behaviour::says(vec![0xc1, 0]).serve_after(before, EXTENSION);
        let (ran, files) = told_by(folder.path(), &behind, further);
        is_named(&format!("after {before}"), told, &ran, &files);
        assert!(!ran.out.contains("a reserved bit is set"), "{}", ran.out);
    }
}
