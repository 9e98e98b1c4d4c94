//! The live fuzzer: inputs made from a protocol's schemas, oracles, guidance by novelty, shrinking.
//!
//! What it does to a server it does through [`crate::run`]: a fuzzed case *is* a scenario, so that a finding is one, too.

pub mod input;
pub mod wire;
