//! Specification patterns: what comes before, after, between, and how often.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Key, Scope};
use crate::frame::Pointer;
use crate::protocol::Time;
use crate::protocol::extension::{At, Ids, OneOrMany, Pattern};
use crate::protocol::refs::refer;

/// A field follows a state machine, on each connection, keyed by an id. Repeats of a state are allowed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct States {
    /// The messages that have the state.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// What has the state, for example a run's id.
    pub key: Key,
    /// The state.
    pub at: Pointer,
    /// Each state and the states that may follow it. One without successors is terminal.
    pub transitions: IndexMap<String, Vec<String>>,
    /// The states that a new key may begin in.
    pub initial: OneOrMany,
    /// Messages that show a key that is already under way when a connection joins.
    #[serde(default)]
    pub known: Vec<At>,
    /// Violated by a pair of states that `transitions` does not list.
    pub transition: Ids,
    /// Violated when a new key does not begin in an initial state.
    pub start: Ids,
    /// Violated when a terminal state comes a second time for a key.
    pub terminal: Ids,
    /// Violated when a new key begins while another one of the session is not terminal.
    #[serde(default)]
    pub overlap: Ids,
}

/// `then` comes only after `first`, for the same key. A key is not judged if the connection may have missed its beginning
/// (it joined late).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Precedence {
    /// What must have come.
    pub first: Pattern,
    /// What may then come.
    pub then: Pattern,
    /// What pairs them; none: any `first` is sufficient.
    pub key: Option<Key>,
    /// Where `first` may have been seen.
    #[serde(default)]
    pub scope: Scope,
    /// `then` is judged only where it names what its connection knows, a session that it has opened, for instance. What is
    /// sent of others may begin in their midst.
    pub known: Option<Known>,
    /// Violated otherwise.
    pub decides: Ids,
}

/// What a connection has been told of before.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Known {
    /// The messages that tell a name.
    pub by: Pattern,
    /// Where they have it.
    pub at: Pointer,
    /// Where the message that is judged has it.
    pub named: Pointer,
}

/// What goes wrong with `answered`.
const NEEDS_BOTH: &str = "`{ request: PATTERN, reply: PATTERN }`, and `id` where they have one";

/// `of` does not come after `after` and before `until`, for the same key.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Absence {
    /// What must not come.
    pub of: Pattern,
    /// Where the scope begins (sent or received).
    pub after: Pattern,
    /// Where it ends; none: never.
    pub until: Option<Pattern>,
    /// What pairs `after` with the others; a message without the key is not paired.
    pub key: Option<Key>,
    /// Where `after` and `until` may have been seen.
    #[serde(default)]
    pub scope: Scope,
    /// An `until` ends the scopes of all connections of the session, not only its own connection's. (Of `owed`, only that
    /// of the own connection counts.)
    #[serde(default)]
    pub until_anywhere: bool,
    /// Messages that each require an `after` of their own: while several of them wait, an `after` answers one and opens no scope.
    /// An `until` in the stretch after such an `after` means that it answered none yet.
    pub owed: Option<Pattern>,
    /// Once this has come (for the same key), `after` opens no scope.
    pub unless: Option<Pattern>,
    /// The scope begins only with the answer to a request that was sent after `after`, on the same connection: messages that the server
    /// sent before it read `after` may still arrive.
    #[schemars(extend("x-hint" = NEEDS_BOTH))]
    pub answered: Option<Box<Answered>>,
    /// Violated otherwise. Exercised when a scope was entered.
    pub decides: Ids,
}

/// Requests that the server processes in the order in which they are sent, and their answers: an answer shows that the server has read
/// everything that was sent before the request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Answered {
    /// The requests (sent).
    pub request: Pattern,
    /// The answers (received).
    pub reply: Pattern,
    /// The correlation id. Without it, the answers come in the order of the requests, and none comes without a request.
    pub id: Option<Key>,
}

refer!(Answered { parts: [request, reply, id], ids: [], other: [] });

/// `inside` comes only between `open` and `close`, on each connection. A connection that joins late is inside or outside as
/// `joined` says.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Bracket {
    /// Begins a scope.
    pub open: Pattern,
    /// Ends it.
    pub close: Pattern,
    /// The messages that must come within the scope.
    pub inside: Pattern,
    /// Every `open` needs a `close` of its own: a scope ends when as many `close` as `open` have come. If a `close` follows an `open`
    /// immediately, it may be a repetition of the `close` before it: if one more `close` comes, the messages before that were inside.
    #[serde(default)]
    pub counted: bool,
    /// Messages by which a connection learns, before any event, that a scope is open: the value there is not null.
    #[serde(default)]
    pub joined: Vec<At>,
    /// Sent messages after which a connection may begin in the middle of a scope: a resume.
    pub middle: Option<Pattern>,
    /// Messages that exempt an `inside` of their connection with the same value at the same place: it may come outside, too.
    pub exempt: Option<At>,
    /// Violated by an `inside` before the first `open` of the connection.
    pub before: Ids,
    /// Violated by an `inside` after a `close`.
    pub after: Ids,
}

/// `first` is followed by `then`, for the same key, before `before` comes or the case ends.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Response {
    /// What requires `then`.
    pub first: Pattern,
    /// What must follow.
    pub then: Pattern,
    /// What cancels the obligation, for the same key (or for all keys where it has none).
    pub unless: Option<Pattern>,
    /// The moment at which it must have come; none: the end of the trace.
    pub before: Option<Pattern>,
    /// How long after `first` it may come, such as `250ms`, or one of the protocol's `times`. The end of the trace or of the
    /// connection is a violation only if this time is over by then.
    pub within: Option<Time>,
    /// How long the trace must continue after `first` so that its end shows that `then` never came, in milliseconds.
    #[serde(default)]
    pub lasting_ms: u64,
    /// What pairs `first` with `then` and `unless`.
    pub key: Option<Key>,
    /// Violated otherwise.
    pub decides: Ids,
}

/// How often `of` comes in each stretch from `from` to `to`, on each connection that saw the complete stretch. The
/// stretch is counted when the next one (of its key) begins or the case has settled, so `of` may come shortly after `to`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Existence {
    /// What is counted.
    pub of: Pattern,
    /// Begins a stretch.
    pub from: Pattern,
    /// Ends a stretch. One that does not end is not judged.
    pub to: Pattern,
    /// What distinguishes the stretches of a connection, which may then overlap. An `of` or `from` without the key is not counted;
    /// any other message without it concerns all stretches.
    pub key: Option<Key>,
    /// Count only what comes within this time after `from`: `250ms`, or one of the protocol's `times`.
    pub within: Option<Time>,
    /// Judge only stretches in which this came.
    pub with: Option<Pattern>,
    /// Judge only stretches in which this did not come.
    pub without: Option<Pattern>,
    /// Do not judge stretches of a connection on which this came (sent or received) before: a part of the past may be replayed on
    /// it.
    pub unless: Option<Pattern>,
    /// The smallest number.
    #[serde(default)]
    pub min: u32,
    /// The largest number; none: any.
    pub max: Option<u32>,
    /// Violated otherwise.
    pub decides: Ids,
}

/// A value names one thing in a session: the same value with another identity is a repetition. Without
/// `identity` a value may come once, in `within`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Unique {
    /// The messages that introduce the value.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// The value.
    pub at: Pointer,
    /// What distinguishes a repeated delivery of one message from a second message, for example the log id.
    pub identity: Option<Pointer>,
    /// Without `identity`: where a value may come once. Default: of `parts`, the message that they are parts of (the next list may have
    /// it again); of messages, the connection.
    pub within: Option<Within>,
    /// Violated otherwise. Exercised from the second distinct value on.
    pub decides: Ids,
}

/// Where a value is compared with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Within {
    /// In the message that has it.
    Message,
    /// On the connection.
    Connection,
}

/// All present, non-null values are equal.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Constant {
    /// The places of the value; the first one seen is compared with all later ones.
    pub values: Vec<At>,
    /// What the value belongs to; every message of `values` must have it.
    pub key: Option<Key>,
    /// Where it must be the same.
    #[serde(default)]
    pub scope: Scope,
    /// Forget the value when this comes (before its own value is looked at).
    pub restarts: Option<Pattern>,
    /// Violated otherwise. Exercised by a second value.
    pub decides: Ids,
}

/// A periodic message comes about as often as it announces: no gap between two of them on one connection is longer than `factor`
/// times the period.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cadence {
    /// The message.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// Its announced period in milliseconds.
    pub period: Pointer,
    /// How many periods a gap may last. A gap of less than 900 ms more than the period is never judged.
    pub factor: f64,
    /// Violated otherwise. Exercised by the second message on a connection.
    pub decides: Ids,
}
