//! Reports: pure functions of the events of a run.

pub mod comparison;
pub mod console;
mod diff;
pub mod escape;
pub mod explore;
pub mod file;
pub mod fuzz;
pub mod html;
pub mod json;
pub mod junit;
pub mod table;

use crate::results::event::{Summary, Verdict};

/// How often something was: `once`, `3 times`.
pub fn often(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// The verdict on a whole run, in words.
pub fn verdict_of(summary: &Summary) -> &'static str {
    let count = |verdict| summary.cases.get(&verdict).copied().unwrap_or(0);
    match summary.exit_code {
        3 | 130 => "no verdict",
        0 if count(Verdict::Known) > 0 => "conformant except for known failures",
        0 => "conformant",
        4 => "no case was judged",
        // The server is not to blame.
        _ if count(Verdict::Failed) + count(Verdict::Error) == 0 && !summary.stale_baseline.is_empty() => {
            "the baseline is stale"
        }
        _ => "not conformant",
    }
}
