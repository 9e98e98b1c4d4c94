//! Preambles that fail by themselves.

use std::collections::HashSet;

use crate::results::event::{CaseReport, Verdict};
use crate::scenario::LoadedCase;

/// The preambles of a suite, which are cases of their own.
pub(crate) struct Preambles {
    all: HashSet<String>,
    failed: HashSet<String>,
}

impl Preambles {
    /// Those of these cases that others are run behind.
    pub fn of(cases: &[LoadedCase]) -> Self {
        let all = cases.iter().filter_map(|case| case.preamble.as_ref()).map(|preamble| preamble.id.clone());
        Self { all: all.collect(), failed: HashSet::new() }
    }

    /// A report stands.
    pub fn note(&mut self, report: &CaseReport) {
        if report.verdict == Verdict::Failed && self.all.contains(&report.case) {
            self.failed.insert(report.case.clone());
        }
    }

    /// Why a case is not run behind its preamble: what fails alone would fail again before each of them.
    pub fn why_not_behind(&self, case: &LoadedCase) -> Option<String> {
        let preamble = case.preamble.as_ref().filter(|preamble| self.failed.contains(&preamble.id))?;
        Some(format!("`{}` fails, and nothing is judged behind it", preamble.id))
    }
}
