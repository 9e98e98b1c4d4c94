//! `get`: plain HTTP requests to the server of the connections.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};

use crate::support::{frameproof, hand, text};

/// Takes upgrades; of plain requests each path is answered in a way of its own.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/ws", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let (headers, _) = hand::request(&stream);
                let first = headers.first().cloned().unwrap_or_default();
                let path = first.split(' ').nth(1).unwrap_or_default();
                if path == "/ws" {
                    hand::accept(&mut stream, &headers, "");
                } else {
                    answer(&mut stream, path, &headers);
                }
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
            });
        }
    });
    url
}

fn answer(stream: &mut TcpStream, path: &str, headers: &[String]) {
    let has = |wanted: &str| headers.iter().any(|line| line.eq_ignore_ascii_case(wanted));
    let (status, more, body) = match path {
        "/readyz" => ("200 OK", "X-Kind: probe\r\nX-Kind: second\r\n", "ready".to_owned()),
        "/moved" => ("302 Found", "Location: /readyz\r\n", String::new()),
        "/token" if has("Authorization: Bearer t") => ("204 No Content", "", String::new()),
        "/token" => ("401 Unauthorized", "", "\u{1b}[31mwho?".to_owned()),
        "/upgrades" if headers.iter().any(|line| line.to_lowercase().starts_with("sec-websocket")) => {
            ("400 Bad Request", "", String::new())
        }
        "/upgrades" => ("200 OK", "", String::new()),
        "/long" => ("200 OK", "", "x".repeat(3 << 20)),
        "/endless" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\npartial");
            return;
        }
        "/cut" => return drop(stream.shutdown(std::net::Shutdown::Both)),
        _ => return,
    };
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
}

/// Exit code, and what is shown.
fn judged(step: &str, options: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!(
        "family: f\ncases:\n  - name: c\n    title: t\n    settle: false\n    steps:\n      - {{ {step}, covers: [MC-HS-1] }}\n"
    );
    fs::write(folder.path().join("f.yaml"), file).expect("written");
    let url = server();
    let arguments = ["run", "minicodex", "--scenario", "f.yaml", "--case", "f/c", "--url", &url];
    let output = frameproof(folder.path(), &[&arguments[..], options].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn answers_to_plain_requests_are_judged() {
    for step in [
        "get: /readyz",
        "get: /readyz, with: { status: 200, headers: { X-Kind: 'probe, second' }, body: ready }",
        "get: '/readyz', where: { properties: { body: { pattern: ^rea } } }",
        "get: /moved, with: { status: 302, headers: { location: /readyz } }",
        "get: /token, with: { status: 401 }",
        "get: /token, headers: { Authorization: Bearer t }, with: { status: 204 }",
        "get: /upgrades, headers: { Sec-WebSocket-Protocol: chat }",
        "get: /cut, with: { status: null }",
        "get: /endless, within: 300ms, with: { status: 200, body: partial }",
        "get: /long, with: { status: 200 }, where: { properties: { body: { maxLength: 400 } } }",
    ] {
        let (code, shown) = judged(step, &[]);
        assert_eq!(code, Some(0), "{step}\n{shown}");
        assert!(shown.contains("1 case, 1 passed"), "{step}\n{shown}");
    }
    for (step, said) in [
        ("get: /moved", "GET /moved was answered with HTTP 302"),
        ("get: /token", "GET /token was answered with HTTP 401"),
        ("get: /readyz, with: { status: 204 }", "GET /readyz was answered with HTTP 200"),
        (
            "get: /readyz, where: { properties: { body: { const: no } } }",
            "GET /readyz was answered with HTTP 200; /body ",
        ),
        ("get: /cut", "GET /cut was not answered: "),
        ("get: /never, within: 50ms", "GET /never was not answered: "),
    ] {
        let (code, shown) = judged(step, &[]);
        assert_eq!(code, Some(1), "{step}\n{shown}");
        assert!(shown.contains("MC-HS-1") && shown.contains(said), "{step}\n{shown}");
        assert!(!shown.contains('\u{1b}'), "{step}\n{shown}");
        // With `with` the difference is shown, otherwise all of the answer.
        let shows = ["\"ready\"", "who?", "Location", "location", "\"status\": 200"];
        assert!(
            said.contains("not answered") || shows.iter().any(|part| shown.contains(part)),
            "{step}\n{shown}"
        );
    }
}

/// What a run sends with each upgrade, it sends with other requests, too; a step can leave it out.
#[test]
fn the_headers_of_the_run_are_sent() {
    let header = ["--header", "Authorization: Bearer t"];
    let (code, shown) = judged("get: /token, with: { status: 204 }", &header);
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown) =
        judged("get: /token, headers: { Authorization: null }, with: { status: 401 }", &header);
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn what_is_no_path_or_no_answer_is_refused_by_the_loader() {
    for (step, said) in [
        ("get: readyz", "`readyz` is not a path"),
        ("get: /readyz, with: { code: 200 }", "an answer has no `code`"),
        ("get: /readyz, with: 200", "`with` of `get` must be an object"),
        ("get: '/ready z'", "a path cannot contain ' '"),
        ("get: /readyz, as: alice", "`as` does not go with `get`"),
        ("get: /readyz, where: { type: thing }", "`where` is not a JSON Schema"),
    ] {
        let (code, shown) = judged(step, &[]);
        assert_eq!(code, Some(2), "{step}\n{shown}");
        assert!(shown.contains(said) && shown.contains("f.yaml:"), "{step}\n{shown}");
    }
}

/// What never came to the server is not held against it.
#[test]
fn a_request_that_cannot_be_made_is_no_verdict() {
    let (code, shown) = judged("get: /readyz, headers: { 'no header': x }, with: { status: null }", &[]);
    assert_eq!(code, Some(3), "{shown}");
    assert!(shown.contains("GET /readyz: "), "{shown}");
    // Takes the connection by which it is found out whether there is a server, and is gone.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/ws", listener.local_addr().expect("an address"));
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        drop(listener);
        hand::upgrade(&mut stream);
    });
    let folder = tempfile::tempdir().expect("a folder");
    let file = "family: f\ncases:\n  - name: c\n    title: t\n    settle: false\n    steps:\n      - { get: /, with: { status: null } }\n";
    fs::write(folder.path().join("f.yaml"), file).expect("written");
    let arguments = ["run", "minicodex", "--scenario", "f.yaml", "--case", "f/c", "--url", &url];
    let output = frameproof(folder.path(), &arguments);
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{shown}");
    served.join().expect("served");
}
