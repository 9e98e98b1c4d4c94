//! What one run of a case came to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::results::cause::{Cause, LeakKind};
use crate::results::death::Death;
use crate::results::event::{Failure, FrameRecord, LogLine, Verdict, Window};
use crate::results::excused::ExcusedList;
use crate::run::case::holding::Share;
use crate::trace::Event;

/// What one run of a case came to.
#[derive(Debug, Default)]
pub(crate) struct CaseOutcome {
    pub end: CaseEnd,
    pub failures: Vec<Failure>,
    /// What else was found behind the first MUST that a frame broke, and may be its consequence: kept with the trace.
    pub consequences: Vec<Failure>,
    /// The steps of its last round were run to their end, whatever was found.
    pub reached_end: bool,
    pub exercised: BTreeMap<String, u64>,
    /// Deviations that the overlay excuses.
    pub excused: ExcusedList,
    /// Why the case failed as others may have: why its opening failed, or what befell it as a whole.
    pub cause: Option<Cause>,
    /// What it saw.
    pub record: CaseRecord,
    pub loss: ConnectionLoss,
    /// What came of the close frames behind its last step.
    pub close_handshake: CloseHandshake,
    /// What the launched server wrote meanwhile.
    pub log: Vec<LogLine>,
    /// Why failures that the baseline knows were taken out (by the doctor alone).
    pub known: Option<String>,
}

/// How a case ended.
#[derive(Debug, Default)]
pub(crate) enum CaseEnd {
    /// It ran as far as its failures let it.
    #[default]
    Ran,
    /// It cannot be run against this server, and why.
    NotApplicable(String),
    /// The harness or the target broke.
    Error(String),
    /// The launched server died meanwhile; `reported`: where to note that somebody has reported it.
    ServerDied { how: Death, reported: Option<Arc<AtomicBool>> },
}

/// The messages of batches, each member's index in the protocol, by the index of the frame in the wire log.
pub(crate) type Batches = BTreeMap<u64, Box<[Option<usize>]>>;

/// What a case saw.
#[derive(Debug, Default)]
pub(crate) struct CaseRecord {
    /// One line an event, as the report shows it.
    pub wire: Vec<FrameRecord>,
    /// The messages of the frames that are batches, by the index of the line.
    pub batches: Batches,
    /// Every event, where it is kept.
    pub trace: Vec<Event>,
    /// Where in the trace each step began, by its pointer: kept with the trace.
    pub step_starts: Vec<(String, usize)>,
    /// When the clock of the wire log began.
    pub began: Option<Instant>,
    /// Windows of time that stood for a barrier.
    pub windows: Vec<Window>,
    /// What all of this takes in memory.
    pub shares: Vec<Share>,
    /// It was given up because all cases together held too much.
    pub crowded_out: bool,
}

/// How connections ended that no client ended: seen when reading, or when writing failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConnectionLoss {
    #[default]
    None,
    /// With a close frame.
    Closed,
    /// One of them without.
    Cut,
}

/// What came of the close frames with which connections end that nobody needs any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CloseHandshake {
    /// The server returned each.
    #[default]
    Completed,
    /// One was not returned: the server may be about to end.
    Missed,
}

impl CaseEnd {
    /// Why the steps were not run to their end, other than by a failure.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Ran => None,
            Self::NotApplicable(reason) | Self::Error(reason) => Some(reason.clone()),
            Self::ServerDied { how, .. } => Some(Cause::ServerDied(how.clone()).to_string()),
        }
    }

    /// What the case is, if its end says so.
    pub fn verdict(&self) -> Option<Verdict> {
        match self {
            Self::Ran => None,
            Self::NotApplicable(_) => Some(Verdict::NotApplicable),
            Self::Error(_) | Self::ServerDied { .. } => Some(Verdict::Error),
        }
    }

    pub fn has_run(&self) -> bool {
        matches!(self, Self::Ran)
    }

    /// How the server died, if it did.
    pub fn death(&self) -> Option<&Death> {
        match self {
            Self::ServerDied { how, .. } => Some(how),
            _ => None,
        }
    }
}

impl CaseOutcome {
    /// Of a case that has shown nothing but how it ended.
    pub fn of(end: CaseEnd) -> Self {
        Self { end, ..Self::default() }
    }

    /// Of a case in which frameproof broke, or for which there was no server.
    pub fn error(reason: String) -> Self {
        Self::of(CaseEnd::Error(reason))
    }

    /// Whether a connection ended that no client ended, or could not be had.
    pub fn lost_connection(&self) -> bool {
        self.loss != ConnectionLoss::None || matches!(self.end, CaseEnd::Error(_))
    }

    /// Whether that looks like a process that ended: it sends no close frame.
    pub fn was_cut(&self) -> bool {
        self.loss != ConnectionLoss::Closed
    }

    /// Adds what another round of the same case came to; of what was seen, the report shows the last round.
    pub fn add_round(&mut self, mut round: Self) {
        for (id, count) in round.exercised {
            *self.exercised.entry(id).or_default() += count;
        }
        self.record.trace.append(&mut round.record.trace);
        self.record.step_starts.append(&mut round.record.step_starts);
        self.record.shares.append(&mut round.record.shares);
        self.record.crowded_out |= round.record.crowded_out;
        self.record.wire = round.record.wire;
        self.record.batches = round.record.batches;
        self.record.began = round.record.began;
        self.record.windows = round.record.windows;
        self.loss = self.loss.max(round.loss);
        self.close_handshake = self.close_handshake.max(round.close_handshake);
        self.cause = round.cause;
        self.excused.merge(round.excused);
        self.failures.append(&mut round.failures);
        self.consequences.append(&mut round.consequences);
        self.reached_end = round.reached_end;
    }

    /// Failures were replaced by the leak that explains them. Which step met it says nothing.
    pub fn leaked(&mut self, kind: LeakKind) {
        self.failures
            .iter_mut()
            .filter_map(|failure| failure.step.as_mut())
            .for_each(|step| step.pointer.clear());
        self.cause = Some(Cause::Leak(kind));
    }

    /// The server died meanwhile: what failed is its death and no requirement.
    pub fn died(&mut self, how: Death, reported: Option<Arc<AtomicBool>>) {
        for failure in &mut self.failures {
            failure.verdict = Verdict::Error;
            failure.requirements.clear();
        }
        self.end = CaseEnd::ServerDied { how, reported };
    }
}

/// Why the steps ended early.
#[derive(Debug)]
pub(crate) enum Abort {
    /// A MUST is broken; it is recorded.
    Failed,
    /// A sweep has passed the turn's end.
    SweepDone,
    /// What comes next needs a value of a message that did not come, which was tolerated: there is nothing to do it with.
    Vacuous,
    /// A capability is not offered.
    NotApplicable(String),
    /// The harness or the target broke.
    Error(String),
}
