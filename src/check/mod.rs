//! Monitors over a trace: one pass, bounded memory, no I/O.
//!
//! [`Judge`] takes the events of one case (or of one recording) in order, parses each received frame,
//! validates it against its message's schema and shows it to the monitors that its type concerns. A
//! requirement is *exercised* when something could have broken it; a [`Violation`] names the requirements
//! that an event broke.

mod bounded;
mod evidence;
pub mod examples;
mod hashing;
mod history;
mod judge;
#[cfg(test)]
mod memory;
mod monitor;
mod pair;
mod replies;
mod ruleset;
mod sessions;
mod tally;
#[cfg(test)]
mod tests;
mod values;
mod violation;

pub(crate) use bounded::BoundedMap;
pub(crate) use evidence::evidence;
pub(crate) use hashing::content_hash;
pub use judge::{Judge, Judged, Member};
pub use pair::{JudgePair, PairJudged, RulesetPair};
pub use ruleset::Ruleset;
pub(crate) use values::{counter, counter_as, key_text, same};
pub use violation::{Exercised, Limit, Outcome, Violation};
