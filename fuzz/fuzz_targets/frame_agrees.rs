//! The frame parser against serde_json, and round trips.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frameproof::fuzz_targets::frame_agrees(bytes));
