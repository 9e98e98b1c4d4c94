//! Requests of the server and what becomes of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::extension::{Ids, OneOrMany};

/// The server's requests on a connection, the client's answers to them, and the messages that resolve them, as the protocol's `requests`
/// describes them. Their ids belong to the server: a request of the client with the same id is unrelated.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ServerRequests {
    /// Which of the protocol's `requests`, by their names; none: all of them. They share one id space.
    pub of: Option<OneOrMany>,
    /// Violated by a request with the id of one that is neither answered nor resolved.
    #[serde(default)]
    pub reused: Ids,
    /// Violated by a second message that resolves a request.
    #[serde(default)]
    pub resolved_twice: Ids,
    /// Violated by a message that resolves a request which was not made, on this connection or another one.
    #[serde(default)]
    pub resolved_unasked: Ids,
    /// Violated when at the end, after settling, a request that the client has answered is not resolved, on a connection that is still open.
    #[serde(default)]
    pub unresolved: Ids,
    /// Violated by a second answer of the client to a request. For recordings of clients. Scenarios and the fuzzer may do this on purpose:
    /// use a separate invariant, which they name in `suspend`.
    #[serde(default)]
    pub answered_twice: Ids,
    /// Violated by an answer of the client's to a request which was not made on this connection. As `answered-twice`.
    #[serde(default)]
    pub answered_unasked: Ids,
}
