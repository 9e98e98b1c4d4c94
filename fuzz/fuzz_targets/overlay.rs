//! The overlay loader.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frameproof::fuzz_targets::overlay(bytes));
