use std::path::PathBuf;

use super::*;

#[test]
fn every_shipped_protocol_loads_in_every_reading() {
    for name in Protocol::embedded_names() {
        for reading in [ReadingName::Strict, ReadingName::Default, ReadingName::Lenient] {
            let options =
                LoadOptions { reading, dialect: DialectChoice::default(), overlays: Vec::<PathBuf>::new() };
            if let Err(errors) = Protocol::embedded(name, &options) {
                panic!("{name}, {reading:?}:\n{errors}");
            }
        }
    }
}

#[test]
fn an_unknown_protocol_is_named() {
    let error = Protocol::embedded("nope", &LoadOptions::default()).expect_err("unknown").to_string();
    assert!(error.contains("unknown protocol `nope`"), "{error}");
}

#[test]
fn what_a_dialect_names_must_be_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let overlay = folder.path().join("overlay.yaml");
    let text = "x-frameproof: { dialects: { auto: { about: none, answers: [NOPE], refused: {}, spelling: \
                [{ on: nope, ours: /a, theirs: /b }] } } }";
    std::fs::write(&overlay, text).expect("written");
    let options = LoadOptions { overlays: vec![overlay], ..LoadOptions::default() };
    for name in Protocol::embedded_names() {
        let errors = Protocol::embedded(name, &options).expect_err("three mistakes").to_string();
        for mistake in ["`auto` is no name", "unknown ambiguity `NOPE`", "sends no message `nope`"] {
            assert!(errors.contains(mistake), "{name}: {errors}");
        }
    }
}

#[test]
fn an_example_without_a_payload_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let overlay = folder.path().join("overlay.yaml");
    let protocol = Protocol::embedded_names()[0];
    let loaded = Protocol::embedded(protocol, &LoadOptions::default()).expect("it loads");
    let name = loaded.messages[0].place.rsplit('/').next().expect("a name");
    let text = format!("components: {{ messages: {{ {name}: {{ examples: [{{ paylod: {{}} }}] }} }} }}\n");
    std::fs::write(&overlay, text).expect("written");
    let options = LoadOptions { overlays: vec![overlay], ..LoadOptions::default() };
    let error = Protocol::embedded(protocol, &options).expect_err("refused").to_string();
    assert!(error.contains(&format!("an example of `{name}` has no `payload`")), "{error}");
    assert!(error.contains("overlay.yaml:1:"), "{error}");
}
