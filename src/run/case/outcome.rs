//! What one run of a case came to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::results::event::{Excused, Failure, LogLine, Verdict, WireLine};
use crate::run::case::diagnose::Silence;
use crate::trace::Event;

/// How the reason begins where the server died.
pub(crate) const DIED: &str = "the server died while this case ran: ";

/// What one run of a case came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
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
    /// Why the opening failed, if that ended the case.
    pub opening: Option<String>,
    /// Every wait in vain: the sentence about it, and what the server did meanwhile.
    pub silences: Vec<(String, Silence)>,
    /// When the clock of the wire log began.
    pub began: Option<Instant>,
    /// Why failures that the baseline knows were taken out (by the doctor alone).
    pub known: Option<String>,
    /// The launched server died meanwhile.
    pub dead: bool,
    /// Where to note that somebody has told of it.
    pub reported: Option<Arc<AtomicBool>>,
    /// What the launched server wrote meanwhile.
    pub log: Vec<LogLine>,
    /// Deviations that the overlay excuses.
    pub excused: Vec<Excused>,
}

impl Outcome {
    /// Whether a connection ended that no client ended, or could not be had.
    pub fn lost_connection(&self) -> bool {
        self.lost || matches!(self.reason, Some((Verdict::Error, _)))
    }

    /// Whether that looks like a process that ended: it takes no leave.
    pub fn was_cut(&self) -> bool {
        self.cut || !self.lost
    }

    /// The server died meanwhile: what failed is its death and no requirement.
    pub fn died(&mut self, how: &str) {
        for failure in &mut self.failures {
            failure.verdict = Verdict::Error;
            failure.requirements.clear();
        }
        self.dead = true;
        self.reason = Some((Verdict::Error, format!("{DIED}{how}")));
    }
}

/// Why the steps ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A MUST is broken; it is recorded.
    Failed,
    /// A sweep has passed the turn's end.
    SweepDone,
    /// A capability is not offered.
    NotApplicable(String),
    /// The harness or the target broke.
    Error(String),
}
