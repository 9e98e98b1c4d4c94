//! A judged recording as the events of a run: a case for each kind of violation, and one for each recorded case that has none.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::check::{Exercised, Judged, Violation};
use crate::protocol::Protocol;
use crate::results::event::{CaseReport, Failure, FrameRecord, RunEvent, RunStarted, Verdict};
use crate::results::excused::ExcusedDeviation;
use crate::results::summary::SummaryBuilder;
use crate::run::case::log::wire_line;
use crate::run::suite::run::rules;
use crate::run::suite::started::{reading, requirement_texts};
use crate::run::triage::groups::FailureGroups;
use crate::trace::Event;

/// Frames that are kept of what came before a violation.
const BEFORE: usize = 24;
/// Frames that are kept of what came after it.
const AFTER: usize = 4;
/// Kinds of violation that are told; of those beyond, that there are some.
const KINDS: usize = 500;
/// Violations of a kind that are told one by one.
const EACH: usize = 8;
/// Recorded cases that are listed as passed.
const CASES: usize = 100_000;
/// Cases whose newest frames are kept: as many as are judged side by side.
const OPEN: usize = 64;

/// What a recording is, for reports.
#[derive(Debug, Clone)]
pub struct About {
    /// Its name.
    pub file: String,
    /// The command that judges it again.
    pub reproduce: String,
}

/// Takes in the events of a recording with what was found in them.
pub struct JudgedRecording {
    protocol: Arc<Protocol>,
    about: About,
    /// The newest frames of each recorded case; the one used last stands last.
    recent: VecDeque<(Option<Arc<str>>, VecDeque<FrameRecord>)>,
    kinds: Vec<Kind>,
    /// Violations of kinds beyond those.
    untold: u64,
    /// Recorded cases, and which of them broke something.
    cases: BTreeMap<Arc<str>, bool>,
    events: u64,
    last: Duration,
}

/// Violations of the same requirements, found by the same check, in one recorded case.
struct Kind {
    case: Option<Arc<str>>,
    /// Line of the first in the recording, from 1; none: the end showed it.
    line: Option<u64>,
    ids: Vec<String>,
    check: crate::results::Check,
    failures: Vec<Failure>,
    count: u64,
    wire: Vec<FrameRecord>,
    omitted: usize,
    /// Frames that are still kept.
    after: usize,
}

impl JudgedRecording {
    /// Nothing yet.
    pub fn new(protocol: &Arc<Protocol>, about: About) -> Self {
        Self {
            protocol: Arc::clone(protocol),
            about,
            recent: VecDeque::new(),
            kinds: Vec::new(),
            untold: 0,
            cases: BTreeMap::new(),
            events: 0,
            last: Duration::ZERO,
        }
    }

    /// Takes an event, with what it broke.
    pub fn observe(&mut self, event: &Event, judged: &Judged) {
        self.events += 1;
        self.last = self.last.max(event.at);
        let message = judged.message;
        let kind = message.and_then(|message| self.protocol.messages.get(message));
        let line = FrameRecord {
            kind: kind.map(|message| message.name.clone()),
            ambient: message.is_some_and(|message| self.protocol.is_ambient(message)),
            ..wire_line(self.events, event)
        };
        let waiting = self.kinds.iter_mut().filter(|kind| kind.after > 0 && kind.case == event.case);
        for kind in waiting {
            kind.after -= 1;
            kind.wire.push(line.clone());
        }
        let place = self.recent.iter().position(|(case, _)| *case == event.case);
        let (case, mut frames) = place
            .and_then(|place| self.recent.remove(place))
            .unwrap_or_else(|| (event.case.clone(), VecDeque::new()));
        if frames.len() > BEFORE {
            frames.pop_front();
        }
        frames.push_back(line);
        self.recent.push_back((case, frames));
        if self.recent.len() > OPEN {
            self.recent.pop_front();
        }
        if let Some(case) = event.case.as_ref().filter(|_| self.cases.len() < CASES) {
            self.cases.entry(Arc::clone(case)).or_default();
        }
        for violation in &judged.violations {
            self.violated(violation, event.case.as_ref(), true);
        }
    }

    /// Takes what the end of a recorded case broke.
    pub fn finish(&mut self, case: Option<&Arc<str>>, violations: &[Violation]) {
        violations.iter().for_each(|violation| self.violated(violation, case, false));
    }

    fn violated(&mut self, violation: &Violation, case: Option<&Arc<str>>, is_seen: bool) {
        if let Some(case) = case {
            self.cases.insert(Arc::clone(case), true);
        }
        let same = |kind: &Kind| {
            kind.case.as_ref() == case && kind.ids == violation.requirements && kind.check == violation.check
        };
        let at = is_seen.then_some(self.events);
        let fails = !violation.warns && self.protocol.requirements.fails(&violation.requirements);
        let verdict = if fails { Verdict::Failed } else { Verdict::Warned };
        let place = at.map_or_else(|| " (at the end)".to_owned(), |at| format!(" (frame {at})"));
        let message = violation.description(&self.protocol) + &place;
        let failure = Failure::new(violation.check.clone(), verdict, message)
            .breaking(&violation.requirements)
            .with_values(violation.expected.clone(), violation.actual.clone())
            .shown_by(at);
        let frames = self.recent.iter().find(|(known, _)| known.as_ref() == case);
        let frames = frames.into_iter().flat_map(|(_, frames)| frames).cloned();
        let known = self.kinds.iter().position(same);
        match known {
            Some(known) => {
                let kind = &mut self.kinds[known];
                kind.count += 1 + violation.more;
                if kind.failures.len() < EACH {
                    kind.failures.push(failure);
                    let known = kind.wire.last().map_or(0, |line| line.index);
                    kind.wire.extend(frames.filter(|line| line.index > known));
                    kind.after = AFTER;
                }
            }
            None if self.kinds.len() < KINDS => {
                let wire: Vec<FrameRecord> = frames.collect();
                let first = wire.first().map_or(1, |line| line.index);
                self.kinds.push(Kind {
                    case: case.cloned(),
                    line: at,
                    ids: violation.requirements.clone(),
                    check: violation.check.clone(),
                    failures: vec![failure],
                    count: 1 + violation.more,
                    omitted: first.saturating_sub(1) as usize,
                    after: AFTER,
                    wire,
                });
            }
            None => self.untold += 1,
        }
    }

    /// The events of a run that found this. `started`: when it was judged, RFC 3339. `limits`: what could not be judged.
    #[must_use]
    pub fn events(
        self,
        started: String,
        exercised: Exercised,
        excused: Vec<ExcusedDeviation<String>>,
        limits: &[String],
    ) -> Vec<RunEvent> {
        let passed = self.passed();
        let Self { protocol, about, kinds, untold, events, last, .. } = self;
        let mut reports: Vec<CaseReport> =
            kinds.into_iter().map(|kind| kind.report(&protocol, &about)).collect();
        // What breaks the same in several recorded cases is told once.
        let mut groups = FailureGroups::default();
        reports.iter_mut().for_each(|report| groups.group(report));
        reports.extend(passed);
        let mut summary = SummaryBuilder::new(rules(&protocol), false, None);
        if let Some(first) = reports.first_mut() {
            // Of the recording as a whole.
            first.exercised = exercised.into();
            excused.into_iter().for_each(|one| first.excused.add(one));
        }
        reports.iter_mut().for_each(|report| summary.add(report));
        let mut summary = summary.summary(None, false, last);
        if untold > 0 {
            summary
                .hints
                .push(format!("{untold} more violations, of further requirements or cases, are not listed"));
        }
        summary.hints.extend(limits.iter().cloned());
        let frames = if events == 1 { "frame" } else { "frames" };
        let run = RunStarted {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: protocol.name.clone(),
            title: format!("{} {}, a recording of {events} {frames}", protocol.title, protocol.version),
            target: about.file,
            started,
            seed: 0,
            run_id: None,
            shard: None,
            reading: reading(&protocol),
            cases: reports.len(),
            jobs: 1,
            ends_within: None,
            requirements: requirement_texts(&protocol),
            left_out: 0,
        };
        let mut told = vec![RunEvent::RunStarted(Box::new(run))];
        told.extend(reports.into_iter().map(|report| RunEvent::CaseFinished(Box::new(report))));
        told.push(RunEvent::RunFinished(Box::new(summary)));
        told
    }

    /// What broke nothing: each recorded case, or the recording as a whole.
    fn passed(&self) -> Vec<CaseReport> {
        let passed = |case: String, title: &str| CaseReport {
            case,
            title: title.to_owned(),
            file: self.about.file.clone(),
            line: 1,
            verdict: Verdict::Passed,
            reproduce: self.about.reproduce.clone(),
            ..CaseReport::default()
        };
        if self.kinds.is_empty() && self.cases.is_empty() {
            return vec![passed("recording".to_owned(), "Nothing in the recording breaks a requirement")];
        }
        let clean = self.cases.iter().filter(|(_, broke)| !**broke);
        clean
            .map(|(case, _)| passed(case.to_string(), "Nothing in this recorded case breaks a requirement"))
            .collect()
    }
}

impl Kind {
    fn report(self, protocol: &Protocol, about: &About) -> CaseReport {
        let Self { case, line, ids, check, mut failures, count, wire, omitted, .. } = self;
        let told = failures.len() as u64;
        if count > told
            && let Some(first) = failures.first_mut()
        {
            first.message += &format!(" (and {} more like it, not all of which are listed)", count - 1);
        }
        let first = ids.first().and_then(|id| protocol.requirements.get(id));
        let verdict = failures.iter().map(|failure| failure.verdict).max().unwrap_or_default();
        let name = if ids.is_empty() { check.to_string() } else { ids.join("+") };
        CaseReport {
            case: format!("{}/{name} {check}", case.as_deref().unwrap_or("recording")),
            title: first.map_or_else(String::new, |requirement| requirement.text.clone()),
            file: about.file.clone(),
            line: line.map_or(1, |line| line as usize),
            covers: ids,
            verdict,
            failures,
            wire,
            wire_omitted: omitted,
            reproduce: about.reproduce.clone(),
            ..CaseReport::default()
        }
    }
}
