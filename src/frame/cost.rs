//! What parsed JSON costs, in bytes of memory: a text of a few bytes can cost hundreds.

use std::cell::Cell;
use std::mem::size_of;

use serde_json::Value;

/// What an object costs that is not empty, besides its fields.
const OBJECT: usize = 250;
/// What a field costs, besides the bytes of its key and what is below it.
const FIELD: usize = 136;
/// What a string costs besides its bytes.
const TEXT: usize = 16;
/// What any frame may cost, however short.
const FLOOR: usize = 16 << 20;
/// What a frame may cost besides, for each byte of its text.
const FACTOR: usize = 8;

/// Whether it matters to nobody what a text of so many bytes costs.
pub(super) fn is_small(text: usize) -> bool {
    text <= SMALL
}

/// Whether a text of so many bytes is to be weighed before it is taken.
pub(super) fn is_large(text: usize) -> bool {
    text > LARGE
}

/// What a text of so many bytes may cost when it is parsed.
pub(super) fn allowed(text: usize) -> usize {
    FLOOR + FACTOR * text
}

/// Texts up to this size are small, in bytes: what they cost matters to nobody.
const SMALL: usize = 64 << 10;

/// Texts of more than this are large, in bytes.
const LARGE: usize = 1 << 20;

/// What may still be spent on a frame that is being parsed.
pub(super) struct Budget {
    left: Cell<usize>,
    small: bool,
}

impl Budget {
    pub fn of(text: usize) -> Self {
        Self { left: Cell::new(allowed(text)), small: is_small(text) }
    }

    /// Whether there was enough left for this.
    fn spend(&self, cost: usize) -> bool {
        let left = self.left.get().checked_sub(cost);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    pub fn is_small(&self) -> bool {
        self.small
    }

    pub fn item(&self) -> bool {
        self.spend(size_of::<Value>())
    }

    pub fn object(&self) -> bool {
        self.spend(OBJECT)
    }

    pub fn field(&self, key: usize) -> bool {
        self.spend(key + FIELD)
    }

    pub fn text(&self, bytes: usize) -> bool {
        self.spend(bytes + TEXT)
    }
}

/// What a parsed value costs, about, besides its own place.
pub(crate) fn cost(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len() + TEXT,
        Value::Array(items) => items.iter().map(|item| size_of::<Value>() + cost(item)).sum(),
        Value::Object(map) if map.is_empty() => 0,
        Value::Object(map) => {
            OBJECT + map.iter().map(|(key, value)| key.len() + FIELD + cost(value)).sum::<usize>()
        }
    }
}
