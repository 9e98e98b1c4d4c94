//! Frames of minicodex, validated: trees of JSON are mutated nine times out of ten, bytes the tenth.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frameproof::fuzz_targets::message("minicodex", bytes));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    frameproof_fuzz::mutate("message_minicodex", data, size, max_size, seed)
});
