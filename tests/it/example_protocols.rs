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
    assert!(output.status.success() && cases.ends_with("43 cases\n"), "{cases}{errors}");
    assert!(!errors.contains("known.yaml"), "{errors}");
    let folder = tempfile::tempdir().expect("a folder");
    for (broken, trace) in GRAPHQL.iter().chain(CROSSED) {
        judged(
            folder.path(),
            &example,
            &recorded(trace.split("; "), message),
            Some(*broken).filter(|id| !id.is_empty()),
        );
    }
}

/// Recordings, and which requirement each breaks. The steps are a millisecond apart unless they have a time.
const GRAPHQL: &[(&str, &str)] = &[
    (
        "",
        "open; -> init; <- ack; -> query a; -> stream b; <- next b; <- next a; <- next b; <- complete a; <- next b; <- complete b",
    ),
    ("GW-MSG-3", "open; -> init; <- ack; -> query a; <- next c"),
    ("", "open; -> init; <- ack; -> ping; @900 <- pong"),
    ("GW-PNG-1", "open; -> init; <- ack; -> ping; @1100 <- pong"),
    ("GW-PNG-2", "open; -> ping; <- pong; -> pong; <- close 4401 Unauthorized"),
    ("GW-PNG-2", "open; -> init; <- ack; -> pong; <- close 4400 nobody asked"),
    // The beginning of a connection.
    ("GW-INI-5", "open; <- ack"),
    ("GW-INI-5", "open; -> init; <- ack; <- ack"),
    ("", "open; @3900 <- close 4408 Connection initialisation timeout"),
    ("GW-INI-2", "open; @4100 <- close 4408 Connection initialisation timeout"),
    ("GW-INI-2", "open; -> ping; <- pong; @4100 <- close 1000"),
    ("GW-INI-2", "open; @3900 <- close 4408 too late"),
    ("GW-INI-2", "open; -> init; <- ack; @3000 <- close 4408 Connection initialisation timeout"),
    ("", "open; -> init; <- ack; -> init; <- close 4429 Too many initialisation requests"),
    ("GW-INI-3", "open; -> init; <- ack; -> init; <- close 4400 again"),
    ("GW-INI-3", "open; -> init; <- ack; -> init; <- close 4429 again"),
    ("GW-INI-3", "open; <- close 4429 Too many initialisation requests"),
    ("", "open; -> init; <- close 4403 Forbidden"),
    ("WARN GW-INI-4", "open; -> init; <- close 1008 Forbidden"),
    ("WARN GW-INI-4", "open; -> init; <- close 4403 wrong token"),
    // Operations.
    ("GW-OPN-1", "open; <- next a"),
    ("", "open; -> query a; <- close 4401 Unauthorized"),
    ("GW-OPN-1", "open; -> query a; <- close 4400 init first"),
    ("GW-OPN-1", "open; -> query a; <- close 4401 init first"),
    ("GW-OPN-2", "open; -> init; <- ack; <- close 4409 Subscriber for a already exists"),
    (
        "GW-OPN-2",
        "open; -> init; <- ack; -> stream s; <- next s; -> stream s; -> query q; <- next q; <- next s",
    ),
    ("", "open; -> init; <- ack; -> query a; -> query a; <- close 4409 Subscriber for a already exists"),
    ("GW-OPN-3", "open; -> init; <- ack; -> query a; -> query a; <- close 4409"),
    ("GW-RES-5", "open; -> init; <- ack; -> query a; <- next a; <- next a; <- complete a"),
    ("", "open; -> init; <- ack; -> deferred a; <- next a; <- next a; <- complete a"),
    ("GW-RES-2", "open; -> init; <- ack; -> query a; <- error a; <- complete a"),
    ("GW-RES-3", "open; -> init; <- ack; -> query a; <- complete a; <- next a"),
    (
        "WARN GW-CAN-1",
        "open; -> init; <- ack; -> stream s; <- next s; -> complete s; -> query q; <- next q; <- next s",
    ),
    ("WARN GW-CAN-2", "open; -> init; <- ack; -> query a; -> complete a; -> query q; <- next q; <- next a"),
    (
        "GW-CAN-3",
        "open; -> init; <- ack; -> query a; <- next a; <- complete a; -> complete a; <- close 4400 over",
    ),
    ("WARN GW-CAN-4", "open; -> init; <- ack; -> complete x; <- close 4400 unknown"),
    // Invalid messages.
    ("", "open; -> init; <- ack; -> {\"type\":\"start\"}; <- close 4400 Invalid message"),
    ("GW-INV-1", "open; -> init; <- ack; -> {\"type\":\"start\"}; <- close 1003 Invalid message"),
    ("GW-INV-1", "open; -> init; <- ack; -> {\"type\":\"start\"}; @1100 <- close 4400 Invalid message"),
    ("GW-INV-1", "open; -> init; <- ack; -> {\"type\":\"start\"}; <- close 4500 TypeError"),
    (
        "GW-INV-1",
        "open; -> init; <- ack; -> {\"type\":\"subscribe\",\"id\":\"\",\"payload\":{\"query\":\"\"}}; @1500 -> ping; <- pong",
    ),
];

/// What looks wrong and is not: messages have crossed, or something else may be the reason.
const CROSSED: &[(&str, &str)] = &[
    // An earlier mistake of the client is the reason, or the server goes away.
    ("", "open; -> init; <- ack; -> {\"type\":\"start\"}; -> init; <- close 4400 Invalid message"),
    ("", "open; -> init; <- ack; -> init; <- close 1001 going away"),
    ("", "open; -> init; -> {\"type\":\"start\"}; <- ack; -> ping; <- close 4400 Invalid message"),
    ("", "open; -> init; -> query a; <- close 4403 Forbidden"),
    ("", "open; -> init; -> query a; <- ack; <- next a; <- complete a; <- close 1000"),
    ("", "open; -> init; <- ack; -> wrong a; -> {\"type\":\"start\"}; <- close 4500 Syntax Error"),
    ("", "open; -> query a; -> {\"type\":\"start\"}; <- close 4401 Unauthorized"),
    ("", "open; -> init; <- ack; -> {\"type\":\"start\"}; -> close 1000; @3000 <- close 1000"),
    (
        "",
        "open; -> init; <- ack; -> query a; <- next a; <- complete a; -> complete a; -> {}; <- close 4400 Invalid message",
    ),
    // A server may read binary messages as text, and pongs may come unasked.
    ("", "open; -> init; <- ack; -> binary; -> ping; <- pong; <- pong; @3000 <- pong"),
    // The end of an operation was on its way when the client reused or completed its id.
    (
        "",
        "open; -> init; <- ack; -> stream s; <- next s; -> stream s; <- complete s; -> query q; <- next q; <- next s",
    ),
    (
        "",
        "open; -> init; <- ack; -> stream s; <- next s; -> stream s; -> query q; <- next s; <- close 4409 Subscriber for s already exists",
    ),
    (
        "",
        "open; -> init; <- ack; -> query a; -> complete a; -> query a; <- next a; <- complete a; <- next a; <- complete a",
    ),
    ("", "open; -> init; <- ack; -> query a; <- next a; -> query a; <- complete a; <- next a; <- complete a"),
    (
        "",
        "open; -> init; <- ack; -> query a; -> complete a; -> query a; <- error a; <- next a; <- complete a",
    ),
    (
        "",
        "open; -> init; <- ack; -> stream s; -> complete s; <- next s; -> query q; <- next s; <- next q; <- complete q",
    ),
    ("", "open; -> init; <- ack; -> query a; -> complete a; <- next a; <- complete a; -> query q; <- next q"),
];

/// The lines of a recording. `text` reads a message from a name and what follows it; none: the text is sent as it is.
fn recorded<'t>(steps: impl Iterator<Item = &'t str>, text: fn(&str, &str) -> Option<Value>) -> Vec<String> {
    let mut now = 0;
    let lines = steps.map(|step| {
        let (at, step) = match step.strip_prefix('@').and_then(|step| step.split_once(' ')) {
            Some((at, step)) => (at.parse().expect("a time"), step),
            None => (now + 1, step),
        };
        now = at;
        let (dir, body) = match step.split_at_checked(3) {
            Some(("<- ", body)) => ("recv", body),
            Some(("-> ", body)) => ("send", body),
            _ => ("send", step),
        };
        let mut line = match body.split_once(' ').unwrap_or((body, "")) {
            ("open", _) => json!({ "kind": "open", "url": "ws://h/ws" }),
            ("binary", _) => json!({ "kind": "binary", "base64": "AAAA" }),
            ("close", how) => {
                let (code, reason) = how.split_once(' ').unwrap_or((how, ""));
                json!({ "kind": "close", "code": code.parse::<u16>().expect("a code"), "reason": reason })
            }
            (name, rest) => {
                json!({ "text": text(name, rest).map_or(body.to_owned(), |message| message.to_string()) })
            }
        };
        line["t_ms"] = at.into();
        line["client"] = "a".into();
        line["dir"] = dir.into();
        line.to_string()
    });
    lines.collect()
}

/// A message of graphql-transport-ws by its short name; none for one that is written out.
fn message(name: &str, id: &str) -> Option<Value> {
    let asks = |query: &str| json!({ "type": "subscribe", "id": id, "payload": { "query": query } });
    Some(match name {
        "init" => json!({ "type": "connection_init" }),
        "ack" => json!({ "type": "connection_ack" }),
        "ping" | "pong" => json!({ "type": name }),
        "query" => asks("{ hello }"),
        "deferred" => asks("{ hello ... @defer { later(ms: 1) } }"),
        "stream" => asks("subscription { count(to: 9, every: 1) }"),
        "wrong" => asks("{"),
        "complete" => json!({ "type": name, "id": id }),
        "next" => json!({ "type": name, "id": id, "payload": { "data": {} } }),
        "error" => json!({ "type": name, "id": id, "payload": [{ "message": "m" }] }),
        _ => return None,
    })
}

/// Likewise of MCP, whose server is PyPI's.
#[test]
fn the_example_of_mcp_loads_and_judges_recordings() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/mcp");
    let output = frameproof(&example, &["run", "--target", "mcp", "--list"]);
    let (cases, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && cases.ends_with("39 cases\n"), "{cases}{errors}");
    let folder = tempfile::tempdir().expect("a folder");
    let too_many = format!(
        r#"<- {{"id":3,"result":{{"completion":{{"values":[{}]}}}}}}"#,
        vec![r#""v""#; 101].join(",")
    );
    let judge = |broken: &str, steps: Vec<&str>| {
        let lines = recorded(steps.into_iter(), |text, rest| {
            let text = if rest.is_empty() { text.to_owned() } else { format!("{text} {rest}") };
            let mut message: Value = serde_json::from_str(&text).ok()?;
            message["jsonrpc"] = "2.0".into();
            Some(message)
        });
        judged(folder.path(), &example, &lines, Some(broken).filter(|id| !id.is_empty()));
    };
    for (broken, steps) in MCP {
        judge(broken, [MCP_BEGUN, *steps].concat());
    }
    judge("MP-CMP-2", [MCP_BEGUN, &[COMPLETE, &too_many][..]].concat());
    for (broken, steps) in MCP_EARLY {
        judge(broken, steps.to_vec());
    }
}

/// A session with one tool, `add`, whose result has a schema. The server declares nothing but tools, and the client nothing.
const MCP_BEGUN: &[&str] = &[
    "open",
    r#"-> {"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"n","version":"1"}}}"#,
    r#"<- {"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"n","version":"1"}}}"#,
    r#"-> {"method":"notifications/initialized"}"#,
    r#"-> {"id":2,"method":"tools/list"}"#,
    r#"<- {"id":2,"result":{"tools":[{"name":"add","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["sum"],"properties":{"sum":{"type":"integer"}}}}]}}"#,
];

const CALL: &str = r#"-> {"id":3,"method":"tools/call","params":{"name":"add","arguments":{},"_meta":{"progressToken":"t"}}}"#;
const ANSWER: &str = r#"<- {"id":3,"result":{"content":[{"type":"text","text":"{\"sum\":3}"}],"structuredContent":{"sum":3}}}"#;
const PROGRESS: &str =
    r#"<- {"method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#;
const CANCEL: &str = r#"-> {"method":"notifications/cancelled","params":{"requestId":3}}"#;
const CANCELLED: &str = r#"<- {"id":3,"error":{"code":0,"message":"cancelled"}}"#;
const READ: &str = r#"-> {"id":3,"method":"resources/read","params":{"uri":"memo://one"}}"#;
const GET: &str = r#"-> {"id":3,"method":"prompts/get","params":{"name":"n"}}"#;
const COMPLETE: &str = r#"-> {"id":3,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"n"},"argument":{"name":"a","value":""}}}"#;
const NULL: &str = r#"<- {"id":null,"error":{"code":1,"message":"m"}}"#;

/// What follows in such a session, and which requirement it breaks.
const MCP: &[(&str, &[&str])] = &[
    (
        "",
        &[
            CALL,
            PROGRESS,
            r#"<- {"method":"notifications/progress","params":{"progressToken":"t","progress":2.5}}"#,
            ANSWER,
        ],
    ),
    ("MP-RPC-1", &[CALL, ANSWER, ANSWER]),
    ("MP-RPC-1", &[r#"<- {"id":9,"result":{}}"#]),
    ("MP-RPC-2", &[CALL, r#"<- {"id":3,"result":{"content":[]},"error":{"code":1,"message":"m"}}"#]),
    ("MP-RPC-7", &[r#"-> {"method":"notifications/cancelled","params":{"requestId":2}}"#, NULL]),
    ("", &["-> no JSON", r#"-> {"method":"notifications/cancelled","params":{"requestId":2}}"#, NULL]),
    (
        "MP-RPC-9",
        &[
            r#"<- {"id":"s","method":"ping"}"#,
            r#"-> {"id":"s","result":{}}"#,
            r#"<- {"id":"s","method":"ping"}"#,
        ],
    ),
    ("MP-RPC-10", &[r#"<- {"id":5,"method":"notifications/tools/list_changed"}"#]),
    (
        "",
        &[
            r#"<- {"method":"notifications/tools/list_changed"}"#,
            r#"<- {"id":"s","method":"ping"}"#,
            r#"-> {"id":"s","result":{}}"#,
        ],
    ),
    ("MP-LIF-7", &[r#"<- {"method":"notifications/prompts/list_changed"}"#]),
    ("MP-LIF-7", &[r#"<- {"method":"notifications/resources/list_changed"}"#]),
    ("MP-LIF-7", &[r#"<- {"method":"notifications/resources/updated","params":{"uri":"memo://one"}}"#]),
    ("MP-LIF-7", &[r#"<- {"id":"s","method":"roots/list"}"#]),
    (
        "MP-LIF-7",
        &[r#"<- {"id":"s","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#],
    ),
    (
        "MP-LIF-7",
        &[r#"<- {"id":"s","method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}"#],
    ),
    ("", &[r#"-> {"id":3,"method":"ping"}"#, r#"<- {"id":3,"result":{"_meta":{}}}"#]),
    ("MP-PNG-1", &[r#"-> {"id":3,"method":"ping"}"#, r#"<- {"id":3,"result":{"pong":true}}"#]),
    ("MP-PRG-1", &[r#"<- {"method":"notifications/progress","params":{"progressToken":"u","progress":1}}"#]),
    (
        "",
        &[
            r#"-> {"id":3,"method":"ping","params":{"_meta":{"progressToken":"u"}}}"#,
            r#"<- {"method":"notifications/progress","params":{"progressToken":"u","progress":1}}"#,
        ],
    ),
    (
        "MP-PRG-2",
        &[
            CALL,
            r#"<- {"method":"notifications/progress","params":{"progressToken":"t","progress":2}}"#,
            PROGRESS,
        ],
    ),
    (
        "",
        &[
            CALL,
            r#"<- {"method":"notifications/progress","params":{"progressToken":"t","progress":2}}"#,
            ANSWER,
            r#"-> {"id":4,"method":"ping","params":{"_meta":{"progressToken":"t"}}}"#,
            PROGRESS,
        ],
    ),
    ("MP-PRG-3", &[CALL, ANSWER, PROGRESS]),
    ("MP-CAN-3", &[r#"<- {"method":"notifications/cancelled","params":{"requestId":7}}"#]),
    (
        "",
        &[
            r#"<- {"id":7,"method":"ping"}"#,
            r#"<- {"method":"notifications/cancelled","params":{"requestId":7}}"#,
        ],
    ),
    (
        "WARN MP-CAN-1",
        &[CALL, CANCEL, r#"-> {"id":4,"method":"ping"}"#, r#"<- {"id":4,"result":{}}"#, CANCELLED],
    ),
    ("", &[CALL, CANCEL, r#"-> {"id":4,"method":"ping"}"#, CANCELLED, r#"<- {"id":4,"result":{}}"#]),
    ("", &[CALL, CANCEL, r#"-> {"id":4,"method":"ping"}"#, r#"<- {"id":4,"result":{}}"#, ANSWER]),
    ("MP-LOG-4", &[r#"<- {"method":"notifications/message","params":{"level":"info","data":"d"}}"#]),
    (
        "MP-TLS-2",
        &[
            r#"-> {"id":3,"method":"tools/list"}"#,
            r#"<- {"id":3,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"a","inputSchema":{"type":"object"}}]}}"#,
        ],
    ),
    (
        "MP-TLS-6",
        &[
            CALL,
            r#"<- {"id":3,"result":{"content":[{"type":"text","text":"3"}],"structuredContent":{"sum":"three"}}}"#,
        ],
    ),
    ("MP-TLS-6", &[CALL, r#"<- {"id":3,"result":{"content":[{"type":"text","text":"3"}]}}"#]),
    ("", &[CALL, r#"<- {"id":3,"result":{"content":[{"type":"text","text":"it fails"}],"isError":true}}"#]),
    ("WARN MP-TLS-7", &[CALL, r#"<- {"id":3,"result":{"content":[],"structuredContent":{"sum":3}}}"#]),
    ("MP-RES-4", &[READ, r#"<- {"id":3,"result":{"contents":[{"uri":"memo://one","text":"t"}]}}"#]),
    ("MP-RES-5", &[READ, r#"<- {"id":3,"result":{"contents":[{"uri":"one","text":"t"}]}}"#]),
    ("MP-RES-6", &[READ, r#"<- {"id":3,"result":{"contents":[{"uri":"memo://one","blob":"AA"}]}}"#]),
    ("MP-PRM-4", &[GET, r#"<- {"id":3,"result":{"messages":[]}}"#]),
    (
        "MP-PRM-5",
        &[
            GET,
            r#"<- {"id":3,"result":{"messages":[{"role":"user","content":{"type":"image","data":"?","mimeType":"image/png"}}]}}"#,
        ],
    ),
    (
        "MP-PRM-6",
        &[
            GET,
            r#"<- {"id":3,"result":{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"memo://one","text":"t"}}}]}}"#,
        ],
    ),
    ("MP-CMP-1", &[COMPLETE, r#"<- {"id":3,"result":{"completion":{"values":[]}}}"#]),
];

/// Sessions that begin in another way.
const MCP_EARLY: &[(&str, &[&str])] = &[
    (
        "MP-TLS-9",
        &[
            "open",
            r#"-> {"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"n","version":"1"}}}"#,
            r#"<- {"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"n","version":"1"}}}"#,
            r#"-> {"id":2,"method":"tools/list"}"#,
            r#"<- {"id":2,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}}"#,
        ],
    ),
    (
        "WARN MP-LIF-4",
        &[
            "open",
            r#"-> {"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"n","version":"1"}}}"#,
            r#"<- {"id":"s","method":"roots/list"}"#,
        ],
    ),
    ("MP-LIF-5", &["open", r#"-> {"id":2,"method":"tools/list"}"#, r#"<- {"id":2,"result":{"tools":[]}}"#]),
];

/// A recording breaks this requirement (and others that it says), or none. `WARN`: it is not a MUST, and nothing else is broken.
fn judged(folder: &Path, example: &Path, lines: &[String], broken: Option<&str>) {
    fs::write(folder.join("t.ndjson"), lines.join("\n")).expect("written");
    let protocol = example.join("protocol");
    let protocol = protocol.to_str().expect("a path");
    let (code, shown) = run(folder, &["check", "t.ndjson", "--protocol", protocol]);
    let warned = broken.and_then(|id| id.strip_prefix("WARN "));
    assert_eq!(code, Some(i32::from(broken.is_some() && warned.is_none())), "{lines:#?}\n{shown}");
    assert!(shown.contains(warned.or(broken).unwrap_or_default()), "{lines:#?}\n{shown}");
    assert_eq!(shown.lines().any(|line| line.starts_with("WARN ")), warned.is_some(), "{lines:#?}\n{shown}");
}
