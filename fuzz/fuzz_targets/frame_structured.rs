//! Built JSON objects: serialised, parsed, and compared.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frameproof::fuzzing::frame_structured(bytes));
