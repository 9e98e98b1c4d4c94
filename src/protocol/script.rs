//! What the scripted model does in a turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One step of a turn's script (`docs/scenarios.md` has examples). Exactly one of the actions.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TurnStep {
    /// Text, streamed in these chunks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub say: Option<Vec<String>>,
    /// Reasoning, streamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<Vec<String>>,
    /// Milliseconds between the chunks of `say` or `think`.
    #[serde(rename = "every_ms")]
    #[schemars(range(max = 86_400_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
    /// A tool call: `"{{tools.CLASS}}"`, or `{ class: CLASS, args: {…} }`, or `{ name: NAME, args: {…} }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Value>,
    /// Wait, in milliseconds.
    #[serde(rename = "pause_ms")]
    #[schemars(range(max = 86_400_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_ms: Option<u64>,
    /// The provider answers with an HTTP error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail: Option<Fail>,
    /// Sends nothing more until the turn is aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hang: Option<bool>,
    /// Many chunks of text: a shorthand for a long `say`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flood: Option<Flood>,
}

/// A provider's HTTP error.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// HTTP status.
    pub status: u16,
    /// Message in the error body.
    pub message: String,
}

/// Many chunks of text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flood {
    /// How many chunks; with `chars` at most 64 MiB.
    #[schemars(range(max = 1_000_000))]
    pub chunks: u32,
    /// Characters in each.
    #[schemars(range(max = 16_777_216))]
    pub chars: u32,
}
