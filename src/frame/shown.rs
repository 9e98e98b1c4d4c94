//! A value as text, no more of it than is shown: the whole text of a frame is never made for its beginning.

use serde_json::Value;

/// What is kept of a JSON text; writing beyond the limit is an error.
struct Kept {
    bytes: Vec<u8>,
    most: usize,
}

impl std::io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.most - self.bytes.len() {
            0 if !bytes.is_empty() => Err(std::io::ErrorKind::StorageFull.into()),
            room => {
                let taken = bytes.len().min(room);
                self.bytes.extend_from_slice(&bytes[..taken]);
                Ok(taken)
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The JSON text of a value. An error: it has more bytes than this, and these are its beginning.
pub(crate) fn json_within(value: &Value, most: usize) -> Result<String, String> {
    let mut kept = Kept { bytes: Vec::new(), most };
    let whole = serde_json::to_writer(&mut kept, value).is_ok();
    let text = kept.bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid()).to_owned();
    if whole { Ok(text) } else { Err(text) }
}
