//! What several targets share.

use std::sync::OnceLock;

/// libFuzzer's custom mutator on JSON trees, with the words of a target's dictionary. One in ten, and whatever is no JSON,
/// is left to libFuzzer's own mutations of bytes.
pub fn mutate(target: &str, data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    static WORDS: OnceLock<Vec<String>> = OnceLock::new();
    let words = WORDS.get_or_init(|| frameproof::fuzz_targets::words(target));
    let mutated = (seed % 10 != 0).then(|| frameproof::fuzz_targets::mutate_json(&data[..size], words, seed, max_size));
    match mutated.flatten() {
        Some(text) => {
            data[..text.len()].copy_from_slice(&text);
            text.len()
        }
        None => libfuzzer_sys::fuzzer_mutate(data, size, max_size),
    }
}
