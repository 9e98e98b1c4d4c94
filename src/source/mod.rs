//! Texts that people write (YAML, JSON), with the place of every value, and diagnostics that point at it.

mod decode;
mod diagnostic;
mod document;

pub use decode::decode;
pub use diagnostic::{Diagnostic, Diagnostics, nearest};
pub use document::{Document, Part, Span};
