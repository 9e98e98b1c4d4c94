//! Parameters of the monitors about values that come back, and values that come in pieces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Key, Spot};
use crate::frame::Pointer;
use crate::protocol::extension::{Ids, Pattern};

/// A reply repeats a value of its request: the two are paired by a correlation id, connection by connection. A request without the
/// value is not judged.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Echo {
    /// The requests (sent).
    pub request: Pattern,
    /// The replies (received).
    pub reply: Pattern,
    /// The correlation id. Ids of another JSON type are other ids, and null is not an id.
    pub id: Key,
    /// The value in the request: a place, or `{ json: PLACE, at: PLACE }` in a JSON text.
    pub asked: Spot,
    /// The value in the reply, in the same way.
    pub told: Spot,
    /// Violated when the reply has another value, or none.
    pub decides: Ids,
}

/// A large value that comes in numbered pieces, which together are the JSON text of the value.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Series {
    /// The pieces.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// What the pieces of one value have in common.
    pub key: Key,
    /// A piece's number, counted from 0 or from 1.
    pub part: Pointer,
    /// How many there are.
    pub total: Pointer,
    /// The text of a piece.
    pub text: Pointer,
    /// What must be the same in all pieces of a value.
    #[serde(default)]
    pub same: Vec<Pointer>,
    /// Violated when a piece comes twice, is not one of the announced number, differs in `same`, or, at the end and after
    /// settling, is missing.
    pub complete: Ids,
    /// Violated when the whole is not JSON text.
    pub json: Ids,
}

/// The pieces of a text are increments: violated when, from the first piece on, each piece begins with the complete piece before it.
/// Two such pieces prove nothing, because a text may repeat itself; three do.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Increments {
    /// The pieces.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// The text of a piece.
    pub at: Pointer,
    /// What the pieces of one text have in common.
    pub key: Key,
    /// Violated otherwise. Exercised from the second piece on.
    pub decides: Ids,
}
