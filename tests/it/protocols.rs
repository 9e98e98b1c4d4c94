//! What every shipped protocol owes its users, whichever it is.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::{frameproof, text};
use frameproof::protocol::{LoadOptions, Protocol};
use frameproof::reference;
use frameproof::source::Document;
use serde_json::Value;

fn protocols() -> impl Iterator<Item = (&'static str, std::sync::Arc<Protocol>)> {
    let names = Protocol::embedded_names().into_iter();
    names.map(|name| (name, Protocol::embedded(name, &LoadOptions::default()).expect("it loads")))
}

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect(file)
}

#[test]
fn every_observable_requirement_is_decided_or_says_why_not() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, _) in protocols() {
        let output = frameproof(folder.path(), &["list", name, "--requirements"]);
        let shown = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{name}");
        assert!(!shown.contains("nothing decides it"), "{name}:\n{shown}");
    }
}

#[test]
fn every_protocol_has_its_page_with_every_reading_and_its_answers() {
    for (name, protocol) in protocols() {
        let page = read(&format!("docs/protocols/{name}.md"));
        for (id, reading) in &protocol.extension.readings {
            let other =
                |answer: &String| if *answer == reading.default { "same".to_owned() } else { answer.clone() };
            let answers = [reading.default.clone(), other(&reading.strict), other(&reading.lenient)];
            let row = format!("| {id} | {} | {} |", reading.topic, answers.join(" | "));
            assert!(page.contains(&row), "docs/protocols/{name}.md should have this row:\n{row}");
        }
        let index = read("docs/protocols.md") + &read("README.md");
        assert!(index.contains(&format!("protocols/{name}.md")), "nothing links to docs/protocols/{name}.md");
    }
}

#[test]
fn every_protocol_has_a_reference_server_with_faults_of_known_requirements() {
    for (name, protocol) in protocols() {
        let faults = reference::faults(name);
        assert!(faults.len() >= 20, "{name} has {} faults", faults.len());
        for (index, fault) in faults.iter().enumerate() {
            assert!(!fault.violates.is_empty(), "{name}: {} violates nothing", fault.name);
            for id in fault.violates {
                assert!(
                    protocol.requirements.get(id).is_some(),
                    "{name}: {} violates unknown {id}",
                    fault.name
                );
            }
            let twin = faults[..index].iter().find(|other| other.name == fault.name);
            assert!(twin.is_none(), "{name}: two faults are called {}", fault.name);
        }
    }
}

/// A server of one's own has other tools: what a turn calls is a class, which a target maps.
#[test]
fn no_turn_calls_by_name_a_tool_that_has_a_class() {
    for (name, protocol) in protocols() {
        let api = Protocol::embedded_files(name).expect("its files").into_iter();
        for (file, text) in api.chain(frameproof::scenario::embedded_files(name)) {
            for (number, line) in text.lines().enumerate() {
                let by_name = protocol.extension.tools.values().find(|tool| {
                    line.contains(&format!("call: {{ name: {},", tool.name))
                        || line.contains(&format!("call: {{ name: {} }}", tool.name))
                });
                assert!(by_name.is_none(), "{file}:{} should call a class: {line}", number + 1);
            }
        }
    }
}

#[test]
fn every_class_of_tools_is_described_for_targets() {
    let page = read("docs/targets.md");
    for (name, protocol) in protocols() {
        for class in protocol.extension.tools.keys() {
            let mut classes = page.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
            let described = classes.any(|cell| {
                cell.contains(&format!("`{class}`")) && (!cell.contains('(') || cell.contains(name))
            });
            assert!(described, "docs/targets.md lacks the class `{class}` of {name}");
        }
    }
}

/// The names of the clients that steps open.
fn opened(steps: &Value, names: &mut BTreeSet<String>) {
    match steps {
        Value::Object(step) => {
            names.extend(step.get("open").map(ToString::to_string));
            step.values().for_each(|inner| opened(inner, names));
        }
        Value::Array(steps) => steps.iter().for_each(|step| opened(step, names)),
        _ => {}
    }
}

/// Whoever has one conversation for all connections leaves out what needs several.
#[test]
fn cases_with_several_connections_need_isolation_where_a_protocol_has_it() {
    let with_isolation =
        protocols().filter(|(_, protocol)| protocol.extension.capabilities.contains_key("isolation"));
    let files: Vec<_> =
        with_isolation.flat_map(|(name, _)| frameproof::scenario::embedded_files(name)).collect();
    assert!(!files.is_empty());
    for (file, text) in files {
        let document = Document::parse(file, text).unwrap_or_else(|error| panic!("{error}"));
        for case in document.value["cases"].as_array().expect("cases") {
            let mut names = BTreeSet::new();
            opened(&case["steps"], &mut names);
            let needs =
                case["needs"].as_array().is_some_and(|needs| needs.iter().any(|need| need == "isolation"));
            assert!(names.len() < 2 || needs, "{file}: {} opens {names:?}", case["name"]);
        }
    }
}
