//! `frameproof explore` end to end, against the reference servers.

use std::path::Path;

use crate::support::{frameproof, text};

fn explore(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = frameproof(folder, &[&["explore"], arguments].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn correct_servers_give_no_finding() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["agentloop", "codelab", "codex", "codey", "minicodex", "tinyvex"] {
        let (code, shown) =
            explore(folder.path(), &[name, "--walks", "8", "--seed", "5", "--timeout-scale", "4"]);
        assert_eq!(code, Some(0), "{name}: {shown}");
        assert!(shown.contains("0 findings in 8 walks"), "{name}: {shown}");
        assert!(shown.contains("at rest \u{2192} at rest"), "the table of states: {shown}");
        assert!(!shown.contains("left out") && !shown.contains("not a finding"), "{name}: {shown}");
        assert!(!shown.contains('\r'), "no progress line in a pipe: {shown:?}");
    }
    assert!(!folder.path().join("reports").exists(), "nothing found, nothing written");
}

/// A fault that strikes only after something else has happened: found, blamed, shrunk to what it takes, and kept as a scenario that
/// fails against the faulty server and passes against the correct one.
fn found(fault: &str, requirement: &str, takes: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["minicodex", "--fault", fault, "--max-findings", "1", "--timeout-scale", "2"];
    let more = ["--junit", "j.xml", "--json", "j.jsonl"];
    let (code, shown) = explore(folder.path(), &[&arguments[..], &more].concat());
    assert_eq!(code, Some(1), "{shown}");
    let finding = shown.split("FAIL ").nth(1).expect("a finding");
    let (ids, _) = finding.split_once(']').expect("its requirements");
    assert!(ids.contains(requirement), "{shown}");
    let moves = finding.lines().filter(|line| line.contains("alice: ") || line.contains("bob: ")).count();
    assert!(moves <= 4, "shrunk: {shown}");
    assert!(finding.contains(takes), "{shown}");
    let reports = std::fs::read_dir(folder.path().join("reports/explore-minicodex")).expect("findings");
    let files: Vec<_> = reports.flatten().map(|file| file.path().display().to_string()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(shown.contains(&format!("frameproof run minicodex --fault {fault}")), "{shown}");
    let run = |more: &[&str]| {
        let output =
            frameproof(folder.path(), &[&["run", "minicodex", "--scenario", &files[0]], more].concat());
        output.status.code()
    };
    assert_eq!(run(&["--fault", fault]), Some(1), "the scenario shows it again");
    assert_eq!(run(&[]), Some(0), "and passes against the correct server");
    let junit = std::fs::read_to_string(folder.path().join("j.xml")).expect("written");
    assert!(junit.contains("failures=\"1\"") && junit.contains(requirement), "{junit}");
    let json = std::fs::read_to_string(folder.path().join("j.jsonl")).expect("written");
    assert_eq!(json.lines().count(), 4, "{json}");
}

#[test]
fn a_fault_after_a_denial_is_found() {
    found("skips-running@after-denial", "MC-LIFE-1", "enter awaiting-approval");
}

#[test]
fn a_fault_after_a_reconnect_is_found() {
    found("run-ids-repeat@after-reconnect", "MC-LIFE-1", ", open");
}

#[test]
fn what_cannot_be_explored_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, code) in [
        (&["minicodex", "--scenario", "x"][..], 2),
        (&["minicodex", "approval/*"], 2),
        (&["minicodex", "--url", "ws://127.0.0.1:1/ws"], 3),
    ] {
        let (exit, shown) = explore(folder.path(), arguments);
        assert_eq!(exit, Some(code), "{shown}");
    }
}

#[test]
fn a_state_cannot_outlive_a_connection_that_is_the_session() {
    let folder = tempfile::tempdir().expect("a folder");
    let overlay = "x-frameproof: { fuzzing: { states: { awaiting-approval: { outlives: true } } } }\n";
    std::fs::write(folder.path().join("o.yaml"), overlay).expect("written");
    let (exit, shown) = explore(folder.path(), &["agentloop", "--walks", "1", "--overlay", "o.yaml"]);
    assert_eq!(exit, Some(2), "{shown}");
    assert!(shown.contains("`outlives` has no effect") && shown.contains("o.yaml:1:"), "{shown}");
}

/// A misspelt key would be a state that nothing enters.
#[test]
fn a_script_with_an_unknown_key_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for place in ["fuzzing: { states: { awaiting-approval", "explore: { turns: { approved"] {
        let overlay = format!("x-frameproof: {{ {place}: {{ turn: [{{ calls: [] }}] }} }} }} }}\n");
        std::fs::write(folder.path().join("o.yaml"), overlay).expect("written");
        let (exit, shown) = explore(folder.path(), &["codelab", "--walks", "1", "--overlay", "o.yaml"]);
        assert_eq!(exit, Some(2), "{shown}");
        assert!(shown.contains("unknown field `calls`") && shown.contains("did you mean `call`?"), "{shown}");
        assert!(shown.contains("o.yaml:1:"), "{shown}");
    }
}

#[test]
fn the_same_seed_explores_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = |jobs: &str| {
        let (_, shown) =
            explore(folder.path(), &["agentloop", "--walks", "6", "--seed", "9", "--jobs", jobs]);
        // The time is another.
        shown.lines().filter(|line| !line.contains("findings in")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(table("1"), table("8"));
}
