//! The fuzz targets' bodies on the committed seeds and on the protocols' examples, as ordinary tests.

use frameproof::fuzzing;
use frameproof::protocol::{LoadOptions, Protocol};
use proptest::prelude::*;

#[test]
fn the_seeds_hold() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/frame");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the seeds").flatten() {
        fuzzing::frame(&std::fs::read(entry.path()).expect("a seed"));
        count += 1;
    }
    assert!(count >= 20, "only {count} seeds");
}

#[test]
fn the_examples_hold() {
    for name in Protocol::embedded_names() {
        let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("it loads");
        for example in protocol.messages.iter().flat_map(|message| &message.examples) {
            fuzzing::frame(example.to_string().as_bytes());
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzzing::frame(&bytes);
    }

    #[test]
    fn json_like_text_holds(text in r#"[{}\[\]",:0-9a-z\\ .eE+-]{0,60}"#) {
        fuzzing::frame(text.as_bytes());
    }
}
