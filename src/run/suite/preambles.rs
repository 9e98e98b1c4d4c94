//! Preambles that fail by themselves.

use std::collections::HashSet;

use crate::results::event::{CaseReport, Verdict};
use crate::scenario::LoadedCase;

/// The cases of a suite that have failed: those among them that are preambles of others.
#[derive(Debug, Default)]
pub(crate) struct Preambles {
    failed: HashSet<String>,
}

impl Preambles {
    /// A report stands.
    pub fn note(&mut self, report: &CaseReport) {
        if report.verdict == Verdict::Failed {
            self.failed.insert(report.case.clone());
        }
    }

    /// Why a case is not run behind its preamble: what fails alone would fail again before each of them.
    pub fn why_not_behind(&self, case: &LoadedCase) -> Option<String> {
        let preamble = case.preamble.as_ref().filter(|preamble| self.failed.contains(&preamble.id))?;
        Some(format!("`{}` fails, and nothing is judged behind it", preamble.id))
    }
}
