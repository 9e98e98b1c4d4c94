//! Texts that people write (YAML, JSON), with the place of every value, and diagnostics that point at it.

mod decode;
mod diagnostic;
mod document;
mod duration;
mod excerpt;
mod keywords;
mod node;
pub(crate) mod ordered;
pub(crate) mod received_schema;
pub mod schema;
mod shipped;
mod syntax;
mod toml;

pub(crate) use decode::read;
pub use decode::{decode, decode_value, schema_of};
pub use diagnostic::{Diagnostic, Diagnostics, nearest, nearest_few};
pub(crate) use document::escape_token;
pub use document::{Document, Part, Span};
pub use duration::duration;
pub use keywords::check_keywords;
pub(crate) use shipped::Shipped;
