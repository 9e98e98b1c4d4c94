//! A run in shards, put together again; and two runs compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{frameproof, text};
use serde_json::Value;

fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = frameproof(folder, arguments);
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// One shard of the suite, written to `NAME.jsonl`.
fn shard(folder: &Path, protocol: &[&str], shard: &str, name: &str) -> (Option<i32>, String) {
    let (json, junit) = (format!("{name}.jsonl"), format!("{name}.xml"));
    let arguments = ["--shard", shard, "--json", &json, "--junit", &junit, "--quiet"];
    let (code, shown, errors) = run(folder, &[&["run"], protocol, &arguments].concat());
    (code, shown + &errors)
}

fn events(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("the events");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The cases of a file with their verdicts, and each requirement's verdict and count.
fn results(path: &Path) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut cases, mut requirements) = (BTreeSet::new(), BTreeSet::new());
    for event in events(path) {
        if event["event"] == "case-finished" {
            let new = cases.insert(format!("{} {}", event["case"], event["verdict"]));
            assert!(new, "{} twice", event["case"]);
        }
        if let Some(own) = event["requirements"].as_object().filter(|_| event["event"] == "run-finished") {
            requirements.extend(own.iter().map(|(id, result)| format!("{id} {}", result["verdict"])));
        }
    }
    (cases, requirements)
}

#[test]
fn shards_make_the_run_that_one_process_makes() {
    let folder = tempfile::tempdir().expect("a folder");
    let faulty = ["tinyvex", "--fault", "answers-twice"];
    let whole = [&["run"], &faulty[..], &["--json", "whole.jsonl", "--junit", "whole.xml"]].concat();
    let (code, shown, errors) = run(folder.path(), &whole);
    assert_eq!(code, Some(1), "{shown}{errors}");
    let mut sizes = Vec::new();
    for index in 1..=3 {
        let (_, shown) = shard(folder.path(), &faulty, &format!("{index}/3"), &format!("part-{index}"));
        sizes.push(results(&folder.path().join(format!("part-{index}.jsonl"))).0.len());
        assert!(shown.contains(" cases, "), "{shown}");
    }
    assert!(sizes.iter().max() <= sizes.iter().min().map(|least| least + 1).as_ref(), "{sizes:?}");
    let merge =
        ["merge", "part-2.jsonl", "part-1.jsonl", "part-3.jsonl", "--json", "m.jsonl", "--junit", "m.xml"];
    let (code, shown, errors) = run(folder.path(), &merge);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.contains("not conformant: "), "{shown}");
    assert_eq!(results(&folder.path().join("m.jsonl")), results(&folder.path().join("whole.jsonl")));
    let tests = |name: &str| {
        let xml = fs::read_to_string(folder.path().join(name)).expect("the report");
        xml.matches("<testcase ").count()
    };
    assert_eq!(tests("m.xml"), tests("whole.xml"));
    // The merged run is a run: nothing differs from the whole but times.
    let (code, shown, errors) = run(folder.path(), &["diff", "whole.jsonl", "m.jsonl"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
}

#[test]
fn shards_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let few = ["codey", "streaming/*"];
    for (part, name) in [("1/2", "one"), ("2/2", "two")] {
        let (code, shown) = shard(folder.path(), &few, part, name);
        assert_eq!(code, Some(0), "{shown}");
    }
    shard(folder.path(), &["codey", "ping/*"], "2/2", "other");
    run(folder.path(), &["run", "codey", "ping/*", "--json", "whole.jsonl", "--junit", "w.xml"]);
    let cut = fs::read_to_string(folder.path().join("two.jsonl")).expect("written");
    let cut: Vec<&str> = cut.lines().collect();
    fs::write(folder.path().join("cut.jsonl"), cut[..cut.len() - 1].join("\n")).expect("written");
    for (files, expected) in [
        (&["one.jsonl"][..], "shard 2/2 is missing"),
        (&["one.jsonl", "two.jsonl", "two.jsonl"], "it is shard 2/2, which was given before"),
        (&["one.jsonl", "whole.jsonl"], "whole.jsonl: its run of codey is not a shard"),
        (&["one.jsonl", "cut.jsonl"], "cut.jsonl: it ends in the middle of the run of codey"),
        (&["one.jsonl", "other.jsonl"], "other.jsonl: the number of cases of its run of codey is"),
        (&["one.jsonl", "gone.jsonl"], "gone.jsonl cannot be read"),
    ] {
        let (code, shown, errors) = run(folder.path(), &[&["merge"], files].concat());
        assert_eq!((code, shown.as_str()), (Some(2), ""), "{files:?} {errors}");
        assert!(errors.contains(expected) && errors.contains("= help: "), "{files:?}: {errors}");
    }
    let (code, _, errors) = run(folder.path(), &["merge", "one.jsonl", "two.jsonl", "--json", "one.jsonl"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("one.jsonl would be overwritten"), "{errors}");
    // That is found out before any file is read.
    let (code, _, errors) = run(folder.path(), &["merge", "gone.jsonl", "one.jsonl", "--json", "one.jsonl"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("one.jsonl would be overwritten"), "{errors}");
    let (code, _, errors) = run(folder.path(), &["run", "codey", "--json", "x", "--junit", "./x"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("x would be overwritten"), "{errors}");
    // As many cases of another kind are other cases.
    let other = fs::read_to_string(folder.path().join("two.jsonl")).expect("written");
    let digest =
        other.split("\"selection\":").nth(1).and_then(|rest| rest.split('}').next()).expect("a digest");
    fs::write(folder.path().join("digest.jsonl"), other.replace(digest, "5")).expect("written");
    let (code, _, errors) = run(folder.path(), &["merge", "one.jsonl", "digest.jsonl"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("has other cases than that of the first file"), "{errors}");
    for (bad, expected) in [("3/2", "is not a shard"), ("auto/x", "is not a shard")] {
        let (code, _, errors) = run(folder.path(), &["run", "codey", "--shard", bad]);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
    let (code, _, errors) = run(folder.path(), &["run", "codey", "--shard-by", "whole.jsonl"]);
    assert_eq!(code, Some(2), "{errors}");
}

/// More shards than cases: one that has none passes, and belongs to the whole.
#[test]
fn an_empty_shard_is_one_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let few = ["codey", "ping/*"];
    let (_, listed, _) = run(folder.path(), &["run", "codey", "ping/*", "--list"]);
    let count = listed.lines().filter(|line| line.starts_with("ping/")).count();
    let mut files = Vec::new();
    for index in 1..=count + 1 {
        let name = format!("p{index}");
        let (code, shown) = shard(folder.path(), &few, &format!("{index}/{}", count + 1), &name);
        assert_eq!(code, Some(0), "{shown}");
        files.push(name + ".jsonl");
    }
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let (code, shown, errors) = run(folder.path(), &[&["merge", "-q"], &files[..]].concat());
    assert_eq!(code, Some(0), "{shown}{errors}");
    assert!(shown.starts_with(&format!("conformant: {count} cases, {count} passed, 0 failed")), "{shown}");
}

#[test]
fn ci_says_which_shard_this_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let started = |variables: &[(&str, &str)], choice: &str, name: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_frameproof"))
            .args([
                "run",
                "codey",
                "streaming/*",
                "--quiet",
                "--shard",
                choice,
                "--json",
                name,
                "--junit",
                "x.xml",
            ])
            .current_dir(folder.path())
            .env_remove("CI_NODE_INDEX")
            .env_remove("CI_NODE_TOTAL")
            .env_remove("JOB_COMPLETION_INDEX")
            .envs(variables.iter().copied())
            .output()
            .expect("the binary runs");
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(started(&[("CI_NODE_INDEX", "2"), ("CI_NODE_TOTAL", "2")], "auto", "a.jsonl").0, Some(0));
    assert_eq!(events(&folder.path().join("a.jsonl"))[0]["shard"]["index"], 2);
    assert_eq!(started(&[("JOB_COMPLETION_INDEX", "0")], "auto/2", "b.jsonl").0, Some(0));
    assert_eq!(events(&folder.path().join("b.jsonl"))[0]["shard"]["index"], 1);
    let (code, errors) = started(&[], "auto", "c.jsonl");
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("neither CI_NODE_INDEX nor JOB_COMPLETION_INDEX is set"), "{errors}");
    // Balanced by an earlier run, the parts are still the whole.
    for part in ["1/2", "2/2"] {
        let name = format!("{}.jsonl", &part[..1]);
        let by =
            ["run", "codey", "streaming/*", "-q", "--shard", part, "--shard-by", "a.jsonl", "--json", &name];
        let (code, shown, errors) = run(folder.path(), &[&by[..], &["--junit", "x.xml"]].concat());
        assert_eq!(code, Some(0), "{shown}{errors}");
    }
    let (code, shown, errors) = run(folder.path(), &["merge", "1.jsonl", "2.jsonl"]);
    assert_eq!(code, Some(0), "{shown}{errors}");
}

#[test]
fn two_runs_are_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = |fault: &[&str], name: &str| {
        let all = [
            &["run", "minicodex", "tools/*", "streaming/*", "-q", "--json", name, "--junit", "x.xml"],
            fault,
        ];
        run(folder.path(), &all.concat())
    };
    record(&[], "good.jsonl");
    record(&["--fault", "acks-twice"], "bad.jsonl");
    let (code, shown, errors) = run(folder.path(), &["diff", "good.jsonl", "bad.jsonl"]);
    assert_eq!(code, Some(1), "{shown}{errors}");
    assert!(shown.starts_with("newly failing (") && shown.contains("  tools/"), "{shown}");
    assert!(shown.contains("\n    + ") && shown.contains("\nworse: "), "{shown}");
    let (code, shown, _) = run(folder.path(), &["diff", "bad.jsonl", "good.jsonl"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.starts_with("fixed (") && shown.contains("\nnot worse: "), "{shown}");
    let (code, shown, _) = run(folder.path(), &["diff", "bad.jsonl", "bad.jsonl", "-q"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.starts_with("the same; "), "{shown}");
    run(folder.path(), &["run", "codey", "ping/*", "-q", "--json", "codey.jsonl", "--junit", "x.xml"]);
    let (code, _, errors) = run(folder.path(), &["diff", "good.jsonl", "codey.jsonl"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("nothing in common: minicodex and codey"), "{errors}");
    let (code, _, errors) = run(folder.path(), &["diff", "good.jsonl", "x.xml"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("x.xml: line 1 is not an event of a run"), "{errors}");
}
