//! Messages that have the name of a word of scenarios, or of an event of the connection; templates that have no value yet.

use std::io::Write;

use serde_json::json;

use crate::support::{hand, own};

/// Both messages are taken as what they are.
const STEPS: &str = "      - open: alice\n      - send: { type: ask }\n      - expect: close\n        where: { required: [type] }\n        save: { kind: /type }\n      \
                     - expect: refused\n        with: { type: refused }\n      - check: { required: [type] }\n      - assert: { equal: [\"{{kind}}\", close] }\n";

#[test]
fn a_message_goes_before_an_event_of_the_same_name() {
    let folder = own::protocol(
        &["ask"],
        &["close", "refused", "done"],
        "  turn: { start: { type: ask }, end: done }\n",
    );
    let url = own::serve(|_| vec![json!({ "type": "close" }), json!({ "type": "refused" })]);
    let (code, shown) = own::run(&folder, &url, STEPS);
    assert_eq!(code, Some(0), "{shown}");
    let silent = own::serve(|_| vec![json!({ "type": "done" })]);
    let (code, shown) = own::run(&folder, &silent, STEPS);
    assert!(code == Some(1) && shown.contains("close"), "{shown}");
    // Of a message there can be several, and one has the fields of its schema.
    let twice = "      - open: alice\n      - send: { type: ask }\n        count: 2\n      - expect: refused\n        count: 2\n        within: 5s\n";
    let (code, shown) = own::run(&folder, &url, twice);
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn the_end_of_a_turn_has_its_name_alone() {
    let turn = "  turn: { start: { type: ask }, end: turn-end }\n";
    let (code, shown) = own::load(&own::protocol(&["ask"], &["turn-end"], turn));
    assert!(code != Some(0) && shown.contains("cannot be called `turn-end`"), "{shown}");
    // A client may call what it sends so.
    let (code, shown) =
        own::load(&own::protocol(&["ask", "turn-end"], &["done"], &turn.replace("turn-end", "done")));
    assert_eq!(code, Some(0), "{shown}");
}

/// An opening sends what the client has seen, in this template.
fn resuming(template: &str) -> tempfile::TempDir {
    let rest = "  turn: { start: { type: ask }, end: done }\n  log: { message: done, id: /n }\n  \
                openings: { first: [{ send: { type: ask, n: TEMPLATE } }, { expect: done }] }\n";
    let folder = own::protocol(&["ask"], &["done"], &rest.replace("TEMPLATE", template));
    let path = folder.path().join("own/asyncapi.yaml");
    let api = std::fs::read_to_string(&path).expect("the protocol");
    let typed = api.replace("{ const: ask } }", "{ const: ask }, n: { type: integer } }");
    std::fs::write(path, typed).expect("written");
    folder
}

#[test]
fn a_client_that_has_seen_nothing_sends_the_default() {
    let url = own::serve(|said| match said["n"].as_i64() {
        Some(7) => vec![json!({ "type": "done" })],
        _ => Vec::new(),
    });
    let steps = "      - open: alice\n";
    let (code, shown) = own::run(&resuming("'{{last_seen|7}}'"), &url, steps);
    assert_eq!(code, Some(0), "{shown}");
    // Without a default the author is told, and not the server blamed.
    let (code, shown) = own::run(&resuming("'{{last_seen}}'"), &url, steps);
    assert!(code == Some(3) && shown.contains("{{last_seen|0}}"), "{code:?} {shown}");
}

/// An opening may be given null in place of what it sends by default.
#[test]
fn null_is_a_value_that_no_default_replaces() {
    let folder = own::protocol(&["ask"], &["done"], "  turn: { start: { type: ask }, end: done }\n");
    let url = own::serve(|_| vec![json!({ "type": "done", "x": null, "y": false })]);
    let steps = "      - open: alice\n      - send: { type: ask }\n      - expect: done\n        save: { x: /x, y: /y, all: '' }\n      \
                 - assert: { equal: ['{{x|7}}', null] }\n      - assert: { equal: ['{{all.x|7}}', null] }\n      \
                 - assert: { equal: ['{{none|7}}', 7] }\n      - assert: { equal: ['{{x}}', null] }\n      \
                 - assert: { equal: ['{{y|7}}', false] }\n";
    let (code, shown) = own::run(&folder, &url, steps);
    assert_eq!(code, Some(0), "{shown}");
}

/// Refuses upgrades that bear a wrong token.
fn refusing() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (headers, _) = hand::request(&stream);
            if headers.iter().any(|line| line.eq_ignore_ascii_case("x-token: wrong")) {
                let _ = stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno");
                continue;
            }
            hand::accept(&mut stream, &headers, "");
            std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
        }
    });
    url
}

#[test]
fn a_refusal_can_be_expected_whatever_messages_are_called() {
    const OPEN: &str =
        "      - { open: alice, opening: none, may-refuse: true, headers: { X-Token: wrong } }\n";
    for names in [&["refused", "done"][..], &["done"]] {
        let folder = own::protocol(&["ask"], names, "  turn: { start: { type: ask }, end: done }\n");
        let url = refusing();
        for (step, code, shown) in [
            ("- refusal: alice", 0, ""),
            (
                "- refusal: alice\n        with: { status: 401, body: 'no' }\n        where: { required: [headers] }\n        \
                 save: { status: /status }\n      - assert: { equal: ['{{status}}', 401] }\n      \
                 - check: { properties: { status: { const: 401 } } }",
                0,
                "",
            ),
            ("- refusal: alice\n        with: { status: 403 }", 1, "but not as expected"),
            ("- refusal: alice\n        with: { status: 4401 }", 2, "4401 is no HTTP status"),
            ("- refusal: alice\n        with: { code: 401 }", 2, "a refusal has no `code`"),
            ("- refusal: alice\n        within: 1s", 2, "`within` does not go with `refusal`"),
            ("- refusal: bob", 2, "client `bob` was never opened"),
        ] {
            let steps = format!("{OPEN}      {step}\n");
            let (found, output) = own::run(&folder, &url, &steps);
            assert_eq!(found, Some(code), "{step}\n{output}");
            assert!(output.contains(shown), "{step}\n{output}");
        }
        let open = own::serve(|_| vec![json!({ "type": "refused" })]);
        let (code, shown) = own::run(&folder, &open, &format!("{OPEN}      - refusal: alice\n"));
        assert!(code == Some(1) && shown.contains("where a refusal was expected"), "{shown}");
    }
}
