//! Streaming monitors against naive ones.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frameproof::fuzz_targets::monitors(bytes));
