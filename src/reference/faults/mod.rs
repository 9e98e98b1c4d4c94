//! Deliberate defects: those that a dialect has in a table of its own, and those that stand before a correct server.

pub(super) mod frames;
pub(super) mod mutate;
mod table;
pub(super) mod triggered;
mod triggered_table;

pub(super) use table::faults;

use super::Fault;
