//! One message of a protocol: its schema, compiled, and what each place in it decides.

use serde_json::Value;

use crate::trace::Direction;

/// A message of one direction.
#[derive(Debug)]
pub struct Message {
    /// The discriminator's value, for example `welcome`.
    pub name: String,
    /// Who sends it.
    pub dir: Direction,
    /// Requirements broken when a scenario expects it in vain.
    pub absent: Vec<String>,
    /// The document's examples of it.
    pub examples: Vec<Value>,
}

/// One schema violation in one message.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaFinding {
    /// The requirements that the place decides; the message's own, then the protocol's, where it decides none.
    pub requirements: Vec<String>,
    /// JSON Pointer of the offending value.
    pub at: String,
    /// What is wrong, for a person.
    pub message: String,
}

impl Message {
    /// Validates a message. Empty: valid.
    pub fn validate(&self, _body: &Value) -> Vec<SchemaFinding> {
        todo!()
    }

    /// Calls `exercised` with every requirement id that this message gives an occasion to break: those of
    /// the message itself, and those of each place of its schema that is present in `body`. A requirement
    /// is named at most once for a message.
    pub fn exercised<'s>(&'s self, _body: &Value, _exercised: &mut dyn FnMut(&'s str)) {
        todo!()
    }
}
