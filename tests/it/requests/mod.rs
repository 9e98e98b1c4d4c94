//! Requests of the server, answered by scenarios and openings: two protocols as data only, and servers made by hand.

mod examples;

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use crate::docs::blocks;
use crate::support::{frameproof, hand, text};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// What is wrong with a server.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    AsksTwiceWithOneId,
    ResolvesTwice,
    ResolvesAnother,
    ResolvesNothing,
    AsksWithoutId,
    /// No flaw: it wants a pong before it says anything.
    Pings,
}

type Socket = WebSocketStream<TcpStream>;

async fn say(socket: &mut Socket, messages: &[Value]) -> Option<()> {
    for message in messages {
        socket.send(Message::text(message.to_string())).await.ok()?;
    }
    Some(())
}

async fn hear(socket: &mut Socket) -> Option<Value> {
    loop {
        if let Message::Text(text) = socket.next().await?.ok()? {
            return serde_json::from_str(&text).ok();
        }
    }
}

/// Speaks the protocol of desk.yaml. Its ids are the number 7 and the text "7", which are two.
async fn desk(stream: TcpStream, flaw: Flaw) -> Option<()> {
    let socket = &mut tokio_tungstenite::accept_async(stream).await.ok()?;
    let attest = json!({ "type": "attest", "request_id": 7 });
    let mut ask = json!({ "type": "ask", "request_id": "7", "question": "may I?" });
    if flaw == Flaw::AsksWithoutId {
        ask["request_id"].take();
    }
    let (mut pings, mut earlier) = (0, VecDeque::new());
    loop {
        let message = match earlier.pop_front() {
            Some(message) => message,
            None => hear(socket).await?,
        };
        let answered = &message["request_id"];
        let answers = match message["type"].as_str() {
            Some("hello") => vec![attest.clone()],
            Some("go") if flaw == Flaw::AsksTwiceWithOneId => vec![ask.clone(), ask.clone()],
            Some("go") => vec![ask.clone()],
            Some("response") if *answered == 7 && message["data"]["token"] == "t" => {
                vec![json!({ "type": "resolved", "request_id": 7 }), json!({ "type": "welcome" })]
            }
            Some("response") if *answered == "7" => {
                let resolved = json!({ "type": "resolved", "request_id": "7" });
                let said = message.get("data").or(message.get("error")).cloned();
                let outcome = json!({ "type": "outcome", "said": said });
                match flaw {
                    Flaw::ResolvesTwice => vec![resolved.clone(), resolved, outcome],
                    Flaw::ResolvesAnother => {
                        vec![resolved, json!({ "type": "resolved", "request_id": 8 }), outcome]
                    }
                    Flaw::ResolvesNothing => vec![outcome],
                    _ => vec![resolved, outcome],
                }
            }
            Some("look") => vec![json!({ "type": "looked" })],
            _ => vec![json!({ "type": "error", "message": "no such request" })],
        };
        if flaw == Flaw::Pings {
            pings += 1;
            say(socket, &[json!({ "type": "ping", "n": pings })]).await?;
            let pong = json!({ "type": "pong", "n": pings });
            // What was sent before is answered after.
            while let Some(other) = hear(socket).await.filter(|heard| *heard != pong) {
                earlier.push_back(other);
            }
        }
        say(socket, &answers).await?;
    }
}

/// Speaks the protocol of rpc.yaml: its own requests have the ids that the client's have.
async fn rpc(stream: TcpStream) -> Option<()> {
    let socket = &mut tokio_tungstenite::accept_async(stream).await.ok()?;
    while let Some(message) = hear(socket).await {
        let id = message["id"].clone();
        let Some("work") = message["method"].as_str() else {
            say(socket, &[json!({ "id": id, "error": { "code": -32601, "message": "unknown" } })]).await?;
            continue;
        };
        say(socket, &[json!({ "id": id, "method": "approval/command", "params": {} })]).await?;
        let answer = hear(socket).await?;
        let said = answer.get("result").or(answer.get("error")).cloned();
        let is_answer = answer["id"] == id && answer.get("method").is_none();
        let resolved = json!({ "method": "request/resolved", "params": { "requestId": id } });
        say(socket, &[resolved, json!({ "id": id, "result": { "said": said, "taken": is_answer } })]).await?;
    }
    Some(())
}

/// A folder with a protocol, its `requests` from the guide.
fn project(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/requests");
    let read = |file: &str| fs::read_to_string(own.join(file)).expect(file);
    let guide = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/protocol-reference.md"))
        .expect("it");
    let [desk, rpc] = &blocks(&guide, "yaml requests")[..] else { panic!("two examples") };
    let requests = if name == "desk" { desk } else { rpc };
    let requests: String = requests.lines().map(|line| format!("  {line}\n")).collect();
    fs::create_dir(folder.path().join(name)).expect("a folder");
    let write =
        |file: &str, text: &str| fs::write(folder.path().join(name).join(file), text).expect("written");
    write("asyncapi.yaml", &(read(&format!("{name}.yaml")) + &requests));
    write("requirements.yaml", &read(&format!("{name}-requirements.yaml")));
    folder
}

/// Runs a case of these steps: the exit code, and what is shown.
fn run(folder: &Path, name: &str, url: &str, steps: &str) -> (Option<i32>, String) {
    run_with(folder, name, url, steps, &[], "")
}

/// The same with more arguments, and with fields of the case.
fn run_with(
    folder: &Path,
    name: &str,
    url: &str,
    steps: &str,
    more: &[&str],
    fields: &str,
) -> (Option<i32>, String) {
    let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
    let file = format!("family: m\ncases:\n  - name: a\n    title: t\n{fields}    steps:\n{steps}");
    fs::write(folder.join("m.yaml"), file).expect("written");
    let arguments = ["run", "--protocol", name, "--scenario", "m.yaml", "--url", url, "--trace", "t.ndjson"];
    let output = frameproof(folder, &[&arguments, more].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

fn desk_url(flaw: Flaw) -> String {
    hand::serve(move |stream| async move {
        let _ = desk(stream, flaw).await;
    })
}

const ASKED: &str = "- open: alice\n- send: { type: go, request_id: 7 }\n";

#[test]
fn the_server_s_requests_are_answered_and_refused() {
    let folder = project("desk");
    let url = desk_url(Flaw::None);
    for (answer, said) in [
        ("reply: { decision: accept }", "{ decision: accept }"),
        ("reply: [1, '{{uid}}']", "[1, '{{uid}}']"),
        ("reply: null", "null"),
        ("refuse: { message: not now }", "not now"),
    ] {
        let steps = format!(
            "{ASKED}- {{ expect: ask, {answer} }}\n- {{ expect: outcome, covers: [DK-8], with: {{ said: {said} }} }}"
        );
        let (code, shown) = run(folder.path(), "desk", &url, &steps);
        assert_eq!(code, Some(0), "{answer}: {shown}");
        let output = frameproof(folder.path(), &["check", "t.ndjson", "--protocol", "desk"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    }
    // Neither: it is not answered.
    let (code, shown) = run(folder.path(), "desk", &url, &format!("{ASKED}- expect: ask\n- never: outcome"));
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn what_a_server_does_wrong_with_its_requests_is_named() {
    let folder = project("desk");
    for (flaw, id, told) in [
        (Flaw::AsksTwiceWithOneId, "DK-2", "the id \"7\" is that of a request that is open"),
        (Flaw::ResolvesTwice, "DK-3", "the request with the id \"7\" is resolved a second time"),
        (Flaw::ResolvesAnother, "DK-4", "no request with the id 8 was made"),
        (Flaw::ResolvesNothing, "DK-5", "the request with the id \"7\" was answered and never resolved"),
        (Flaw::AsksWithoutId, "DK-8", "it has no /request_id, which its answer must repeat"),
    ] {
        let answered =
            "- { expect: ask, reply: { decision: accept }, covers: [DK-8] }\n- expect: outcome".to_owned();
        // An answer may be on its way when the second question comes.
        let unanswered = "- { expect: ask, covers: [DK-8] }\n- never: outcome".to_owned();
        let rest = if flaw == Flaw::AsksTwiceWithOneId { unanswered } else { answered };
        let steps = ASKED.to_owned() + &rest;
        let (code, shown) = run(folder.path(), "desk", &desk_url(flaw), &steps);
        let failed: Vec<&str> = shown.lines().filter(|line| line.starts_with("  FAIL DK-")).collect();
        assert!(code == Some(1) && failed.len() == 1 && failed[0].contains(id), "{id}: {shown}");
        assert!(shown.contains(told), "{shown}");
    }
}

#[test]
fn recordings_are_judged_in_both_directions() {
    let folder = project("desk");
    let line =
        |dir: &str, body: &Value| json!({ "t_ms": 0, "client": "a", "dir": dir, "text": body.to_string() });
    let ask = json!({ "type": "ask", "request_id": 1, "question": "?" });
    let answer = |id: Value| json!({ "type": "response", "request_id": id, "success": true, "data": {} });
    for (answers, violated) in [
        (vec![answer(json!(1))], None),
        (vec![answer(json!(1)), answer(json!(1))], Some("DK-6")),
        (vec![answer(json!("1"))], Some("DK-7")),
        // The client's own request with this id is another one.
        (vec![json!({ "type": "go", "request_id": 1 })], None),
    ] {
        let lines =
            std::iter::once(line("recv", &ask)).chain(answers.iter().map(|answer| line("send", answer)));
        let lines: String = lines.map(|line| format!("{line}\n")).collect();
        fs::write(folder.path().join("r.ndjson"), lines).expect("written");
        let output = frameproof(folder.path(), &["check", "r.ndjson", "--protocol", "desk"]);
        let shown = text(&output.stdout);
        assert_eq!(output.status.code(), Some(i32::from(violated.is_some())), "{shown}");
        assert!(violated.is_none_or(|id| shown.contains(id)), "{shown}");
    }
}

#[test]
fn ids_of_both_sides_do_not_meet_in_json_rpc() {
    let folder = project("rpc");
    let url = hand::serve(|stream| async move {
        let _ = rpc(stream).await;
    });
    for (id, answer, said) in [
        ("1", "reply: { decision: accept }", "{ decision: accept }"),
        ("'1'", "refuse: { code: -32000, message: no }", "{ code: -32000, message: no }"),
    ] {
        let steps = format!(
            "- open: alice\n- send: {{ id: {id}, method: work }}\n- {{ expect: approval/command, {answer} }}\n\
             - {{ expect: request/resolved, with: {{ params: {{ requestId: {id} }} }} }}\n\
             - {{ expect: work.result, covers: [RP-3], with: {{ id: {id}, result: {{ said: {said}, taken: true }} }} }}"
        );
        let (code, shown) = run(folder.path(), "rpc", &url, &steps);
        assert_eq!(code, Some(0), "{shown}");
        let output = frameproof(folder.path(), &["check", "t.ndjson", "--protocol", "rpc"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    }
}

#[test]
fn answers_that_cannot_be_given_are_refused_at_their_place() {
    let folder = project("desk");
    let steps = [
        "- open: alice",
        "- { expect: welcome, reply: {} }",
        "- { expect: [ask, turn-end], refuse: { message: no } }",
        "- { expect: ask, reply: {}, refuse: { message: no } }",
        "- { expect: ask, refuse: { mesage: no } }",
        "- { expect: ask, reply: { a: '{{nobody}}' } }",
        "- { never: ask, reply: {} }",
    ];
    let (code, shown) = run(folder.path(), "desk", "ws://127.0.0.1:1", &steps.join("\n"));
    assert_eq!(code, Some(2), "{shown}");
    for (told, place) in [
        ("`welcome` is not a request of the server: there is nothing to answer", "m.yaml:7:28"),
        ("`x-frameproof.requests` has `attest`, `ask`", "m.yaml:7:28"),
        ("`turn-end` is not a request of the server", "m.yaml:8:36"),
        ("a request gets one answer: `reply` or `refuse`", "m.yaml:9:35"),
        ("`refuse` has no `message`, which the answer to `ask` has", "m.yaml:10:24"),
        ("the answer to `ask` has no place for `mesage`", "m.yaml:10:24"),
        ("undefined variable `nobody`", "m.yaml:11:"),
        ("`reply` does not go with `never`", "m.yaml:12:"),
    ] {
        assert!(shown.contains(told) && shown.contains(place), "{told} at {place}: {shown}");
    }
}

#[test]
fn descriptions_of_requests_are_checked() {
    let folder = project("desk");
    let overlay = "x-frameproof:\n  requests:\n    others: { message: asks, id: /request_id, reply: { type: response, of: 'x-{{id}}' }, \
                   refuse: { request_id: '{{id}}', why: '{{reason}}' } }\n    silent: { message: ask, id: /request_id, reply: null }\n  \
                   openings: { hello: [{ send: { type: hello } }, { expect: welcome, reply: {} }] }\n  \
                   invariants: { questions: { monitor: { server-requests: { of: question } } } }\n";
    fs::write(folder.path().join("o.yaml"), overlay).expect("written");
    let arguments = ["list", "--protocol", "desk", "--overlay", "o.yaml"];
    let output = frameproof(folder.path(), &arguments);
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{shown}");
    for told in [
        "the server sends no message `asks`",
        "the answer does not say which request it answers",
        "undefined variable `reason`",
        "nothing says how the requests `silent` are answered",
        "`welcome` is not a request of the server",
        "`x-frameproof.requests` has no `question`",
    ] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
}

const OVERLAY: &[&str] = &["--overlay", "o.yaml"];

/// The client answers pings and questions by itself.
fn project_with_rules() -> tempfile::TempDir {
    let folder = project("desk");
    let rules = "x-frameproof:\n  client:\n    keep-alive: { on: ping, send: { type: pong, n: '{{message.n}}' } }\n    \
                 grant: { message: ask, reply: { to: '{{message.question}}' } }\n";
    fs::write(folder.path().join("o.yaml"), rules).expect("written");
    folder
}

#[test]
fn clients_answer_by_themselves_unless_a_case_suspends_it() {
    let folder = project_with_rules();
    let url = desk_url(Flaw::Pings);
    let run = |steps: &str, fields: &str| run_with(folder.path(), "desk", &url, steps, OVERLAY, fields);
    let outcome = "- { expect: outcome, covers: [DK-8], with: { said: { to: may I? } } }";
    let (code, shown) = run(&format!("{ASKED}{outcome}"), "");
    assert_eq!(code, Some(0), "{shown}");
    let trace = fs::read_to_string(folder.path().join("t.ndjson")).expect("the trace");
    assert!(trace.contains(r#"{\"type\":\"pong\",\"n\":1}"#), "{trace}");
    // The scenario answers in place of the rule.
    let own = "- { expect: ask, reply: { to: me } }\n- { expect: outcome, covers: [DK-8], with: { said: { to: me } } }";
    let (code, shown) = run(&format!("{ASKED}{own}"), "    suspend: [grant]\n");
    assert_eq!(code, Some(0), "{shown}");
    // Nobody answers: the server waits.
    let (code, shown) = run(&format!("{ASKED}- never: outcome"), "    suspend: [grant]\n");
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown) = run(&format!("{ASKED}{outcome}"), "    suspend: [keep-alive]\n");
    assert!(code != Some(0), "{shown}");
    // Generated cases have such clients, too.
    let generated = |arguments: &[&str]| {
        let server = ["--protocol", "desk", "--url", &url];
        let output =
            frameproof(folder.path(), &[&arguments[..1], &server, OVERLAY, &arguments[1..]].concat());
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (code, shown) = generated(&["explore", "--walks", "3", "--moves", "6"]);
    assert_eq!(code, Some(0), "{shown}");
    // Whatever else is wrong with this server: with a pong for each ping, turns come to their end.
    fs::write(folder.path().join("silent.yaml"), "x-frameproof: { client: null }\n").expect("written");
    let fuzz = [
        "fuzz",
        "--iterations",
        "4",
        "--quiet-period",
        "50ms",
        "--timeout-scale",
        "0.2",
        "--max-findings",
        "1",
    ];
    let (_, shown) = generated(&fuzz);
    assert!(shown.contains("in 4 cases") && !shown.contains("clean-turn"), "{shown}");
    let (code, shown) = generated(&[&fuzz[..], &["--overlay", "silent.yaml"]].concat());
    assert!(code != Some(0) && (shown.contains("clean-turn") || !shown.contains("in 4 cases")), "{shown}");
}

#[test]
fn rules_for_clients_are_checked() {
    let folder = project_with_rules();
    let run = |steps: &str, fields: &str| {
        run_with(folder.path(), "desk", "ws://127.0.0.1:1", steps, OVERLAY, fields)
    };
    let (code, shown) = run("- open: alice\n- { expect: ask, reply: {} }", "");
    assert_eq!(code, Some(2), "{shown}");
    for told in [
        "clients answer it automatically (`x-frameproof.client.grant`)",
        "add `suspend: [grant]` to the case",
        "m.yaml:7:24",
    ] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    let (code, shown) = run("- open: alice", "    suspend: [gramt]\n");
    assert!(code == Some(2) && shown.contains("did you mean `grant`?"), "{shown}");
    for (rule, told) in [
        (
            "{ on: ping, message: ping, send: { type: pong } }",
            "`on` is another name of `message`, which is given, too",
        ),
        ("{ send: { type: pong } }", "missing field `message`"),
    ] {
        fs::write(folder.path().join("o.yaml"), format!("x-frameproof: {{ client: {{ other: {rule} }} }}\n"))
            .expect("written");
        let (code, shown) = run("- open: alice", "");
        assert!(code == Some(2) && shown.contains(told) && shown.contains("o.yaml:"), "{told}: {shown}");
    }
    let rules = "x-frameproof:\n  client:\n    \
                 nothing: { message: ping }\n    both: { message: ask, reply: {}, send: { type: pong } }\n    \
                 greet: { message: welcome, reply: {} }\n    attest: { message: attest, reply: {} }\n    questions: { message: ping, send: {} }\n";
    fs::write(folder.path().join("o.yaml"), rules).expect("written");
    let (code, shown) = run("- open: alice", "");
    assert_eq!(code, Some(2), "{shown}");
    for told in [
        "a rule for clients has exactly one of `send`, `reply` and `refuse`",
        "`welcome` is not a request of the server",
        "`x-frameproof.client.attest` answers it already",
        "an invariant is called `questions`, too",
        "o.yaml:",
    ] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
}

/// How the bundle of the RPC protocol is read.
const BUNDLE: &str = "x-frameproof:\n  schemas:\n    about: rpc --schemas DIR\n    received: [Server.json]\n    requests: [Client.json]\n    \
                      answers: { named-at: /properties/params, named: '{name}Params', schemas: ['v2/{name}Response.json'] }\n    \
                      error: 'Error.json#/definitions/E'\n";

/// A folder of schemas such as a server generates.
fn bundle(folder: &Path, said: &Value) {
    fs::create_dir_all(folder.join("b/v2")).expect("a folder");
    let write = |file: &str, schema: &Value| {
        fs::write(folder.join("b").join(file), schema.to_string()).expect("written")
    };
    let method = |name: &str| json!({ "properties": { "method": { "enum": [name] }, "params": { "$ref": "#/definitions/P" } } });
    let any = json!({ "P": { "type": "object" } });
    write(
        "Server.json",
        &json!({ "definitions": any, "oneOf": [method("approval/command"), method("request/resolved")] }),
    );
    let work = json!({ "properties": { "method": { "const": "work" }, "params": { "anyOf": [{ "$ref": "#/definitions/WorkParams" }, { "type": "null" }] } } });
    write("Client.json", &json!({ "definitions": { "WorkParams": {} }, "oneOf": [work] }));
    write("v2/WorkResponse.json", &json!({ "required": ["said"], "properties": { "said": said } }));
    write(
        "Error.json",
        &json!({ "definitions": { "E": { "properties": { "error": { "required": ["code"] } } } } }),
    );
}

#[test]
fn the_server_s_own_schemas_judge_what_it_sends() {
    let folder = project("rpc");
    fs::write(folder.path().join("o.yaml"), BUNDLE).expect("written");
    fs::write(folder.path().join("w.yaml"), format!("{BUNDLE}    level: warning\n")).expect("written");
    let url = hand::serve(|stream| async move {
        let _ = rpc(stream).await;
    });
    let steps = "- open: alice\n- send: { id: 1, method: work }\n- { expect: approval/command, reply: {} }\n- expect: work.result";
    let run = |overlay: &str| {
        run_with(
            folder.path(),
            "rpc",
            &url,
            steps,
            &["--overlay", overlay, "--schemas", "b", "--json", "r.jsonl"],
            "",
        )
    };
    bundle(folder.path(), &json!({ "type": "object" }));
    let (code, shown) = run("o.yaml");
    assert_eq!(code, Some(0), "{shown}");
    bundle(folder.path(), &json!({ "type": "string" }));
    let told = "the server's own schema v2/WorkResponse.json refuses this: /said must be of type string";
    let (code, shown) = run("o.yaml");
    assert!(code == Some(1) && shown.contains(told), "{shown}");
    let events = fs::read_to_string(folder.path().join("r.jsonl")).expect("the events");
    assert!(events.contains(r#""check":"vendor-schema""#), "{events}");
    let (code, shown) = run("w.yaml");
    assert!(code == Some(0) && shown.contains(told), "{shown}");
    let arguments = ["check", "t.ndjson", "--protocol", "rpc", "--overlay", "o.yaml", "--schemas", "b"];
    let output = frameproof(folder.path(), &arguments);
    assert!(output.status.code() == Some(1) && text(&output.stdout).contains(told), "{output:?}");
}

#[test]
fn what_is_no_bundle_is_refused() {
    let folder = project("rpc");
    fs::write(folder.path().join("o.yaml"), BUNDLE).expect("written");
    bundle(folder.path(), &json!({}));
    let list = |arguments: &[&str]| {
        let output = frameproof(
            folder.path(),
            &[&["run", "--protocol", "rpc", "--scenario", "m.yaml", "--url", "ws://127.0.0.1:1"], arguments]
                .concat(),
        );
        (output.status.code(), text(&output.stderr))
    };
    let write =
        |file: &str, text: &str| fs::write(folder.path().join("b").join(file), text).expect("written");
    let given = ["--overlay", "o.yaml", "--schemas", "b"];
    for (arguments, told) in [
        (&["--schemas", "b"][..], "does not say how a bundle of schemas is read"),
        (&["--overlay", "o.yaml", "--schemas", "nope"][..], "the bundle of schemas nope is not there"),
        (&["--overlay", "o.yaml", "--schemas", "o.yaml"][..], "o.yaml is not a folder"),
        (
            &["--overlay", "o.yaml", "--schemas", "rpc"][..],
            "rpc is not a bundle for this protocol: Server.json",
        ),
    ] {
        let (code, shown) = list(arguments);
        assert!(code == Some(2) && shown.contains(told), "{told}: {code:?} {shown}");
    }
    for (file, schema, told) in [
        ("Server.json", "{", "is not JSON"),
        ("Server.json", "{ \"oneOf\": 3 }", "is not a JSON Schema: /oneOf"),
        ("Server.json", "{ \"oneOf\": [{}] }", "no schema there has a constant `/method`"),
        (
            "Server.json",
            "{ \"properties\": { \"method\": { \"const\": \"other\" } } }",
            "has none of the messages of rpc",
        ),
        (
            "v2/WorkResponse.json",
            "{ \"$ref\": \"#/definitions/None\" }",
            "v2/WorkResponse.json does not compile",
        ),
    ] {
        bundle(folder.path(), &json!({}));
        write(file, schema);
        let (code, shown) = list(&given);
        assert!(
            code == Some(2) && shown.contains(told) && shown.contains("rpc --schemas DIR"),
            "{told}: {code:?} {shown}"
        );
    }
    fs::write(folder.path().join("o.yaml"), BUNDLE.replace("Server.json", "../rpc/Server.json"))
        .expect("written");
    let (code, shown) = list(&given);
    assert!(code == Some(2) && shown.contains("this names no file within the bundle"), "{shown}");
}
