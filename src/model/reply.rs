//! One answer of the model while it comes into being, in terms that all APIs share.

use serde_json::Value;

/// What a block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reasoning.
    Think,
    /// Text.
    Text,
    /// A call of the tool of this name; the block's content is its arguments as JSON text.
    Call(String),
}

/// A run of what is of one kind.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub kind: Kind,
    /// Makes the block's ids unique; each API puts its own prefix before it.
    pub key: String,
    pub content: String,
}

/// An answer: what it is called, and its blocks so far.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    /// With the API's prefix.
    pub id: String,
    pub model: String,
    /// Seconds since 1970.
    pub created: i64,
    pub input_tokens: u64,
    pub blocks: Vec<Block>,
}

impl Reply {
    pub fn new(id: String, model: String, input_tokens: u64) -> Self {
        let created = jiff::Timestamp::now().as_second();
        Self { id, model, created, input_tokens, blocks: Vec::new() }
    }

    pub fn open(&mut self, kind: Kind) {
        self.blocks.push(Block { kind, key: key(), content: String::new() });
    }

    /// All blocks of this kind as one text.
    fn joined(&self, kind: &Kind) -> String {
        self.blocks.iter().filter(|block| block.kind == *kind).map(|block| block.content.as_str()).collect()
    }

    pub fn text(&self) -> String {
        self.joined(&Kind::Text)
    }

    pub fn thinking(&self) -> String {
        self.joined(&Kind::Think)
    }

    pub fn calls(&self) -> impl Iterator<Item = (&Block, &str)> {
        self.blocks.iter().filter_map(|block| match &block.kind {
            Kind::Call(name) => Some((block, name.as_str())),
            _ => None,
        })
    }

    pub fn reasoning_tokens(&self) -> u64 {
        tokens(&self.thinking())
    }

    pub fn output_tokens(&self) -> u64 {
        self.blocks.iter().map(|block| tokens(&block.content)).sum()
    }
}

/// A fresh part of an id.
pub(super) fn key() -> String {
    let mut key = uuid::Uuid::new_v4().simple().to_string();
    key.truncate(24);
    key
}

/// The tokens of a text, reckoned as four characters each: the same in every run, and near enough to the truth.
pub(super) fn tokens(text: &str) -> u64 {
    u64::try_from(text.chars().count().div_ceil(4)).unwrap_or(u64::MAX)
}

/// The tokens of all text in a value.
pub(super) fn tokens_in(value: &Value) -> u64 {
    match value {
        Value::String(text) => tokens(text),
        Value::Array(items) => items.iter().map(tokens_in).sum(),
        Value::Object(fields) => fields.values().map(tokens_in).sum(),
        _ => 0,
    }
}
