//! What a verdict shows of a frame: no more than a person reads and a report holds.

use serde_json::Value;

/// Longest value that a verdict shows, in bytes of its JSON text.
const MAX_EVIDENCE: usize = 64 << 10;

/// What is kept of a JSON text; writing beyond the limit is an error.
struct Kept(Vec<u8>);

impl std::io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match MAX_EVIDENCE - self.0.len() {
            0 if !bytes.is_empty() => Err(std::io::ErrorKind::StorageFull.into()),
            room => {
                let taken = bytes.len().min(room);
                self.0.extend_from_slice(&bytes[..taken]);
                Ok(taken)
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Longest text of a frame that a message quotes, in characters.
const QUOTED: usize = 200;

/// A text of a frame, as far as a message quotes it.
pub(super) fn clipped(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(QUOTED) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The value as a verdict shows it: itself, or, where its text has more than 64 KiB, the beginning of the text.
pub(crate) fn evidence(value: &Value) -> Value {
    let mut kept = Kept(Vec::new());
    if serde_json::to_writer(&mut kept, value).is_ok() {
        return value.clone();
    }
    let text = kept.0.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    Value::String(format!("{text}… (cut after {} bytes)", text.len()))
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
