//! What a judgement says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::Protocol;
use crate::protocol::extension::Invariant;
use crate::results::Check;
use crate::text::same;

/// A property of the trace that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// What found it.
    pub check: Check,
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
    /// So many more of the same check and requirements came with it, which are not listed.
    #[serde(default)]
    pub more: u64,
}

impl Violation {
    /// A violation without evidence.
    pub(crate) fn new(check: &Check, ids: &[String], message: String) -> Self {
        Self {
            check: check.clone(),
            requirements: ids.to_vec(),
            warns: false,
            message,
            event: None,
            related: None,
            expected: None,
            actual: None,
            more: 0,
        }
    }

    /// The invariant that found it; a built-in check is none, whatever the protocol calls its invariants.
    pub(super) fn invariant<'p>(&self, protocol: &'p Protocol) -> Option<&'p Invariant> {
        self.check.invariant().and_then(|name| protocol.extension.invariants.get(name))
    }

    /// The message, with what the invariant that found it is about, and how many more there are of it.
    #[must_use]
    pub fn description(&self, protocol: &Protocol) -> String {
        let told = match self.invariant(protocol) {
            Some(invariant) => format!("{}: {}", invariant.about, self.message),
            None => self.message.clone(),
        };
        match self.more {
            0 => told,
            more => format!("{told} (and {more} more like it)"),
        }
    }
}

/// A bound on what a monitor remembers was reached: what depends on what it forgot is neither broken nor exercised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The invariant, or `sessions`, `log`, `requests`.
    pub check: String,
    /// How many of its entries were forgotten.
    pub forgotten: u64,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {} entries were dropped, because a bound on memory was reached; what depends on them was not judged",
            self.check, self.forgotten
        )
    }
}

/// What a judge says at the end.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What the end broke: duties still open.
    pub violations: Vec<Violation>,
    /// How often each requirement was exercised, over the whole trace.
    pub exercised: Exercised,
    /// The bounds that were reached. Empty: everything was judged.
    pub limits: Vec<Limit>,
}

/// How often each requirement was exercised: there was something that could have broken it. By id.
pub type Exercised = BTreeMap<String, u64>;

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
