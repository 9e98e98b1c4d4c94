//! Reports: pure functions of the events of a run.

pub mod console;
mod diff;
pub mod escape;
pub mod file;
pub mod fuzz;
pub mod json;
pub mod junit;
pub mod table;
