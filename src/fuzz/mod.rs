//! The live fuzzer: inputs made from a protocol's schemas, oracles, guidance by novelty, shrinking.
//!
//! What it does to a server it does through [`crate::run`]: a fuzzed case *is* a scenario, so that a finding is one, too.
//!
//! A [`program::Program`] is a list of [`input::Input`]s with its circumstances. [`generate`] makes programs from a seed, and
//! [`obligation`] says what the protocol owes for each input. [`campaign`] runs them side by side, [`feedback`] learns which led
//! to something new, [`shrink`] makes what fails small, and [`finding`] keeps it.

pub mod campaign;
mod confirm;
pub mod corpus;
mod crashes;
pub mod executor;
mod exhaustion;
pub mod feedback;
pub mod finding;
mod findings;
pub mod generate;
mod in_flight;
pub mod input;
mod latency;
pub mod model_scripts;
pub mod obligation;
pub mod program;
mod reachability;
pub mod replay;
pub mod shrink;

pub use crate::run::testbed::Ground;
