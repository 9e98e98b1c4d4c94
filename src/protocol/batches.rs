//! Batches: frames that are JSON arrays of messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Protocol;
use crate::frame::{self, FrameError, Limits};
use crate::trace::Direction;

/// Who may send several messages in one frame, as a JSON array, as in JSON-RPC 2.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Batches {
    /// Both sides.
    Both,
    /// Clients: the server answers each message in a frame of its own.
    Client,
    /// The server: clients send each message in a frame of its own.
    Server,
}

impl Protocol {
    /// Whether what goes in a direction may be a batch.
    pub fn may_batch(&self, dir: Direction) -> bool {
        match self.extension.batches {
            None => false,
            Some(Batches::Both) => true,
            Some(Batches::Client) => dir == Direction::Send,
            Some(Batches::Server) => dir == Direction::Recv,
        }
    }

    /// Whether a text that goes in this direction is read as a batch: an array, where this side may send one.
    pub fn is_batch(&self, text: &str, dir: Direction) -> bool {
        self.may_batch(dir) && text.trim_start().starts_with('[')
    }

    /// The messages of a frame: one, or those of a batch where this side may send one. The members of a batch can be anything.
    ///
    /// # Errors
    /// As [`frame::parse_text`], or a batch that is empty or too long.
    pub fn messages_in(&self, text: &str, dir: Direction, limits: &Limits) -> Result<InFrame, FrameError> {
        if self.is_batch(text, dir) {
            return frame::parse_batch(text, limits).map(InFrame::Batch);
        }
        frame::parse_text(text, limits).map(InFrame::One)
    }
}

/// What a text frame has in it.
#[derive(Debug, Clone, PartialEq)]
pub enum InFrame {
    /// A JSON object.
    One(Value),
    /// The members of an array, at least one.
    Batch(Vec<Value>),
}

impl InFrame {
    /// What is in it, in its order.
    pub fn into_vec(self) -> Vec<Value> {
        match self {
            Self::One(one) => vec![one],
            Self::Batch(members) => members,
        }
    }
}
