//! Whether cases that run at the same time can disturb each other: shown by the cases about the isolation of sessions, which run
//! first. Where sessions are not isolated, what else fails beside other cases may be their doing.

use std::collections::BTreeSet;

use crate::results::Check;
use crate::results::event::{CaseReport, Failure, Verdict};
use crate::run::suite::held::Key;
use crate::scenario::LoadedCase;

/// Cases about it that failed beside others: after so many that fail alone as well, others are not to blame for the rest.
const ALONE: usize = 3;

/// What is known of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Nothing speaks against it.
    #[default]
    Holds,
    /// Cases about it have not ended yet, or are to be run again.
    Open,
    /// A case has shown that it does not hold.
    Broken,
}

/// The cases about it, and what they have shown.
#[derive(Default)]
pub(crate) struct Separation {
    /// The requirements about it (`fuzzing.isolated`); none: nothing is expected of the server.
    ids: Vec<String>,
    /// Cases about it that are not judged yet.
    open: BTreeSet<Key>,
    /// Those that failed beside others, and are to be run alone.
    doubtful: BTreeSet<Key>,
    /// Those that failed alone as well.
    failed: usize,
    is_broken: bool,
}

impl Separation {
    /// `cases`: those of the first round.
    pub fn new<'c>(ids: &[String], cases: impl Iterator<Item = &'c LoadedCase>) -> Self {
        let mut separation = Self { ids: ids.to_vec(), ..Self::default() };
        separation.open =
            cases.filter(|case| separation.concerns(case)).map(|case| (case.id.clone(), 0)).collect();
        separation
    }

    /// Whether a case is about it.
    pub fn concerns(&self, case: &LoadedCase) -> bool {
        !self.ids.is_empty() && case.covered().iter().any(|id| self.ids.contains(id))
    }

    pub fn isolation(&self) -> Isolation {
        match (self.is_broken, self.open.is_empty() && self.doubtful.is_empty()) {
            (true, _) => Isolation::Broken,
            (false, false) => Isolation::Open,
            (false, true) => Isolation::Holds,
        }
    }

    /// Whether it is worth while to run a case alone that others may have disturbed.
    pub fn is_ripe(&self, key: &Key) -> bool {
        self.is_broken || (self.open.is_empty() && self.doubtful.contains(key))
    }

    /// A case that others may have disturbed is held back.
    pub fn held(&mut self, key: &Key) {
        if self.open.remove(key) {
            self.doubtful.insert(key.clone());
        }
    }

    /// A case was run again, alone.
    pub fn alone(&mut self, key: &Key, passes: bool) {
        if !self.doubtful.remove(key) {
            return;
        }
        self.is_broken |= passes;
        self.failed += usize::from(!passes);
        if self.failed >= ALONE {
            self.doubtful.clear();
        }
    }

    /// Takes a report that stands. Leaks are no matter of this: they name the cases that they disturb.
    pub fn note(&mut self, key: &Key, report: &CaseReport) {
        self.open.remove(key);
        let shows = |failure: &Failure| {
            failure.check != Check::Leak && failure.requirements.iter().any(|id| self.ids.contains(id))
        };
        self.is_broken |= report.failures.iter().any(shows);
    }

    /// The requirements that a server breaks on which a case fails only beside others.
    pub fn ids(&self) -> &[String] {
        &self.ids
    }
}

/// Whether a case may have failed because of others.
pub(crate) fn may_be_disturbed(report: &CaseReport, ids: &[String]) -> bool {
    let by_others = |failure: &Failure| {
        failure.verdict == Verdict::Failed && !failure.requirements.iter().any(|id| ids.contains(id))
    };
    report.verdict == Verdict::Failed
        && report.failures.iter().all(|failure| failure.check != Check::Leak)
        && (report.failures.is_empty() || report.failures.iter().any(by_others))
}

/// The report of a case that fails beside others and passes alone.
pub(crate) fn blame(first: CaseReport, mut alone: CaseReport, ids: &[String]) -> CaseReport {
    let what = first.failures.first().map(|failure| failure.message.clone()).or(first.reason);
    let told = what.map_or_else(String::new, |what| format!(": {what}"));
    let message = format!(
        "it fails beside other cases and passes alone: their sessions affect each other on this server (`sessions = 1` in the target's \
         table runs cases one after the other). What failed beside others{told}"
    );
    alone.failures.push(Failure::new(Check::Leak, Verdict::Failed, message).breaking(ids));
    alone.verdict = Verdict::Failed;
    alone
}
