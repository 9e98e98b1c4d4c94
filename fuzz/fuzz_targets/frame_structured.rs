//! Frames from a walk over a message's JSON Schema: serialised, parsed, validated.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frameproof::fuzz_targets::frame_structured(bytes));
