//! The kinds of monitor and their parameters: what a protocol file can write under `invariants`.
//!
//! The vocabulary is that of runtime verification: the specification patterns of Dwyer, Avrunin and
//! Corbett (absence, existence, precedence, response, in a scope, keyed by a field), and a few more that
//! event logs need. Each kind is implemented in the file of its name in `check/`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::extension::{At, Ids, OneOrMany, Pattern};
pub use super::pieces::{Echo, Increments, Series};
use crate::frame::Pointer;

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
    /// Pieces are increments, not the text so far.
    Increments(Increments),
    /// A reply repeats a value of its request.
    Echo(Echo),
    /// A large value comes in numbered pieces.
    Series(Series),
    /// A shown history has what was said.
    Dialogue(Dialogue),
}

/// How far a monitor's memory reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One connection; a reconnect starts anew.
    #[default]
    Connection,
    /// Everything seen of one session, on all its connections.
    Session,
}

/// A counter grows in arrival order on each connection. It starts anew with the connection and after a
/// sent message of `restarts`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Increasing {
    /// The messages that bear the counter. One without it is passed over.
    pub on: Pattern,
    /// The counter.
    pub at: Pointer,
    /// What has the counter: one for each value of this on a connection. None: the connection has it.
    pub key: Option<Pointer>,
    /// Broken when a value is smaller than an earlier one.
    pub order: Ids,
    /// Broken when a value comes twice.
    pub repeat: Ids,
    /// Sent messages that start a new replay, after which old ids may come again (of the same key, if it has one).
    pub restarts: Option<Pattern>,
}

/// The same log id has the same content (volatile pointers apart) for every client of a session, live
/// deliveries only. Uses the protocol's `log`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Agreement {
    /// Broken when two clients see different content under one id.
    pub content: Ids,
    /// Broken when, at the end, a client lacks an event that lies between the first and the last live event
    /// of its connection and that another client of the session saw.
    pub complete: Ids,
}

/// Judges each connection that was opened with a resume against the session's history as other connections
/// (earlier ones of the same client included) saw it. Uses the protocol's `log`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Replay {
    /// The sent message that asks for a replay, and the cursor in it (null or absent: nothing seen).
    pub resume: At,
    /// Messages that say that no replay follows (a gap): then `complete` and `content` are not judged.
    pub refused: Option<Pattern>,
    /// Broken when an event at or below the cursor is delivered.
    pub floor: Ids,
    /// Broken when a known event above the cursor and below a delivered one is left out, or when at the end
    /// the newest known one is missing.
    pub complete: Ids,
    /// Broken when a replayed event differs from its first delivery.
    pub content: Ids,
    /// Exercised when a resume at the newest known id got no replayed event; broken when it got one.
    #[serde(default)]
    pub current: Ids,
}

/// Replies belong to requests, connection by connection.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Correlation {
    /// The requests (sent). A request that is no valid message of the protocol counts too, if it matches.
    pub request: Pattern,
    /// The replies (received).
    pub reply: Pattern,
    /// The correlation id, the same pointer on both sides.
    pub id: Pointer,
    /// Replies that end the wait for `reply` without being one, for example an error.
    pub instead: Option<Pattern>,
    /// Broken when a reply has no id although every open request had one.
    #[serde(default)]
    pub echo: Ids,
    /// Broken when a reply has an id although no request on this connection bore it.
    #[serde(default)]
    pub foreign: Ids,
    /// Broken when a reply has an id that was answered before.
    #[serde(default)]
    pub twice: Ids,
    /// Broken when a request with an id got both a `reply` and an `instead`.
    #[serde(default)]
    pub both: Ids,
    /// Broken when a reply comes although no request is open on this connection.
    #[serde(default)]
    pub unsolicited: Ids,
    /// Broken when a request without an id gets a reply with one.
    #[serde(default)]
    pub invented: Ids,
    /// Broken when at the end, after settling, a request with an id has had neither, on a connection that is still open.
    #[serde(default)]
    pub missing: Ids,
}

/// A field follows a state machine, on each connection, keyed by an id. Repeats of a state are allowed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct States {
    /// The messages that bear the state.
    pub on: Pattern,
    /// What has the state, for example a run's id.
    pub key: Pointer,
    /// The state.
    pub at: Pointer,
    /// Each state and the states that may follow it. One without successors is terminal.
    pub transitions: IndexMap<String, Vec<String>>,
    /// The states that a new key may begin in.
    pub initial: OneOrMany,
    /// Messages that show a key that is already under way when a connection joins.
    #[serde(default)]
    pub known: Vec<At>,
    /// Broken by a pair of states that `transitions` does not list.
    pub transition: Ids,
    /// Broken when a new key does not begin in an initial state.
    pub start: Ids,
    /// Broken when a terminal state comes a second time for a key.
    pub terminal: Ids,
    /// Broken when a new key begins while another one of the session is not terminal.
    #[serde(default)]
    pub overlap: Ids,
}

/// `then` comes only after `first`, for the same key. Keys that a connection may have missed the beginning of
/// (it joined late) are not judged.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Precedence {
    /// What must have come.
    pub first: Pattern,
    /// What may then come.
    pub then: Pattern,
    /// What pairs them, in each; none: any `first` will do. One pointer for both, or one for each.
    pub key: Option<Key>,
    /// Where `first` may have been seen.
    #[serde(default)]
    pub scope: Scope,
    /// Broken otherwise.
    pub decides: Ids,
}

/// A key's place: the same in both messages, or one for each.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Key {
    /// The same pointer in both.
    Same(Pointer),
    /// First and second message.
    Each(Pointer, Pointer),
}

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
    /// What pairs `after`, `of` and `until`; a message without the key is not paired.
    pub key: Option<Pointer>,
    /// Where `after` and `until` may have been seen.
    #[serde(default)]
    pub scope: Scope,
    /// Broken otherwise. Exercised when a scope was entered.
    pub decides: Ids,
}

/// `inside` comes only between `open` and `close`, on each connection. A connection that joins late is inside
/// or outside as `joined` tells.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Bracket {
    /// Begins a scope.
    pub open: Pattern,
    /// Ends it.
    pub close: Pattern,
    /// What must lie within.
    pub inside: Pattern,
    /// Messages by which a connection learns, before any event, that a scope is open: the value there is not null.
    #[serde(default)]
    pub joined: Vec<At>,
    /// Sent messages after which a connection may begin in the middle of a scope: a resume.
    pub middle: Option<Pattern>,
    /// Names what may come outside, too: an `inside` that has the same value at the same place as such a message
    /// of its connection.
    pub exempt: Option<At>,
    /// Broken by an `inside` before the first `open` of the connection.
    pub before: Ids,
    /// Broken by an `inside` after a `close`.
    pub after: Ids,
}

/// `first` is followed by `then`, for the same key, before `before` comes or the case ends.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Response {
    /// What asks for it.
    pub first: Pattern,
    /// What must follow.
    pub then: Pattern,
    /// What releases from the duty, for the same key (or for all keys where it bears none).
    pub unless: Option<Pattern>,
    /// The moment at which it must have come; none: the end of the trace.
    pub before: Option<Pattern>,
    /// What pairs `first`, `then` and `unless`.
    pub key: Option<Pointer>,
    /// Broken otherwise.
    pub decides: Ids,
}

/// How often `of` comes in each stretch from `from` to `to`, on each connection that saw the stretch whole. The
/// stretch is counted when the next one begins or the case has settled, so `of` may come shortly after `to`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Existence {
    /// What is counted.
    pub of: Pattern,
    /// Begins a stretch.
    pub from: Pattern,
    /// Ends a stretch. One that does not end is not judged.
    pub to: Pattern,
    /// Judge only stretches in which this came.
    pub with: Option<Pattern>,
    /// Judge only stretches in which this did not come.
    pub without: Option<Pattern>,
    /// Fewest.
    #[serde(default)]
    pub min: u32,
    /// Most; none: any number.
    pub max: Option<u32>,
    /// Broken otherwise.
    pub decides: Ids,
}

/// A value names one thing in a session: the same value with another identity is a repetition. Without
/// `identity` a value may come once a connection.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Unique {
    /// The messages that introduce the value.
    pub on: Pattern,
    /// The value.
    pub at: Pointer,
    /// What tells two deliveries of one message from two messages, for example the log id.
    pub identity: Option<Pointer>,
    /// Broken otherwise. Exercised from the second distinct value on.
    pub decides: Ids,
}

/// All present, non-null values are equal.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Constant {
    /// The places of the value; the first one seen is compared with all later ones.
    pub values: Vec<At>,
    /// What the value belongs to; a pointer that must stand in every message of `values`.
    pub key: Option<Pointer>,
    /// Where it must be the same.
    #[serde(default)]
    pub scope: Scope,
    /// Forget the value when this comes (before its own value is looked at).
    pub restarts: Option<Pattern>,
    /// Broken otherwise. Exercised by a second value.
    pub decides: Ids,
}

/// Every message of `on` satisfies a JSON Schema. For conditions that the message's own schema does not hold,
/// because they decide other requirements.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Holds {
    /// The messages; exercised by each.
    pub on: Pattern,
    /// The JSON Schema.
    pub schema: Value,
    /// A string that holds JSON: the schema is about what it holds. No JSON breaks the rule; an absent string, or what
    /// is none, is left to the message's schema.
    pub json: Option<Pointer>,
    /// Broken otherwise.
    pub decides: Ids,
}

/// Two values in one message relate to each other. Where one is absent or null, nothing is judged.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Relation {
    /// The messages.
    pub on: Pattern,
    /// The left value.
    pub left: Pointer,
    /// How they relate.
    pub is: Comparison,
    /// The right value.
    pub right: Pointer,
    /// Broken otherwise.
    pub decides: Ids,
}

/// How two values relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// Equal as JSON.
    Equal,
    /// Numbers: left at most right.
    AtMost,
    /// RFC 3339 times: left not later than right.
    NotLater,
}

/// `value` is `factor` × (`part` − `minus`) ÷ `whole`, all numbers of one message. Where one is no number, or the whole is
/// zero, nothing is judged.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Proportion {
    /// The messages.
    pub on: Pattern,
    /// The shown share.
    pub value: Pointer,
    /// The part.
    pub part: Pointer,
    /// What is taken off the part.
    pub minus: Option<Pointer>,
    /// The whole.
    pub whole: Pointer,
    /// 100 for a percentage, the default.
    #[serde(default = "percent")]
    pub factor: f64,
    /// How far the shown share may be off.
    pub tolerance: f64,
    /// Broken otherwise.
    pub decides: Ids,
}

fn percent() -> f64 {
    100.0
}

/// A message that shows state (a snapshot) agrees with the events that came before it on its connection.
///
/// On each connection the folds start from the first state message seen there (or from the beginning, on a
/// connection that saw the session's first event) and take in every later event of the log that is newer than
/// that message's cursor; each later state message is compared with them. Nothing is compared with a state
/// message whose cursor is ahead of the newest event received.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Projection {
    /// The state messages.
    pub on: Pattern,
    /// The log id up to which the message shows the state.
    pub cursor: Pointer,
    /// What is compared, by name.
    pub facts: IndexMap<String, Fact>,
}

/// One part of a shown state, and the events that it follows from.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fact {
    /// The part of the state message.
    pub at: Pointer,
    /// Compare only state messages of this pattern.
    pub when: Option<Pattern>,
    /// How it follows from the events.
    pub fold: Fold,
    /// Broken when they differ.
    pub decides: Ids,
}

/// How a part of the state follows from the events.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::large_enum_variant, reason = "a handful a protocol, built once")]
pub enum Fold {
    /// The largest log id seen (null or 0 on an empty log).
    Newest {},
    /// The value at a pointer of the newest `set` message; null once a `clear` message has come.
    Latest {
        /// Sets it.
        set: At,
        /// Clears it.
        clear: Pattern,
    },
    /// The ids of the open items: added by one message, removed by another; a list compared as a set of ids,
    /// `item` being the id in each element of the shown list. An absent or null list is empty.
    Open {
        /// Adds the id.
        add: At,
        /// Removes the id.
        remove: At,
        /// Removes all.
        clear: Pattern,
        /// The id in an element of the shown list.
        item: Pointer,
    },
    /// The events of a pattern in order, each without the pointers of `drop`; the shown list must end with
    /// them (it may be a window of a longer one) and bears nothing newer.
    Items {
        /// The events.
        of: Pattern,
        /// Pointers that an event has and an item of the list has not.
        drop: Vec<Pointer>,
    },
    /// How many events of a pattern came since the first state message, added to what that showed.
    Count {
        /// The events.
        of: Pattern,
    },
}

/// A periodic message comes about as often as it says itself: no gap between two of them on one connection is
/// longer than `factor` times the period.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cadence {
    /// The message.
    pub on: Pattern,
    /// Its announced period in milliseconds.
    pub period: Pointer,
    /// How many periods a gap may last. A gap of less than 250 ms more than the period is never judged.
    pub factor: f64,
    /// Broken otherwise. Exercised by the second message on a connection.
    pub decides: Ids,
}

/// Pieces, in order, add up to the whole, for the same key.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Concatenation {
    /// The pieces: a string each.
    pub piece: At,
    /// The whole: a string. Ends a concatenation.
    pub whole: At,
    /// What pairs them.
    pub key: Option<Key>,
    /// Broken otherwise.
    pub decides: Ids,
}

/// A message that shows the history of a conversation has what was said on its connection, in order: each question, and
/// the pieces of its answer put together (the history may cut an answer into several elements, and has elements of
/// other kinds). An answer that is not over may be shown in part. The history may begin before the connection.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Dialogue {
    /// The shown history: a list.
    pub history: At,
    /// The text in one of its elements.
    pub text: Pointer,
    /// Elements that are questions: every value given here is in them.
    pub asked: Value,
    /// Elements that are answers, likewise.
    pub answered: Value,
    /// A question, and its text.
    pub question: At,
    /// A piece of an answer.
    pub piece: At,
    /// Ends an answer.
    pub over: Pattern,
    /// Sent or received messages after which it is not known what the history ought to hold (a cancelled answer, a refused
    /// question): from then on the connection is not judged. So it is after a question during an answer.
    #[serde(default)]
    pub unsure: Vec<Pattern>,
    /// Broken when they differ.
    pub decides: Ids,
}
