//! Servers that died while no case failed by it: told, and not passed over.

use std::time::Duration;

use crate::results::baseline::LIVES_ON;
use crate::results::cause::Cause;
use crate::results::death::DeathKind;
use crate::results::event::{CaseReport, LogLine, Verdict};
use crate::run::server::pool::Crash;
use crate::text::normalize;

/// A report for each kind of death.
pub(crate) fn reports(crashes: Vec<Crash>, reproduce: &str, now: Duration) -> Vec<CaseReport> {
    let mut kinds: Vec<(DeathKind, Crash, usize)> = Vec::new();
    for one in crashes {
        let kind = one.how.kind(normalize);
        match kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((_, _, count)) => *count += 1,
            None => kinds.push((kind, one, 1)),
        }
    }
    let report = |(_, Crash { how, output, before, .. }, count): (DeathKind, Crash, usize)| {
        let place = match &before {
            Some(case) => format!("between cases; it was started again for {case}"),
            None => "after the last case".to_owned(),
        };
        let often = if count > 1 {
            format!(" (and {} more times in the same way)", count - 1)
        } else {
            String::new()
        };
        CaseReport {
            case: LIVES_ON.to_owned(),
            title: "The server runs until it is stopped".to_owned(),
            verdict: Verdict::Error,
            reason: Some(format!("the server died {place}: {how}{often}")),
            started: now.as_secs_f64(),
            log: LogLine::of_itself(&output),
            cause: Some(Cause::ServerDied(how)),
            reproduce: reproduce.to_owned(),
            ..CaseReport::default()
        }
    };
    kinds.into_iter().map(report).collect()
}
