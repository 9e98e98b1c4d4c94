//! Servers that greet and then say nothing: the rest of the suite is run in a hurry, and nothing that patience could change is
//! held against them before patience was tried again.

use std::sync::Arc;

use super::Options;
use super::causes::Causes;
use super::event::{CaseReport, Verdict};
use super::heard::{Extent, Heard};
use crate::scenario::LoadedCase;

/// What part of its deadline a step is given in a hurry.
const PART: u32 = 10;

/// A case, and the round of the suite that it belongs to.
pub(super) type Turn = (Arc<LoadedCase>, u32);

/// Cases that were run in a hurry.
#[derive(Default)]
pub(super) struct Hurry {
    on: bool,
    /// Those that have failed, with their reports.
    held: Vec<(Turn, CaseReport)>,
    /// One of them was run again with patience.
    tried: bool,
    hurried: usize,
    /// What was found in a hurry stands.
    stands: bool,
}

impl Hurry {
    /// Whether cases that begin now are run in a hurry.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Begins to hurry, if there is reason.
    pub fn begin(&mut self, causes: &Causes, options: &Options) {
        let may = !options.reference && !options.no_deadline && !self.tried;
        self.on |= may && causes.are_idle(&options.heard);
    }

    /// What has become of a case that was run in a hurry: its report, if it stands already. The others are held back.
    pub fn keep(&mut self, turn: Turn, report: CaseReport) -> Option<CaseReport> {
        self.hurried += 1;
        if matches!(report.verdict, Verdict::Passed | Verdict::NotApplicable) {
            return Some(report);
        }
        self.held.push((turn, report));
        None
    }

    /// The cases to be run again, for the server has answered somebody.
    pub fn released(&mut self, heard: &Heard) -> Vec<Turn> {
        if heard.extent() <= Extent::Openings {
            return Vec::new();
        }
        self.on = false;
        self.hurried -= self.held.len();
        self.held.drain(..).map(|(turn, _)| turn).collect()
    }

    /// When nothing else is left: a case to be run again with patience, once.
    pub fn last(&mut self) -> Option<Turn> {
        self.on = false;
        if self.tried || self.held.is_empty() {
            return None;
        }
        self.tried = true;
        self.hurried -= 1;
        Some(self.held.remove(0).0)
    }

    /// The reports that stand now.
    pub fn reports(&mut self) -> Vec<CaseReport> {
        self.stands |= !self.held.is_empty();
        self.held.drain(..).map(|(_, report)| report).collect()
    }

    /// The options of a case that is run in a hurry.
    pub fn options(options: &Options) -> Options {
        Options { patience: Some(options.step_deadline / PART), ..options.clone() }
    }

    /// What is to be said of it.
    pub fn hint(&self, options: &Options) -> Option<String> {
        (self.stands && self.tried).then(|| {
            format!(
                "nothing that was asked behind an opening was ever answered: {} of the cases were given {:.1?} for each step, one of them once \
                 more {:.1?}. A server that needs longer is given it by --timeout-scale",
                self.hurried,
                options.scaled(options.step_deadline / PART),
                options.scaled(options.step_deadline),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{LoadOptions, Protocol};

    #[test]
    fn nothing_is_held_against_a_server_that_answers_later() {
        let protocol =
            Protocol::embedded(Protocol::embedded_names()[0], &LoadOptions::default()).expect("it loads");
        let cases = crate::scenario::embedded(&protocol).expect("they load");
        let turn = |at: usize| (Arc::new(cases[at].clone()), 0);
        let report = |verdict| CaseReport { verdict, ..CaseReport::default() };
        let heard = Heard::default();
        heard.note(Extent::Openings);
        let mut hurry = Hurry { on: true, ..Hurry::default() };
        assert!(hurry.keep(turn(0), report(Verdict::Passed)).is_some());
        for at in 1..4 {
            assert!(hurry.keep(turn(at), report(Verdict::Failed)).is_none());
        }
        assert!(hurry.released(&heard).is_empty());
        let last = hurry.last().expect("patience is tried again");
        assert!(last.0.id == cases[1].id && !hurry.is_on() && hurry.last().is_none());
        heard.note(Extent::Answers);
        assert_eq!(hurry.released(&heard).len(), 2);
        assert!(hurry.reports().is_empty());
        let options = Options::default();
        assert!(hurry.hint(&options).is_none());
        hurry.keep(turn(5), report(Verdict::Failed));
        assert_eq!(hurry.reports().len(), 1);
        assert!(hurry.hint(&options).expect("one").contains("2 of the cases were given 500.0ms"));
        assert_eq!(Hurry::options(&options).deadline(options.step_deadline), options.step_deadline / PART);
    }
}
