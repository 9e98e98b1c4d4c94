//! A modifier is judged, or it is refused when the file is loaded: for each verb and each modifier, one or the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use crate::support;
use crate::support::target::{SERVED, folder, run};
use frameproof::protocol::{LoadOptions, Protocol};
use frameproof::scenario::file::ScenarioFile;
use frameproof::scenario::verbs::{COMMON, VERBS};
use frameproof::source::{Document, schema_of};
use serde_json::Value;

/// The same steps twice, but for the modifier; what comes of them differs.
struct Pair {
    verb: &'static str,
    modifier: &'static str,
    without: String,
    with: String,
}

fn pair(verb: &'static str, modifier: &'static str, steps: &str, without: &str, with: &str) -> Pair {
    let steps = |step: &str| steps.replace("STEP", step);
    Pair { verb, modifier, without: steps(without), with: steps(with) }
}

const ASK: &str = "{ send: { type: get_snapshot, req_id: r1 } }\n";
const ASK_BOB: &str = "{ send: { type: get_snapshot, req_id: r2 }, as: bob }\n";
const TURN: &str = "{ send: { type: send, text: \"{{cue}}\" } }\n";
const SLOW_TURN: &str = "{ send: { type: send, text: \"{{cue.slow}}\" } }\n";
const BAD: &str = "{ send: { type: frobnicate } }\n";
/// A text that is no UTF-8: the server closes with code 1007.
const NO_UTF8: &str = "{ frame: { opcode: text, hex: ff } }\n";
/// The server returns code and reason.
const CLOSED: &str = "{ frame: { opcode: close, code: 4410, payload: gone } }\n";
const TWO: &str = "{ open: alice }\n{ open: bob, session: other }\n";
const ONE: &str = "{ open: alice }\n";
/// The server answers the upgrade with 426.
const REFUSED: &str = "{ open: alice, opening: none, may-refuse: true, headers: { Upgrade: h2c } }\n";
const FAILS: &str = "{ assert: { equal: [1, 2] } }\n";

/// A masked text frame that asks for a snapshot, in hexadecimal digits.
fn frame_of_bytes() -> String {
    let text = r#"{"type":"get_snapshot","req_id":"r1"}"#;
    let length = 0x80 + u8::try_from(text.len()).expect("a short frame");
    let head = [0x81, length, 0, 0, 0, 0];
    head.iter().chain(text.as_bytes()).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn pairs() -> Vec<Pair> {
    let on = |parts: &[&str]| parts.concat();
    let bytes = frame_of_bytes();
    let snapshot = "{ expect: snapshot, within: 500ms }\n";
    let bobs = "{ expect: snapshot, as: bob, within: 500ms }\n";
    let mut all = vec![
        pair(
            "open",
            "session",
            &on(&[ONE, "STEP\n", TURN, "{ expect: turn-end, as: bob, within: 1s }\n"]),
            "{ open: bob }",
            "{ open: bob, session: other }",
        ),
        pair(
            "open",
            "opening",
            &on(&["STEP\n", ASK, "{ expect: snapshot }\n"]),
            "{ open: alice }",
            "{ open: alice, opening: none }",
        ),
        pair(
            "open",
            "headers",
            "STEP\n",
            "{ open: alice }",
            "{ open: alice, headers: { Sec-WebSocket-Version: '12' } }",
        ),
        pair("open", "protocols", "STEP\n", "{ open: alice }", "{ open: alice, protocols: [nobodys] }"),
        pair("open", "selects", "STEP\n", "{ open: alice }", "{ open: alice, selects: nobodys }"),
        pair("open", "with", "STEP\n", "{ open: alice }", "{ open: alice, with: { v: 7 } }"),
        pair(
            "drop",
            "after",
            &on(&[ONE, TURN, "STEP\n", FAILS]),
            "{ drop: alice }",
            "{ drop: alice, after: 100000 }",
        ),
        pair(
            "drop",
            "noticed",
            &on(&[ONE, "STEP\n", FAILS]),
            "{ drop: alice }",
            "{ drop: alice, noticed: true }",
        ),
        pair(
            "alive",
            "codes",
            &on(&[ONE, NO_UTF8, "STEP\n"]),
            "{ alive: alice }",
            "{ alive: alice, codes: [1007] }",
        ),
        pair(
            "ended",
            "codes",
            &on(&[ONE, NO_UTF8, "STEP\n"]),
            "{ ended: alice }",
            "{ ended: alice, codes: [4000] }",
        ),
        pair(
            "expect_file",
            "where",
            "STEP\n",
            "{ expect_file: nope, within: 20ms }",
            "{ expect_file: nope, within: 20ms, where: { type: 'null' } }",
        ),
        pair(
            "expect_file",
            "within",
            "STEP\n",
            "{ expect_file: nope }",
            "{ expect_file: nope, within: 20ms }",
        ),
        pair(
            "get",
            "headers",
            "STEP\n",
            "{ get: /ws, with: { status: 426 } }",
            "{ get: /ws, with: { status: 426 }, headers: { Origin: 'https://evil.example' } }",
        ),
        pair("get", "with", "STEP\n", "{ get: /ws }", "{ get: /ws, with: { status: 426 } }"),
        pair(
            "get",
            "where",
            "STEP\n",
            "{ get: /ws, with: { status: 426 } }",
            "{ get: /ws, with: { status: 426 }, where: { properties: { status: { const: 404 } } } }",
        ),
        pair(
            "joined",
            "where",
            &on(&[ONE, TURN, "{ expect: turn-end }\n", "STEP\n"]),
            "{ joined: { of: assistant_text, at: [/text] }, where: { const: Hello } }",
            "{ joined: { of: assistant_text, at: [/text] }, where: { const: Nope } }",
        ),
        pair(
            "expect",
            "past-errors",
            &on(&[ONE, BAD, ASK, "STEP\n"]),
            "{ expect: snapshot }",
            "{ expect: snapshot, past-errors: true }",
        ),
        pair(
            "expect",
            "keep",
            &on(&[
                ONE,
                ASK,
                "{ send: { type: get_snapshot, req_id: r2 } }\n",
                "STEP\n",
                "{ expect: snapshot, with: { req_id: r1 }, within: 500ms }\n",
            ]),
            "{ expect: snapshot, with: { req_id: r2 } }",
            "{ expect: snapshot, with: { req_id: r2 }, keep: true }",
        ),
        pair(
            "expect",
            "within",
            &on(&[ONE, SLOW_TURN, "STEP\n"]),
            "{ expect: turn-end }",
            "{ expect: turn-end, within: 20ms }",
        ),
        pair(
            "never",
            "window",
            &on(&[ONE, SLOW_TURN, "STEP\n"]),
            "{ never: turn-end }",
            "{ never: turn-end, window: 4s }",
        ),
    ];
    // What is done by another client shows with that client.
    for (verb, steps, without) in [
        ("send", on(&[TWO, "STEP\n", bobs]), "send: { type: get_snapshot, req_id: r1 }".to_owned()),
        (
            "raw",
            on(&[TWO, "STEP\n", bobs]),
            "raw: '{\"type\":\"get_snapshot\",\"req_id\":\"r1\"}'".to_owned(),
        ),
        (
            "binary",
            on(&[TWO, "STEP\n", "{ expect: [error, close], as: bob, within: 1s }\n"]),
            "binary: AAAA".to_owned(),
        ),
        (
            "frame",
            on(&[TWO, "STEP\n", bobs]),
            "frame: { opcode: text, payload: { type: get_snapshot, req_id: r1 } }".to_owned(),
        ),
        ("bytes", on(&[TWO, "STEP\n", bobs]), format!("bytes: {bytes}")),
        ("expect", on(&[TWO, ASK_BOB, "STEP\n"]), "expect: snapshot, within: 500ms".to_owned()),
        (
            "check",
            on(&[TWO, ASK, ASK_BOB, snapshot, bobs, "STEP\n"]),
            "check: { properties: { req_id: { const: r2 } } }".to_owned(),
        ),
        ("never", on(&[TWO, ASK_BOB, "STEP\n"]), "never: snapshot".to_owned()),
        ("ping", on(&[TWO, "{ drop: alice }\n", "STEP\n"]), "ping: hello".to_owned()),
        (
            "joined",
            on(&[TWO, TURN, "{ expect: turn-end }\n", "STEP\n"]),
            "joined: { of: assistant_text, at: [/text] }, where: { const: Hello }".to_owned(),
        ),
        ("rejected", on(&[TWO, BAD, "STEP\n"]), "rejected: 1".to_owned()),
        ("unseen", on(&[TWO, TURN, "{ expect: turn-end }\n", "STEP\n"]), "unseen: Hel".to_owned()),
        (
            "unchanged",
            on(&[TWO, "STEP\n"]),
            format!(
                "unchanged: [{}, {{ expect: turn-end, as: alice }}]",
                TURN.trim_end().replace(" } }", " }, as: alice }")
            ),
        ),
    ] {
        all.push(pair(verb, "as", &steps, &format!("{{ {without} }}"), &format!("{{ {without}, as: bob }}")));
    }
    for (verb, step) in [
        ("send", "send: { type: get_snapshot, req_id: r1 }".to_owned()),
        ("raw", "raw: '{\"type\":\"get_snapshot\",\"req_id\":\"r1\"}'".to_owned()),
        ("frame", "frame: { opcode: text, payload: { type: get_snapshot, req_id: r1 } }".to_owned()),
        ("bytes", format!("bytes: {bytes}")),
    ] {
        let steps = on(&[ONE, "STEP\n", "{ expect: snapshot, count: 2, within: 500ms }\n"]);
        all.push(pair(verb, "count", &steps, &format!("{{ {step} }}"), &format!("{{ {step}, count: 2 }}")));
    }
    // What a message must be like, and which failures count.
    let asked = on(&[ONE, ASK, "STEP\n"]);
    for modifier in ["with: { req_id: r9 }", "where: { properties: { req_id: { const: r9 } } }"] {
        let name = modifier.split(':').next().unwrap_or_default();
        all.push(pair(
            "expect",
            name_of(name),
            &asked,
            "{ expect: snapshot, within: 500ms }",
            &format!("{{ expect: snapshot, within: 500ms, {modifier} }}"),
        ));
        all.push(pair(
            "never",
            name_of(name),
            &asked,
            "{ never: snapshot }",
            &format!("{{ never: snapshot, {modifier} }}"),
        ));
    }
    all.push(pair(
        "expect",
        "save",
        &asked,
        "{ expect: snapshot }",
        "{ expect: snapshot, save: { x: /nope } }",
    ));
    let refused = on(&[REFUSED, "STEP\n"]);
    for (modifier, given) in [
        ("with", "with: { status: 404 }"),
        ("where", "where: { properties: { status: { const: 404 } } }"),
        ("save", "save: { x: /nope }"),
    ] {
        let step = format!("{{ refusal: alice, {given} }}");
        all.push(pair("refusal", modifier, &refused, "{ refusal: alice }", &step));
    }
    all.push(pair(
        "expect",
        "count",
        &asked,
        "{ expect: snapshot, within: 500ms }",
        "{ expect: snapshot, within: 500ms, count: 2 }",
    ));
    for modifier in ["tolerated: MC-AMB-02", "allowed: MC-AMB-02", "warns: true"] {
        let name = name_of(modifier.split(':').next().unwrap_or_default());
        let taken = on(&[ONE, ASK, snapshot, "STEP\n"]);
        for (verb, steps, step) in [
            ("expect", &asked, "expect: welcome, within: 20ms"),
            ("check", &taken, "check: { properties: { req_id: { const: r9 } } }"),
            ("never", &asked, "never: snapshot"),
            ("rejected", &asked, "rejected: 1"),
            ("refusal", &refused, "refusal: alice, with: { status: 404 }"),
        ] {
            if verb != "rejected" || name != "warns" {
                all.push(pair(
                    verb,
                    name,
                    steps,
                    &format!("{{ {step} }}"),
                    &format!("{{ {step}, {modifier} }}"),
                ));
            }
        }
    }
    all
}

/// What the end of a connection can be held to: a modifier by which the step passes, and one by which it does not.
fn ends() -> Vec<Pair> {
    let on = |parts: &[&str]| parts.concat();
    let closed = on(&[ONE, CLOSED, "STEP\n"]);
    let expected = |modifier, good: &str, bad: &str| {
        let step = |rest: &str| format!("{{ expect: close, {rest} }}");
        pair("expect", modifier, &closed, &step(good), &step(bad))
    };
    let allowed = on(&[ONE, NO_UTF8, "{ alive: alice, codes: [1007] }\n", "STEP\n"]);
    let never = |modifier, good: &str, bad: &str| {
        let step = |rest: &str| format!("{{ never: close, {rest} }}");
        pair("never", modifier, &allowed, &step(good), &step(bad))
    };
    let server = on(&[ONE, NO_UTF8, "STEP\n"]);
    let counted =
        ["tolerated: MC-AMB-02", "allowed: MC-AMB-02", "warns: true"].into_iter().flat_map(|modifier| {
            let name = name_of(modifier.split(':').next().unwrap_or_default());
            let wrong = "expect: close, with: { code: 4429 }";
            [
                pair(
                    "expect",
                    name,
                    &closed,
                    &format!("{{ {wrong} }}"),
                    &format!("{{ {wrong}, {modifier} }}"),
                ),
                pair("never", name, &allowed, "{ never: close }", &format!("{{ never: close, {modifier} }}")),
            ]
        });
    let mut all: Vec<Pair> = counted.collect();
    all.extend([
        pair(
            "expect",
            "with",
            &on(&[ONE, "{ close: alice }\n", "STEP\n"]),
            "{ expect: close, with: { by: client } }",
            "{ expect: close, with: { by: server } }",
        ),
        pair("never", "window", &on(&[ONE, "STEP\n"]), "{ never: close }", "{ never: close, window: 5s }"),
        expected("with", "with: { code: 4410 }", "with: { code: 4429 }"),
        expected("with", "with: { reason: gone, clean: true, by: client }", "with: { reason: other }"),
        expected(
            "where",
            "where: { properties: { code: { minimum: 4400 } } }",
            "where: { properties: { code: { maximum: 4400 } } }",
        ),
        expected("save", "save: { code: /code }", "save: { code: /nope }"),
        pair(
            "expect",
            "with",
            &server,
            "{ expect: close, with: { code: 1007, by: server } }",
            "{ expect: close, with: { by: client } }",
        ),
        pair(
            "expect",
            "past-errors",
            &on(&[ONE, BAD, ASK, "{ expect: snapshot, past-errors: true, keep: true }\n", CLOSED, "STEP\n"]),
            "{ expect: close }",
            "{ expect: close, past-errors: true }",
        ),
        pair(
            "expect",
            "keep",
            &on(&[
                ONE,
                ASK,
                "{ send: { type: get_snapshot, req_id: r2 } }\n",
                "{ expect: snapshot, with: { req_id: r2 }, keep: true }\n",
                CLOSED,
                "STEP\n",
                "{ expect: snapshot }\n",
            ]),
            "{ expect: close }",
            "{ expect: close, keep: true }",
        ),
        pair(
            "expect",
            "within",
            &on(&[ONE, "STEP\n"]),
            "{ expect: close }",
            "{ expect: close, within: 20ms }",
        ),
        pair(
            "check",
            "where",
            &on(&[ONE, CLOSED, "{ expect: close }\n", "STEP\n"]),
            "{ check: { properties: { reason: { const: gone }, by: { const: client } } } }",
            "{ check: { properties: { reason: { const: other } } } }",
        ),
        never("with", "with: { code: 4000 }", "with: { code: 1007 }"),
        never(
            "where",
            "where: { properties: { code: { const: 4000 } } }",
            "where: { properties: { code: { const: 1007 } } }",
        ),
        pair(
            "ended",
            "codes",
            &server,
            "{ ended: alice, codes: [4000] }",
            "{ ended: alice, codes: [4000], covers: [MC-HS-1] }",
        ),
    ]);
    all
}

fn name_of(modifier: &str) -> &'static str {
    VERBS.iter().flat_map(|verb| verb.modifiers).find(|known| **known == modifier).expect("a modifier")
}

/// What became of a case: as much of it as a modifier can change.
#[derive(Debug, PartialEq)]
struct Outcome {
    verdict: String,
    messages: Vec<String>,
    frames: usize,
    waited: bool,
}

/// Runs the cases of pairs: their outcomes, two a pair.
fn outcomes(pairs: &[Pair]) -> Vec<[Outcome; 2]> {
    let mut file = "family: m\ncases:\n".to_owned();
    for (index, pair) in pairs.iter().enumerate() {
        for (name, steps) in [("without", &pair.without), ("with", &pair.with)] {
            let _ = write!(
                file,
                "  - name: n{index}-{name}\n    title: {} {}\n    turn: [{{ say: [Hel, lo] }}]\n    \
                 turns: {{ slow: [{{ pause_ms: 1500 }}, {{ say: [x] }}] }}\n    settle: false\n    steps:\n",
                pair.verb, pair.modifier
            );
            for step in steps.lines() {
                let _ = writeln!(file, "      - {step}");
            }
        }
    }
    let folder = folder(SERVED);
    fs::write(folder.path().join("m.yaml"), &file).expect("written");
    let arguments = ["run", "--target", "mine", "--scenario", "m.yaml", "--json", "out.jsonl"];
    let (code, shown, errors) = run(&folder, &arguments);
    assert_eq!(code, Some(1), "{shown}{errors}");
    let report = fs::read_to_string(folder.path().join("out.jsonl")).expect("the report");
    let lines = report.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut found: BTreeMap<String, Outcome> = BTreeMap::new();
    for case in lines.filter(|line| line["event"] == "case-finished") {
        let messages = case["failures"].as_array().into_iter().flatten();
        let outcome = Outcome {
            verdict: case["verdict"].as_str().unwrap_or_default().to_owned(),
            messages: messages.map(|one| one["message"].to_string()).collect(),
            frames: case["wire"].as_array().map_or(0, Vec::len),
            waited: case["seconds"].as_f64().unwrap_or_default() >= 4.9,
        };
        found.insert(case["case"].as_str().unwrap_or_default().to_owned(), outcome);
    }
    let mut outcome = |index: usize, name: &str| found.remove(&format!("m/n{index}-{name}")).expect("it ran");
    (0..pairs.len()).map(|index| [outcome(index, "without"), outcome(index, "with")]).collect()
}

#[test]
fn each_modifier_that_a_verb_takes_is_judged() {
    let pairs = pairs();
    // Only a server that refuses connections shows what `may-refuse` does.
    // What `reply` and `refuse` do, `requests::` shows: they need a protocol whose server asks.
    // What `abandon` does, `barriers::` shows: it needs a server that leaves something undone.
    let mut proven = BTreeSet::from([
        ("open", "may-refuse"),
        ("expect", "reply"),
        ("expect", "refuse"),
        ("send", "abandon"),
        ("raw", "abandon"),
        // `plain_http::` has a server that does not answer.
        ("get", "within"),
        // `groups::` shows what the variables of `steps` do.
        ("steps", "vars"),
        // The modifiers of `repeat` are what `loops::` is about.
        ("repeat", "until"),
        ("repeat", "with"),
        ("repeat", "where"),
        ("repeat", "count"),
    ]);
    for (pair, [without, with]) in pairs.iter().zip(outcomes(&pairs)) {
        let alike = match pair.modifier {
            "within" => without.waited == with.waited && without.verdict == with.verdict,
            "noticed" => without.frames == with.frames,
            _ => without.verdict == with.verdict,
        };
        assert!(!alike, "`{}` of `{}` has no effect: {without:?}, {with:?}", pair.modifier, pair.verb);
        proven.insert((pair.verb, pair.modifier));
    }
    let taken = VERBS.iter().flat_map(|verb| verb.modifiers.iter().map(|modifier| (verb.name, *modifier)));
    assert_eq!(proven, taken.collect());
}

#[test]
fn the_end_of_a_connection_is_held_to_every_modifier() {
    let pairs = ends();
    for (pair, [good, bad]) in pairs.iter().zip(outcomes(&pairs)) {
        let differs = match pair.modifier {
            "within" | "window" => good.waited != bad.waited,
            _ => good.verdict != bad.verdict,
        };
        assert!(differs, "{}\n{}\n{good:?}, {bad:?}", pair.without, pair.with);
    }
}

/// Takes one connection, by which frameproof finds out whether there is a server, and refuses all others.
fn refusing() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/ws", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for (served, mut stream) in listener.incoming().flatten().enumerate() {
            if served == 0 {
                support::hand::upgrade(&mut stream);
            } else {
                let _ = support::hand::request(&stream);
                let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    url
}

#[test]
fn a_refusal_is_allowed_by_the_step_that_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    for (refusal, code) in [("", 3), (", may-refuse: true", 0)] {
        let file = format!(
            "family: m\ncases:\n  - name: refused\n    title: t\n    settle: false\n    steps:\n      \
             - {{ open: alice{refusal} }}\n      - expect: close\n"
        );
        fs::write(folder.path().join("m.yaml"), file).expect("written");
        let arguments = ["run", "minicodex", "--scenario", "m.yaml", "--url", &refusing()];
        let output = support::frameproof(folder.path(), &arguments);
        let shown = support::text(&output.stdout) + &support::text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{shown}");
    }
}

/// A small value for each field of a step.
fn value_of(field: &str) -> &'static str {
    match field {
        "send" | "with" | "where" | "check" | "reply" | "refuse" => "{}",
        "frame" => "{ opcode: ping }",
        "bytes" => "'00'",
        "binary" => "AAAA",
        "expect" | "never" | "until" => "welcome",
        "joined" => "{ of: assistant_text, at: [/text] }",
        "restart" => "hard",
        "assert" => "{ equal: [1, 1] }",
        "unchanged" | "steps" | "parallel" | "repeat" => "[]",
        "vars" => "{ x: 1 }",
        "headers" => "{ X-A: b }",
        "protocols" => "[a]",
        "codes" => "[1000]",
        "abandon" | "may-refuse" | "noticed" | "past-errors" | "keep" | "warns" => "true",
        "save" => "{ x: /a }",
        "within" | "window" => "1s",
        "count" | "rejected" | "after" => "2",
        "tolerated" | "allowed" => "MC-AMB-02",
        "opening" => "none",
        _ => "alice",
    }
}

#[test]
fn every_other_modifier_is_refused_at_its_place() {
    let schema = schema_of::<ScenarioFile>();
    let fields = schema["$defs"]["Step"]["properties"].as_object().expect("the fields of a step");
    let is_verb = |field: &str| VERBS.iter().any(|verb| verb.name == field);
    let modifiers =
        fields.keys().map(String::as_str).filter(|field| !is_verb(field) && !COMMON.contains(field));
    let modifiers: Vec<&str> = modifiers.collect();
    let protocol = Protocol::embedded("minicodex", &LoadOptions::default()).expect("it loads");
    let mut count = 0;
    for verb in VERBS {
        let refused: Vec<&str> =
            modifiers.iter().copied().filter(|modifier| !verb.modifiers.contains(modifier)).collect();
        let mut file =
            "family: f\ncases:\n  - name: a\n    title: t\n    steps:\n      - open: alice\n".to_owned();
        for modifier in &refused {
            let (name, rest) = (verb.name, value_of(verb.name));
            let _ = writeln!(file, "      - {{ {name}: {rest}, {modifier}: {} }}", value_of(modifier));
        }
        let document = Document::parse("s.yaml", &file).expect("YAML");
        let errors = frameproof::scenario::from_documents([document], &protocol).expect_err("refused");
        let text = errors.to_string();
        for modifier in refused {
            let message = format!("`{modifier}` does not go with `{}`", verb.name);
            assert!(text.contains(&message), "{message}: not in\n{text}");
            count += 1;
        }
    }
    // Each verb with each modifier of the schema: it is refused here, or judged above (or, `covers` and `when`, in `common_modifiers`).
    let taken: usize = VERBS.iter().map(|verb| verb.modifiers.len()).sum();
    let all = fields.keys().filter(|field| !is_verb(field)).count();
    assert_eq!(VERBS.len() * all, count + taken + VERBS.len() * COMMON.len());
}

#[test]
fn what_cannot_be_judged_of_an_end_is_refused() {
    let protocol = Protocol::embedded("minicodex", &LoadOptions::default()).expect("it loads");
    let file = "family: f\ncases:\n  - name: a\n    title: t\n    steps:\n      - open: alice\n      \
                - { expect: close, count: 2 }\n      - { expect: [error, close], count: 3 }\n      \
                - { expect: close, with: { cod: 4410 } }\n";
    let document = Document::parse("s.yaml", file).expect("YAML");
    let errors =
        frameproof::scenario::from_documents([document], &protocol).expect_err("refused").to_string();
    assert_eq!(errors.matches("`count` does not go with `close`").count(), 2, "{errors}");
    assert!(errors.contains("s.yaml:7:26"), "{errors}");
    assert!(errors.contains("the end of a connection has no `cod`"), "{errors}");
}

/// Who tests concurrent operations makes this mistake first.
#[test]
fn what_an_earlier_step_took_or_passed_is_named() {
    let asked = [ONE, ASK, "{ send: { type: get_snapshot, req_id: r2 } }\n"].concat();
    let passed = "{ expect: snapshot, with: { req_id: r2 } }\n{ expect: snapshot, with: { req_id: r1 }, within: 200ms }\n";
    let taken = "{ expect: snapshot, with: { req_id: r1 } }\n{ expect: snapshot, with: { req_id: r1 }, within: 200ms }\n";
    let pairs = [Pair {
        verb: "expect",
        modifier: "keep",
        without: [&asked, passed].concat(),
        with: [&asked, taken].concat(),
    }];
    let [[passed, taken]] = &outcomes(&pairs)[..] else { panic!("one pair") };
    for (outcome, how) in [
        (passed, "and the `expect` in line 12 skipped it (`keep: true` there leaves it for later steps)"),
        (taken, "and the `expect` in line 23 took it"),
    ] {
        let message = &outcome.messages[0];
        assert!(
            message.contains("snapshot did not come within") || message.contains("did not match"),
            "{message}"
        );
        assert!(message.contains(". One came as frame ") && message.contains(how), "{message}");
    }
}
