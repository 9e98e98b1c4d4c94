//! Servers that greet and then say nothing: the rest of the suite is run with short deadlines, and nothing that patience could change is
//! held against them before patience was tried again ([`Reason::Short`](super::held::Reason)).

use std::sync::Arc;

use crate::run::Timing;
use crate::run::context::RunContext;
use crate::run::options::{CaseOptions, GoesOn};
use crate::run::triage::groups::FailureGroups;
use crate::scenario::LoadedCase;

/// What part of its deadline a step is given in a short.
const PART: u32 = 10;

/// A case, and the round of the suite that it belongs to.
pub(crate) type QueuedCase = (Arc<LoadedCase>, u32);

/// Whether cases have short deadlines.
#[derive(Default)]
pub(crate) struct ShortDeadlines {
    on: bool,
    /// All cases were begun, or the server has answered: they have their whole deadlines from now on.
    over: bool,
    /// Reports that stood at once.
    judged: usize,
}

impl ShortDeadlines {
    /// Whether cases that begin now are run in a short.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Begins to use them, if there is reason.
    pub fn begin(&mut self, causes: &FailureGroups, run: &RunContext) {
        let may = !run.is_reference && !run.options.timing.no_deadline && !self.over;
        self.on |= may && causes.are_idle(&run.activity);
    }

    /// Ends it for good.
    pub fn end(&mut self) {
        (self.on, self.over) = (false, true);
    }

    /// A report stands all the same.
    pub fn note(&mut self) {
        self.judged += 1;
    }

    /// The options of a case that is run in a short.
    pub fn options(options: CaseOptions) -> CaseOptions {
        CaseOptions { longest_step: Some(options.step_deadline / PART), goes_on: GoesOn::Never, ..options }
    }

    /// What is to be said of it: of how many reports stand for want of a better one, and how many kinds of silence were tried again.
    pub fn hint(&self, timing: &Timing, held: Option<(usize, usize)>) -> Option<String> {
        let (stands, tried) = held?;
        Some(format!(
            "the server answered nothing after the opening: {} of the cases ran with a deadline of {:.1?} for each step, and one for each \
             kind of silence ({tried}) again with {:.1?}. For a slower server, use --timeout-scale",
            self.judged + stands,
            timing.scaled(timing.step_deadline / PART),
            timing.scaled(timing.step_deadline),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{LoadOptions, Protocol};
    use crate::run::{RunOptions, Target};

    #[test]
    fn a_step_has_a_part_of_its_deadline() {
        let protocol =
            Protocol::embedded(Protocol::embedded_names()[0], &LoadOptions::default()).expect("it loads");
        let target = Target::Reference(crate::reference::Variant::default());
        let run = RunContext::new(&protocol, &target, RunOptions::default()).expect("its invariants compile");
        let timing = Timing::default();
        let deadline = ShortDeadlines::options(run.case_options(0)).deadline(&timing, None);
        assert_eq!(deadline, timing.step_deadline / PART);
        let mut short = ShortDeadlines::default();
        short.note();
        assert!(short.hint(&timing, None).is_none());
        let hint = short.hint(&timing, Some((1, 3))).expect("one");
        assert!(
            hint.contains("2 of the cases ran with a deadline of 500.0ms") && hint.contains("(3)"),
            "{hint}"
        );
    }
}
