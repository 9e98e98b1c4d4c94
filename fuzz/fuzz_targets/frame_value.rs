//! Bytes to a `serde_json::Value` and nothing else: what `frame` is measured against.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frameproof::fuzz_targets::frame_value(bytes));
