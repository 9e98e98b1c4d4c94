//! Frames of codex, validated: trees of JSON are mutated nine times out of ten, bytes the tenth.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frameproof::fuzz_targets::message("codex", bytes));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    frameproof_fuzz::mutate("message_codex", data, size, max_size, seed)
});
