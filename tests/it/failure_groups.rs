//! How failures are told: each root cause once, with the frame that shows it.

use std::fs;

use crate::support::hand;
use crate::support::target::{folder, run};
use crate::support::{Served, frameproof, text};
use serde_json::Value;

/// How many stories a report tells in full.
fn stories(shown: &str) -> usize {
    shown.matches("reproduce:").count()
}

/// A folder with a target of this URL and with a scenario of these cases.
fn with_cases(url: &str, cases: &str) -> tempfile::TempDir {
    let folder = folder(&format!("[target.x]\nprotocol = 'minicodex'\nurl = '{url}'\ntimeout-scale = 1\n"));
    fs::write(folder.path().join("own.yaml"), format!("family: own\nabout: Tests.\ncases:\n{cases}"))
        .expect("written");
    folder
}

/// A case that asks for a snapshot, which must be like this.
fn asks(name: &str, condition: &str) -> String {
    format!(
        "  - name: {name}\n    title: A snapshot\n    covers: [MC-SNP-1]\n    steps:\n      - open: alice\n      - send: {{ type: get_snapshot, \
         req_id: {name} }}\n      - expect: snapshot\n        within: 300ms\n        covers: [MC-SNP-1]\n        {condition}\n"
    )
}

#[test]
fn what_differs_in_another_place_is_another_story() {
    let server = Served::start(&["minicodex"]);
    let cases = [
        asks("one", "with: { session_state: { run_counter: 11 } }"),
        asks("two", "with: { session_state: { run_counter: 12 } }"),
        asks("three", "with: { session_state: { version: '9' } }"),
        asks("four", "where: { properties: { transcript: { minItems: 3 } } }"),
        asks("five", "where: { properties: { transcript: { minItems: 5 } } }"),
    ];
    let folder = with_cases(&server.url, &cases.concat());
    let arguments = ["run", "--target", "x", "--scenario", "own.yaml", "-j", "1", "--json", "out.jsonl"];
    let (code, shown, errors) = run(&folder, &arguments);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert_eq!(stories(&shown), 3, "{shown}");
    for part in ["same reason as own/one: own/two", "same reason as own/four: own/five"] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    // Other reports say the same.
    let report = fs::read_to_string(folder.path().join("out.jsonl")).expect("the report");
    let cases = report.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let same: Vec<_> = cases.filter_map(|case| case["same_as"].as_str().map(str::to_owned)).collect();
    assert_eq!(same, ["own/one", "own/four"]);
}

/// Frames that a message quotes differ from case to case.
#[test]
fn quoted_frames_do_not_tell_stories_apart() {
    let server = Served::start(&["minicodex"]);
    let url = hand::altered(&server.url, |text| {
        text.replace(r#"{"type":"text","text":"#, r#"{"type":"text","txt":"#)
            .replace("\"finished_at\":\"", "\"finished_at\":\"at ")
    });
    let config = format!("[target.x]\nprotocol = 'minicodex'\nurl = '{url}'\ntimeout-scale = 1\n");
    let folder = folder(&config);
    let (code, shown, errors) = run(&folder, &["run", "--target", "x", "streaming/*", "tools/*", "resume/*"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(stories(&shown) <= 3, "{shown}");
    assert!(shown.contains("same reason as "), "{shown}");
}

/// It closes the connection where other frames were due: that is told, with the close frame, once for whatever was waited for.
#[test]
fn a_connection_that_is_closed_is_told_as_that() {
    let server = Served::start(&["minicodex"]);
    let url = hand::closing(&server.url, "\"type\":\"send\"");
    let cases = "  - name: code\n    title: The code\n    covers: [MC-TRN-1]\n    steps:\n      - open: alice\n      - open: bob\n      \
                 - send: { type: send, text: hi }\n        as: alice\n      - expect: close\n        as: alice\n      \
                 - check: { properties: { code: { const: 1002 } } }\n        as: alice\n";
    let folder = with_cases(&url, cases);
    let (code, shown, errors) = run(&folder, &["run", "--target", "x", "--scenario", "own.yaml"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(
        shown.contains("the server closed the connection with code 1011, where code 1002 was expected"),
        "{shown}"
    );
    let marked: Vec<_> = shown.lines().filter(|line| line.trim_start().starts_with("> ")).collect();
    assert!(matches!(marked[..], [line] if line.contains("alice    <- close 1011 gone")), "{shown}");

    let (code, shown, errors) =
        run(&folder, &["run", "--target", "x", "streaming/*", "approval/*", "abort/*"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("the server closed the connection with code 1011 instead of sending "), "{shown}");
    assert!(stories(&shown) <= 3, "one root cause:\n{shown}");
    let marked: Vec<_> = shown.lines().filter(|line| line.trim_start().starts_with("> ")).collect();
    assert!(!marked.is_empty() && marked.iter().all(|line| line.contains("<- close 1011 gone")), "{shown}");
    assert!(!shown.contains("+ came"), "no frame that came before is to blame:\n{shown}");
}

/// What an overlay says in vain is told at its place.
#[test]
fn an_overlay_that_changes_nothing_is_an_error() {
    let folder = folder("");
    for (overlay, parts) in [
        (
            "component: { schemas: {} }\n",
            &["`component` has no effect", "did you mean `components`?", "o.yaml:1:1"][..],
        ),
        (
            "x-frameproof:\n  invariants:\n    run-state: null\n",
            &["no invariant `run-state`", "did you mean `run-states`?", "o.yaml:3:5"],
        ),
        (
            "components:\n  schemas:\n    RunStat: { type: object }\n",
            &["`RunStat` changes nothing: nothing refers to it", "did you mean `RunState`?", "o.yaml:3:5"],
        ),
        (
            "components:\n  schemas:\n    RunState: { properties: { status: { type: strng } } }\n",
            &["this is not a JSON Schema", "must be one of \"array\"", "o.yaml:3:47"],
        ),
    ] {
        fs::write(folder.path().join("o.yaml"), overlay).expect("written");
        let (code, shown, errors) = run(&folder, &["run", "minicodex", "--overlay", "o.yaml", "abort/idle"]);
        assert_eq!(code, Some(2), "{shown}{errors}");
        for part in parts {
            assert!(errors.contains(part), "{part} is not in\n{errors}");
        }
        assert!(!errors.contains("asyncapi.yaml"), "the document is right:\n{errors}");
    }
}

/// Evidence is in the order of the wire: what a server answers at once comes behind what it answers.
#[test]
fn an_answer_never_stands_before_its_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["run", "codex", "--case", "jsonrpc/*", "--html-frames", "all", "--json", "out.jsonl"];
    let output = frameproof(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let events = fs::read_to_string(folder.path().join("out.jsonl")).expect("the events");
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut pairs = 0;
    for case in events.filter(|event| event["event"] == "case-finished") {
        let mut asked: Vec<(String, Value, f64)> = Vec::new();
        let mut early: Vec<(String, Value)> = Vec::new();
        for line in case["wire"].as_array().into_iter().flatten() {
            let Ok(body) = serde_json::from_str::<Value>(line["text"].as_str().unwrap_or_default()) else {
                continue;
            };
            let (client, ms) = (line["client"].to_string(), line["ms"].as_f64().expect("a time"));
            if line["dir"] == "->" {
                let request = (client, body["id"].clone());
                assert!(request.1.is_null() || !early.contains(&request), "{}: {line}", case["case"]);
                asked.push((request.0, request.1, ms));
            } else if let Some((_, _, before)) =
                asked.iter().rev().find(|(name, id, _)| *name == client && !id.is_null() && *id == body["id"])
            {
                assert!(*before <= ms, "{}: {line}", case["case"]);
                pairs += 1;
            } else if !body["id"].is_null() && line["dir"] == "<-" && body["method"].is_null() {
                early.push((client, body["id"].clone()));
            }
        }
    }
    assert!(pairs > 100, "{pairs}");
}

/// What is shown of a run, without what differs each time: the frames, numbers, how long it took.
fn lasting(shown: &str) -> String {
    let differs = ["alice ", "bob ", "…", "hint: ", " at a time, ", "conformant: "];
    let lines = shown.lines().filter(|line| !differs.iter().any(|part| line.contains(part)));
    let plain = |line: &str| {
        let words = line.split_whitespace().map(|word| word.replace(|c: char| c.is_ascii_digit(), ""));
        words.collect::<Vec<_>>().join(" ") + "\n"
    };
    lines.map(plain).collect()
}

/// Cases end in another order each time: neither the groups nor their order depends on it.
#[test]
fn groups_do_not_depend_on_the_order_in_which_cases_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let shown = |jobs: &str| {
        let what =
            ["run", "minicodex", "--fault", "never-asks", "--case", "abort/s*", "--case", "approval/a*"];
        let output = frameproof(
            folder.path(),
            &[&what[..], &["--timeout-scale", "0.1", "--seed", "7", "-v", "--jobs", jobs]].concat(),
        );
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
        lasting(&text(&output.stdout))
    };
    let one = shown("1");
    assert!(stories(&one) == 2 && one.contains("same reason as "), "{one}");
    for _ in 0..3 {
        assert_eq!(one, shown("8"));
    }
}

/// A warning is told for itself, also where cases that fail have the same warning.
#[test]
fn a_warning_never_stands_under_a_failure() {
    let server = Served::start(&["minicodex"]);
    let step = |condition: &str| {
        format!(
            "      - send: {{ type: get_snapshot }}\n      - expect: snapshot\n        covers: [MC-SNP-1]\n        \
             with: {{ session_state: {{ {condition} }} }}\n"
        )
    };
    let (odd, bad) = (step("run_counter: 11") + "        warns: true\n", step("version: '9'"));
    let case = |name: &str, steps: &[&str]| {
        let head = "    title: Snapshots\n    covers: [MC-SNP-1]\n    steps:\n      - open: alice\n";
        format!("  - name: {name}\n{head}{}", steps.concat())
    };
    let cases =
        [("one", &[&*odd, &*bad][..]), ("two", &[&*odd]), ("three", &[&*odd, &*bad]), ("four", &[&*odd])];
    let cases = cases.map(|(name, steps)| case(name, steps));
    let folder = with_cases(&server.url, &cases.concat());
    let (code, shown, errors) = run(&folder, &["run", "--target", "x", "--scenario", "own.yaml", "-j", "4"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert_eq!(stories(&shown), 2, "{shown}");
    for part in [
        "FAIL own/one: ",
        "WARN own/two: ",
        "same reason as own/one: own/three",
        "same reason as own/two: own/four",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
}
