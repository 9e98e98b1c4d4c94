//! What found something wrong.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What found a violation or a failure: a check that is built in, or an invariant of the protocol.
///
/// Reports write it as text: a built-in check by its word, an invariant by its name. Protocols choose the names of their
/// invariants, so one whose name is such a word is written with `invariant:` before it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Check {
    /// A step of the case: what it expects did not come, or something else came.
    Step,
    /// A connection ended that should have stayed open.
    Connection,
    /// Every message of the server is a JSON object in a text frame.
    Frame,
    /// Every message of the server is one of the protocol's.
    Message,
    /// Every message of the server satisfies its schema.
    Schema,
    /// Every message of the server satisfies the schema that the server has generated itself.
    VendorSchema,
    /// Every reply of the server answers an open request.
    Reply,
    /// A bound: on what a server may send, or on what a monitor remembers.
    Limit,
    /// The memory of a launched server does not grow without bound.
    Memory,
    /// Nothing of one session reaches another.
    Leak,
    /// The server says something at all.
    Silence,
    /// The invariant of the protocol with this name.
    Invariant(Arc<str>),
}

/// Stands before the name of an invariant that could be read as something else.
const INVARIANT: &str = "invariant:";

impl Check {
    /// The checks that are built in.
    const BUILT_IN: [Self; 11] = [
        Self::Step,
        Self::Connection,
        Self::Frame,
        Self::Message,
        Self::Schema,
        Self::VendorSchema,
        Self::Reply,
        Self::Limit,
        Self::Memory,
        Self::Leak,
        Self::Silence,
    ];

    /// The word of a check that is built in, or the plain name of an invariant.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Step => "step",
            Self::Connection => "connection",
            Self::Frame => "frame",
            Self::Message => "message",
            Self::Schema => "schema",
            Self::VendorSchema => "vendor-schema",
            Self::Reply => "reply",
            Self::Limit => "limit",
            Self::Memory => "memory",
            Self::Leak => "leak",
            Self::Silence => "silence",
            Self::Invariant(name) => name,
        }
    }

    /// The name of the invariant, if it is one.
    #[must_use]
    pub fn invariant(&self) -> Option<&str> {
        match self {
            Self::Invariant(name) => Some(name),
            _ => None,
        }
    }

    fn built_in(word: &str) -> Option<Self> {
        Self::BUILT_IN.into_iter().find(|check| check.name() == word)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_ambiguous = |name: &str| Self::built_in(name).is_some() || name.starts_with(INVARIANT);
        if self.invariant().is_some_and(is_ambiguous) {
            f.write_str(INVARIANT)?;
        }
        f.write_str(self.name())
    }
}

impl From<&str> for Check {
    fn from(text: &str) -> Self {
        Self::built_in(text)
            .unwrap_or_else(|| Self::Invariant(text.strip_prefix(INVARIANT).unwrap_or(text).into()))
    }
}

impl From<String> for Check {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<Check> for String {
    fn from(check: Check) -> Self {
        check.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invariant_is_never_read_as_a_built_in_check() {
        for (check, text) in [
            (Check::Message, "message"),
            (Check::Step, "step"),
            (Check::Invariant("order".into()), "order"),
            (Check::Invariant("message".into()), "invariant:message"),
            (Check::Invariant("invariant:order".into()), "invariant:invariant:order"),
        ] {
            assert_eq!(check.to_string(), text);
            assert_eq!(Check::from(text), check);
            assert_eq!(serde_json::to_value(&check).expect("text"), text);
        }
        for check in Check::BUILT_IN {
            assert_eq!(Check::from(check.name()), check);
            let invariant = Check::Invariant(check.name().into());
            assert_eq!(Check::from(invariant.to_string()), invariant);
        }
    }
}
