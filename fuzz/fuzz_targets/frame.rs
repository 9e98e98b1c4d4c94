//! The frame parser on any bytes, as fast as it goes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frameproof::fuzz_targets::frame(bytes));
