//! From a document to typed data, with every structural error at its place.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{Diagnostics, Document};

/// Checks the document against the JSON Schema of `T` and reads it.
///
/// # Errors
/// Every violation of the schema as a diagnostic of its own: unknown field (with the nearest known one),
/// missing field, wrong type, unknown variant.
pub fn decode<T: JsonSchema + DeserializeOwned>(_document: &Document) -> Result<T, Diagnostics> {
    todo!()
}
