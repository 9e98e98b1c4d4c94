//! What becomes of reports on their way out.

use super::causes::Causes;
use super::event::{CaseReport, RunEvent, Verdict};
use super::made_up::CUE;
use super::redact::Secrets;
use super::summary::Tally;

/// Where reports go: grouped, added up and told.
pub(super) struct Ledger<'s> {
    pub secrets: Secrets,
    pub causes: Causes,
    pub tally: Tally,
    pub sink: &'s mut (dyn FnMut(&RunEvent) + Send),
    /// A case has failed that said something which the model was to see.
    pub spoke: bool,
}

impl Ledger<'_> {
    pub fn tell(&mut self, event: &RunEvent) {
        (self.sink)(event);
    }

    pub fn enter(&mut self, report: CaseReport) {
        let mut report = self.secrets.report(report);
        self.tally.add(&mut report);
        self.causes.group(&mut report);
        self.causes.join(&mut report);
        if matches!(report.verdict, Verdict::Failed | Verdict::Warned) {
            self.spoke |= report.wire.iter().any(|line| line.dir == "->" && line.text.contains(CUE.0));
        }
        self.tell(&RunEvent::CaseFinished(Box::new(report)));
    }
}
