//! What a run leaves behind on a server does not meet the next one.

use std::path::Path;

use crate::support::{Served, frameproof, text};

/// A run with the seed that every run has, against a server that was there before.
fn run(folder: &Path, protocol: &str, url: &str, more: &[&str]) -> (Option<i32>, String) {
    let arguments =
        ["run", protocol, "--url", url, "--jobs", "8", "--quiet-period", "200ms", "--timeout-scale", "3"];
    frameproof_shown(folder, &[&arguments[..], more].concat())
}

fn frameproof_shown(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = frameproof(folder, arguments);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// A server remembers the ids of changes that it has made.
#[test]
fn tinyvex_passes_when_its_cases_are_repeated() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, shown) =
        frameproof_shown(folder.path(), &["run", "tinyvex", "--case", "mutations/*", "--repeat", "2"]);
    assert_eq!(code, Some(0), "{shown}");
}

/// Twice in a row, with some cases behind preambles between, and then twice at once.
fn again_and_again(protocol: &str) {
    let server = Served::start(&[protocol]);
    let folder = tempfile::tempdir().expect("a folder");
    let alone = ["--preambles=none"];
    let behind = ["*/{a,s}*@{history,variety}"];
    let rounds = [("first", &alone), ("a", &behind), ("second", &alone)];
    // codex has no preambles that sum up others.
    for (round, more) in rounds.into_iter().filter(|(_, more)| protocol != "codex" || *more != &behind) {
        let (code, shown) = run(folder.path(), protocol, &server.url, more);
        assert_eq!(code, Some(0), "{protocol}, {round} run\n{shown}");
    }
    let at_once = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(folder.path(), protocol, &server.url, &alone));
        [run(folder.path(), protocol, &server.url, &alone), other.join().expect("the other run")]
    });
    for (code, shown) in at_once {
        assert_eq!(code, Some(0), "{protocol}, at once\n{shown}");
    }
}

#[test]
fn minicodex_passes_again() {
    again_and_again("minicodex");
}

#[test]
fn codelab_passes_again() {
    again_and_again("codelab");
}

#[test]
fn agentloop_passes_again() {
    again_and_again("agentloop");
}

#[test]
fn tinyvex_passes_again() {
    again_and_again("tinyvex");
}

#[test]
fn codex_passes_again() {
    again_and_again("codex");
}

#[test]
fn codey_passes_again() {
    again_and_again("codey");
}

#[test]
fn a_run_id_is_printed_and_gives_the_same_messages_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let sent = |more: &[&str]| {
        let server = Served::start(&["codey"]);
        let arguments = [&["approval/withheld", "--trace", "t.ndjson"], more].concat();
        let (code, shown) = run(folder.path(), "codey", &server.url, &arguments);
        assert_eq!(code, Some(0), "{shown}");
        let id = shown.split(", run ").nth(1).and_then(|rest| rest.split(',').next());
        let id = id.unwrap_or_else(|| panic!("no run id in\n{shown}")).to_owned();
        let trace = std::fs::read_to_string(folder.path().join("t.ndjson")).expect("the trace");
        let lines = trace.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        let sent = lines.filter(|line| line["dir"] == "send" && !line["text"].is_null());
        // What comes later bears ids that the server has made.
        (id, sent.map(|line| line["text"].to_string()).next().expect("a message"))
    };
    let (id, first) = sent(&[]);
    let (other, second) = sent(&[]);
    assert!(id != other && first != second, "{first} {second}");
    assert_eq!(sent(&["--run-id", &id]), (id.clone(), first));
}
