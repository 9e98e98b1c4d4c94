//! The kinds of monitor and their parameters: what a protocol file can write under `invariants`.
//!
//! The vocabulary is that of runtime verification: the specification patterns of Dwyer, Avrunin and
//! Corbett (absence, existence, precedence, response, in a scope, keyed by a field), and a few more that
//! event logs need. Each kind is implemented in the file of its name in `check/monitor/`.

mod content;
mod key;
mod log;
mod pattern;
mod pieces;
mod refs;
mod requests;
mod spot;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

pub use content::*;
pub use key::*;
pub use log::*;
pub use pattern::*;
pub use pieces::*;
pub use requests::*;
pub use spot::*;

/// The kind of a monitor and its parameters.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A counter grows in arrival order.
    Increasing(Increasing),
    /// All clients of a session see the same content under the same id.
    Agreement(Agreement),
    /// After a resume: live + replay = the uninterrupted history.
    Replay(Replay),
    /// Replies belong to requests.
    Correlation(Correlation),
    /// Requests of the server are answered and resolved once.
    ServerRequests(ServerRequests),
    /// A field follows a state machine.
    States(States),
    /// One message comes only after another.
    Precedence(Precedence),
    /// A message does not come in a scope.
    Absence(Absence),
    /// Messages lie between an opening and a closing one.
    Bracket(Bracket),
    /// A message is followed by another.
    Response(Response),
    /// How often a message comes between two others.
    Existence(Existence),
    /// An id is used for one thing only.
    Unique(Unique),
    /// A value stays the same.
    Constant(Constant),
    /// A condition on a single message.
    Holds(Holds),
    /// Two values in one message relate to each other.
    Relation(Relation),
    /// A value in a message is a share of another.
    Proportion(Proportion),
    /// A state message agrees with the events seen so far.
    Projection(Projection),
    /// A message comes as often as announced.
    Cadence(Cadence),
    /// Pieces add up to a whole.
    Concatenation(Concatenation),
    /// What a turn says is what its cue has the model say.
    Cued(Cued),
    /// Pieces are increments, not the text so far.
    Increments(Increments),
    /// A reply repeats a value of its request.
    Echo(Echo),
    /// A large value comes in numbered pieces.
    Series(Series),
    /// A shown history agrees with the conversation.
    Dialogue(Dialogue),
}

impl Rule {
    /// The time that the monitor allows, if it allows one: where it stands below the monitor.
    pub fn within(&self) -> Option<(&'static str, &Time)> {
        match self {
            Self::Response(rule) => Some(("response/within", rule.within.as_ref()?)),
            Self::Existence(rule) => Some(("existence/within", rule.within.as_ref()?)),
            _ => None,
        }
    }

    /// Whether the monitor is about when messages come.
    pub fn is_timed(&self) -> bool {
        matches!(self, Self::Cadence(_)) || self.within().is_some()
    }
}

/// How far a monitor's memory reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One connection; a reconnect starts again.
    #[default]
    Connection,
    /// Everything seen of one session, on all its connections.
    Session,
}
