//! `--reading`.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::protocol::ReadingName;

/// Which answer to take where a document is ambiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reading {
    /// The narrowest answer.
    Strict,
    /// The answer that frameproof considers most likely.
    Default,
    /// The widest answer.
    Lenient,
}

impl From<ReadingName> for Reading {
    fn from(reading: ReadingName) -> Self {
        match reading {
            ReadingName::Strict => Self::Strict,
            ReadingName::Default => Self::Default,
            ReadingName::Lenient => Self::Lenient,
        }
    }
}

impl From<Reading> for ReadingName {
    fn from(reading: Reading) -> Self {
        match reading {
            Reading::Strict => Self::Strict,
            Reading::Default => Self::Default,
            Reading::Lenient => Self::Lenient,
        }
    }
}
