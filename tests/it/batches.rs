//! Batches: JSON arrays of messages, in either direction, as in JSON-RPC 2.0.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::own::{check, load, protocol, report, run, serve};
use crate::support::{frameproof, text};

/// A protocol of requests and replies, whose batches come from this side.
fn folder(batches: &str) -> tempfile::TempDir {
    let extension = "  replies: { id: /id, result: /result, error: /error, unmatched: [A-3] }\n  \
         turn: { start: { type: ask, id: 1, text: '{{text}}' }, end: ask.result }\n  \
         invariants:\n    answers:\n      about: each request is answered once\n      monitor:\n        correlation: { request: { type: ask, \
         dir: send }, reply: [ask.result, error], id: /id, foreign: [A-3], twice: [A-2], missing: [A-1] }\n";
    let declared = if batches.is_empty() { String::new() } else { format!("  batches: {batches}\n") };
    let folder =
        protocol(&["ask", "note"], &["ask.result", "error", "event"], &format!("{declared}{extension}"));
    // Requests have ids.
    let file = folder.path().join("own/asyncapi.yaml");
    let api = fs::read_to_string(&file).expect("written");
    let own = "properties: { type: { const: ask } } }";
    assert!(api.contains(own) && api.contains("{ type: ask } }]"));
    let api = api.replace(own, "required: [id], properties: { type: { const: ask }, id: {}, n: {} } }");
    fs::write(file, api.replace("{ type: ask } }]", "{ type: ask, id: 1 } }]")).expect("written");
    folder
}

/// What a correct server answers to one message: nothing to what has no id.
fn reply(body: &Value) -> Option<Value> {
    body.get("id").map(|id| json!({ "id": id, "result": body["n"] }))
}

fn members(body: &Value) -> Vec<Value> {
    body.as_array().cloned().unwrap_or_else(|| vec![body.clone()])
}

/// What a server answers to a frame.
type Answer = fn(&Value) -> Vec<Value>;

/// The replies to a frame.
fn replies(body: &Value) -> Vec<Value> {
    members(body).iter().filter_map(reply).collect()
}

/// A batch is answered by a batch.
fn correct(body: &Value) -> Vec<Value> {
    let replies = replies(body);
    if body.is_array() && !replies.is_empty() { vec![Value::Array(replies)] } else { replies }
}

/// The same, in frames of their own and the other way round.
fn one_by_one(body: &Value) -> Vec<Value> {
    replies(body).into_iter().rev().collect()
}

fn altered(body: &Value, alter: fn(&mut Vec<Value>)) -> Vec<Value> {
    let mut replies = replies(body);
    if !body.is_array() {
        return replies;
    }
    alter(&mut replies);
    vec![Value::Array(replies)]
}

const STEPS: &str = "      - open: alice\n      - send:\n          - { type: ask, id: 7, n: 1 }\n          - { type: note }\n          \
                     - { type: ask, id: 8, n: 2 }\n      - expect: ask.result\n        with: { id: 8 }\n        save: { second: /result }\n      \
                     - check: { properties: { result: { const: 2 } } }\n      - send: { type: ask, id: 9 }\n      - expect: ask.result\n        with: { id: 9 }\n";

#[test]
fn the_members_of_a_batch_are_messages_as_any_other() {
    for server in [correct as Answer, one_by_one] {
        let folder = folder("both");
        let (code, shown) = run(&folder, &serve(server), STEPS);
        assert_eq!(code, Some(0), "{shown}");
        let report = report(&folder);
        for id in ["A-1", "A-2", "A-3"] {
            assert!(report["exercised"].to_string().contains(id), "{id}: {report}");
        }
    }
}

/// Longer than the silence that stands for a barrier.
const LATE: std::time::Duration = std::time::Duration::from_millis(700);

#[test]
fn a_reply_that_nobody_awaits_may_come_after_the_last_step() {
    fn late(body: &Value) -> Vec<Value> {
        std::thread::sleep(LATE);
        replies(body)
    }
    fn never(_: &Value) -> Vec<Value> {
        Vec::new()
    }
    let steps = "      - open: alice\n      - send: { type: ask, id: 7, n: 1 }\n";
    for (server, expected) in [(late as Answer, 0), (never, 1)] {
        let folder = folder("both");
        let (code, shown) = run(&folder, &serve(server), steps);
        assert_eq!(code, Some(expected), "{shown}");
        assert_eq!(shown.contains("A-1 MUST"), expected == 1, "{shown}");
    }
}

#[test]
fn replies_to_a_batch_come_in_one_batch_where_the_protocol_demands_it() {
    /// Two batches of one reply each.
    fn halves(body: &Value) -> Vec<Value> {
        let replies = replies(body);
        if body.is_array() { replies.into_iter().map(|one| json!([one])).collect() } else { replies }
    }
    for (server, words) in [
        (correct as Answer, None),
        (one_by_one, Some("the answer with /id 8 comes alone, and its request came in a batch")),
        (
            halves,
            Some("the answer with /id 8 comes in another frame than the answers before it to the same batch"),
        ),
        (|body| altered(body, |replies| replies.reverse()), None),
        (
            |body| vec![Value::Array(replies(body))],
            Some("the answer with /id 9 comes in a batch, and its request came alone"),
        ),
    ] {
        let folder = folder("both");
        let file = folder.path().join("own/asyncapi.yaml");
        let api = fs::read_to_string(&file).expect("written");
        assert!(api.contains("twice: [A-2]"));
        fs::write(file, api.replace("twice: [A-2]", "batched: [A-2]")).expect("written");
        let (code, shown) = run(&folder, &serve(server), STEPS);
        assert_eq!(code, Some(i32::from(words.is_some())), "{words:?}: {shown}");
        if let Some(words) = words {
            assert!(shown.contains("A-2 MUST") && shown.contains(words), "{words}: {shown}");
            assert!(!shown.contains("A-1 MUST") && !shown.contains("A-3 MUST"), "{words}: {shown}");
        }
        assert!(report(&folder)["exercised"].to_string().contains("A-2"), "{words:?}");
    }
}

/// A demand for batches of replies, where nobody may send one, would never be judged.
#[test]
fn a_demand_that_has_no_effect_is_refused() {
    for (batches, refused) in [("", true), ("client", true), ("server", true), ("both", false)] {
        let folder = folder(batches);
        let file = folder.path().join("own/asyncapi.yaml");
        let api = fs::read_to_string(&file).expect("written");
        fs::write(file, api.replace("twice: [A-2]", "twice: [A-2], batched: [A-2]")).expect("written");
        let out = frameproof(folder.path(), &["list", "--protocol", "own"]);
        assert_eq!(out.status.code() == Some(2), refused, "{batches}: {}", text(&out.stderr));
        assert_eq!(text(&out.stderr).contains("`batched` has no effect"), refused, "{batches}");
    }
}

/// An id may be open twice, in a batch and alone.
#[test]
fn an_answer_in_a_batch_is_that_to_the_request_in_a_batch() {
    let folder = folder("both");
    let file = folder.path().join("own/asyncapi.yaml");
    let api = fs::read_to_string(&file).expect("written");
    fs::write(file, api.replace("twice: [A-2]", "batched: [A-2]")).expect("written");
    // Batch and request are answered when both have come.
    let last = "          - { type: ask, id: 8, n: 2 }\n";
    assert!(STEPS.contains(last));
    let (head, _) = STEPS.split_once("      - expect").expect("a step");
    let steps = format!(
        "{head}      - send: {{ type: ask, id: 7, n: 3 }}\n      - expect: ask.result\n        with: {{ id: 7 }}\n        keep: true\n      \
         - expect: ask.result\n        with: {{ id: 8 }}\n        keep: true\n      - expect: ask.result\n        with: {{ id: 7, result: 3 }}\n        keep: true\n"
    );
    fn late(body: &Value) -> Vec<Value> {
        if body.is_array() {
            return Vec::new();
        }
        vec![json!([{ "id": 7, "result": 1 }, { "id": 8, "result": 2 }]), json!({ "id": 7, "result": 3 })]
    }
    // Which kind of reply the second one is, nobody can tell (`replies` knows one open request of an id).
    let (_, shown) = run(&folder, &serve(late), &steps);
    assert!(shown.contains("requirements  2 passed, 1 failed") && shown.contains("FAIL A-3"), "{shown}");
    assert!(report(&folder)["exercised"].to_string().contains("A-2"), "{shown}");
}

#[test]
fn the_example_of_the_reference_works() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/protocol-reference.md"))
        .expect("the page");
    let block = |opening: &str| crate::docs::blocks(&page, opening).concat();
    let declared = block("yaml batches");
    let folder = folder(declared.trim().strip_prefix("batches: ").expect("the key"));
    let steps: String = block("yaml batch-step").lines().map(|line| format!("      {line}\n")).collect();
    for (server, code) in
        [(correct as Answer, 0), (one_by_one, 0), (|body| altered(body, |replies| drop(replies.pop())), 1)]
    {
        let (found, shown) = run(&folder, &serve(server), &format!("      - open: alice\n{steps}"));
        assert_eq!(found, Some(code), "{shown}");
    }
}

#[test]
fn what_is_wrong_in_a_batch_is_found_and_shown_as_the_frame_that_it_came_in() {
    let cases: &[(Answer, &str, &str)] = &[
        (|body| altered(body, |replies| replies.push(replies[0].clone())), "A-3", "{\"id\":7,\"result\":1}]"),
        (|body| altered(body, |replies| drop(replies.remove(0))), "A-1", "7"),
        (|body| altered(body, |replies| replies.push(json!({ "id": 70, "result": 1 }))), "A-3", "\"id\":70"),
        (
            |body| altered(body, |replies| replies.push(json!("done"))),
            "A-4",
            "message 3 of the batch is a string",
        ),
        (
            |body| altered(body, |replies| replies.push(json!([]))),
            "A-4",
            "message 3 of the batch is an array",
        ),
        (
            |body| altered(body, |replies| replies.push(json!({ "type": "ask" }))),
            "A-4",
            "may not send a message `ask`",
        ),
        (|body| altered(body, Vec::clear), "A-4", "the frame is an empty array"),
    ];
    for (server, id, words) in cases {
        let (code, shown) = run(&folder("both"), &serve(*server), STEPS);
        assert_eq!(code, Some(1), "{words}: {shown}");
        assert!(shown.contains(&format!("{id} MUST")) && shown.contains(words), "{id} {words}: {shown}");
        let others = ["A-1", "A-2", "A-3", "A-4"].into_iter().filter(|other| other != id);
        others
            .for_each(|other| assert!(!shown.contains(&format!("{other} MUST")), "{other} {words}: {shown}"));
    }
}

#[test]
fn a_batch_that_is_too_long_for_frameproof_breaks_no_requirement() {
    let folder = folder("both");
    let url = serve(|body| altered(body, |replies| *replies = vec![json!({ "type": "event" }); 1025]));
    let (code, shown) = run(&folder, &url, STEPS);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("1025 messages, over the limit of 1024") && !shown.contains(" MUST"), "{shown}");
    let report = report(&folder);
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!(report["failures"][0]["check"], "limit", "{report}");
}

#[test]
fn the_case_ends_with_a_batch_that_has_more_than_messages() {
    let folder = folder("both");
    let url = serve(|body| altered(body, |replies| *replies = vec![json!({ "type": "event" }), json!(5)]));
    // Nothing else comes: whoever waited on would find that missing, too.
    let (code, shown) = run(&folder, &url, STEPS);
    assert_eq!(code, Some(1), "{shown}");
    let report = report(&folder);
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!(report["failures"][0]["requirements"], json!(["A-4"]), "{report}");
}

#[test]
fn a_batch_plays_the_parts_of_all_its_messages() {
    let folder = folder("both\n  ambient: [event]");
    let url = serve(|body| {
        let event = json!({ "type": "event" });
        if body["type"] == "note" {
            return vec![json!([event, event])];
        }
        altered(body, |replies| replies.push(json!({ "type": "event" })))
    });
    let steps = "      - open: alice\n      - send: { type: note }\n      - send:\n          - { type: note }\n          \
                 - { type: ask, id: 7, n: 1 }\n      - expect: ask.result\n        with: { id: 7 }\n      \
                 - expect: event\n        with: { n: 1 }\n";
    let (code, shown) = run(&folder, &url, steps);
    assert_eq!(code, Some(1), "{shown}");
    let report = report(&folder);
    let wire: Vec<&Value> = report["wire"].as_array().expect("frames").iter().collect();
    let batches = wire.iter().filter(|line| line["text"].as_str().is_some_and(|text| text.starts_with('[')));
    let found: Vec<Value> =
        batches.map(|line| json!([line["dir"], line["ambient"] == true, line["states"]])).collect();
    let expected = [
        json!(["<-", true, null]),
        json!(["->", false, ["turn begins"]]),
        json!(["<-", false, ["turn ends"]]),
    ];
    found.iter().for_each(|one| assert!(expected.contains(one), "{one}: {report}"));
    assert_eq!(found.len(), expected.len(), "{report}");
}

#[test]
fn an_array_of_a_side_that_sends_no_batches_is_no_message() {
    let array = ("recv", json!([{ "type": "event" }]));
    let asked = [("send", json!([{ "type": "ask", "id": 1 }])), ("recv", json!([{ "id": 1, "result": 1 }]))];
    let apart = [("send", json!([{ "type": "ask", "id": 1 }])), ("recv", json!({ "id": 2, "result": 1 }))];
    for (batches, lines, code, words) in [
        ("both", vec![array.clone()], 0, ""),
        ("server", vec![array.clone()], 0, ""),
        ("client", vec![array.clone()], 1, "the frame is an array, not a JSON object"),
        ("", vec![array], 1, "the frame is an array, not a JSON object"),
        ("both", asked.to_vec(), 0, ""),
        // What cannot be read may be answered once, with whatever id; what can be read has its own.
        ("server", apart.to_vec(), 0, ""),
        ("client", apart.to_vec(), 1, "A-3"),
        ("both", vec![asked[0].clone(), asked[1].clone(), asked[1].clone()], 1, "A-3"),
    ] {
        let (found, shown) = check(&folder(batches), &lines);
        assert_eq!((found, shown.contains(words)), (Some(code), true), "{batches}: {shown}");
    }
}

#[test]
fn a_batch_that_cannot_be_sent_is_refused_when_the_file_is_loaded() {
    let long = format!("send: [{}]", vec!["{ type: note }"; 1025].join(", "));
    for (batches, step, error) in [
        ("", "send: [{ type: note }]", "a client of this protocol sends no batches"),
        ("server", "send: [{ type: note }]", "a client of this protocol sends no batches"),
        ("both", "send: []", "a batch has 1 to 1024 messages, not 0"),
        ("client", &long, "a batch has 1 to 1024 messages, not 1025"),
        ("client", "send: [{ type: note }, 7]", "a message of a batch is a map"),
    ] {
        let (code, shown) =
            run(&folder(batches), "ws://127.0.0.1:9/", &format!("      - open: alice\n      - {step}\n"));
        assert_eq!((code, shown.contains(error)), (Some(2), true), "{step}: {shown}");
    }
    let (code, shown) = load(&folder("sometimes"));
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("batches") && shown.contains("both"), "{shown}");
}

#[test]
fn recordings_with_batches_are_compared_message_by_message() {
    let folder = folder("both");
    let line = |body: Value| {
        json!({ "t_ms": 1, "client": "a", "dir": "recv", "text": body.to_string() }).to_string()
    };
    let event = |n: u64| json!({ "type": "event", "n": n });
    fs::write(folder.path().join("one.ndjson"), line(json!([event(1), event(2)]))).expect("written");
    fs::write(folder.path().join("two.ndjson"), [line(event(1)), line(event(2))].join("\n"))
        .expect("written");
    fs::write(folder.path().join("three.ndjson"), line(json!([event(1), event(3)]))).expect("written");
    // What is no message is a difference, too.
    for (name, last) in [("four.ndjson", json!([event(4)])), ("five.ndjson", json!([event(4), 5]))] {
        let lines = [line(json!([event(1), event(2)])), line(last)].join("\n");
        fs::write(folder.path().join(name), lines).expect("written");
    }
    for (one, other, code) in [
        ("one.ndjson", "two.ndjson", 0),
        ("one.ndjson", "three.ndjson", 1),
        ("four.ndjson", "four.ndjson", 0),
        ("four.ndjson", "five.ndjson", 1),
    ] {
        let output = frameproof(folder.path(), &["diff", one, other, "--protocol", "own"]);
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{other}: {shown}");
    }
}

/// Batches of several messages that the server of the test below got.
static SEEN: AtomicUsize = AtomicUsize::new(0);

/// Output and exit code of `fuzz`, with the findings in `f`.
fn fuzz(folder: &tempfile::TempDir, url: &str) -> (Option<i32>, String) {
    let arguments = ["fuzz", "--protocol", "own", "--url", url, "--iterations", "24", "--jobs", "1"];
    let more = ["--quiet-period", "20ms", "--findings", "f"];
    let output = frameproof(folder.path(), &[&arguments[..], &more[..]].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn the_fuzzer_sends_batches_and_takes_them() {
    let counting = |body: &Value| {
        let several = body.as_array().is_some_and(|members| members.len() > 1);
        SEEN.fetch_add(usize::from(several), Ordering::Relaxed);
        correct(body)
    };
    let (code, shown) = fuzz(&folder("both"), &serve(counting));
    assert_eq!(code, Some(0), "{shown}");
    assert!(SEEN.load(Ordering::Relaxed) > 0, "{shown}");
}

/// What the server of the test below got: messages with an id, and whether they were in a batch.
static REQUESTS: Mutex<Vec<(Value, bool)>> = Mutex::new(Vec::new());

/// Replies are distinguished by ids: none comes twice, whatever becomes of the messages, and whether ids are texts or numbers. No
/// `fuzzing.fresh` says so.
#[test]
fn the_ids_of_requests_are_fresh() {
    let noting = |body: &Value| {
        let has_id = |message: &Value| message.get("id").is_some_and(|id| !id.is_null());
        let requests = members(body).into_iter().filter(has_id);
        REQUESTS.lock().expect("requests").extend(requests.map(|message| (message, body.is_array())));
        correct(body)
    };
    for (schema, is_right) in [
        ("{}", Value::is_string as fn(&Value) -> bool),
        ("{ type: integer }", Value::is_u64),
        ("{ type: string, maxLength: 40 }", Value::is_string),
    ] {
        let folder = folder("both");
        let file = folder.path().join("own/asyncapi.yaml");
        let api = fs::read_to_string(&file).expect("written");
        let example = if schema.contains("string") { "{ type: ask, id: a }" } else { "{ type: ask, id: 1 }" };
        let api = api
            .replace("id: {}, n", &format!("id: {schema}, n"))
            .replace("{ type: ask, id: 1 } }]", &format!("{example} }}]"));
        fs::write(file, api).expect("written");
        REQUESTS.lock().expect("requests").clear();
        let arguments = ["fuzz", "--protocol", "own", "--iterations", "150", "--quiet-period", "20ms"];
        let output = frameproof(folder.path(), &[&arguments[..], &["--url", &serve(noting)]].concat());
        let shown = text(&output.stdout) + &text(&output.stderr);
        let requests = REQUESTS.lock().expect("requests");
        let of_fuzzer = requests.iter().filter(|(message, _)| message["id"] != json!(1)).collect::<Vec<_>>();
        let ids: Vec<&Value> = of_fuzzer.iter().map(|(message, _)| &message["id"]).collect();
        let different: BTreeSet<String> = ids.iter().map(ToString::to_string).collect();
        let batched = of_fuzzer.iter().filter(|(_, batched)| *batched).count();
        assert!(batched > 20 && of_fuzzer.len() - batched > 20, "{schema}: {shown}");
        assert_eq!(ids.len(), different.len(), "{schema}: {ids:?}\n{shown}");
        // What a note has for an id, no schema says.
        let asks = of_fuzzer.iter().filter(|(message, _)| message["type"] == "ask").collect::<Vec<_>>();
        assert!(
            asks.len() > 20 && asks.iter().all(|(message, _)| is_right(&message["id"])),
            "{schema}: {ids:?}"
        );
        // Requests are mutated, too: with a field that nobody declares, or without one.
        let strange = |message: &Value| {
            message
                .as_object()
                .is_some_and(|map| map.keys().any(|key| !["type", "id", "n", "text"].contains(&key.as_str())))
        };
        assert!(of_fuzzer.iter().any(|(message, _)| strange(message)), "{schema}: {shown}");
    }
}

#[test]
fn the_fuzzer_finds_what_only_a_batch_brings_out() {
    let folder = folder("both");
    let url = serve(|body| altered(body, |replies| replies.extend(replies.first().cloned())));
    let (code, shown) = fuzz(&folder, &url);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("A-3") && shown.contains("(batch)"), "{shown}");
    // What is written is a scenario that shows it.
    let mut written =
        fs::read_dir(folder.path().join("f")).expect("findings").flatten().map(|entry| entry.path());
    let scenario = written.find(|path| path.to_string_lossy().contains("reply-")).expect("a scenario");
    let named = scenario.file_name().expect("a name").to_string_lossy();
    let command = format!("--quiet-period 20ms --scenario f/{named}\n");
    assert!(fs::read_to_string(&scenario).expect("it is read").contains(&command), "{command}");
    let scenario = scenario.to_string_lossy();
    let arguments =
        ["run", "--protocol", "own", "--scenario", &scenario, "--url", &url, "--quiet-period", "20ms"];
    let output = frameproof(folder.path(), &arguments);
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert_eq!((output.status.code(), shown.contains("A-3")), (Some(1), true), "{shown}");
}

/// What clients answered to [`asking`].
static ANSWERED: Mutex<Vec<Value>> = Mutex::new(Vec::new());

/// Requests of the server's come in one batch, behind a note.
fn asking(body: &Value) -> Vec<Value> {
    if body["type"] == "note" {
        return vec![json!([{ "type": "event", "id": "a" }, { "type": "event", "id": "b" }])];
    }
    if body["type"].is_null() {
        ANSWERED.lock().expect("no panic").push(body.clone());
    }
    if body["type"] == "ask" { replies(body) } else { Vec::new() }
}

#[test]
fn clients_answer_a_batch_by_one_batch_with_the_envelope_of_their_messages() {
    for (batches, expected) in
        [("both", json!([[refusal("a"), refusal("b")]])), ("server", json!([refusal("a"), refusal("b")]))]
    {
        let folder = folder(batches);
        let file = folder.path().join("own/asyncapi.yaml");
        let mut api = fs::read_to_string(&file).expect("written");
        for name in ["ask", "note"] {
            let own = format!("properties: {{ type: {{ const: {name} }}");
            assert_eq!(api.matches(&own).count(), 1, "{api}");
            let with = format!("properties: {{ jsonrpc: {{ const: '2.0' }}, type: {{ const: {name} }}");
            api = api.replace(&own, &with);
        }
        let rules = "  requests: { wishes: { message: event } }\n  client: { refuses: { on: event, refuse: { code: 1 } } }\n  invariants:\n";
        fs::write(&file, api.replace("  invariants:\n", rules)).expect("written");
        let steps = "      - open: alice\n      - send: { type: note }\n      - expect: event\n        with: { id: b }\n      \
                     - send: { type: ask, id: 9 }\n      - expect: ask.result\n";
        let (code, shown) = run(&folder, &serve(asking), steps);
        assert_eq!(code, Some(0), "{shown}");
        let answered = std::mem::take(&mut *ANSWERED.lock().expect("no panic"));
        assert_eq!(Value::Array(answered), expected, "{batches}");
    }
}

fn refusal(id: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": 1 } })
}
