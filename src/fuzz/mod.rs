//! The live fuzzer: inputs made from a protocol's schemas, oracles, guidance by novelty, shrinking.
//!
//! What it does to a server it does through [`crate::run`]: a fuzzed case *is* a scenario, so that a finding is one, too.
//!
//! A [`program::Program`] is a list of [`input::Input`]s with its circumstances. [`generate`] makes programs from a seed,
//! [`spoil`] and [`schema`] their messages, [`duty`] says what the protocol owes for each. [`campaign`] runs them side by side,
//! [`guide`] learns which led to something new, [`shrink`] makes what fails small, and [`finding`] keeps it.

pub mod bench;
pub mod campaign;
pub mod corpus;
mod death;
pub mod dice;
pub mod duty;
pub mod finding;
mod flight;
pub mod generate;
pub mod guide;
pub mod input;
mod keep;
mod pace;
pub mod program;
pub mod replay;
pub mod schema;
pub mod scripts;
pub mod shrink;
pub mod spoil;
mod states;
mod verdicts;
mod wear;
pub mod wire;
pub mod yaml;

pub use crate::run::testbed::Ground;
