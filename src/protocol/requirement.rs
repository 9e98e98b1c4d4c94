//! The requirement catalogue.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How binding a requirement is (RFC 2119).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Breaking it fails.
    Must,
    /// Breaking it warns.
    Should,
    /// Breaking it warns.
    May,
}

/// Who must fulfil it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The server under test.
    #[default]
    Server,
    /// The client; listed for completeness, not judged.
    Client,
}

/// One requirement. Its id is public API.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Requirement {
    /// Stable id, for example `MC-ORD-1`.
    pub id: String,
    /// How binding.
    pub level: Level,
    /// Whose.
    #[serde(default)]
    pub side: Side,
    /// The area, for grouping.
    pub area: String,
    /// What must hold, in one sentence.
    pub text: String,
    /// Where the document says it.
    pub source: String,
    /// The reading that decides it, where the document is ambiguous.
    pub reading: Option<String>,
    /// Why no test can observe it; such a requirement is listed and not counted.
    pub unobservable: Option<String>,
    /// Why the suite does not exercise it on the reference server although a test could.
    pub unexercised: Option<String>,
}

/// The catalogue, by id, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Requirements(pub IndexMap<String, Requirement>);
