//! What every shipped protocol owes its users, whichever it is.

use std::fs;
use std::path::Path;

use crate::support::{frameproof, text};
use frameproof::protocol::{LoadOptions, Protocol};
use frameproof::reference;

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
