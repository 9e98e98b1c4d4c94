use std::path::PathBuf;

use super::*;

#[test]
fn every_shipped_protocol_loads_in_every_reading() {
    for name in Protocol::embedded_names() {
        for reading in [ReadingName::Strict, ReadingName::Default, ReadingName::Lenient] {
            let options = LoadOptions { reading, overlays: Vec::<PathBuf>::new() };
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
