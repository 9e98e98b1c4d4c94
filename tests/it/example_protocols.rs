//! The examples of protocols of other people's servers: they load, and judge recordings. `.ci/run` runs them against the servers.

use std::fs;
use std::path::Path;

use crate::own_protocol::run;
use crate::support::{frameproof, text};
use serde_json::{Value, json};

/// The server is npm's; here the description is loaded, and recordings are judged by its invariants alone.
#[test]
fn the_example_of_graphql_loads_and_judges_recordings() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/graphql-transport-ws");
    let output = frameproof(&example, &["run", "--target", "graphql-ws", "--list"]);
    let (cases, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && cases.ends_with("35 cases\n"), "{cases}{errors}");
    assert!(!errors.contains("known.yaml"), "{errors}");
    let folder = tempfile::tempdir().expect("a folder");
    let line = |ms: u64, dir: &str, body: Value| {
        json!({ "t_ms": ms, "client": "a", "dir": dir, "text": body.to_string() }).to_string()
    };
    let event = |ms: u64, dir: &str, mut event: Value| {
        event["t_ms"] = ms.into();
        event["client"] = "a".into();
        event["dir"] = dir.into();
        event.to_string()
    };
    let opened = event(0, "send", json!({ "kind": "open", "url": "ws://h/graphql" }));
    let begun = [
        opened.clone(),
        line(1, "send", json!({ "type": "connection_init" })),
        line(2, "recv", json!({ "type": "connection_ack" })),
        line(3, "send", json!({ "type": "subscribe", "id": "a", "payload": { "query": "{ hello }" } })),
        line(
            4,
            "send",
            json!({ "type": "subscribe", "id": "b", "payload": { "query": "subscription { count }" } }),
        ),
    ];
    let next =
        |ms: u64, id: &str| line(ms, "recv", json!({ "type": "next", "id": id, "payload": { "data": {} } }));
    let over = |ms: u64, id: &str| line(ms, "recv", json!({ "type": "complete", "id": id }));
    let close = |ms: u64, code: u16, reason: &str| {
        event(ms, "recv", json!({ "kind": "close", "code": code, "reason": reason }))
    };
    let ping = |ms: u64| line(ms, "send", json!({ "type": "ping" }));
    let pong = |ms: u64| line(ms, "recv", json!({ "type": "pong" }));
    for (rest, broken) in [
        (vec![next(5, "b"), next(6, "a"), next(7, "b"), over(8, "a"), next(9, "b"), over(10, "b")], None),
        (vec![next(5, "a"), next(6, "b"), next(7, "a"), over(8, "a")], Some("GW-RES-5")),
        (vec![next(5, "c")], Some("GW-MSG-3")),
        (vec![over(5, "a"), next(6, "a")], Some("GW-RES-3")),
        (
            vec![
                line(5, "recv", json!({ "type": "error", "id": "a", "payload": [{ "message": "m" }] })),
                over(6, "a"),
            ],
            Some("GW-RES-2"),
        ),
        (vec![line(5, "recv", json!({ "type": "connection_ack" }))], Some("GW-INI-5")),
        (vec![close(5, 4409, "Subscriber for a already exists")], None),
        (vec![close(5, 4409, "")], Some("GW-OPN-3")),
        (vec![ping(5), pong(900)], None),
        (vec![ping(5), pong(1100)], Some("GW-PNG-1")),
    ] {
        let lines = [&begun[..], &rest[..]].concat();
        judged(folder.path(), &example, &lines, broken);
    }
    judged(folder.path(), &example, &[opened.clone(), close(2900, 4408, "")], None);
    judged(folder.path(), &example, &[opened.clone(), close(3100, 4408, "")], Some("GW-INI-2"));
    judged(folder.path(), &example, &[opened, next(5, "a")], Some("GW-OPN-1"));
}

/// Likewise of MCP, whose server is PyPI's.
#[test]
fn the_example_of_mcp_loads_and_judges_recordings() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/mcp");
    let output = frameproof(&example, &["run", "--target", "mcp", "--list"]);
    let (cases, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && cases.ends_with("29 cases\n"), "{cases}{errors}");
    let folder = tempfile::tempdir().expect("a folder");
    let line = |ms: u64, dir: &str, mut body: Value| {
        body["jsonrpc"] = "2.0".into();
        json!({ "t_ms": ms, "client": "a", "dir": dir, "text": body.to_string() }).to_string()
    };
    let about = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "n", "version": "1" } });
    let told = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": { "name": "n", "version": "1" } });
    let output =
        json!({ "type": "object", "required": ["sum"], "properties": { "sum": { "type": "integer" } } });
    let call = |name: &str| json!({ "name": name, "arguments": {}, "_meta": { "progressToken": "t" } });
    let begun = [
        json!({ "t_ms": 0, "client": "a", "dir": "send", "kind": "open", "url": "ws://h/ws" }).to_string(),
        line(1, "send", json!({ "id": 1, "method": "initialize", "params": about })),
        line(2, "recv", json!({ "id": 1, "result": told })),
        line(3, "send", json!({ "method": "notifications/initialized" })),
        line(4, "send", json!({ "id": 2, "method": "tools/list" })),
        line(
            5,
            "recv",
            json!({ "id": 2, "result": { "tools": [
            { "name": "add", "inputSchema": { "type": "object" }, "outputSchema": output },
        ] } }),
        ),
        line(6, "send", json!({ "id": 3, "method": "tools/call", "params": call("add") })),
    ];
    let result = |structured: Value| {
        line(20, "recv", json!({ "id": 3, "result": { "content": [], "structuredContent": structured } }))
    };
    let progress = |ms: u64, token: &str, value: f64| {
        let params = json!({ "progressToken": token, "progress": value });
        line(ms, "recv", json!({ "method": "notifications/progress", "params": params }))
    };
    let good = json!({ "sum": 3 });
    for (rest, broken) in [
        (vec![progress(7, "t", 1.0), progress(8, "t", 2.0), result(good.clone())], None),
        (vec![result(json!({ "sum": "three" }))], Some("MP-TLS-6")),
        (vec![progress(7, "t", 2.0), progress(8, "t", 1.0)], Some("MP-PRG-2")),
        (vec![progress(7, "u", 1.0)], Some("MP-PRG-1")),
        (vec![result(good.clone()), progress(30, "t", 1.0)], Some("MP-PRG-3")),
        (vec![result(good.clone()), result(good.clone())], Some("MP-RPC-1")),
        (vec![line(7, "recv", json!({ "id": 9, "result": {} }))], Some("MP-RPC-1")),
        (
            vec![line(
                7,
                "recv",
                json!({ "id": 3, "result": { "content": [] }, "error": { "code": 1, "message": "m" } }),
            )],
            Some("MP-RPC-2"),
        ),
        (
            vec![
                line(7, "send", json!({ "method": "notifications/cancelled", "params": { "requestId": 3 } })),
                line(8, "recv", json!({ "id": null, "error": { "code": 1, "message": "m" } })),
            ],
            Some("MP-RPC-7"),
        ),
    ] {
        let lines = [&begun[..], &rest[..]].concat();
        judged(folder.path(), &example, &lines, broken);
    }
}

/// A recording breaks this requirement (and others that it says), or none.
fn judged(folder: &Path, example: &Path, lines: &[String], broken: Option<&str>) {
    fs::write(folder.join("t.ndjson"), lines.join("\n")).expect("written");
    let protocol = example.join("protocol");
    let protocol = protocol.to_str().expect("a path");
    let (code, shown) = run(folder, &["check", "t.ndjson", "--protocol", protocol]);
    assert_eq!(code, Some(i32::from(broken.is_some())), "{lines:#?}\n{shown}");
    assert!(shown.contains(broken.unwrap_or_default()), "{lines:#?}\n{shown}");
}
