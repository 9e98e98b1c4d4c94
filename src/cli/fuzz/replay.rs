//! `frameproof fuzz --replay`: stored findings, run again.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::cli::{Failure, nothing, usage};
use crate::exit::Exit;
use crate::fuzz::Testbed;
use crate::fuzz::replay::{Replay, ReplayOutcome, exit_of, replay};
use crate::report::escape;
use crate::shortage;

/// Runs the findings of a folder again, and shows what became of each.
pub(super) async fn again(
    target: Testbed,
    folder: &Path,
    deadline: Duration,
    seed: u64,
) -> Result<Exit, Failure> {
    let all = replay(&target, folder, deadline, seed).await;
    let all = all.map_err(|error| usage(error, "--replay takes the folder of --findings"))?;
    target.close().await;
    if shortage::seen().is_some() {
        return Err(Failure::Shortage);
    }
    if all.is_empty() {
        return Err(nothing(
            format!("{} holds no findings (*.yaml)", folder.display()),
            "a campaign writes them there with --findings",
        ));
    }
    for replayed in &all {
        let file = escape::terminal(&replayed.file);
        match &replayed.result {
            Ok(replay) => {
                let (word, case, why) = (replay.outcome.name(), &replay.case.id, why(replay));
                writeln!(crate::cli::out(), "{word:<15}  {case}  {file}{why}")?;
            }
            Err(error) => {
                let mut err = anstream::stderr();
                writeln!(err, "skipped {file}:")?;
                for line in error.lines() {
                    writeln!(err, "{}", escape::terminal(line))?;
                }
            }
        }
    }
    Ok(exit_of(&all))
}

/// Why a finding is not fixed.
fn why(replay: &Replay) -> String {
    let report = replay.last.as_ref().map(|last| &last.report);
    match replay.outcome {
        ReplayOutcome::Fixed => String::new(),
        ReplayOutcome::Undecided => {
            let reason = report.and_then(|report| report.reason.as_deref());
            format!(": it could not be run: {}", escape::terminal(reason.unwrap_or("no verdict")))
        }
        _ => report
            .and_then(|report| report.failures.first())
            .map(|failure| format!(": {}", escape::terminal(&failure.message)))
            .unwrap_or_default(),
    }
}
