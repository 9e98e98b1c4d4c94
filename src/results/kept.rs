//! What reports need of the events of runs, within bounds: a case that is run again and again is kept once for each way in which it ends.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use serde_json::Value;

use crate::frame::cost;
use crate::results::event::{CaseReport, Failure, FrameRecord, RunEvent};
use crate::text::{beginning, normalize};

/// Ways in which one case ends that are kept apart. Further ones count as one of the same verdict.
const WAYS: usize = 16;
/// Wire logs, output and values that are kept whole, of all cases together, in bytes.
const DETAILS: usize = 16 << 20;
/// Of what comes behind that, each case keeps so many of its last lines.
const LAST: usize = 12;
/// Behind so many times as much, it keeps no lines.
const TIMES: usize = 2;
/// How much of a message tells two ways apart, in bytes.
const SIGNIFICANT: usize = 2048;

/// The events of runs, as far as reports need them.
#[derive(Debug, Default)]
pub struct KeptEvents {
    events: Vec<RunEvent>,
    ways: Ways,
    /// Ids that many cases name.
    shared: HashSet<Arc<str>>,
    details: Details,
}

/// What was kept of the run that is on, by digests: which events another one stands for.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    /// Where a way of a case is kept, and where a verdict on it.
    places: HashMap<u64, usize>,
    /// How many ways are kept of a case.
    counts: HashMap<u64, usize>,
    /// The cases and their attempts that have started.
    started: HashSet<u64>,
    digest: RandomState,
}

/// Digests of a case, of the way in which it ended, and of the verdict on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    case: u64,
    way: u64,
    verdict: u64,
}

/// What one report tells of a way in which a case ends: whether it has the evidence itself, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(bool, usize);

impl Rank {
    pub fn of(report: &CaseReport) -> Self {
        Self(report.same_as.is_none(), report.failures.len())
    }
}

/// What the wire logs, the output and the values in reports take, which a server makes as long as it likes.
#[derive(Debug, Default)]
pub struct Details(usize);

impl Ways {
    /// Another run begins.
    pub fn clear(&mut self) {
        self.places.clear();
        self.counts.clear();
        self.started.clear();
    }

    /// Whether this start of a case is to be kept: of a case that is run again and again, the first is enough.
    pub fn starts(&mut self, case: &str, attempt: u32) -> bool {
        self.started.insert(self.digest.hash_one((case, attempt)))
    }

    /// How a case ended, as this report tells it.
    pub fn ending(&self, report: &CaseReport) -> Ending {
        let case = self.digest.hash_one(&report.case);
        Ending {
            case,
            way: self.digest.hash_one((case, report.verdict, self.failure_digests(report))),
            verdict: self.digest.hash_one((case, report.verdict)),
        }
    }

    /// Where a report is kept that may stand for one of this ending.
    pub fn alike(&self, ending: Ending) -> Option<usize> {
        let ways = self.counts.get(&ending.case).copied().unwrap_or(0);
        let alike = self.places.get(&ending.way);
        alike.or_else(|| self.places.get(&ending.verdict).filter(|_| ways >= WAYS)).copied()
    }

    /// A report of this ending is kept at this place.
    pub fn enter(&mut self, ending: Ending, place: usize) {
        self.places.insert(ending.way, place);
        self.places.entry(ending.verdict).or_insert(place);
        *self.counts.entry(ending.case).or_default() += 1;
    }

    /// Digests of what is wrong with a case, without what differs each time.
    fn failure_digests(&self, report: &CaseReport) -> BTreeSet<u64> {
        let plain = |text: &str| normalize(beginning(text, SIGNIFICANT));
        let failures = report.failures.iter().chain(report.earlier.iter().flatten()).map(|failure| {
            let Failure { check, requirements, verdict, .. } = failure;
            self.digest.hash_one((check, requirements, verdict, plain(failure.core())))
        });
        let reason = report.reason.as_deref().map(|reason| self.digest.hash_one(plain(reason)));
        failures.chain(reason).collect()
    }
}

impl KeptEvents {
    /// Takes the next event.
    pub fn push(&mut self, event: RunEvent) {
        match event {
            RunEvent::CaseStarted { ref case, attempt } => {
                if !self.ways.starts(case, attempt) {
                    return;
                }
            }
            RunEvent::CaseFinished(report) => return self.add(report),
            RunEvent::RunStarted(_) => self.ways.clear(),
            RunEvent::RunFinished(_) => {}
        }
        self.events.push(event);
    }

    /// All that is kept.
    pub fn into_events(self) -> Vec<RunEvent> {
        self.events
    }

    /// All that is kept.
    pub fn events(&self) -> &[RunEvent] {
        &self.events
    }

    fn add(&mut self, mut report: Box<CaseReport>) {
        let ending = self.ways.ending(&report);
        let alike = self.ways.alike(ending);
        if let Some(RunEvent::CaseFinished(known)) = alike.and_then(|place| self.events.get_mut(place)) {
            let repeats = known.repeats.saturating_add(report.repeats).saturating_add(1);
            if Rank::of(&report) <= Rank::of(known) {
                known.repeats = repeats;
                return;
            }
            self.details.forget(weight(known));
            report.repeats = repeats;
            self.details.bound(&mut report);
            *known = report;
            return;
        }
        let shared = &mut self.shared;
        report.exercised.share(|id| match shared.get(id) {
            Some(known) => *id = Arc::clone(known),
            None => drop(shared.insert(Arc::clone(id))),
        });
        self.details.bound(&mut report);
        self.ways.enter(ending, self.events.len());
        self.events.push(RunEvent::CaseFinished(report));
    }
}

impl Extend<RunEvent> for KeptEvents {
    fn extend<I: IntoIterator<Item = RunEvent>>(&mut self, events: I) {
        events.into_iter().for_each(|event| self.push(event));
    }
}

/// How many lines of the wire log and of the output a report keeps. None: all, and its values.
pub(crate) type Cut = Option<usize>;

impl Details {
    /// Adds those of a report, which are cut if they are too many: how they are cut, and what they weigh then.
    pub(crate) fn bound(&mut self, report: &mut CaseReport) -> (Cut, usize) {
        let whole = weight(report);
        let cut = self.cut(whole);
        trim(report, cut);
        let left = cut.map_or(whole, |_| weight(report));
        self.0 += left;
        (cut, left)
    }

    fn cut(&self, own: usize) -> Cut {
        let too_many = own > 0 && self.0 + own > DETAILS;
        too_many.then_some(if self.0 + own > DETAILS * TIMES { 0 } else { LAST })
    }

    /// Takes away those of a report that is no longer kept, by what they weigh.
    pub(crate) fn forget(&mut self, weight: usize) {
        self.0 = self.0.saturating_sub(weight);
    }
}

/// Leaves the oldest lines of the wire log out, and what else must be, until what a report shows takes no more than so many bytes.
pub(crate) fn shorten(report: &mut CaseReport, most: usize) {
    let mut over = weight(report).saturating_sub(most);
    if over == 0 {
        return;
    }
    let goes = |line: &&FrameRecord| {
        let goes = over > 0;
        over = over.saturating_sub(line_weight(line));
        goes
    };
    let lines = report.wire.iter().take_while(goes).count();
    let left = report.wire.len() - lines;
    trim_wire(report, left);
    if weight(report) > most {
        trim(report, Some(LAST));
    }
}

/// Leaves lines of the wire log out but for the last ones.
fn trim_wire(report: &mut CaseReport, kept: usize) {
    let cut = report.wire.len().saturating_sub(kept);
    report.wire.drain(..cut);
    report.wire.shrink_to_fit();
    report.wire_omitted += cut;
}

/// Cuts what a report shows.
pub(crate) fn trim(report: &mut CaseReport, cut: Cut) {
    let Some(kept) = cut else { return };
    trim_wire(report, kept);
    let cut = report.log.len().saturating_sub(kept);
    report.log.drain(..cut);
    report.log.shrink_to_fit();
    report.log_omitted += cut;
    report.model = Vec::new();
    for failure in report.failures.iter_mut().chain(report.earlier.iter_mut().flatten()) {
        (failure.expected, failure.actual) = (None, None);
    }
}

/// What the details of a report take in memory, in bytes; about.
pub(crate) fn weight(report: &CaseReport) -> usize {
    let wire = report.wire.iter().map(line_weight);
    let log = report.log.iter().map(|line| size_of_val(line) + line.text.len());
    let model = report.model.iter().map(|call| size_of_val(call) + call.played.len() + call.request.len());
    let failures = report.failures.iter().chain(report.earlier.iter().flatten());
    let values = failures.flat_map(|failure| failure.expected.iter().chain(&failure.actual)).map(value);
    wire.chain(log).chain(model).chain(values).sum()
}

fn line_weight(line: &FrameRecord) -> usize {
    size_of_val(line) + line.text.len() + line.client.len()
}

fn value(value: &Value) -> usize {
    size_of::<Value>() + cost(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Check;
    use crate::results::event::{Verdict, Way};

    fn report(case: &str, verdict: Verdict, messages: &[&str]) -> CaseReport {
        let failure = |text: &&str| Failure::new(Check::Step, verdict, (*text).to_owned());
        CaseReport {
            case: case.to_owned(),
            verdict,
            failures: messages.iter().map(failure).collect(),
            ..CaseReport::default()
        }
    }

    fn finished(report: CaseReport) -> RunEvent {
        RunEvent::CaseFinished(Box::new(report))
    }

    fn cases(kept: &KeptEvents) -> Vec<&CaseReport> {
        kept.events()
            .iter()
            .filter_map(|event| match event {
                RunEvent::CaseFinished(report) => Some(&**report),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_case_is_kept_once_for_each_way_in_which_it_ends() {
        let mut kept = KeptEvents::default();
        for round in 0..1000 {
            kept.push(RunEvent::CaseStarted { case: "a/b".to_owned(), attempt: 1 });
            kept.push(finished(report("a/b", Verdict::Passed, &[])));
            let text = format!("id {round} did not come");
            kept.push(finished(report("a/c", Verdict::Failed, &[&text])));
            if round % 100 == 0 {
                kept.push(finished(report("a/c", Verdict::Failed, &[&text, "and this"])));
            }
        }
        let told: Vec<_> = cases(&kept)
            .into_iter()
            .map(|case| (case.case.as_str(), case.failures.len(), case.repeats))
            .collect();
        assert_eq!(told, [("a/b", 0, 999), ("a/c", 1, 999), ("a/c", 2, 9)]);
    }

    /// Whatever a server says anew each time, a case takes no more room; and no verdict is lost.
    #[test]
    fn ways_without_end_are_counted_together() {
        let mut kept = KeptEvents::default();
        let words = |mut number: u32| {
            let mut text = String::new();
            while number > 0 {
                text.push(char::from(b'a' + (number % 26) as u8));
                number /= 26;
            }
            text
        };
        for round in 1..=500 {
            kept.push(finished(report("a/b", Verdict::Warned, &[&words(round)])));
        }
        kept.push(finished(report("a/b", Verdict::Failed, &["at last"])));
        let cases = cases(&kept);
        assert_eq!(cases.len(), WAYS + 1);
        assert_eq!(cases.iter().map(|case| case.repeats + 1).sum::<u64>(), 501);
        assert_eq!(cases[WAYS].verdict, Verdict::Failed);
    }

    #[test]
    fn the_one_with_the_evidence_is_kept() {
        let mut kept = KeptEvents::default();
        let pointing =
            CaseReport { same_as: Some("a/a".to_owned()), ..report("a/b", Verdict::Failed, &["x"]) };
        kept.push(finished(pointing.clone()));
        kept.push(finished(report("a/b", Verdict::Failed, &["x"])));
        kept.push(finished(pointing));
        let cases = cases(&kept);
        assert_eq!((cases.len(), cases[0].repeats, cases[0].same_as.as_deref()), (1, 2, None));
    }

    fn line(index: u64) -> FrameRecord {
        FrameRecord {
            index,
            ms: 1.0,
            client: "a".to_owned(),
            way: Way::ToClient,
            kind: None,
            text: "x".repeat(2048),
            ambient: false,
            automatic: false,
            cut: 0,
            states: Vec::new(),
        }
    }

    #[test]
    fn a_report_is_shortened_by_its_oldest_lines() {
        let whole = CaseReport {
            wire: (0..1000).map(line).collect(),
            wire_omitted: 5,
            ..report("a/b", Verdict::Failed, &["x"])
        };
        let mut shortened = whole.clone();
        shorten(&mut shortened, weight(&whole));
        assert_eq!(shortened.wire.len(), 1000, "it has room");
        shorten(&mut shortened, 100 << 10);
        let left = weight(&shortened);
        assert!(((98 << 10)..=(100 << 10)).contains(&left), "{left}");
        let (first, count) = (shortened.wire[0].index, shortened.wire.len() as u64);
        assert_eq!((first, shortened.wire_omitted as u64), (1000 - count, 1005 - count), "the last lines");
        let mut values = whole;
        values.failures[0].actual = Some(Value::String("v".repeat(1 << 20)));
        shorten(&mut values, 100 << 10);
        assert!(weight(&values) <= 100 << 10 && values.failures[0].actual.is_none(), "nor are its values");
    }

    #[test]
    fn what_cases_show_is_bounded_in_all() {
        let mut kept = KeptEvents::default();
        for case in 0..200 {
            let wire = (0..400).map(line).collect();
            kept.push(finished(CaseReport { wire, ..report(&format!("a/{case}"), Verdict::Failed, &["x"]) }));
        }
        let all: usize = cases(&kept).into_iter().map(weight).sum();
        assert!(all <= DETAILS * TIMES, "{all}");
        let lines: Vec<usize> = cases(&kept).into_iter().map(|case| case.wire.len()).collect();
        assert_eq!((lines[0], lines[100], cases(&kept)[100].wire_omitted), (400, LAST, 400 - LAST));
    }
}
