//! What one run of a case came to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::results::cause::Cause;
use crate::results::death::Death;
use crate::results::event::{Failure, LogLine, Verdict, WireLine};
use crate::results::excused::ExcusedList;
use crate::trace::Event;

/// What one run of a case came to.
#[derive(Debug, Default)]
pub(crate) struct CaseOutcome {
    pub failures: Vec<Failure>,
    pub exercised: BTreeMap<String, u64>,
    pub wire: Vec<WireLine>,
    pub trace: Vec<Event>,
    /// Where in the trace each step began, by its pointer: kept with the trace.
    pub marks: Vec<(String, usize)>,
    /// The step of each failure, by its pointer; empty: at the end.
    pub failed_at: Vec<String>,
    /// Not applicable, or a harness error.
    pub reason: Option<(Verdict, String)>,
    /// A connection ended that its client did not cut: seen when reading, or when writing failed.
    pub lost: bool,
    /// One of them ended without a close frame.
    pub cut: bool,
    /// Why the case failed as others may have: why its opening failed, or what befell it as a whole.
    pub cause: Option<Cause>,
    /// When the clock of the wire log began.
    pub began: Option<Instant>,
    /// Why failures that the baseline knows were taken out (by the doctor alone).
    pub known: Option<String>,
    /// How the launched server died meanwhile, if it did.
    pub death: Option<Death>,
    /// Where to note that somebody has told of it.
    pub reported: Option<Arc<AtomicBool>>,
    /// What the launched server wrote meanwhile.
    pub log: Vec<LogLine>,
    /// Deviations that the overlay excuses.
    pub excused: ExcusedList,
}

impl CaseOutcome {
    /// Whether a connection ended that no client ended, or could not be had.
    pub fn lost_connection(&self) -> bool {
        self.lost || matches!(self.reason, Some((Verdict::Error, _)))
    }

    /// Whether that looks like a process that ended: it takes no leave.
    pub fn was_cut(&self) -> bool {
        self.cut || !self.lost
    }

    /// The server died meanwhile: what failed is its death and no requirement.
    pub fn died(&mut self, death: Death) {
        for failure in &mut self.failures {
            failure.verdict = Verdict::Error;
            failure.requirements.clear();
        }
        self.reason = Some((Verdict::Error, Cause::ServerDied(death.clone()).to_string()));
        self.death = Some(death);
    }
}

/// Why the steps ended early.
#[derive(Debug)]
pub(crate) enum Abort {
    /// A MUST is broken; it is recorded.
    Failed,
    /// A sweep has passed the turn's end.
    SweepDone,
    /// A capability is not offered.
    NotApplicable(String),
    /// The harness or the target broke.
    Error(String),
}
