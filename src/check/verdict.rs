//! What a judgement says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::Protocol;

/// A property of the trace that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// What found it: the invariant's name, or `frame`, `message`, `schema`.
    pub check: String,
    /// The requirements that it breaks, by id. Never empty.
    pub requirements: Vec<String>,
    /// It warns whatever the level of its requirements: the reading tolerates it.
    #[serde(default)]
    pub warns: bool,
    /// One sentence for a person: what is wrong, with the values.
    pub message: String,
    /// The event that broke it, as its index in the trace (from 0); `None` for a duty open at the end.
    pub event: Option<u64>,
    /// An earlier event that it conflicts with.
    pub related: Option<u64>,
    /// What should have been, where it can be shown as a value.
    pub expected: Option<serde_json::Value>,
    /// What was instead.
    pub actual: Option<serde_json::Value>,
}

impl Violation {
    /// The message, with what the invariant that found it is about.
    #[must_use]
    pub fn told(&self, protocol: &Protocol) -> String {
        match protocol.extension.invariants.get(&self.check) {
            Some(invariant) => format!("{}: {}", invariant.about, self.message),
            None => self.message.clone(),
        }
    }
}

/// How often each requirement was exercised: there was something that could have broken it. By id.
pub type Exercised = BTreeMap<String, u64>;

/// Two messages are about the same but for numbers in them, which are ids and places.
pub(crate) fn same(one: &str, other: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    letters(one) == letters(other)
}

/// What breaks the bare protocol and not the one that an overlay adapts: what the overlay excuses.
pub(crate) fn excused<'v>(
    bare: Vec<Violation>,
    judged: &'v [Violation],
) -> impl Iterator<Item = Violation> + 'v {
    bare.into_iter().filter(|one| {
        let broken = |other: &Violation| {
            other.check == one.check
                && (other.requirements == one.requirements || same(&other.message, &one.message))
        };
        !judged.iter().any(broken)
    })
}
