//! What is found wrong with a case, and by whom.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::Judge;
use crate::results::cause::Cause;
use crate::results::event::Failure;
use crate::results::excused::ExcusedList;
use crate::run::case::context::CaseContext;
use crate::run::loop_lag::LoopLag;
use crate::source::Diagnostics;

/// What is found wrong with a case, and what was exercised.
pub(crate) struct CaseVerdict {
    /// None: everything has been judged.
    pub judge: Option<Judge>,
    /// The protocol without the overlays, judging the same frames.
    pub shadow: Option<Judge>,
    /// How late this process is, where a monitor asks for times.
    pub lag: Option<LoopLag>,
    pub failures: Vec<Failure>,
    /// The step of each failure, by its pointer; empty: at the end.
    pub failed_at: Vec<String>,
    pub exercised: BTreeMap<String, u64>,
    /// Deviations that the overlay excuses.
    pub excused: ExcusedList,
    /// Why the opening failed, if that ended the case.
    pub cause: Option<Cause>,
    /// A MUST is broken.
    pub broken: bool,
}

impl CaseVerdict {
    /// # Errors
    /// An invariant that does not compile (found when the protocol is loaded, too).
    pub fn new(cx: &CaseContext<'_>) -> Result<Self, Diagnostics> {
        // A case may suspend what the bare protocol does not know.
        let (limits, suspended) = (cx.run.options.limits.frame, &cx.loaded.case.suspend);
        let shadow = cx.run.bare.as_ref().map(|bare| Judge::new(Arc::clone(bare), limits, suspended));
        Ok(Self {
            judge: Some(Judge::new(Arc::clone(&cx.protocol), limits, suspended)?),
            shadow: shadow.transpose()?,
            lag: cx.protocol.extension.is_timed().then(LoopLag::new),
            failures: Vec::new(),
            failed_at: Vec::new(),
            exercised: BTreeMap::new(),
            excused: ExcusedList::default(),
            cause: None,
            broken: false,
        })
    }
}
