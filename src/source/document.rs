//! A YAML text as JSON, with places.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::Diagnostics;

/// Bytes of the text, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// Which part of a map entry a diagnostic points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The key.
    Key,
    /// The value.
    Value,
}

/// A parsed text.
#[derive(Debug, Clone)]
pub struct Document {
    /// What messages call it: a path as the user gave it.
    pub name: String,
    /// The text.
    pub text: Arc<str>,
    /// The value.
    pub value: Value,
}

impl Document {
    /// Parses YAML (or JSON, which is YAML).
    ///
    /// # Errors
    /// Broken syntax, duplicate keys, a key that is no string, an alias bomb, too deep or too large a text.
    pub fn parse(_name: &str, _text: &str) -> Result<Self, Diagnostics> {
        todo!()
    }

    /// Reads and parses a file.
    ///
    /// # Errors
    /// As [`Document::parse`], and a file that cannot be read or is not UTF-8.
    pub fn read(_path: &Path) -> Result<Self, Diagnostics> {
        todo!()
    }

    /// Where the value at a JSON Pointer stands; the nearest existing parent where it does not exist.
    pub fn span(&self, _pointer: &str, _part: Part) -> Span {
        todo!()
    }

    /// Line and column, both from 1 (columns in characters), and the source line, of a byte offset.
    pub fn place(&self, _offset: usize) -> (usize, usize, &str) {
        todo!()
    }
}
