//! The requirement catalogue.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How binding a requirement is (RFC 2119).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// A violation is a failure.
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
    /// How binding it is.
    pub level: Level,
    /// Who must satisfy it.
    #[serde(default)]
    pub side: Side,
    /// The area, for grouping.
    pub area: String,
    /// What is required, in one sentence.
    pub text: String,
    /// Where the document says it.
    pub source: String,
    /// The reading that decides it, where the document is ambiguous.
    pub reading: Option<String>,
    /// Why no test can observe it; such a requirement is listed and not counted.
    pub unobservable: Option<String>,
    /// Why the suite does not exercise it on the reference server, or on the unchanged target of `selftest --target`, although a test could.
    pub unexercised: Option<String>,
}

/// The catalogue, by id, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Requirements(pub IndexMap<String, Requirement>);

/// The file `requirements.yaml`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequirementsFile {
    /// The requirements.
    pub requirements: Vec<Requirement>,
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
        })
    }
}

impl Requirement {
    /// Whether a run can judge it: the server's, and observable.
    pub fn is_judged(&self) -> bool {
        self.side == Side::Server && self.unobservable.is_none()
    }
}

impl Requirements {
    /// The requirement of an id.
    pub fn get(&self, id: &str) -> Option<&Requirement> {
        self.0.get(id)
    }

    /// Whether breaking any of these requirements fails (a MUST), rather than warns. No ids: it fails.
    pub fn fails<'i>(&self, ids: impl IntoIterator<Item = &'i String>) -> bool {
        let mut none = true;
        for id in ids {
            none = false;
            if self.get(id).is_none_or(|requirement| requirement.level == Level::Must) {
                return true;
            }
        }
        none
    }
}
