//! Monitors of logs and conversations: order, agreement, replay, answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Key;
use crate::frame::Pointer;
use crate::protocol::extension::{At, Ids, Pattern};

/// A number grows in arrival order on each connection. It starts again with the connection and with a
/// message of `restarts`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Increasing {
    /// The messages that have the counter. One without it is ignored.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// The counter.
    pub at: Pointer,
    /// What has the counter: one for each value of this on a connection. None: the connection has it.
    pub key: Option<Key>,
    /// Violated when a value is smaller than an earlier one.
    pub order: Ids,
    /// Violated when a value comes twice.
    pub repeat: Ids,
    /// Violated when a whole number is not written as an integer: 7.0.
    #[serde(default)]
    pub written: Ids,
    /// Messages, sent or received, that start a new replay, after which old ids may come again (of the same key, if it has one).
    pub restarts: Option<Pattern>,
}

/// The same log id has the same content (volatile pointers apart) for every client of a session, live
/// deliveries only. Uses the protocol's `log`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Agreement {
    /// Violated when two clients see different content under one id.
    pub content: Ids,
    /// Violated when, at the end, a client lacks an event that lies between the first and the last live event
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
    /// Messages that announce that no replay follows (a gap): then `complete` and `content` are not judged.
    pub refused: Option<Pattern>,
    /// Messages that show the newest id of the log, and where. One that shows an older id than the cursor (or none), before any
    /// event, means that the log does not reach that far: then only `content` is judged.
    pub resets: Option<At>,
    /// Messages that stand for the replay of a gap, and where they show the newest id that they contain: events up to that one need
    /// not come behind the last of them that comes before any event. If one of those is the first event, all are judged.
    pub instead: Option<At>,
    /// Messages by which a connection joins a session. On a connection that was in the session before it resumed, live events may come
    /// between the resume and the replay: only events that were known when the resume was sent are judged.
    pub joined: Option<Pattern>,
    /// Violated when an event at or below the cursor is delivered.
    pub floor: Ids,
    /// Violated when a known event above the cursor and below a delivered one is left out, or when at the end
    /// the newest known one is missing.
    pub complete: Ids,
    /// Violated when a replayed event differs from its first delivery.
    pub content: Ids,
    /// Exercised when a resume at the newest known id got no replayed event; violated when it got one.
    #[serde(default)]
    pub current: Ids,
}

/// Replies belong to requests, connection by connection. A reply with an id (of either kind) belongs to the request with that id and
/// to no other request that has one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Correlation {
    /// The requests (sent). A request that is not a valid message of the protocol counts, too, if it matches.
    pub request: Pattern,
    /// Other requests, which may be replied to and need not be.
    pub optional: Option<Pattern>,
    /// The replies (received).
    pub reply: Pattern,
    /// The correlation id. Ids of another JSON type are other ids, and null is not an id: a reply with null answers only a request that the
    /// server may have been unable to read (no JSON, no type, an unknown type without an id, not valid, an id that is neither a text nor a
    /// whole number). None: the messages have no ids, and a reply answers the oldest open request.
    pub id: Option<Key>,
    /// Replies that end the wait for `reply` without being one, for example an error.
    pub instead: Option<Pattern>,
    /// Violated when a reply has no id although every open request had one.
    #[serde(default)]
    pub echo: Ids,
    /// Violated when a reply has an id although no request on this connection had it.
    #[serde(default)]
    pub foreign: Ids,
    /// Violated when a reply has an id that was answered before.
    #[serde(default)]
    pub twice: Ids,
    /// Violated when a request with an id got both a `reply` and an `instead`.
    #[serde(default)]
    pub both: Ids,
    /// Violated when a reply comes although no request is open on this connection.
    #[serde(default)]
    pub unsolicited: Ids,
    /// Violated when a request without an id gets a reply with one.
    #[serde(default)]
    pub invented: Ids,
    /// Violated when an answer to a request of a batch comes alone, in another batch than the answers before it to the same batch, or in one
    /// with answers to another; and when an answer to a request that came alone comes in a batch (the protocol's `batches`).
    #[serde(default)]
    pub batched: Ids,
    /// Violated when at the end, after settling, a request with an id has had neither, on a connection that is still open.
    #[serde(default)]
    pub missing: Ids,
}

/// A message that shows the history of a conversation has the messages of its connection, in order: each question, and the concatenated
/// pieces of its answer (the history may cut an answer into several elements, and has elements of other kinds). An answer
/// that is not over may be shown in part. The history may begin before the connection.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Dialogue {
    /// The shown history: a list.
    pub history: At,
    /// The text in one of its elements.
    #[schemars(extend("x-pointer" = "free"))]
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
    /// Sent or received messages after which the correct history is unknown (a cancelled answer, a refused question): what was said
    /// so far is not judged any more, nor what is said until the answers of all questions are over, and that of one at least. The same
    /// applies after a question during an answer.
    #[serde(default)]
    pub unsure: Vec<Pattern>,
    /// The message that asks for a shown history: the history may be that of any time since then. Histories answer in the order in
    /// which they were asked for.
    #[serde(default)]
    pub request: Option<Pattern>,
    /// Violated when they differ.
    pub decides: Ids,
}
