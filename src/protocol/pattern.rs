//! Patterns, compiled.

use serde_json::Value;

use super::{Pattern, Protocol};
use crate::source::Diagnostics;
use crate::trace::Direction;

/// A compiled [`Pattern`].
#[derive(Debug, Clone)]
pub struct Matcher {}

impl Matcher {
    /// Compiles a pattern against the protocol's messages.
    ///
    /// # Errors
    /// An unknown message type, or a `where` that is no JSON Schema.
    pub fn new(_pattern: &Pattern, _protocol: &Protocol) -> Result<Self, Diagnostics> {
        todo!()
    }

    /// Whether a message matches. `message` is its index in [`Protocol::messages`], `None` for an unknown one.
    pub fn matches(&self, _message: Option<usize>, _dir: Direction, _body: &Value) -> bool {
        todo!()
    }

    /// The indices of the messages that can match, for dispatch; `None`: any of its direction.
    pub fn messages(&self) -> Option<&[usize]> {
        todo!()
    }

    /// Whether messages of this direction can match.
    pub fn direction(&self) -> Direction {
        todo!()
    }
}

/// Whether every value of `part` is in `whole`, at the same place: objects by key, arrays by length and
/// element, scalars by equality (numbers by value).
pub fn is_subset(_part: &Value, _whole: &Value) -> bool {
    todo!()
}
