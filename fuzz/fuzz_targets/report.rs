//! JUnit XML, console and JSON lines of runs full of hostile texts.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    frameproof::fuzz_targets::report(bytes);
    // A parser that is not ours has the last word.
    let xml = frameproof::fuzz_targets::junit_of(bytes);
    if let Err(error) = roxmltree::Document::parse(&xml) {
        panic!("{error} in {xml}");
    }
});
