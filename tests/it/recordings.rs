//! Recordings: judged, with reports; and compared with each other.

use std::fs;
use std::path::Path;

use crate::support::{frameproof, text};
use serde_json::{Value, json};

fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = frameproof(folder, arguments);
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).expect(name)
}

/// A recording of these frames of one client, 10 ms apart: sent where they begin with `>`.
fn record(folder: &Path, name: &str, frames: &[String]) {
    let line = |(at, frame): (usize, &String)| {
        let (dir, text) = match frame.strip_prefix('>') {
            Some(text) => ("send", text),
            None => ("recv", frame.as_str()),
        };
        json!({ "t_ms": 10 * at, "client": "c1", "dir": dir, "text": text }).to_string() + "\n"
    };
    let text: String = frames.iter().enumerate().map(line).collect();
    fs::write(folder.join(name), text).expect("written");
}

/// A recorded run of a few cases of minicodex.
fn recorded(folder: &Path, name: &str, more: &[&str]) {
    let arguments = [
        "run",
        "minicodex",
        "--trace",
        name,
        "-q",
        "--json",
        "r.jsonl",
        "--junit",
        "r.xml",
        "--html",
        "r.html",
    ];
    let (_, shown, errors) = run(folder, &[&arguments[..], more].concat());
    assert!(folder.join(name).exists(), "{shown}{errors}");
}

/// The turn of a server: what differs from run to run is made of `run`.
fn turn(run: u32, pieces: &[&str], output: &str) -> Vec<String> {
    let id = format!("{run:08x}-aaaa-4bbb-8ccc-000000000001");
    let call = format!("call-{run}");
    let ts = format!("2026-01-02T03:04:{:02}Z", run % 60);
    let mut seq = 100 * run;
    let mut event = |mut body: Value| {
        seq += 1;
        body["event_id"] = json!(seq);
        body["run_id"] = json!(id);
        body["ts"] = json!(ts);
        body.to_string()
    };
    let mut frames = vec![format!(">{}", json!({ "type": "send", "text": "hello" }))];
    frames.push(json!({ "type": "accepted" }).to_string());
    frames.extend(pieces.iter().map(|piece| event(json!({ "type": "assistant_text", "text": piece }))));
    frames.push(event(
        json!({ "type": "tool_call", "name": "write_note", "args": { "key": "k" }, "call_id": call }),
    ));
    frames.push(event(
        json!({ "type": "function_call_output", "call_id": call, "result": { "text": output } }),
    ));
    frames
}

#[test]
fn a_judged_recording_has_every_report() {
    let folder = tempfile::tempdir().expect("a folder");
    recorded(folder.path(), "t.ndjson", &["approval/*", "--fault", "executes-denied"]);
    let check = ["check", "t.ndjson", "--protocol", "minicodex"];
    let (code, plain, _) = run(folder.path(), &check);
    let outputs = ["--html", "c.html", "--junit", "c.xml", "--json", "c.jsonl", "--summary", "c.md"];
    let (again, shown, errors) = run(folder.path(), &[&check[..], &outputs].concat());
    assert_eq!((code, again, &plain), (Some(1), Some(1), &shown), "{errors}");
    let events: Vec<Value> = read(folder.path(), "c.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let finished = |verdict: &str| {
        let is = |event: &&Value| event["event"] == "case-finished" && event["verdict"] == verdict;
        events.iter().filter(is).collect::<Vec<_>>()
    };
    let failed = finished("failed");
    assert!(!failed.is_empty() && !finished("passed").is_empty(), "{shown}");
    // Each kind of violation has what was said around it, the frame marked that shows it.
    for case in &failed {
        assert_eq!(case["covers"], json!(["MC-APR-8"]), "{case}");
        let marked = &case["failures"][0]["frames"][0];
        let wire = case["wire"].as_array().expect("a list");
        assert!(wire.len() > 5 && wire.iter().any(|line| line["index"] == *marked), "{case}");
        assert!(
            case["reproduce"].as_str().is_some_and(|again| again.starts_with("frameproof check t.ndjson"))
        );
    }
    // What breaks the same in many recorded cases is told once.
    assert!(failed[1..].iter().all(|case| case["same_as"] == failed[0]["case"]), "{failed:?}");
    let finished = events.last().expect("an end");
    assert_eq!((&finished["event"], &finished["exit_code"]), (&json!("run-finished"), &json!(1)));
    assert_eq!(finished["requirements"]["MC-APR-8"]["verdict"], "failed");
    let page = read(folder.path(), "c.html");
    for part in
        ["a recording of ", "Sequence diagram", "deny is announced as a denial", "frameproof check t.ndjson"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(
        read(folder.path(), "c.xml").contains("<failure") && read(folder.path(), "c.md").contains("MC-APR-8")
    );
    // The reports are functions of the events.
    let (code, _, errors) = run(folder.path(), &["report", "c.jsonl", "--html", "d.html"]);
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(read(folder.path(), "d.html"), page);
    let (code, _, errors) = run(folder.path(), &[&check[..], &["--html", "t.ndjson"]].concat());
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("t.ndjson would be overwritten"), "{errors}");
}

#[test]
fn a_recording_that_breaks_nothing_passes() {
    let folder = tempfile::tempdir().expect("a folder");
    recorded(folder.path(), "t.ndjson", &["streaming/text-turn"]);
    let arguments = ["check", "t.ndjson", "--protocol", "minicodex", "--json", "c.jsonl", "--html", "c.html"];
    let (code, shown, errors) = run(folder.path(), &arguments);
    assert_eq!(code, Some(0), "{shown}{errors}");
    let (_, shown, _) = run(folder.path(), &["report", "c.jsonl"]);
    assert!(shown.contains("conformant: 1 case, 1 passed"), "{shown}");
}

#[test]
fn what_is_no_json_says_nothing_of_the_protocol() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = turn(1, &["Hello"], "done");
    let broken = |text: &str| [own.clone(), vec![text.to_owned(); 2 * own.len()]].concat();
    record(folder.path(), "a.ndjson", &broken(">{\"type\":"));
    record(folder.path(), "b.ndjson", &broken(">{\"type\":\"other\"}"));
    let (code, shown, errors) = run(folder.path(), &["diff", "a.ndjson", "a.ndjson"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    let (code, shown, errors) = run(folder.path(), &["diff", "b.ndjson", "b.ndjson"]);
    assert_eq!(code, Some(2), "{shown}{errors}");
    assert!(errors.contains("no shipped protocol has its messages"), "{errors}");
}

#[test]
fn ids_times_and_cuts_are_no_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    record(folder.path(), "a.ndjson", &turn(1, &["Hello"], "done"));
    record(folder.path(), "b.ndjson", &turn(7, &["Hello"], "done"));
    let (code, shown, errors) = run(folder.path(), &["diff", "a.ndjson", "b.ndjson", "--html", "d.html"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.starts_with("the same: "), "{shown}");
    // Pieces of a tool's output, cut otherwise.
    let output = |pieces: &[&str]| {
        let piece = |piece: &&str| {
            json!({ "type": "ToolDelta", "agent_id": 0, "call_id": "c1", "content": piece }).to_string()
        };
        pieces.iter().map(piece).collect::<Vec<_>>()
    };
    for (name, pieces) in [("c", &["Hel", "lo"][..]), ("d", &["H", "el", "lo"]), ("e", &["Hel", "p"])] {
        record(folder.path(), &format!("{name}.ndjson"), &output(pieces));
    }
    let (code, shown, errors) = run(folder.path(), &["diff", "c.ndjson", "d.ndjson"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    let (code, shown, errors) = run(folder.path(), &["diff", "c.ndjson", "e.ndjson"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(
        shown.contains("-   \"content\": \"Hello\"") && shown.contains("+   \"content\": \"Help\""),
        "{shown}"
    );
    assert!(read(folder.path(), "d.html").contains("Only ids, times and the division of texts differ."));
}

#[test]
fn what_really_changed_stands_out() {
    let folder = tempfile::tempdir().expect("a folder");
    record(folder.path(), "a.ndjson", &turn(1, &["Hello"], "done"));
    let changed = turn(7, &["Hello"], "failed");
    let mut gone = turn(7, &["Hello"], "done");
    gone.remove(3);
    let mut new = turn(7, &["Hello"], "done");
    new.insert(2, json!({ "type": "accepted" }).to_string());
    let mut moved = turn(7, &["Hello"], "done");
    moved.swap(3, 4);
    // The output belongs to another call than the one that was made.
    let mut other = turn(7, &["Hello"], "done");
    other[4] = other[4].replace("call-7", "call-8");
    for (frames, expected) in [
        (
            changed,
            &["~ ", "-     \"text\": \"done\"", "+     \"text\": \"failed\"", "1 changed, 4 the same"][..],
        ),
        (gone, &["-     30.0 ms <- tool_call  only in the first", "1 only in the first"]),
        (new, &["+     20.0 ms <- accepted  only in the second", "1 only in the second"]),
        (moved, &["in the second at 30.0 ms", "in the first at 40.0 ms", "1 at another place"]),
        (other, &["-   \"call_id\": \"call-1\"", "+   \"call_id\": \"call-8\"", "1 changed"]),
    ] {
        record(folder.path(), "b.ndjson", &frames);
        let (code, shown, errors) = run(folder.path(), &["diff", "a.ndjson", "b.ndjson", "--html", "d.html"]);
        assert_eq!(code, Some(1), "{expected:?}: {shown}{errors}");
        for part in expected {
            assert!(shown.contains(part), "{part:?} is not in\n{shown}");
        }
        let page = read(folder.path(), "d.html");
        assert!(page.contains("What differs") && page.contains("word\">"), "{page}");
        let (_, quiet, _) = run(folder.path(), &["diff", "a.ndjson", "b.ndjson", "-q"]);
        assert!(quiet.lines().count() == 1 && quiet.starts_with("different: "), "{quiet}");
    }
    record(folder.path(), "b.ndjson", &turn(7, &["Hello"], "failed"));
    let (code, shown, _) = run(folder.path(), &["diff", "a.ndjson", "b.ndjson", "--ignore", "/result/text"]);
    assert_eq!(code, Some(0), "{shown}");
}

/// A number that grows is an id only where messages are identified by it: how many tokens were used is what a message says.
#[test]
fn growing_numbers_are_compared_unless_they_are_ids() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = |counts: &[u32]| {
        let info = |(id, count): (usize, &u32)| {
            let payload = json!({ "tokenCount": count, "maxTokens": 100, "remainingTokens": 100 - count });
            json!({ "id": format!("m{id}"), "type": "context_info", "payload": payload }).to_string()
        };
        counts.iter().enumerate().map(info).collect::<Vec<_>>()
    };
    let data = |first: u32| {
        let value = |at: u32| {
            let params = json!({ "subId": "n", "seq": first + at, "value": at });
            json!({ "jsonrpc": "2.0", "method": "tinyvex/data", "params": params }).to_string()
        };
        (0..3).map(value).collect::<Vec<_>>()
    };
    for (before, after, expected) in [
        (tokens(&[10, 20]), tokens(&[10, 21]), 1),
        (tokens(&[10, 20]), tokens(&[10, 20]), 0),
        (data(3), data(13), 0),
    ] {
        record(folder.path(), "a.ndjson", &before);
        record(folder.path(), "b.ndjson", &after);
        let (code, shown, errors) = run(folder.path(), &["diff", "a.ndjson", "b.ndjson"]);
        assert_eq!(code, Some(expected), "{before:?} {after:?}: {shown}{errors}");
        assert!(expected == 0 || shown.contains("+     \"tokenCount\": 21"), "{shown}");
    }
}

/// What the suite records of a faulty server differs from what it records of a right one, and of two right ones nothing does.
#[test]
fn recorded_runs_are_compared_case_by_case() {
    let folder = tempfile::tempdir().expect("a folder");
    // Its client answers when everything that the server sends before the answer has come: nothing crosses on the wire.
    let waits = ["approval/arguments-are-shown", "streaming/text-turn"];
    recorded(folder.path(), "a.ndjson", &waits);
    recorded(folder.path(), "b.ndjson", &[&waits[..], &["--seed", "5"]].concat());
    let (code, shown, errors) = run(folder.path(), &["diff", "a.ndjson", "b.ndjson"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.contains(" ids matched"), "{shown}");
    let denies = ["approval/deny-does-not-run-the-tool", "streaming/text-turn"];
    recorded(folder.path(), "a.ndjson", &denies);
    recorded(folder.path(), "c.ndjson", &[&denies[..], &["--fault", "executes-denied"]].concat());
    let (code, shown, errors) = run(folder.path(), &["diff", "a.ndjson", "c.ndjson"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    for part in [
        "approval/deny-does-not-run-the-tool, client alice",
        "\"isError\": false",
        "breaks now (1): MC-APR-8",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(!shown.contains("streaming/text-turn"), "{shown}");
}

#[test]
fn what_cannot_be_compared_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    recorded(folder.path(), "a.ndjson", &["streaming/text-turn"]);
    let whole = read(folder.path(), "a.ndjson");
    fs::write(folder.path().join("cut.ndjson"), &whole[..whole.len() - 20]).expect("written");
    fs::write(folder.path().join("empty.ndjson"), "\n").expect("written");
    record(
        folder.path(),
        "codey.ndjson",
        &[format!(">{}", json!({ "type": "Ping" })), json!({ "type": "Pong" }).to_string()],
    );
    record(folder.path(), "none.ndjson", &[json!({ "zzz": 1 }).to_string()]);
    let last = whole.lines().count();
    for (files, expected) in [
        (&["a.ndjson", "r.jsonl"][..], "a.ndjson is a recording, r.jsonl is a run".to_owned()),
        (&["r.jsonl", "a.ndjson"], "r.jsonl is a run, a.ndjson is a recording".to_owned()),
        (&["a.ndjson", "empty.ndjson", "--protocol", "minicodex"], "empty.ndjson is empty".to_owned()),
        (&["a.ndjson", "cut.ndjson"], format!("cut.ndjson:{last}: not an event of a trace")),
        (
            &["a.ndjson", "codey.ndjson"],
            "a.ndjson is a recording of minicodex, codey.ndjson one of codey".to_owned(),
        ),
        (
            &["a.ndjson", "codey.ndjson", "--protocol", "minicodex"],
            "codey.ndjson: 0 of 2 messages are minicodex's".to_owned(),
        ),
        (&["none.ndjson", "none.ndjson"], "none.ndjson: no shipped protocol has its messages".to_owned()),
        (&["a.ndjson", "gone.ndjson"], "gone.ndjson cannot be read".to_owned()),
        (&["r.jsonl", "r.jsonl", "--ignore", "/a"], "--ignore is for two recordings".to_owned()),
        (&["a.ndjson", "a.ndjson", "--html", "a.ndjson"], "a.ndjson would be overwritten".to_owned()),
    ] {
        let (code, shown, errors) = run(folder.path(), &[&["diff"], files].concat());
        assert_eq!((code, shown.as_str()), (Some(2), ""), "{files:?} {errors}");
        assert!(errors.contains(&expected) && errors.contains("= help: "), "{files:?}: {expected}\n{errors}");
    }
}
