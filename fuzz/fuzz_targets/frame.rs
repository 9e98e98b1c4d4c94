//! The frame parser on any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frameproof::fuzzing::frame(bytes));
