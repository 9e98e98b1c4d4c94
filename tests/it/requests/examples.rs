//! The examples of the reference pages that need a server with requests of its own: they load in the protocols of these tests.

use std::fs;
use std::path::Path;

use super::project;
use crate::docs::{blocks, read};
use crate::support::{frameproof, text};

/// What is below one of the protocol's keys, with the key itself: replaced by an example, or added.
fn with(folder: &Path, name: &str, example: &str) {
    let api = folder.join(name).join("asyncapi.yaml");
    let mut document: serde_json::Value =
        serde_saphyr::from_str(&fs::read_to_string(&api).expect("it")).expect("YAML");
    let example: serde_json::Value = serde_saphyr::from_str(example).expect("YAML");
    json_patch::merge(&mut document["x-frameproof"], &example);
    fs::write(&api, document.to_string()).expect("written");
}

/// The steps, as one case of a file, load with the protocol.
fn load(folder: &Path, name: &str, steps: &str) {
    let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
    let file =
        format!("family: m\ncases:\n  - name: a\n    title: t\n    steps:\n      - open: alice\n{steps}");
    fs::write(folder.join("m.yaml"), file).expect("written");
    let arguments = ["list", "--protocol", name, "--scenario", "m.yaml"];
    let output = frameproof(folder, &arguments);
    assert_eq!(output.status.code(), Some(0), "{name}\n{steps}\n{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("m/a"), "{}", text(&output.stdout));
}

#[test]
fn the_steps_and_rules_of_the_reference_pages_load() {
    let protocols = read("docs/protocol-reference.md");
    let scenarios = read("docs/scenario-reference.md");
    let (desk, rpc) = (project("desk"), project("rpc"));
    let [answers] = &blocks(&protocols, "yaml desk-step")[..] else { panic!("one example of answers") };
    load(desk.path(), "desk", answers);
    let rpc_steps = [blocks(&protocols, "yaml rpc-step"), blocks(&scenarios, "yaml rpc-step")].concat();
    assert_eq!(rpc_steps.len(), 2);
    for steps in rpc_steps {
        load(rpc.path(), "rpc", &steps);
    }
    let [questions] = &blocks(&protocols, "yaml desk-invariants")[..] else { panic!("one invariant") };
    let [client] = &blocks(&protocols, "yaml client")[..] else { panic!("one example of rules for clients") };
    let [schemas] = &blocks(&protocols, "yaml schemas")[..] else { panic!("one example of schemas") };
    let indented: String = questions.lines().map(|line| format!("  {line}\n")).collect();
    with(desk.path(), "desk", &format!("invariants:\n{indented}"));
    with(desk.path(), "desk", client);
    load(desk.path(), "desk", "- never: outcome");
    with(rpc.path(), "rpc", schemas);
    let [refuses] = &blocks(&protocols, "yaml rpc-client")[..] else { panic!("one more example") };
    with(rpc.path(), "rpc", refuses);
    load(rpc.path(), "rpc", "- never: approval/command");
}

/// Steps of the scenario reference that stand alone.
#[test]
fn the_steps_of_the_scenario_reference_load() {
    let steps = blocks(&read("docs/scenario-reference.md"), "yaml step");
    assert!(steps.len() >= 2);
    let folder = tempfile::tempdir().expect("a folder");
    for steps in steps {
        load(folder.path(), "minicodex", &steps);
    }
}
