//! `x-frameproof.explore`: what `frameproof explore` must know of a protocol beyond `fuzzing.states` to make long valid conversations.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extension::{Exchange, Ids};
use super::script::TurnStep;

/// The elements of valid conversations. Without it: turns of text, the states of `fuzzing.states`, and lost connections.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Explore {
    /// Several clients can be in one session, and see the same turns. Absent: each client has a session of its own.
    pub shared: Option<Shared>,
    /// The openings with which a client reconnects. Default: the first opening.
    #[serde(default)]
    pub reopen: Vec<String>,
    /// Violated when a client that reconnects finds another state than before (as the protocol's `state` shows it).
    #[serde(default)]
    pub keeps: Ids,
    /// Classes of tools whose calls the server runs without approval.
    #[serde(default)]
    pub calls: Vec<String>,
    /// Messages that any client may send in any state, that have no effect on it, and how they are answered.
    #[serde(default)]
    pub messages: IndexMap<String, Vec<Exchange>>,
    /// Turns in which the client sends further messages. They begin and end in the idle state.
    #[serde(default)]
    pub turns: IndexMap<String, ScriptedTurn>,
    /// How any client of a session can see that it is idle.
    #[serde(default)]
    pub at_rest: Vec<Exchange>,
}

/// Sessions with several clients.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Shared {
    /// Violated when another client of the session does not see the end of a turn.
    #[serde(default)]
    pub covers: Ids,
}

/// A turn with the model's script and the client's part.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScriptedTurn {
    /// A script for the model, as a scenario's `turn`: `{{cue}}` carries it.
    #[serde(default)]
    pub turn: Vec<TurnStep>,
    /// Capabilities without which there is no such turn.
    #[serde(default)]
    pub needs: Vec<String>,
    /// What the client does, from the start of the turn to its end.
    pub steps: Vec<Exchange>,
}
