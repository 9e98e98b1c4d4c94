//! Real agent servers, `examples/agents/`: Python programs with a provider's own SDK behind them, launched with the scripted
//! model and tested whole; and the mistakes that they can be told to make, each found by name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::sdks::{no_proxies, python};
use crate::support::text;
use serde_json::Value;

/// The folder of a Python that the servers run with, or none: skipped.
fn servers() -> Option<PathBuf> {
    let python =
        python("openai, anthropic, websockets, aiohttp, pydantic", "the example agents were not run")?;
    python.parent().map(Path::to_path_buf)
}

/// A copy of the example, in a folder of the test's own.
fn example() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/agents");
    for part in [".", "minicodex", "codey"] {
        fs::create_dir_all(folder.path().join(part)).expect("made");
        for entry in fs::read_dir(from.join(part)).expect("the example").flatten() {
            if entry.path().is_file() {
                fs::copy(entry.path(), folder.path().join(part).join(entry.file_name())).expect("copied");
            }
        }
    }
    folder
}

/// Runs a subcommand with the servers' Python in the path; its exit code and what it said.
fn run(bin: &Path, folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(env!("CARGO_BIN_EXE_frameproof"))
        .args(arguments)
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("NO_COLOR", "1")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(no_proxies())
        .output()
        .expect("the binary runs");
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// The requirements that a JSON report says are failed.
fn failed(folder: &Path) -> BTreeSet<String> {
    let report = fs::read_to_string(folder.join("out.jsonl")).expect("the report");
    let lines = report.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut ids = BTreeSet::new();
    for case in lines {
        for failure in case["failures"].as_array().into_iter().flatten() {
            let known = failure["known"].is_string();
            if failure["verdict"] == "failed" && !known {
                let named = failure["requirements"].as_array().into_iter().flatten();
                ids.extend(named.filter_map(Value::as_str).map(str::to_owned));
            }
        }
    }
    ids
}

/// How many cases the closing line says have passed: most of the suite.
fn passed(shown: &str) -> u32 {
    let before = shown.rsplit_once(" passed, 0 failed").unwrap_or_default().0;
    let passed = before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default();
    assert!(passed > 100, "{passed} cases have passed\n{shown}");
    passed
}

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

/// Some cases behind what sums up the preambles: all take minutes.
const BEHIND: [&str; 1] = ["*/{a,m}*@{history,variety}"];

#[test]
fn the_minicodex_server_is_conformant() {
    let Some(bin) = servers() else { return };
    let folder = example();
    let arguments = ["run", "--target", "minicodex", "--strict", "--timeout-scale", "4"];
    let (code, shown) = run(&bin, folder.path(), &[&arguments[..], &["--preambles=none"]].concat());
    assert_eq!(code, Some(0), "{shown}");
    let passed = passed(&shown);
    assert!(shown.contains(&format!("conformant: {passed} cases, {passed} passed, 0 failed in ")), "{shown}");
    let (code, shown) = run(&bin, folder.path(), &[&arguments[..], &BEHIND].concat());
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn the_codey_server_is_conformant_but_for_what_it_lacks() {
    let Some(bin) = servers() else { return };
    let folder = example();
    let arguments = ["run", "--target", "codey", "--strict", "--timeout-scale", "4"];
    let (code, shown) = run(&bin, folder.path(), &[&arguments[..], &BEHIND].concat());
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown) = run(&bin, folder.path(), &[&arguments[..], &["--preambles=none"]].concat());
    assert_eq!(code, Some(0), "{shown}");
    let passed = passed(&shown);
    let closing = format!("{passed} passed, 0 failed, 1 known to fail, 7 not applicable, ");
    assert!(shown.contains(&closing), "{shown}");
}

#[test]
fn the_doctor_finds_nothing_missing() {
    let Some(bin) = servers() else { return };
    let folder = example();
    let (code, shown) = run(&bin, folder.path(), &["doctor", "--target", "codey"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("the model's text came back") && shown.contains("Nothing is missing"), "{shown}");
}

/// A server that would ask about any name is not taken for one that has the tool.
#[test]
fn the_doctor_compares_the_tools_that_the_model_is_offered() {
    let Some(bin) = servers() else { return };
    let folder = example();
    let path = folder.path().join("frameproof.toml");
    let mut config = fs::read_to_string(&path).expect("the file");
    config.push_str("\n[target.codey.tools.guarded]\nname = 'write_memo'\nargs = { key = '{{key}}' }\n");
    fs::write(&path, config).expect("written");
    let (code, shown) = run(&bin, folder.path(), &["doctor", "--target", "codey"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("MISSING  is approval requested?"), "{shown}");
    assert!(shown.contains("the server offers the model `"), "{shown}");
    assert!(shown.contains("not `write_memo` (class guarded)"), "{shown}");
    assert!(shown.contains("[target.NAME.tools.CLASS]"), "{shown}");
}

/// Each mistake by itself, in the families that it touches: exactly what it breaks is found broken.
#[test]
fn each_mistake_is_found_by_name() {
    let Some(bin) = servers() else { return };
    let folder = example();
    let config = fs::read_to_string(folder.path().join("frameproof.toml")).expect("the file");
    for (target, bug, globs, expected) in [
        ("minicodex-bugs", "late-answer", &["streaming/two-turns", "tools/*"][..], &["MC-LIFE-4"][..]),
        ("minicodex-bugs", "foreign-snapshot", &["fanout/*"], &["MC-ENV-11", "MC-SNP-12"]),
        ("minicodex-bugs", "error-as-text", &["streaming/*", "tools/*"], &["MC-LIFE-5"]),
        ("codey-bugs", "no-goodbye", &["transport/close-returned", "ping/*"], &["CO-CN-1"]),
        ("codey-bugs", "other-call-id", &["approval/*", "tools/*"], &["CO-TL-4", "CO-TL-5"]),
        ("codey-bugs", "nested-state", &["state/*", "history/*"], &["CO-GS-2", "CO-GS-3"]),
    ] {
        let one = config.replace("\"all\"", &format!("\"{bug}\""));
        fs::write(folder.path().join("frameproof.toml"), one).expect("written");
        // What is waited for in vain is waited for in vain in half the time, too.
        let mut arguments = vec!["run", "--target", target, "--json", "out.jsonl", "--timeout-scale", "0.5"];
        arguments.extend(globs);
        let (code, shown) = run(&bin, folder.path(), &arguments);
        assert_eq!(code, Some(1), "{bug}: {shown}");
        assert_eq!(failed(folder.path()), set(expected), "{bug}: {shown}");
    }
}

/// All mistakes at once: none hides another.
#[test]
fn mistakes_do_not_hide_each_other() {
    let Some(bin) = servers() else { return };
    let folder = example();
    for (target, globs, expected) in [
        (
            "minicodex-bugs",
            &["streaming/*", "fanout/*", "tools/*"][..],
            &["MC-LIFE-4", "MC-LIFE-5", "MC-SNP-12"][..],
        ),
        (
            "codey-bugs",
            &["approval/*", "state/*", "streaming/*"],
            &["CO-GS-2", "CO-GS-3", "CO-TL-4", "CO-TL-5"],
        ),
    ] {
        let mut arguments = vec!["run", "--target", target, "--json", "out.jsonl"];
        arguments.extend(globs);
        let (code, shown) = run(&bin, folder.path(), &arguments);
        assert_eq!(code, Some(1), "{target}: {shown}");
        let (found, expected) = (failed(folder.path()), set(expected));
        assert!(found.is_superset(&expected), "{target}: {found:?} lacks some of {expected:?}\n{shown}");
    }
}
