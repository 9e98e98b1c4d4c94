//! A trace judged by an adapted protocol, and by the protocol without its overlay.

use std::sync::Arc;
use std::time::Duration;

use super::violation::excused;
use super::{Judge, Judged, Outcome, Ruleset, Violation};
use crate::frame::Limits;
use crate::protocol::Protocol;
use crate::source::Diagnostics;
use crate::trace::Event;

/// The checks of a protocol, and of the same without its overlay, where it has one.
#[derive(Clone)]
pub struct RulesetPair {
    adapted: Arc<Ruleset>,
    bare: Option<Arc<Ruleset>>,
}

impl RulesetPair {
    /// Compiles the monitors of both.
    ///
    /// # Errors
    /// As [`Ruleset::compile`].
    pub fn compile(protocol: &Arc<Protocol>, bare: Option<&Arc<Protocol>>) -> Result<Self, Diagnostics> {
        Ok(Self { adapted: Ruleset::compile(protocol)?, bare: bare.map(Ruleset::compile).transpose()? })
    }

    /// Judges with all monitors but the suspended ones. One of them that the bare protocol does not know is passed over.
    pub fn judge(&self, limits: Limits, suspended: &[String]) -> JudgePair {
        let bare = self.bare.as_ref().map(|bare| bare.judge(limits, suspended));
        JudgePair { adapted: self.adapted.judge(limits, suspended), bare }
    }
}

/// Judges one case by a protocol, and finds what its overlay excuses.
pub struct JudgePair {
    adapted: Judge,
    bare: Option<Judge>,
}

/// What both judges say of the same.
#[derive(Debug, Default)]
pub struct PairJudged<T> {
    /// By the protocol that holds.
    pub judged: T,
    /// What breaks the protocol without its overlay, and not with it.
    pub excused: Vec<Violation>,
}

impl JudgePair {
    /// Takes the next event.
    pub fn observe(&mut self, event: &Event) -> PairJudged<Judged> {
        let judged = self.adapted.observe(event);
        let bare = self.bare.as_mut().map(|bare| bare.observe(event).violations);
        let excused = excused(bare.unwrap_or_default(), &judged.violations).collect();
        PairJudged { judged, excused }
    }

    /// As [`Judge::delayed`].
    pub fn delayed(&mut self, delays: Duration) {
        self.adapted.delayed(delays);
        if let Some(bare) = &mut self.bare {
            bare.delayed(delays);
        }
    }

    /// As [`Judge::scaled`].
    pub fn scaled(&mut self, scale: f64) {
        self.adapted.scaled(scale);
        if let Some(bare) = &mut self.bare {
            bare.scaled(scale);
        }
    }

    /// As [`Judge::abandon`].
    pub fn abandon(&mut self, event: u64) {
        self.adapted.abandon(event);
        if let Some(bare) = &mut self.bare {
            bare.abandon(event);
        }
    }

    /// As [`Judge::is_owed`].
    pub fn is_owed(&self) -> bool {
        self.adapted.is_owed()
    }

    /// As [`Judge::finish`].
    pub fn finish(self, settled: bool) -> PairJudged<Outcome> {
        let judged = self.adapted.finish(settled);
        let bare = self.bare.map(|bare| bare.finish(settled).violations);
        let excused = excused(bare.unwrap_or_default(), &judged.violations).collect();
        PairJudged { judged, excused }
    }
}
