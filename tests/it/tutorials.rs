//! The tutorials of the documentation are executed from the first line to the last, as a reader does who pastes each block: a block
//! with the name of a file is appended to that file, a command prints what the page shows. The reference pages name every key.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::docs::{blocks, exit_codes, read};
use crate::support::{frameproof, text};

/// Executes a page in an empty folder, which is returned.
fn execute(page: &str) -> tempfile::TempDir {
    let markdown = read(page);
    let folder = tempfile::tempdir().expect("a folder");
    let mut lines = markdown.lines();
    let mut commands = 0;
    while let Some(line) = lines.next() {
        let Some(opening) = line.strip_prefix("```").filter(|opening| !opening.is_empty()) else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let name = opening.split(' ').next_back().unwrap_or_default();
        if opening == "console" {
            commands += console(page, folder.path(), &block);
        } else if name.contains('.') {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            let mut file = fs::OpenOptions::new().create(true).append(true).open(path).expect(name);
            block.iter().for_each(|line| writeln!(file, "{line}").expect("written"));
        }
    }
    assert!(commands >= 6, "{page} has {commands} commands");
    folder
}

/// Executes the commands of a console block. The lines below each are lines of its output, in this order.
fn console(page: &str, folder: &Path, block: &[&str]) -> usize {
    let starts: Vec<usize> = (0..block.len()).filter(|at| block[*at].starts_with("$ ")).collect();
    for (index, start) in starts.iter().enumerate() {
        let line = block[*start].trim_start_matches("$ ");
        let (command, note) = line.split_once(" #").unwrap_or((line, ""));
        let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches('\'')).collect();
        let ["frameproof", arguments @ ..] = &words[..] else { panic!("{page}: {line}") };
        let output = frameproof(folder, arguments);
        let shown = text(&output.stdout) + &text(&output.stderr);
        let code = output.status.code().expect("an exit code");
        assert!(exit_codes(note).contains(&code), "{page}: {line}\nexit code {code}\n{shown}");
        let mut printed = shown.lines().map(timeless);
        let end = starts.get(index + 1).copied().unwrap_or(block.len());
        for expected in &block[start + 1..end] {
            let expected = timeless(expected);
            let parts: Vec<&str> = expected.split('…').map(str::trim).collect();
            assert!(
                printed.any(|line| in_order(&line, &parts)),
                "{page}: {line}\ndoes not print (here)\n{expected}\nbut\n{shown}"
            );
        }
    }
    starts.len()
}

/// A line without what differs from run to run: times, and how many requirements a run has exercised, which depends on its timing.
/// With single blanks: columns depend on times.
fn timeless(line: &str) -> String {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    if let ["requirements", passed, _, _, _, _, _, others, "not", "exercised"] = &mut words[..] {
        (*passed, *others) = ("N", "N");
    }
    for at in 1..words.len() {
        if matches!(words[at].trim_end_matches(','), "s" | "ms") && words[at - 1].parse::<f64>().is_ok() {
            words[at - 1] = "N";
        }
    }
    words.join(" ")
}

/// Whether these texts occur in the line one after the other; without a `…` the line is the only one.
fn in_order(line: &str, parts: &[&str]) -> bool {
    if let [whole] = parts {
        return line == *whole;
    }
    let mut rest = line;
    parts.iter().all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[test]
fn the_tutorial_of_scenarios_works() {
    execute("docs/scenarios.md");
}

#[test]
fn the_tutorial_of_monitors_works() {
    execute("docs/monitors.md");
}

/// The examples of the reference page stand in the protocol that the tutorial builds.
#[test]
fn the_tutorial_of_protocols_works_and_the_examples_of_its_reference_load() {
    let folder = execute("docs/protocols.md");
    let api = folder.path().join("minichat/asyncapi.yaml");
    let built = fs::read_to_string(&api).expect("built by the tutorial");
    let reference = read("docs/protocol-reference.md") + &read("docs/monitor-reference.md");
    let load = |name: &str, text: &str| {
        fs::write(&api, text).expect("written");
        let output = frameproof(folder.path(), &["explain", "CH-1", "--protocol", "minichat"]);
        assert_eq!(output.status.code(), Some(0), "{name}\n{text}\n{}", self::text(&output.stderr));
    };
    let indented = |text: &str, by: usize| -> String {
        text.lines().map(|line| format!("{:by$}{line}\n", "")).collect()
    };
    let invariants = blocks(&reference, "yaml invariants");
    let fragments = blocks(&reference, "yaml fragment");
    assert!(invariants.len() >= 2 && fragments.len() >= 2, "{} {}", invariants.len(), fragments.len());
    for example in invariants {
        load(
            "invariants",
            &built.replace("  invariants:\n", &format!("  invariants:\n{}", indented(&example, 4))),
        );
    }
    for example in fragments {
        load("fragment", &(built.clone() + &indented(&example, 2)));
    }
    // An overlay permits what the protocol forbids.
    load("the tutorial's own", &built);
    let [overlay] = &blocks(&reference, "yaml overlay.yaml")[..] else { panic!("one overlay") };
    fs::write(folder.path().join("overlay.yaml"), overlay).expect("written");
    let welcome = r#"{"t_ms":1,"client":"c","dir":"recv","text":"{\"type\":\"welcome\",\"room\":null}"}"#;
    fs::write(folder.path().join("null.ndjson"), welcome).expect("written");
    let check = ["check", "null.ndjson", "--protocol", "minichat"];
    assert_eq!(frameproof(folder.path(), &check).status.code(), Some(1), "null is no text");
    let patched = frameproof(folder.path(), &[&check[..], &["--overlay", "overlay.yaml"]].concat());
    assert_eq!(patched.status.code(), Some(0), "{}", text(&patched.stdout));
    // A message with a `name`, and a reference to a key with a slash.
    let [messages] = &blocks(&reference, "yaml messages")[..] else { panic!("one example of messages") };
    fs::write(folder.path().join("overlay.yaml"), messages).expect("written");
    let notice = r#"{"t_ms":1,"client":"c","dir":"recv","text":"{\"type\":\"room/notice\"}"}"#;
    fs::write(folder.path().join("null.ndjson"), notice).expect("written");
    assert_eq!(frameproof(folder.path(), &check).status.code(), Some(1), "the protocol has no such message");
    let patched = frameproof(folder.path(), &[&check[..], &["--overlay", "overlay.yaml"]].concat());
    assert_eq!(patched.status.code(), Some(0), "{}{}", text(&patched.stdout), text(&patched.stderr));
}

/// Every object of the JSON Schemas has its table on a reference page.
#[test]
fn the_reference_pages_have_every_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = ["docs/scenario-reference.md", "docs/protocol-reference.md", "docs/monitor-reference.md"];
    let pages = pages.map(read).concat();
    let mut missing = BTreeSet::new();
    for file in ["scenario", "protocol", "requirements"] {
        let output = frameproof(folder.path(), &["schema", file]);
        let schema: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rules = schema.pointer("/$defs/Rule/oneOf").and_then(Value::as_array);
        // `markdown monitor-pages` has a section for each kind of monitor.
        let monitors: BTreeSet<String> =
            rules.into_iter().flatten().map(|rule| rule["properties"].to_string()).collect();
        for (name, object) in schema["$defs"].as_object().expect("objects") {
            let is_monitor =
                name == "Rule" || monitors.iter().any(|one| one.contains(&format!("$defs/{name}\"")));
            let constants = object["oneOf"].as_array();
            let is_choice = constants.is_some_and(|all| all.iter().all(|one| one["const"].is_string()));
            let is_plain = object.get("properties").is_none() && constants.is_none();
            if !is_monitor
                && !is_choice
                && !is_plain
                && ["scenario", "protocol", "requirements"]
                    .iter()
                    .all(|file| !pages.contains(&format!("`frameproof markdown keys {file} {name}`")))
            {
                // A step's keys are its verbs and modifiers.
                missing.insert(name.clone());
            }
        }
    }
    assert_eq!(missing, BTreeSet::from(["Step".to_owned()]));
}
