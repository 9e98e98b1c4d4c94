//! `covers` and `when`, which every verb takes, are judged with every verb.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use crate::support::target::{SERVED, folder, run};
use frameproof::scenario::verbs::{COMMON, VERBS};
use serde_json::Value;

const ONE: &str = "{ open: alice }";
const REFUSED: &str = "{ open: alice, opening: none, may-refuse: true, headers: { Upgrade: h2c } }";
const ASK: &str = "{ send: { type: get_snapshot, req_id: r1 } }";
const BAD: &str = "{ send: { type: frobnicate } }";
const NO_UTF8: &str = "{ frame: { opcode: text, hex: ff } }";
const TURN: &str = "{ send: { type: send, text: \"{{cue}}\" } }";

/// For each verb a step that succeeds, and the steps before it.
const GOOD: &[(&str, &[&str], &str)] = &[
    ("open", &[], "open: alice"),
    ("close", &[ONE], "close: alice"),
    ("drop", &[ONE], "drop: alice"),
    ("stall", &[ONE], "stall: alice"),
    ("unstall", &[ONE, "{ stall: alice }"], "unstall: alice"),
    ("send", &[ONE], "send: { type: get_snapshot, req_id: r1 }"),
    ("raw", &[ONE], "raw: '{}'"),
    ("binary", &[ONE], "binary: AAAA"),
    ("frame", &[ONE], "frame: { opcode: ping }"),
    ("bytes", &[ONE], "bytes: 89 80 00 00 00 00"),
    ("expect", &[ONE, ASK], "expect: snapshot"),
    ("check", &[ONE, ASK, "{ expect: snapshot }"], "check: { properties: { req_id: { const: r1 } } }"),
    ("never", &[ONE], "never: snapshot"),
    ("ping", &[ONE], "ping: hello"),
    (
        "joined",
        &[ONE, TURN, "{ expect: turn-end }"],
        "joined: { of: assistant_text, at: [/text] }, where: { const: Hello }",
    ),
    ("settle", &[ONE], "settle: alice"),
    ("alive", &[ONE], "alive: alice"),
    ("ended", &[ONE, NO_UTF8], "ended: alice"),
    ("refusal", &[REFUSED], "refusal: alice"),
    ("rejected", &[ONE, BAD], "rejected: 1"),
    ("unseen", &[ONE], "unseen: nowhere"),
    ("restart", &[ONE], "restart: hard"),
    ("expect_file", &[ONE], "expect_file: nope, where: { type: 'null' }"),
    ("get", &[], "get: /, with: { status: 404 }"),
    ("assert", &[], "assert: { equal: [1, 1] }"),
    ("unchanged", &[ONE], "unchanged: [{ ping: hi }]"),
    (
        "repeat",
        &[ONE],
        "repeat: [{ send: { type: get_snapshot, req_id: r1 } }, { expect: snapshot }], until: snapshot",
    ),
    ("steps", &[ONE], "steps: [{ ping: hi }]"),
    ("parallel", &[ONE], "parallel: [[{ ping: hi }]]"),
];

/// Nothing in these cases has to do with it.
const OTHERWISE: &str = "MC-APR-8";

#[test]
fn every_verb_is_held_to_covers_and_when() {
    assert_eq!(COMMON, ["covers", "when"], "what is new is proven here as well");
    let verbs: BTreeSet<&str> = VERBS.iter().map(|verb| verb.name).collect();
    assert_eq!(GOOD.iter().map(|(verb, ..)| *verb).collect::<BTreeSet<_>>(), verbs);
    let variants = [
        ("plain", "", false),
        ("covers", ", covers: [MC-APR-8]", true),
        ("when", ", covers: [MC-APR-8], when: { equal: [1, 1] }", true),
        ("when-not", ", covers: [MC-APR-8], when: { equal: [1, 2] }", false),
    ];
    let mut file = "family: m\ncases:\n".to_owned();
    for (verb, before, step) in GOOD {
        for (name, more, _) in variants {
            let case = format!("{}-{name}", verb.replace('_', "-"));
            let _ = write!(
                file,
                "  - name: {case}\n    title: t\n    turn: [{{ say: [Hel, lo] }}]\n    settle: false\n    steps:\n"
            );
            for step in before.iter().map(|step| (*step).to_owned()).chain([format!("{{ {step}{more} }}")]) {
                let _ = writeln!(file, "      - {step}");
            }
        }
    }
    let folder = folder(SERVED);
    fs::write(folder.path().join("m.yaml"), &file).expect("written");
    let (code, shown, errors) =
        run(&folder, &["run", "--target", "mine", "--scenario", "m.yaml", "--json", "out.jsonl"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    let report = fs::read_to_string(folder.path().join("out.jsonl")).expect("the report");
    let lines = report.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let found: BTreeMap<String, bool> = lines
        .filter(|line| line["event"] == "case-finished")
        .map(|case| {
            let exercised = case["exercised"][OTHERWISE].as_u64().is_some_and(|times| times > 0);
            (case["case"].as_str().unwrap_or_default().to_owned(), exercised)
        })
        .collect();
    assert_eq!(found.len(), VERBS.len() * variants.len());
    for (verb, ..) in GOOD {
        for (name, _, exercised) in variants {
            let case = format!("m/{}-{name}", verb.replace('_', "-"));
            assert_eq!(found[&case], exercised, "{case}");
        }
    }
}

/// A step that fails is blamed on what it covers, unless its condition does not hold.
#[test]
fn a_failing_step_breaks_what_it_covers_when_its_condition_holds() {
    let bad: &[(&str, &[&str], &str)] = &[
        ("open", &[], "open: alice, selects: nobodys"),
        ("expect", &[ONE], "expect: snapshot, within: 20ms"),
        ("check", &[ONE, ASK, "{ expect: snapshot }"], "check: { properties: { req_id: { const: r9 } } }"),
        ("never", &[ONE, ASK], "never: snapshot"),
        (
            "joined",
            &[ONE, TURN, "{ expect: turn-end }"],
            "joined: { of: assistant_text, at: [/text] }, where: { const: Nope }",
        ),
        ("ended", &[ONE, NO_UTF8], "ended: alice, codes: [4000]"),
        ("alive", &[ONE, NO_UTF8, "{ expect: close }"], "alive: alice"),
        ("refusal", &[REFUSED], "refusal: alice, with: { status: 404 }"),
        ("rejected", &[ONE], "rejected: 1"),
        ("unseen", &[ONE, TURN, "{ expect: turn-end }"], "unseen: Hel"),
        ("expect_file", &[ONE], "expect_file: nope, within: 20ms"),
        ("get", &[], "get: /, with: { status: 200 }"),
        ("assert", &[], "assert: { equal: [1, 2] }"),
        ("unchanged", &[ONE], "unchanged: [{ send: { type: send, text: hi } }, { expect: turn-end }]"),
        ("steps", &[ONE], "steps: [{ assert: { equal: [1, 2] }, covers: [MC-APR-8] }]"),
        ("parallel", &[ONE], "parallel: [[{ assert: { equal: [1, 2] }, covers: [MC-APR-8] }]]"),
    ];
    let mut file = "family: m\ncases:\n".to_owned();
    let conditions = [("when", "[1, 1]", true), ("when-not", "[1, 2]", false)];
    for (verb, before, step) in bad {
        for (name, condition, _) in conditions {
            let case = format!("{}-{name}", verb.replace('_', "-"));
            let _ = write!(
                file,
                "  - name: {case}\n    title: t\n    turn: [{{ say: [Hel, lo] }}]\n    settle: false\n    steps:\n"
            );
            let covers = if ["steps", "parallel"].contains(verb) { "" } else { ", covers: [MC-APR-8]" };
            let last = format!("{{ {step}{covers}, when: {{ equal: {condition} }} }}");
            for step in before.iter().map(|step| (*step).to_owned()).chain([last]) {
                let _ = writeln!(file, "      - {step}");
            }
        }
    }
    let folder = folder(SERVED);
    fs::write(folder.path().join("m.yaml"), &file).expect("written");
    let (code, shown, errors) =
        run(&folder, &["run", "--target", "mine", "--scenario", "m.yaml", "--json", "out.jsonl"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    let report = fs::read_to_string(folder.path().join("out.jsonl")).expect("the report");
    let cases: Vec<Value> = report
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .filter(|line| line["event"] == "case-finished")
        .collect();
    for (verb, ..) in bad {
        for (name, _, fails) in conditions {
            let case = format!("m/{}-{name}", verb.replace('_', "-"));
            let told = cases.iter().find(|one| one["case"] == case.as_str()).expect("it ran");
            assert_eq!(told["verdict"] == "failed", fails, "{told:#}");
            assert_eq!(told["failures"].to_string().contains(OTHERWISE), fails, "{told:#}");
        }
    }
}
