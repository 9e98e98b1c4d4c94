//! A baseline that a run wrote excuses the same run done again.

mod support;

use std::fs;

use support::{frameproof, text};

/// Runs against a fault, writes its failures down, and runs again. The exit codes, and what the second run said.
fn twice(protocol: &str, fault: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |option: &str| {
        let arguments = ["run", protocol, "--fault", fault, option, "known.yaml", "-q", "--jobs", "16"];
        frameproof(folder.path(), &arguments)
    };
    assert_eq!(run("--baseline-write").status.code(), Some(1), "{protocol} {fault}");
    let known = fs::read_to_string(folder.path().join("known.yaml")).expect("the baseline");
    let again = run("--baseline");
    let shown = text(&again.stdout) + &text(&again.stderr);
    assert_eq!(again.status.code(), Some(0), "{protocol} {fault}\n{shown}\n{known}");
    assert!(shown.contains("known to fail"), "{shown}");
}

/// Messages with ids that differ from run to run, and such of which one is the beginning of another.
#[test]
fn ids_and_beginnings_do_not_matter() {
    twice("minicodex", "finishes-twice");
    twice("minicodex", "text-after-finish");
}
