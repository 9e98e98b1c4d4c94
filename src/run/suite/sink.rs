//! What becomes of reports on their way out.

use std::collections::{HashMap, VecDeque};

use crate::results::event::{CaseReport, RunEvent, Verdict};
use crate::results::kept::weight;
use crate::results::redact::Secrets;
use crate::results::summary::SummaryBuilder;
use crate::run::suite::held::Key;
use crate::run::suite::preambles::Preambles;
use crate::run::triage::groups::FailureGroups;
use crate::run::triage::model_use::CueResults;

/// Reports that wait for an earlier one at most; beyond, it is not waited for.
const WAITING: usize = 4096;
/// What their wire logs and values take at most, in bytes.
const WAITING_BYTES: usize = 16 << 20;

/// Where reports go: grouped, added up and told, in the order in which their cases began, whatever order they end in.
pub(crate) struct ReportSink<'s> {
    pub secrets: Secrets,
    pub causes: FailureGroups,
    pub preambles: Preambles,
    pub summary: SummaryBuilder,
    pub sink: &'s mut (dyn FnMut(&RunEvent) + Send),
    /// What became of cases that said something which the model was to see.
    pub cued: CueResults,
    /// How long silences of the server stood for a barrier, in milliseconds; 0: none did.
    pub silences: u64,
    /// Cases that have begun, with their reports where they stand already.
    waiting: VecDeque<(Key, Option<CaseReport>)>,
    /// What the reports that wait take, in bytes.
    waiting_bytes: usize,
    /// How often cases have begun that have no report yet.
    begun: HashMap<Key, u32>,
}

impl<'s> ReportSink<'s> {
    /// Nothing has begun yet.
    pub fn new(
        secrets: Secrets,
        summary: SummaryBuilder,
        sink: &'s mut (dyn FnMut(&RunEvent) + Send),
    ) -> Self {
        Self {
            secrets,
            causes: FailureGroups::default(),
            preambles: Preambles::default(),
            summary,
            sink,
            cued: CueResults::default(),
            silences: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            begun: HashMap::new(),
        }
    }

    pub fn emit(&mut self, event: &RunEvent) {
        (self.sink)(event);
    }

    /// A case begins, for the first time or again. `in_order`: reports of later ones wait for its own.
    pub fn begin(&mut self, key: &Key, in_order: bool) {
        let attempt = self.begun.entry(key.clone()).or_default();
        *attempt += 1;
        let attempt = *attempt;
        if attempt == 1 && in_order {
            self.waiting.push_back((key.clone(), None));
        }
        self.emit(&RunEvent::CaseStarted { case: key.0.clone(), attempt });
    }

    /// Takes the report of a case that has begun.
    pub fn enter(&mut self, key: &Key, report: CaseReport) {
        self.causes.note(&report);
        self.preambles.note(&report);
        self.begun.remove(key);
        match self.waiting.iter_mut().find(|(known, waits)| known == key && waits.is_none()) {
            Some((_, place)) => {
                self.waiting_bytes += weight(&report);
                *place = Some(report);
            }
            None => self.publish(report),
        }
        let is_full = |sink: &Self| sink.waiting.len() > WAITING || sink.waiting_bytes > WAITING_BYTES;
        while self.waiting.front().is_some_and(|(_, report)| report.is_some() || is_full(self)) {
            if let Some((_, Some(report))) = self.waiting.pop_front() {
                self.waiting_bytes = self.waiting_bytes.saturating_sub(weight(&report));
                self.publish(report);
            }
        }
    }

    /// Tells what waits, for no other report will come.
    pub fn flush(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().filter_map(|(_, report)| report).for_each(|report| self.publish(report));
    }

    /// Groups a report, adds it up and passes it on, at once.
    pub fn publish(&mut self, report: CaseReport) {
        let mut report = self.secrets.case(report);
        self.silences +=
            report.windows.iter().filter(|window| window.silence).map(|window| window.ms).sum::<u64>();
        self.summary.add(&mut report);
        self.causes.group(&mut report);
        match report.verdict {
            Verdict::Failed | Verdict::Warned => self.cued.failed += usize::from(report.cued),
            Verdict::Passed => self.cued.passed += usize::from(report.cued),
            _ => {}
        }
        self.emit(&RunEvent::CaseFinished(Box::new(report)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::event::{FrameRecord, Way};

    fn report(case: &str, bytes: usize) -> CaseReport {
        let line = FrameRecord {
            index: 0,
            ms: 0.0,
            client: "a".to_owned(),
            way: Way::ToClient,
            kind: None,
            text: "x".repeat(bytes),
            ambient: false,
            automatic: false,
            cut: 0,
            states: Vec::new(),
        };
        CaseReport { case: case.to_owned(), wire: vec![line], ..CaseReport::default() }
    }

    /// The cases whose reports were passed on, in that order: all have begun, and these have ended.
    fn published(begun: &[&str], ended: &[(&str, usize)]) -> Vec<String> {
        let mut told = Vec::new();
        let mut tell = |event: &RunEvent| {
            if let RunEvent::CaseFinished(report) = event {
                told.push(report.case.clone());
            }
        };
        let summary = SummaryBuilder::new(Vec::new(), false, None);
        let mut sink = ReportSink::new(Secrets::default(), summary, &mut tell);
        begun.iter().for_each(|case| sink.begin(&((*case).to_owned(), 0), true));
        ended.iter().for_each(|(case, bytes)| sink.enter(&((*case).to_owned(), 0), report(case, *bytes)));
        told
    }

    #[test]
    fn reports_come_in_the_order_in_which_cases_began() {
        assert_eq!(published(&["a", "b", "c"], &[("c", 1), ("b", 1)]), Vec::<String>::new());
        assert_eq!(published(&["a", "b", "c"], &[("c", 1), ("a", 1), ("b", 1)]), ["a", "b", "c"]);
        let half = WAITING_BYTES / 2;
        // The first one is not waited for any longer.
        assert_eq!(published(&["a", "b", "c"], &[("b", half), ("c", half), ("a", 1)]), ["b", "c", "a"]);
    }
}
