//! What pairs messages.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Rule;
use crate::frame::Pointer;
use crate::protocol::extension::Pattern;
use crate::protocol::refs::{Refer, Refs};

/// What pairs messages: one place in all of them; two, for a monitor of two sides; or the place for each kind of message.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Key {
    /// The same pointer in all messages.
    Same(Pointer),
    /// The pointer in the message that begins (`first`, `after`, `from`, `piece`, `request`), and in the others.
    Each(Pointer, Pointer),
    /// By message: the first entry whose pattern matches a message gives the place of its key. A message that no entry matches has no key.
    ByMessage(Vec<KeyPlace>),
}

/// Where messages of a kind have their key.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KeyPlace {
    /// The messages; none: all that no earlier entry matches.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Option<Pattern>,
    /// Their key. Of several places the values together; a message that lacks one of them has no key.
    pub at: Places,
    /// The value at `at` is not the key itself: a third message gives the key.
    pub through: Option<Through>,
}

/// A message that assigns a key to a value, on the same connection: for example a request with a progress token.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Through {
    /// The message. Of several with the same value, the newest counts.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: Pattern,
    /// The value in it.
    pub at: Places,
    /// The key that the value stands for.
    pub gives: Places,
}

/// One place or several.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Places {
    /// One.
    One(Pointer),
    /// Several, whose values count together.
    All(Vec<Pointer>),
}

impl Places {
    /// All of them.
    pub fn as_slice(&self) -> &[Pointer] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::All(all) => all,
        }
    }
}

/// How many kinds of message a monitor pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    /// One: a second pointer would mean nothing.
    One,
    /// Those that begin, and those that follow.
    Two,
}

impl Key {
    /// What is wrong with it in a monitor of so many sides.
    pub fn mistake(&self, sides: Sides) -> Option<&'static str> {
        match self {
            Self::Each(..) if sides == Sides::One => Some(
                "this monitor has messages of one kind only: a second place of their key would have no effect",
            ),
            Self::ByMessage(places) if places.is_empty() || places.iter().any(KeyPlace::lacks) => {
                Some("a key has no place")
            }
            _ => None,
        }
    }
}

impl KeyPlace {
    fn lacks(&self) -> bool {
        let through = self.through.iter().flat_map(|through| [&through.at, &through.gives]);
        through.chain([&self.at]).any(|places| places.as_slice().is_empty())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(at) | Self::Each(_, at) => at.fmt(f),
            Self::ByMessage(_) => f.write_str("the key"),
        }
    }
}

impl Refer for Key {
    fn refer<'r>(&'r self, refs: &mut Refs<'r>) {
        let Self::ByMessage(places) = self else { return };
        for (index, KeyPlace { message, through, at: _ }) in places.iter().enumerate() {
            if let Some(message) = message {
                refs.under(&format!("{index}/message"), message);
            }
            if let Some(through) = through {
                refs.under(&format!("{index}/through/message"), &through.message);
            }
        }
    }
}

impl Rule {
    /// The monitor's key, if it has one: where it stands below the monitor, and how many kinds of message it pairs.
    pub fn key(&self) -> Option<(&'static str, &Key, Sides)> {
        use Sides::{One, Two};
        let (at, key, sides) = match self {
            Self::Increasing(rule) => ("increasing/key", rule.key.as_ref(), One),
            Self::States(rule) => ("states/key", Some(&rule.key), One),
            Self::Constant(rule) => ("constant/key", rule.key.as_ref(), One),
            Self::Series(rule) => ("series/key", Some(&rule.key), One),
            Self::Increments(rule) => ("increments/key", Some(&rule.key), One),
            Self::Precedence(rule) => ("precedence/key", rule.key.as_ref(), Two),
            Self::Absence(rule) => ("absence/key", rule.key.as_ref(), Two),
            Self::Response(rule) => ("response/key", rule.key.as_ref(), Two),
            Self::Existence(rule) => ("existence/key", rule.key.as_ref(), Two),
            Self::Concatenation(rule) => ("concatenation/key", rule.key.as_ref(), Two),
            Self::Cued(rule) => ("cued/key", rule.key.as_ref(), Two),
            Self::Holds(rule) => ("holds/key", rule.key.as_ref(), Two),
            Self::Echo(rule) => ("echo/id", Some(&rule.id), Two),
            Self::Correlation(rule) => ("correlation/id", rule.id.as_ref(), Two),
            Self::Agreement(_)
            | Self::Replay(_)
            | Self::ServerRequests(_)
            | Self::Bracket(_)
            | Self::Unique(_)
            | Self::Relation(_)
            | Self::Proportion(_)
            | Self::Projection(_)
            | Self::Cadence(_)
            | Self::Dialogue(_) => return None,
        };
        Some((at, key?, sides))
    }

    /// All its keys: that, and the one by which it tells what was answered.
    pub fn keys(&self) -> impl Iterator<Item = (&'static str, &Key, Sides)> {
        let answered = match self {
            Self::Absence(rule) => rule.answered.as_ref().and_then(|answered| answered.id.as_ref()),
            _ => None,
        };
        self.key().into_iter().chain(answered.map(|id| ("absence/answered/id", id, Sides::Two)))
    }
}
