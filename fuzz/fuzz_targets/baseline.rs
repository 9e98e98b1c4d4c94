//! The baseline loader.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frameproof::fuzzing::baseline(bytes));
