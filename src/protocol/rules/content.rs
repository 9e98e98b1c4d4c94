//! Monitors of what messages hold, alone or added up.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Key, Spot};
use crate::frame::Pointer;
use crate::protocol::extension::{At, Ids, Pattern};

/// Every message of `message`, or the value at a place in it, satisfies a JSON Schema, which is written here or comes in another
/// message. For conditions that are not in the message's own schema because they decide other requirements.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Holds {
    /// The messages; exercised by each.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// The JSON Schema.
    pub schema: Option<Value>,
    /// In place of `schema`: where another message of the connection has it (`message`, `at`), such as the declaration of a tool. The newest with the
    /// same `key` counts; one without a schema revokes it. A schema that refers outside itself, to itself, or has more than
    /// 10,000 parts is not used.
    pub told: Option<At>,
    /// What pairs the message that has the schema with those that it applies to.
    pub key: Option<Key>,
    /// The value that the schema applies to; none: the whole message. Where it is absent, nothing is judged.
    pub at: Option<Spot>,
    /// The same as `at: { json: … }`: a string that contains JSON, to whose value the schema applies. Text that is not JSON violates the
    /// rule. An absent value, or one that is not a string, is not judged here but by the message's schema.
    pub json: Option<Pointer>,
    /// Violated otherwise.
    pub decides: Ids,
}

/// Two values in one message relate to each other. Where one is absent or null, nothing is judged.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Relation {
    /// The messages.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// The left value: a place, or `{ json: PLACE, at: PLACE }` in a JSON text.
    pub left: Spot,
    /// How they relate.
    pub is: Comparison,
    /// The right value, in the same way.
    pub right: Spot,
    /// Violated otherwise.
    pub decides: Ids,
}

impl Holds {
    /// The value that the schema is about, if not the whole message.
    pub fn spot(&self) -> Option<Spot> {
        let json = self.json.clone().map(|json| Spot::In(super::InText { json, at: None }));
        self.at.clone().or(json)
    }

    /// What is wrong with it, and where.
    pub fn mistake(&self) -> Option<(&'static str, &'static str)> {
        match (&self.schema, &self.told) {
            (None, None) => Some(("", "it says no schema: `schema`, or `told` where a message brings it")),
            (Some(_), Some(_)) => Some(("/told", "it has `schema` or `told`, not both")),
            (Some(_), None) if self.key.is_some() => Some((
                "/key",
                "`key` has no effect without `told`: it pairs the message that brings the schema with the others",
            )),
            _ if self.at.is_some() && self.json.is_some() => {
                Some(("/json", "it has `at` or `json`, not both: `json: /a` is short for `at: { json: /a }`"))
            }
            _ => None,
        }
    }
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

/// `value` is `factor` × (`part` − `minus`) ÷ `whole`, all numbers of one message. Where one is not a number, or the whole is zero,
/// nothing is judged.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Proportion {
    /// The messages.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// The shown share.
    pub value: Pointer,
    /// The part.
    pub part: Pointer,
    /// What is subtracted from the part.
    pub minus: Option<Pointer>,
    /// The whole.
    pub whole: Pointer,
    /// 100 for a percentage, the default.
    #[serde(default = "percent")]
    pub factor: f64,
    /// The largest permitted difference of the shown share.
    pub tolerance: f64,
    /// Violated otherwise.
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
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// The log id up to which the message shows the state.
    pub cursor: Pointer,
    /// The message that asks for one: the answer may show the state of any time since then, of which the events came before it.
    pub asked: Option<Pattern>,
    /// The correlation id of `asked` and the answer to it. A state message without one may answer anything that is still open. None:
    /// state messages answer in the order in which they were asked for.
    pub id: Option<Key>,
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
    /// Violated when they differ.
    pub decides: Ids,
}

/// How a part of the state follows from the events.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
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
        #[schemars(extend("x-pointer" = "free"))]
        item: Pointer,
    },
    /// The events of a pattern in order, each without the pointers of `drop`, as the items are; the shown list must end with
    /// them (it may be a window of a longer one) and has nothing newer.
    Items {
        /// The events.
        of: Pattern,
        /// Pointers that an item of the list need not have as its event has them.
        drop: Vec<Pointer>,
        /// A text at the top of an item. Neighbours that differ in it alone may be shown as one item with the texts of all, or cut
        /// otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        join: Option<Pointer>,
    },
    /// How many events of a pattern came since the first state message, added to what that showed.
    Count {
        /// The events.
        of: Pattern,
        /// Where the events have what they are about: one that repeats the value of the one counted last is not counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Pointer>,
    },
}

/// What a turn says is what the cue in its prompt has the model say (`docs/scenarios.md`): the pieces, in order, are the beginning of
/// it, and all of it when the turn ends. A turn is not judged whose prompt has no cue or several, whose model fails, or repeats
/// what it was told; that begins while another turn of its key runs, of any client of the session; or that says something else from
/// the beginning, for its model was told something else. Only the connection that sent the prompt is looked at.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cued {
    /// A prompt, and the text that may have a cue. Begins a turn.
    pub prompt: At,
    /// The pieces: a string each.
    pub piece: At,
    /// What tells turns apart that may run at the same time in a session.
    pub key: Option<Key>,
    /// Ends a turn.
    pub over: Pattern,
    /// The key is unique among all sessions: turns of any two connections with the same key are turns of one conversation.
    #[serde(default)]
    pub anywhere: bool,
    /// Pieces may come behind the end: it is not judged whether all have come.
    #[serde(default)]
    pub late: bool,
    /// `over` ends what the model says up to a call, and not the turn where a call follows.
    #[serde(default)]
    pub each_response: bool,
    /// Sent or received messages after which the turns that run in the session are not judged, such as a cancellation or an error.
    #[serde(default)]
    pub unsure: Vec<Pattern>,
    /// Violated when another text comes, or when text is missing at the end, but for what follows a call. Exercised by each piece.
    pub decides: Ids,
}

/// Pieces, in order, add up to the whole, for the same key. On a connection that may have missed the first pieces (it was opened after a piece
/// with this key had come in its session, or while the session had no open connection), they are the end of the whole.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Concatenation {
    /// The pieces: a string each.
    pub piece: At,
    /// The whole: a string. Ends a concatenation.
    pub whole: At,
    /// What pairs them.
    pub key: Option<Key>,
    /// It is enough that one of them contains a line of the other; blank pieces are ignored.
    #[serde(default)]
    pub loose: bool,
    /// Violated otherwise.
    pub decides: Ids,
}
