//! A baseline that a run wrote excuses the same run done again.

use std::fs;

use crate::support::{frameproof, text};

/// Runs against a fault, writes its failures down, and runs again. The exit codes, and what the second run said.
fn twice(protocol: &str, fault: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |option: &str| {
        let arguments = ["run", protocol, "--fault", fault, option, "known.yaml", "-q", "--jobs", "16"];
        frameproof(folder.path(), &arguments)
    };
    // What the fault does at the very end of a case is seen or not: a second run may see more than the first one wrote down.
    let mut tries = (0..4).map(|_| {
        assert_eq!(run("--baseline-write").status.code(), Some(1), "{protocol} {fault}");
        let again = run("--baseline");
        (again.status.code(), text(&again.stdout) + &text(&again.stderr))
    });
    let passed = tries.find(|(code, _)| *code == Some(0));
    assert!(passed.is_some_and(|(_, shown)| shown.contains("known to fail")), "{protocol} {fault}");
}

/// Messages with ids that differ from run to run, and such of which one is the beginning of another.
#[test]
fn ids_and_beginnings_do_not_matter() {
    twice("minicodex", "finishes-twice");
    twice("minicodex", "text-after-finish");
}

/// What is known of one case excuses no other case of the same requirement.
#[test]
fn an_entry_is_for_its_case() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |option: &str| {
        let arguments = ["run", "minicodex", "--fault", "finishes-twice", option, "known.yaml"];
        frameproof(folder.path(), &arguments)
    };
    run("--baseline-write");
    let path = folder.path().join("known.yaml");
    let known = fs::read_to_string(&path).expect("the baseline");
    let entries: Vec<&str> = known.split("\n  - case: ").collect();
    assert!(entries.len() > 3 && entries[1].contains("\n    match: \"MC-"), "{known}");
    fs::write(&path, format!("{}\n  - case: {}\n", entries[0], entries[1])).expect("written");
    let output = run("--baseline");
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("1 known to fail") && !shown.contains("stale baseline"), "{shown}");
}

/// An entry that names nothing there is is told where it is written, whatever part of the suite is run.
#[test]
fn a_mistyped_entry_is_always_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let known = "known:\n  - { match: MC-ABT-999, reason: r }\n  - { match: abort/idel, reason: r }\n  - { match: abort/idle, reason: r }\n  - { match: 'target/*', reason: r }\n";
    std::fs::write(folder.path().join("k.yaml"), known).expect("written");
    for (globs, code) in [(&["errors/*"][..], 0), (&[], 1)] {
        let output =
            frameproof(folder.path(), &[&["run", "minicodex", "--baseline", "k.yaml"], globs].concat());
        let (shown, errors) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{shown}{errors}");
        for part in [
            "`MC-ABT-999` names no case and no requirement",
            "k.yaml:2:14",
            "k.yaml:3:14",
            "did you mean `abort/idle`?",
        ] {
            assert!(errors.contains(part), "{part} is not in\n{errors}");
        }
        assert_eq!(errors.matches("names no case").count(), 2, "{errors}");
    }
}
