//! Reports: pure functions of the events of a run.

pub mod annotations;
mod brief;
pub mod check;
pub(crate) mod clip;
pub mod comparison;
pub mod console;
mod diff;
pub mod escape;
pub mod explore;
mod failure_groups;
pub mod file;
pub mod fuzz;
pub mod html;
pub mod json;
pub mod junit;
pub mod kills;
pub mod markdown;
pub mod recordings;
mod runs;
pub mod stored;
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

/// How many cases there were, by what became of them, and the time that they took.
fn counts(summary: &Summary) -> String {
    let count = |verdict| summary.cases.get(&verdict).copied().unwrap_or(0);
    let mut parts =
        vec![format!("{} passed", count(Verdict::Passed)), format!("{} failed", count(Verdict::Failed))];
    let rest = [
        (Verdict::Error, "errors"),
        (Verdict::Warned, "warned"),
        (Verdict::Flaky, "flaky"),
        (Verdict::Known, "known to fail"),
        (Verdict::NotApplicable, "not applicable"),
    ];
    parts.extend(rest.iter().filter(|(verdict, _)| count(*verdict) > 0).map(|(verdict, word)| {
        match (count(*verdict), *verdict) {
            (1, Verdict::Error) => "1 error".to_owned(),
            (count, _) => format!("{count} {word}"),
        }
    }));
    match summary.stale_baseline.len() {
        0 => {}
        1 => parts.push("1 stale baseline entry".to_owned()),
        many => parts.push(format!("{many} stale baseline entries")),
    }
    if !summary.unoffered.is_empty() {
        let names: Vec<&str> = summary.unoffered.keys().map(String::as_str).collect();
        parts.push(format!("of which some run only with --offer {}", escape::terminal(&names.join(","))));
    }
    let stopped = summary.stopped.map(|why| format!(", stopped: {why}")).unwrap_or_default();
    let total = cases(summary.cases.values().sum());
    format!("{total}, {} in {:.2} s{stopped}", parts.join(", "), summary.seconds)
}

fn cases(count: usize) -> String {
    if count == 1 { "1 case".to_owned() } else { format!("{count} cases") }
}
