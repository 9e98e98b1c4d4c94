//! A protocol as data: an AsyncAPI 3.0 document with `x-frameproof`, and a requirement catalogue,
//! compiled once into what the other floors ask of it.

pub mod extension;
pub mod invariant;
mod message;
mod pattern;
mod requirement;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

pub use extension::{Extension, OneOrMany, Pattern, ReadingName};
pub use message::{Message, SchemaFinding};
pub use pattern::Matcher;
pub use requirement::{Level, Requirement, Requirements, Side};

use crate::source::Diagnostics;
use crate::trace::Direction;

/// A compiled protocol. Cheap to share; nothing in it changes after loading.
#[derive(Debug)]
pub struct Protocol {
    /// The folder's name, for example `minichat`.
    pub name: String,
    /// `info.title` of the document.
    pub title: String,
    /// `info.version` of the document.
    pub version: String,
    /// The channel's address, a path with `{parameters}`, for example `/ws`.
    pub address: String,
    /// `x-frameproof`, readings and overlay applied.
    pub extension: Extension,
    /// Every message of both directions.
    pub messages: Vec<Message>,
    /// The requirement catalogue.
    pub requirements: Requirements,
    /// Which answer is taken for each reading, by reading id.
    pub readings: std::collections::BTreeMap<String, ReadingName>,
}

/// Where a protocol comes from, and how it is adapted.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The reading taken for every ambiguity.
    pub reading: ReadingName,
    /// JSON Merge Patches on the document, applied last, in order.
    pub overlays: Vec<std::path::PathBuf>,
}

impl Protocol {
    /// The names of the protocols that ship with the binary, in the order of the documentation.
    pub fn embedded_names() -> Vec<&'static str> {
        todo!()
    }

    /// Loads a protocol that ships with the binary.
    ///
    /// # Errors
    /// An unknown name (with the nearest one as a hint) or a bad overlay.
    pub fn embedded(_name: &str, _options: &LoadOptions) -> Result<Arc<Self>, Diagnostics> {
        todo!()
    }

    /// Loads a protocol's folder: `asyncapi.yaml` and `requirements.yaml`.
    ///
    /// # Errors
    /// Everything that is wrong with the files, each with its place.
    pub fn load(_folder: &Path, _options: &LoadOptions) -> Result<Arc<Self>, Diagnostics> {
        todo!()
    }

    /// Which message a JSON object is, by its discriminator, for the given direction. `None`: missing, not a
    /// string, or unknown in that direction.
    pub fn message_of(&self, _body: &Value, _dir: Direction) -> Option<usize> {
        todo!()
    }

    /// The discriminator's text in a message, whether known or not.
    pub fn type_of<'v>(&self, body: &'v Value) -> Option<&'v str> {
        self.extension.discriminator.get(body).and_then(Value::as_str)
    }
}
