//! What becomes of reports on their way out.

use crate::results::event::{CaseReport, RunEvent, Verdict};
use crate::results::redact::Secrets;
use crate::results::summary::SummaryBuilder;
use crate::run::triage::groups::FailureGroups;
use crate::run::triage::model_use::CueResults;

/// Where reports go: grouped, added up and told.
pub(crate) struct ReportSink<'s> {
    pub secrets: Secrets,
    pub causes: FailureGroups,
    pub summary: SummaryBuilder,
    pub sink: &'s mut (dyn FnMut(&RunEvent) + Send),
    /// What became of cases that said something which the model was to see.
    pub cued: CueResults,
    /// A silence of the server stood for a barrier.
    pub silences: bool,
}

impl ReportSink<'_> {
    pub fn tell(&mut self, event: &RunEvent) {
        (self.sink)(event);
    }

    pub fn enter(&mut self, report: CaseReport) {
        let mut report = self.secrets.case(report);
        self.silences |= report.windows.iter().any(|window| window.silence);
        self.summary.add(&mut report);
        self.causes.group(&mut report);
        self.causes.join(&mut report);
        match report.verdict {
            Verdict::Failed | Verdict::Warned => self.cued.failed += usize::from(report.cued),
            Verdict::Passed => self.cued.passed += usize::from(report.cued),
            _ => {}
        }
        self.tell(&RunEvent::CaseFinished(Box::new(report)));
    }
}
