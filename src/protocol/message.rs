//! One message of a protocol: its schema, compiled, and what each place in it decides.

use std::sync::Arc;

use serde_json::Value;

use super::annotation::{Annotations, Counts};
use crate::source::schema::{Schema, Violation};
use crate::trace::Direction;

/// A message of one direction.
#[derive(Debug)]
pub struct Message {
    /// The discriminator's value, for example `welcome`; of a reply, what it answers, for example `list.result`.
    pub name: String,
    /// Who sends it.
    pub dir: Direction,
    /// Requirements violated when a scenario expects it in vain.
    pub absent: Vec<String>,
    /// The document's examples of it.
    pub examples: Vec<Value>,
    /// Where it stands in the document, as a JSON Pointer.
    pub(super) place: String,
    /// Its payload schema, standing alone.
    pub(super) payload: Arc<Value>,
    pub(super) schema: Schema,
    pub(super) annotations: Annotations,
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
    /// Validates a message. Empty: valid. A large message is not looked through to its end, once it is known to be invalid.
    pub fn validate(&self, body: &Value) -> Vec<SchemaFinding> {
        let violations = self.schema.violations_within(body);
        violations
            .iter()
            .map(|violation| {
                let subject = violation.subject();
                let shown = body.pointer(&violation.at).map(super::shorten).unwrap_or_default();
                let place =
                    if violation.at.is_empty() { String::new() } else { format!("{}: ", violation.at) };
                let message = match &violation.problem {
                    problem @ (crate::source::schema::Problem::Missing(_)
                    | crate::source::schema::Problem::Undeclared(_)) => format!("{place}{problem}"),
                    problem => format!("{place}{shown} {problem}"),
                };
                SchemaFinding {
                    requirements: self.annotations.blame(violation, body).to_vec(),
                    at: subject,
                    message: format!("{}: {message}", self.name),
                }
            })
            .collect()
    }

    /// Whether the schema holds.
    pub fn is_valid(&self, body: &Value) -> bool {
        self.schema.is_valid(body)
    }

    /// The violations of the schema, without who is to blame. Empty: valid.
    pub fn violations(&self, body: &Value) -> Vec<Violation> {
        self.schema.violations_within(body)
    }

    /// Counts what this message gives an occasion to break: itself, and each place of its schema that is present in `body`.
    /// The counts are of this message alone. `layout`: a hash of the body's keys in their order, where it is known; of bodies with
    /// the same they are looked up once.
    pub fn count(&self, body: &Value, layout: Option<u64>, counts: &mut Counts) {
        self.annotations.count(body, layout, counts);
    }

    /// The requirements that were counted, and how often: those of the message, and of each place.
    pub fn counted<'s>(&'s self, counts: &'s Counts) -> impl Iterator<Item = (&'s [String], u64)> {
        self.annotations.counted(counts)
    }

    /// The payload's JSON Schema, standing alone (references resolved within it).
    pub fn payload(&self) -> &Value {
        &self.payload
    }

    /// Every requirement that a place of the schema decides.
    pub fn decides(&self) -> impl Iterator<Item = &str> {
        self.annotations.ids()
    }
}
