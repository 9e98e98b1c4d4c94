//! What a verdict shows of a frame: no more than a person reads and a report holds.

use serde_json::Value;

use crate::frame::{cost, json_within};

/// Longest value that a verdict shows, in bytes of its JSON text.
const MAX_EVIDENCE: usize = 64 << 10;
/// What such a value may take in memory.
const MAX_COST: usize = 16 * MAX_EVIDENCE;
/// Evidence up to this size is small, in bytes of its JSON text.
const SMALL: usize = 2 << 10;

/// Longest text of a frame that a message quotes, in characters.
const QUOTED: usize = 200;

/// A text of a frame, as far as a message quotes it.
pub(super) fn clipped(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The value as a verdict shows it: itself, or, where its text has more than 64 KiB or takes much more memory than its text,
/// the beginning of the text.
pub(crate) fn evidence(value: &Value) -> Value {
    match json_within(value, MAX_EVIDENCE) {
        Ok(text) if text.len() <= SMALL || cost(value) <= MAX_COST => value.clone(),
        Ok(text) => Value::String(text),
        Err(text) => Value::String(format!("{text}… (cut after {} bytes)", text.len())),
    }
}

/// Whether evidence is so small that each of several findings in the same frame can have it.
pub(crate) fn is_small(value: &Value) -> bool {
    json_within(value, SMALL).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_cut() {
        let small = serde_json::json!({ "text": "é".repeat(1000), "n": [1, null] });
        assert_eq!(evidence(&small), small);
        for large in [serde_json::json!(["é".repeat(1 << 20)]), serde_json::json!(vec![0; 1 << 17])] {
            let cut = evidence(&large);
            let text = cut.as_str().expect("a text");
            assert!(text.len() < MAX_EVIDENCE + 100 && text.contains("(cut after 655"), "{}", text.len());
        }
    }
}
