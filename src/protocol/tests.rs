use std::path::PathBuf;

use super::*;

#[test]
fn every_shipped_protocol_loads_in_every_reading() {
    for name in Protocol::embedded_names() {
        for reading in [ReadingName::Strict, ReadingName::Default, ReadingName::Lenient] {
            let options = LoadOptions {
                reading,
                dialect: DialectChoice::default(),
                overlays: Vec::<PathBuf>::new(),
                schemas: None,
            };
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
        for mistake in ["`auto` is not a valid", "unknown ambiguity `NOPE`", "sends no message `nope`"] {
            assert!(errors.contains(mistake), "{name}: {errors}");
        }
    }
}

#[test]
fn a_reading_that_a_requirement_names_must_be_declared() {
    let folder = tempfile::tempdir().expect("a folder");
    let api = include_str!("../../templates/like/greeting/protocol/asyncapi.yaml");
    let requirements = include_str!("../../templates/like/greeting/protocol/requirements.yaml");
    let id = "{ id: CH-2, ";
    assert!(requirements.contains(id));
    std::fs::write(folder.path().join("asyncapi.yaml"), api).expect("written");
    let with = requirements.replace(id, "{ id: CH-2, reading: CH-AMB-1, ");
    std::fs::write(folder.path().join("requirements.yaml"), with).expect("written");
    let error = Protocol::load(folder.path(), &LoadOptions::default()).expect_err("refused").to_string();
    assert!(error.contains("reading `CH-AMB-1` is not declared"), "{error}");
    assert!(error.contains("requirements.yaml:") && error.contains("x-frameproof.readings"), "{error}");
}

#[test]
fn an_example_without_a_payload_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let overlay = folder.path().join("overlay.yaml");
    let protocol = Protocol::embedded_names()[0];
    let loaded = Protocol::embedded(protocol, &LoadOptions::default()).expect("it loads");
    let name = loaded.messages[0].place.rsplit('/').next().expect("a name");
    let text = format!("components: {{ messages: {{ {name}: {{ examples: [{{ name: short }}] }} }} }}\n");
    std::fs::write(&overlay, text).expect("written");
    let options = LoadOptions { overlays: vec![overlay], ..LoadOptions::default() };
    let error = Protocol::embedded(protocol, &options).expect_err("refused").to_string();
    assert!(error.contains(&format!("an example of `{name}` has no `payload`")), "{error}");
    assert!(error.contains("overlay.yaml:1:"), "{error}");
}

/// Each type says what it refers to, so that a mistake is found wherever it stands, and shown there.
#[test]
fn what_the_extension_refers_to_must_be_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let overlay = folder.path().join("overlay.yaml");
    let lines = [
        ("x-frameproof:", None),
        ("  frames: { object: [NOPE-1] }", Some("unknown requirement `NOPE-1`")),
        (
            "  repeats: [{ message: nope0, key: /a, value: /b, reading: X-1 }]",
            Some("sends no message `nope0`"),
        ),
        ("  capabilities: { c: { about: a, announced: nope1 } }", Some("sends no message `nope1`")),
        ("  invariants:", None),
        ("    schema:", None),
        ("      about: a", None),
        ("      monitor:", None),
        ("        bracket:", None),
        ("          open: nope2", Some("sends no message `nope2`")),
        ("          close: { dir: send, type: [nope3] }", Some("the client sends no message `nope3`")),
        ("          inside: { any: [nope4] }", Some("sends no message `nope4`")),
        ("          joined: [{ on: nope5, at: /a }]", Some("sends no message `nope5`")),
        ("          before: [NOPE-2]", Some("unknown requirement `NOPE-2`")),
        ("          after: []", None),
    ];
    std::fs::write(&overlay, lines.map(|(line, _)| line).join("\n")).expect("written");
    let options = LoadOptions { overlays: vec![overlay], ..LoadOptions::default() };
    let name = Protocol::embedded_names()[0];
    let errors = Protocol::embedded(name, &options).expect_err("mistakes");
    let text = errors.to_string();
    for (number, (_, mistake)) in (1..).zip(lines) {
        let Some(mistake) = mistake else { continue };
        let (_, after) = text.split_once(mistake).unwrap_or_else(|| panic!("no {mistake} in {text}"));
        let place = after.lines().take(3).find(|line| line.contains("overlay.yaml:"));
        assert!(
            place.is_some_and(|line| line.contains(&format!("overlay.yaml:{number}:"))),
            "{mistake}: {text}"
        );
    }
}
