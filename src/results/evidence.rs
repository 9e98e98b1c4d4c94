//! What a case has seen, as reports show it: frames, what the server wrote, what it asked the model.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a line of the wire log goes. Reports write it as an arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Way {
    /// The client sent it.
    #[serde(rename = "->")]
    ToServer,
    /// The client received it.
    #[serde(rename = "<-")]
    ToClient,
    /// It tells of the connection itself.
    #[serde(rename = "--")]
    Connection,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ToServer => "->",
            Self::ToClient => "<-",
            Self::Connection => "--",
        })
    }
}

/// One line of the wire log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FrameRecord {
    /// Index in the case's wire log, from 0.
    pub index: u64,
    /// Milliseconds since the case began.
    pub ms: f64,
    /// The client.
    pub client: String,
    /// Where it goes.
    #[serde(rename = "dir")]
    pub way: Way,
    /// The message's type, where it is one of the protocol's: `welcome`; of a reply, what it answers: `list.result`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What: the frame's text as it was (cut at a bound), or a description.
    pub text: String,
    /// The protocol lets this come at any time: a heartbeat, for example.
    #[serde(default)]
    pub ambient: bool,
    /// The client sent it by itself, as the protocol's `client` says, or the server's message made it do so: a heartbeat and its answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,
    /// Bytes cut off the end of `text`.
    #[serde(default)]
    pub cut: usize,
    /// What begins or ends with it: `turn begins`, a state of the session in the protocol's words, `turn ends`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
}

/// A line of the wire log that is worth showing.
#[derive(Debug, Clone, Copy)]
pub struct ShownFrame<'c> {
    /// The line.
    pub line: &'c FrameRecord,
    /// It shows the failure.
    pub marked: bool,
    /// Lines before it, and after the one shown before it, are left out.
    pub gap: bool,
    /// It is the last of so many automatic messages, which are told in one line instead. 0: it is shown itself.
    pub folded: usize,
}

impl ShownFrame<'_> {
    /// What is told instead of automatic messages, if it stands for some.
    pub fn summary(&self) -> Option<String> {
        (self.folded > 0).then(|| format!("… {} automatic messages", self.folded))
    }
}

/// A line that a launched process wrote.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogLine {
    /// Milliseconds since the case began, or since the first line where they belong to no case.
    pub ms: f64,
    /// The process.
    pub process: String,
    /// It was written to standard error.
    pub error: bool,
    /// The text.
    pub text: String,
}

/// A request to the scripted model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    /// When it came, in milliseconds since the case began.
    pub ms: f64,
    /// When its answer ended. None: not yet when the case did.
    pub ended: Option<f64>,
    /// Method and path.
    pub request: String,
    /// What the answer was to play, in words; or why there is none.
    pub played: String,
    /// HTTP status of the answer.
    pub status: Option<u16>,
    /// The server went away before the answer was whole.
    #[serde(default)]
    pub cancelled: bool,
}

/// A step that was made, not written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GeneratedStep {
    /// Who does it.
    pub client: String,
    /// What kind of step it is: the command and the mutation, or the move.
    pub what: String,
    /// What is sent; empty where `what` says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}
