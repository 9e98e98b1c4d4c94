//! Texts that people write (YAML, JSON), with the place of every value, and diagnostics that point at it.

mod decode;
mod diagnostic;
mod document;
mod duration;
mod excerpt;
pub(crate) mod forms;
mod keywords;
mod node;
pub(crate) mod ordered;
pub(crate) mod received_schema;
pub mod schema;
mod shipped;
mod synonyms;
mod syntax;
mod toml;

pub use decode::{decode, decode_value, schema_of};
pub(crate) use decode::{read, shape_of};
pub(crate) use diagnostic::all_known;
pub use diagnostic::{Diagnostic, Diagnostics, nearest, nearest_few};
pub use document::{Document, Part, Span};
pub(crate) use document::{escape_token, unescape_token};
pub use duration::duration;
pub(crate) use forms::{forms, forms_of_field, forms_of_items};
pub use keywords::check_keywords;
pub(crate) use keywords::{EXTENSION, misspelt_extension};
pub(crate) use shipped::Shipped;
pub(crate) use synonyms::Renamer;
pub use synonyms::{SYNONYM, with_synonyms};
