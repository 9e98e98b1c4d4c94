//! The live fuzzer: inputs made from a protocol's schemas, oracles, guidance by novelty, shrinking.
//!
//! What it does to a server it does through [`crate::run`]: a fuzzed case *is* a scenario, so that a finding is one, too.
//!
//! A [`program::Program`] is a list of [`input::Input`]s with its circumstances. [`generate`] makes programs from a seed, and
//! [`obligation`] says what the protocol owes for each input. [`campaign`] runs them side by side and
//! [`feedback`] learns which led to something new. What fails is confirmed, made small ([`shrink`]) and kept as a [`finding`].

mod budget;
pub mod campaign;
mod confirm;
pub mod corpus;
mod crashes;
pub mod events;
pub mod executor;
mod exhaustion;
pub mod feedback;
pub mod finding;
mod findings;
pub mod fingerprint;
pub mod generate;
mod in_flight;
pub mod input;
mod investigate;
mod joint;
mod latency;
mod memory;
pub mod obligation;
pub mod observed;
pub mod oracle;
pub mod program;
mod reachability;
pub mod render;
pub mod replay;
pub mod results;
pub mod shrink;
mod source;
pub mod step_writer;

pub use crate::run::testbed::Testbed;
