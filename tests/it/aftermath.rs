//! What becomes of a case behind the first frame that breaks a MUST: it goes on as long as no step builds on that frame.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{frameproof, hand, text};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

/// A server that answers each `say` in this way, and greets.
fn serve(answers: fn(&str) -> Vec<Value>) -> String {
    hand::serve(move |stream| async move {
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
        while let Some(Ok(message)) = socket.next().await {
            let Message::Text(request) = message else { continue };
            let request = serde_json::from_str::<Value>(&request).unwrap_or_default();
            let said = match request["type"].as_str() {
                Some("hello") => vec![json!({ "type": "welcome", "room": "r1" })],
                _ => answers(request["text"].as_str().unwrap_or_default()),
            };
            for answer in said {
                drop(socket.send(Message::text(answer.to_string())).await);
            }
        }
    })
}

/// Runs one case against the server: the exit code, what is shown, and the verdict on each requirement.
fn run(url: &str, case: &str) -> (Option<i32>, String, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = frameproof(folder.path(), &["init", ".", "--url", url]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    fs::write(folder.path().join("scenarios/first.yaml"), format!("family: own\ncases:\n{case}"))
        .expect("written");
    let arguments = ["run", "--json", "out.jsonl", "--timeout-scale", "0.1", "--quiet-period", "300ms"];
    let output = frameproof(folder.path(), &arguments);
    let report = fs::read_to_string(folder.path().join("out.jsonl")).unwrap_or_default();
    let last = report.lines().last().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let requirements = last.map(|last| last["requirements"].clone()).unwrap_or_default();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr), requirements)
}

fn verdicts<const N: usize>(requirements: &Value, ids: [&str; N]) -> [String; N] {
    ids.map(|id| requirements[id]["verdict"].as_str().unwrap_or_default().to_owned())
}

/// `said` twice with one number breaks CH-2; a text that is a number breaks CH-3.
fn says(text: &str) -> Vec<Value> {
    let said = |text: Value, seq: u64| json!({ "type": "said", "text": text, "seq": seq });
    let done = |seq: u64| json!({ "type": "done", "seq": seq });
    match text {
        "twice" => vec![said(json!("a"), 1), said(json!("b"), 1), done(2)],
        "more" => vec![said(json!("c"), 3), done(4)],
        "wrong" => vec![said(json!(7), 5), done(6)],
        "silence" => vec![],
        _ => vec![done(9)],
    }
}

#[test]
fn what_the_rest_of_a_case_covers_is_judged() {
    let case = "  - name: case\n    title: A case\n    covers: [CH-1]\n    steps:\n      - open: a\n      - send: { type: say, text: twice }\n      \
                - expect: done\n        covers: [CH-4]\n      - send: { type: say, text: more }\n      - expect: said\n        covers: [CH-5]\n";
    let (code, shown, requirements) = run(&serve(says), case);
    assert_eq!(code, Some(1), "{shown}");
    let expected = ["passed", "failed", "passed", "passed"];
    assert_eq!(verdicts(&requirements, ["CH-1", "CH-2", "CH-4", "CH-5"]), expected, "{shown}");
}

/// A failure behind the violation may be its consequence: it blames nobody, and exercises nothing.
#[test]
fn what_fails_behind_a_violation_blames_nobody() {
    let case = "  - name: case\n    title: A case\n    covers: [CH-1]\n    steps:\n      - open: a\n      - send: { type: say, text: twice }\n      \
                - expect: done\n      - send: { type: say, text: silence }\n      - expect: said\n        covers: [CH-5]\n";
    let (code, shown, requirements) = run(&serve(says), case);
    assert_eq!(code, Some(1), "{shown}");
    let expected = ["failed", "not-exercised"];
    assert_eq!(verdicts(&requirements, ["CH-2", "CH-5"]), expected, "{shown}");
    assert!(shown.contains("1 failed"), "{shown}");
    // A monitor's second finding, of another requirement, is treated alike.
    let case = "  - name: case\n    title: A case\n    steps:\n      - open: a\n      - send: { type: say, text: twice }\n      \
                - expect: done\n      - send: { type: say, text: wrong }\n      - expect: done\n        covers: [CH-5]\n";
    let (_, shown, requirements) = run(&serve(says), case);
    let expected = ["failed", "not-exercised", "passed"];
    assert_eq!(verdicts(&requirements, ["CH-2", "CH-3", "CH-5"]), expected, "{shown}");
}

/// What a step waits for is its premise.
#[test]
fn a_step_that_takes_the_violation_ends_the_case() {
    let case = "  - name: case\n    title: A case\n    steps:\n      - open: a\n      - send: { type: say, text: wrong }\n      \
                - expect: said\n      - expect: done\n        covers: [CH-5]\n";
    let (code, shown, requirements) = run(&serve(says), case);
    assert_eq!(code, Some(1), "{shown}");
    assert_eq!(verdicts(&requirements, ["CH-3", "CH-5"]), ["failed", "not-exercised"], "{shown}");
}

/// What a run says of each case and requirement, times and ids aside.
fn digest(folder: &Path, protocol: &str, more: &[&str]) -> BTreeMap<String, Value> {
    let arguments = ["run", protocol, "--seed", "5", "--quiet", "--json", "out.jsonl"];
    frameproof(folder, &[&arguments[..], more].concat());
    let report = fs::read_to_string(folder.join("out.jsonl")).expect("a report");
    let mut said = BTreeMap::new();
    for line in report.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")) {
        if let (Some(case), Some(verdict)) = (line["case"].as_str(), line.get("verdict")) {
            let failures = line["failures"].as_array().map(Vec::as_slice).unwrap_or_default();
            let broken: Vec<Value> = failures
                .iter()
                .map(|one| json!([one["verdict"], one["check"], one["requirements"]]))
                .collect();
            said.insert(case.to_owned(), json!([verdict, broken]));
        } else if line["event"] == "run-finished" {
            let verdicts = line["requirements"].as_object().expect("requirements").iter();
            said.extend(verdicts.map(|(id, one)| (id.clone(), one["verdict"].clone())));
        }
    }
    assert!(said.len() > 10, "{protocol}: {said:?}");
    said
}

/// The same run, three times in each of the two styles, has the same verdicts: of two protocols here, of six and ten times in
/// `.ci/verdicts`.
#[test]
fn runs_with_one_seed_say_the_same_again_and_again() {
    for (protocol, fault, cases) in
        [("codey", "ends-twice", "tools/*"), ("minicodex", "text-after-finish", "streaming/*")]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |style| digest(folder.path(), protocol, &[cases, "--fault", fault, "--style", style]);
        let first = json!(of("each-alone")).to_string();
        assert!(first.contains("failed"), "{protocol}: {first}");
        for style in ["coalesced", "each-alone", "coalesced", "each-alone", "coalesced"] {
            assert_eq!(json!(of(style)).to_string(), first, "{protocol}, {style}");
        }
    }
}

/// A server with a defect, which writes each frame alone or what comes within 20 ms at once: with one seed all verdicts are the same.
/// `.ci/verdicts` does it ten times with whole suites.
#[test]
fn how_tcp_cuts_the_stream_decides_nothing() {
    for (protocol, fault, cases, broken) in [
        ("agentloop", "item-after-end", "streaming/*", "AL-SEQ-5"),
        ("codelab", "final-twice", "streaming/*", "CL-AM-4"),
        ("codex", "deltas-after-the-end", "items/*", "CX-ITM-2"),
        ("codey", "ends-twice", "tools/*", "CO-TL-19"),
        ("minicodex", "text-after-finish", "streaming/*", "MC-LIFE-4"),
        ("tinyvex", "answers-twice", "sessions/*", "TV-TRN-10"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |style| digest(folder.path(), protocol, &[cases, "--fault", fault, "--style", style]);
        let (alone, bursts) = (of("each-alone"), of("coalesced"));
        assert_eq!(alone[broken], "failed", "{protocol}: {alone:?}");
        let differ = alone.iter().filter(|(name, said)| bursts.get(*name) != Some(said));
        let differ: Vec<_> =
            differ.map(|(name, said)| format!("{name}: {said}, {:?}", bursts.get(name))).collect();
        assert!(differ.is_empty() && alone.len() == bursts.len(), "{protocol}: {differ:#?}");
    }
}
