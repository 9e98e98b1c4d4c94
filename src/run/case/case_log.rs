//! What a case has seen: one line an event.

use std::sync::Arc;
use std::time::Instant;

use crate::results::event::WireLine;
use crate::run::case::context::CaseContext;
use crate::run::case::diagnose::Mark;
use crate::scenario::case::Step;
use crate::trace::Event;

/// What a case has seen.
pub(crate) struct CaseLog {
    /// As the report shows it: one line an event.
    pub wire: Vec<WireLine>,
    /// What each line is.
    pub marks: Vec<Mark>,
    /// What was received, whole, with its index and its client: where a step of the case looks back.
    pub texts: Option<Vec<(u64, String, Arc<str>)>>,
    /// Every event, where it is kept.
    pub trace: Vec<Event>,
    /// Where in the trace each step began, by its pointer.
    pub step_starts: Vec<(String, usize)>,
    /// When its clock began.
    pub start: Instant,
    /// Received so far.
    pub frames: u64,
    pub bytes: u64,
}

impl CaseLog {
    pub fn new(cx: &CaseContext<'_>) -> Self {
        let looks_back = cx.loaded.case.steps.iter().any(Step::looks_back);
        Self {
            wire: Vec::new(),
            marks: Vec::new(),
            texts: looks_back.then(Vec::new),
            trace: Vec::new(),
            step_starts: Vec::new(),
            start: Instant::now(),
            frames: 0,
            bytes: 0,
        }
    }
}
