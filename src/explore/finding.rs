//! Findings: a walk, and what it breaks.

use std::time::Duration;

use serde_json::json;

use super::failure::{Execution, Fingerprint};
use super::table::Table;
use super::walk::Walk;
use crate::protocol::Protocol;
use crate::results::event::{CaseReport, Failure, Verdict};
use crate::scenario::write;
use crate::synthesis::text::without_values;

/// A confirmed finding.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What it is.
    pub print: Fingerprint,
    /// Failed (a MUST), warned (a SHOULD or MAY) or error (the server died).
    pub verdict: Verdict,
    /// One sentence.
    pub message: String,
    /// The walk, shrunk.
    pub walk: Walk,
    /// The number of the walk that showed it first; none: one of the short walks before all others.
    pub index: Option<u64>,
    /// Moves of that walk before it was shrunk.
    pub was: usize,
    /// Walks run to confirm and shrink it.
    pub replays: usize,
    /// When it was confirmed, since the exploration began.
    pub at: Duration,
    /// As a run reports it.
    pub report: CaseReport,
}

/// Where a finding comes from, for the comments of its scenario.
pub(super) struct Source<'s> {
    /// Of the exploration.
    pub seed: u64,
    /// The target on the command line.
    pub reproduce: &'s str,
}

impl Finding {
    /// What a run of a shrunk walk shows.
    pub(super) fn new(execution: Execution, print: Fingerprint, failure: Option<&Failure>) -> Self {
        let reason = execution.outcome.report.reason.clone();
        let message = failure.map(|failure| failure.message.clone()).or(reason).unwrap_or_default();
        Self {
            verdict: failure.map_or(Verdict::Error, |failure| failure.verdict),
            message,
            index: None,
            was: execution.walk.moves.len(),
            replays: 0,
            at: Duration::ZERO,
            report: execution.outcome.report,
            walk: execution.walk,
            print,
        }
    }

    /// The name of its case.
    pub fn name(&self) -> String {
        self.print.name()
    }

    /// The file's name: the same for the same finding.
    pub fn file_name(&self) -> String {
        format!("{}.yaml", self.name())
    }

    /// The scenario file.
    pub(super) fn scenario(&self, protocol: &Protocol, table: &Table, source: &Source<'_>) -> String {
        let mut case = self.walk.render(protocol, table, &self.name(), &without_values(&self.message)).case;
        // A failure without a requirement would not count in a case that covers others.
        if !self.print.requirements.is_empty() {
            case["covers"] = json!(self.print.requirements);
        }
        let from = match self.index {
            Some(index) => format!("walk {index}"),
            None => "a short walk".to_owned(),
        };
        let mut comments = vec![
            format!("Found by frameproof explore, seed {}, in {from}.", source.seed),
            self.message.clone(),
        ];
        comments.extend(self.walk.moves.iter().map(|step| format!("  {step}")));
        comments.push(format!("Run: frameproof run {}{}", source.reproduce, self.file_name()));
        write::file(&comments, "explore", &[case])
    }
}
