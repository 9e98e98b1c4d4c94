//! Reports: pure functions of the events of a run.

pub mod comparison;
pub mod console;
mod diff;
pub mod escape;
pub mod explore;
pub mod file;
pub mod fuzz;
pub mod json;
pub mod junit;
pub mod table;

/// How often something was: `once`, `3 times`.
pub fn often(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}
