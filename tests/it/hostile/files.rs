//! Files that never end, or that are too many, where something is read or written.

use std::time::Duration;

use super::process::measured;
use super::served::Served;
use super::server::Behaviour;

/// What is read from a path, by each option and argument that takes one.
const READ: [&[&str]; 8] = [
    &["list", "minicodex", "--config", "PATH"],
    &["list", "minicodex", "--scenario", "PATH"],
    &["list", "minicodex", "--overlay", "PATH"],
    &["run", "minicodex", "--baseline", "PATH"],
    &["run", "minicodex", "--url", "wss://127.0.0.1:1/", "--ca-file", "PATH"],
    &["report", "PATH"],
    &["check", "PATH", "--protocol", "minicodex"],
    &["list", "--protocol", "FOLDER"],
];

#[test]
fn what_never_ends_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("fifo.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let link = folder.path().join("link.yaml");
    std::os::unix::fs::symlink("/dev/zero", &link).expect("a link");
    let protocol = folder.path().join("protocol");
    std::fs::create_dir(&protocol).expect("a folder");
    std::os::unix::fs::symlink("/dev/zero", protocol.join("asyncapi.yaml")).expect("a link");
    for path in ["fifo.yaml", "link.yaml"] {
        for arguments in READ {
            let arguments: Vec<String> = arguments
                .iter()
                .map(|word| word.replace("PATH", path).replace("FOLDER", "protocol"))
                .collect();
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let ran = measured(folder.path(), &arguments);
            assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.shown());
            assert!(ran.took < Duration::from_secs(30), "{arguments:?}: {:?}", ran.took);
            assert!(ran.peak() < 300, "{arguments:?}: {:?} MiB", ran.peak);
        }
    }
}

/// What is written by each command that writes, with the option that names where.
const WRITTEN: [&[&str]; 9] = [
    &["run", "minicodex", "handshake/*", "--junit", "PATH"],
    &["run", "minicodex", "handshake/*", "--html", "PATH"],
    &["run", "minicodex", "handshake/*", "--trace", "PATH"],
    &["run", "minicodex", "handshake/*", "--baseline-write", "PATH"],
    &["run", "minicodex", "handshake/*", "--annotations", "gitlab", "--report-dir", "FOLDER"],
    &["report", "events.jsonl", "--summary", "PATH"],
    &["merge", "events.jsonl", "--junit", "PATH"],
    &["fuzz", "minicodex", "--iterations", "1", "--corpus", "FOLDER"],
    &["explore", "minicodex", "--walks", "1", "--save", "FOLDER"],
];

#[test]
fn what_a_link_leads_out_of_the_folder_is_not_written_unless_asked_for() {
    let base = tempfile::tempdir().expect("a folder");
    let folder = base.path().join("checkout");
    let elsewhere = base.path().join("elsewhere");
    for each in [&folder, &elsewhere] {
        std::fs::create_dir(each).expect("made");
    }
    let ran =
        measured(&folder, &["run", "minicodex", "handshake/*", "--shard", "1/1", "--json", "events.jsonl"]);
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    std::os::unix::fs::symlink("../elsewhere/file", folder.join("link")).expect("linked");
    std::os::unix::fs::symlink("../elsewhere", folder.join("there")).expect("linked");
    for arguments in WRITTEN {
        let said = |path: &str| -> Vec<String> {
            arguments.iter().map(|word| word.replace("PATH", path).replace("FOLDER", "there")).collect()
        };
        for path in ["link", "there/deeper/file"] {
            let said = said(path);
            let said: Vec<&str> = said.iter().map(String::as_str).collect();
            let ran = measured(&folder, &said);
            assert_eq!(ran.code, Some(2), "{said:?}: {}", ran.shown());
            assert!(ran.err.contains("a symbolic link leads out of this folder"), "{said:?}: {}", ran.err);
            assert_eq!(std::fs::read_dir(&elsewhere).expect("a folder").count(), 0, "{said:?}");
        }
        let asked = said("link");
        let asked: Vec<&str> = asked.iter().map(String::as_str).chain(["--follow-links"]).collect();
        let ran = measured(&folder, &asked);
        assert_eq!(ran.code, Some(0), "{asked:?}: {}", ran.shown());
        assert!(folder.join("link").symlink_metadata().expect("there").is_symlink());
        for entry in std::fs::read_dir(&elsewhere).expect("a folder").flatten() {
            let path = entry.path();
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
    }
}

#[test]
fn a_log_of_the_model_does_not_follow_a_link_out_unless_asked_for() {
    let base = tempfile::tempdir().expect("a folder");
    let folder = base.path().join("checkout");
    std::fs::create_dir(&folder).expect("made");
    let elsewhere = base.path().join("file");
    std::fs::write(&elsewhere, "kept").expect("written");
    std::os::unix::fs::symlink("../file", folder.join("link")).expect("linked");
    std::os::unix::fs::symlink("..", folder.join("there")).expect("linked");
    for path in ["link", "there/file", "there/new"] {
        let ran = measured(&folder, &["model", "--log", path]);
        assert_eq!(ran.code, Some(2), "{path}: {}", ran.shown());
        assert!(ran.err.contains("a symbolic link leads out of this folder"), "{path}: {}", ran.err);
        assert_eq!(std::fs::read_to_string(&elsewhere).expect("there"), "kept", "{path}");
        assert!(!base.path().join("new").exists(), "{path}");
    }
    let mut asked = std::process::Command::new(crate::support::target::BINARY);
    drop(Served::of(asked.current_dir(&folder).args(["model", "--log", "link", "--follow-links"])));
    assert_eq!(std::fs::read_to_string(&elsewhere).expect("there"), "", "it is written");
}

#[test]
fn init_writes_through_no_link_to_nothing() {
    let base = tempfile::tempdir().expect("a folder");
    let folder = base.path().join("checkout");
    std::fs::create_dir(&folder).expect("made");
    std::os::unix::fs::symlink("../elsewhere.toml", folder.join("frameproof.toml")).expect("linked");
    let ran = measured(&folder, &["init", "."]);
    assert_eq!(ran.code, Some(2), "{}", ran.shown());
    assert!(ran.err.contains("exists, and nothing is overwritten"), "{}", ran.err);
    assert!(!base.path().join("elsewhere.toml").exists());
}

#[test]
fn repeating_for_ever_needs_no_queue() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = Behaviour::says(Vec::new()).serve();
    let arguments =
        ["run", "minicodex", "--url", &url, "--repeat", "4294967295", "--fail-fast", "--time", "20s"];
    let ran = measured(folder.path(), &arguments);
    assert_eq!(ran.code, Some(1), "{}", ran.shown());
    assert!(ran.peak() < 300, "{:?} MiB", ran.peak);
}

#[test]
fn a_full_disk_under_the_trace_loses_neither_verdict_nor_report() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["run", "minicodex", "handshake/*", "--trace", "/dev/full", "--junit", "j.xml"];
    let ran = measured(folder.path(), &arguments);
    assert_eq!(ran.code, Some(3), "{}", ran.shown());
    assert!(ran.out.contains("passed") && ran.out.contains("/dev/full"), "{}", ran.out);
    assert!(folder.path().join("j.xml").is_file());
}

#[test]
fn a_run_ends_when_its_time_is_up_with_what_was_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["run", "minicodex", "--repeat", "100000", "--time", "3s", "--junit", "j.xml"];
    let ran = measured(folder.path(), &arguments);
    assert_eq!(ran.code, Some(3), "{}", ran.shown());
    assert!(ran.out.contains("time is up") && ran.out.contains("--time allows more"), "{}", ran.out);
    assert!(ran.took < Duration::from_secs(60), "{:?}", ran.took);
    assert!(folder.path().join("j.xml").is_file());
}
