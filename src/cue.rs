//! The cue: the model's script, carried inside the user's text as `[[cue:BASE64URL]]`.
//!
//! The scenario side encodes it, the reference servers (and a scripted model) decode and play it.
//! See `docs/scenarios.md`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const OPEN: &str = "[[cue:";
const CLOSE: &str = "]]";

/// What the model does in one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cue {
    /// Version of the format: 1.
    pub v: u32,
    /// The steps.
    pub turn: Vec<Step>,
}

/// One step of the script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// Text, streamed in chunks.
    Say {
        /// The chunks.
        say: Vec<String>,
        /// Milliseconds between them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every_ms: Option<u64>,
    },
    /// Reasoning, streamed in chunks.
    Think {
        /// The chunks.
        think: Vec<String>,
        /// Milliseconds between them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every_ms: Option<u64>,
    },
    /// A tool call.
    Call {
        /// Name and arguments.
        call: Call,
    },
    /// A pause.
    Pause {
        /// Milliseconds.
        pause_ms: u64,
    },
    /// The provider answers with an HTTP error.
    Fail {
        /// Status and message.
        fail: Fail,
    },
    /// Nothing more until the turn is cancelled.
    Hang {
        /// Always true.
        hang: bool,
    },
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Map<String, Value>,
}

/// A provider's HTTP error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// HTTP status.
    pub status: u16,
    /// Message.
    pub message: String,
}

/// Why a text's cue cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cue error: {0}")]
pub struct CueError(pub String);

impl Cue {
    /// A cue of the current version.
    pub fn new(turn: Vec<Step>) -> Self {
        Self { v: 1, turn }
    }

    /// The cue as it stands in a text: `[[cue:…]]`.
    pub fn encode(&self) -> String {
        // A cue is plain data with string keys, which always serialises.
        let json = serde_json::to_vec(self).unwrap_or_default();
        format!("{OPEN}{}{CLOSE}", URL_SAFE_NO_PAD.encode(json))
    }

    /// The cue in `text`: `Ok(None)` where there is none.
    ///
    /// # Errors
    /// A cue that does not decode, or has an unknown version or step.
    pub fn find(text: &str) -> Result<Option<Self>, CueError> {
        let Some((_, rest)) = text.split_once(OPEN) else { return Ok(None) };
        let Some((payload, _)) = rest.split_once(CLOSE) else {
            return Err(CueError("no closing `]]`".into()));
        };
        let json = URL_SAFE_NO_PAD.decode(payload).map_err(|error| CueError(error.to_string()))?;
        let value: Value = serde_json::from_slice(&json).map_err(|error| CueError(error.to_string()))?;
        if value["v"] != 1 {
            return Err(CueError(format!("unknown version {}", value["v"])));
        }
        serde_json::from_value(value).map(Some).map_err(|_| CueError("unknown step".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_way_there_and_back() {
        let cue = Cue::new(vec![
            Step::Say { say: vec!["Hel".into(), "ló".into()], every_ms: None },
            Step::Call { call: Call { name: "write_note".into(), args: Map::new() } },
            Step::Fail { fail: Fail { status: 500, message: "no".into() } },
        ]);
        let text = format!("say hello {} please", cue.encode());
        assert_eq!(Cue::find(&text), Ok(Some(cue)));
        assert_eq!(Cue::find("hello"), Ok(None));
    }

    #[test]
    fn names_what_is_wrong() {
        for (payload, reason) in [
            (r#"{"v":2,"turn":[]}"#, "cue error: unknown version 2"),
            (r#"{"v":1,"turn":[{"dance":1}]}"#, "cue error: unknown step"),
        ] {
            let text = format!("[[cue:{}]]", URL_SAFE_NO_PAD.encode(payload));
            assert_eq!(Cue::find(&text).expect_err(payload).to_string(), reason);
        }
        assert!(Cue::find("[[cue:%%]]").is_err());
        assert!(Cue::find("[[cue:abc").is_err());
    }
}
