//! The findings of a campaign: each once, and with it whatever else its steps break. Nothing else changes them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::budget::Budget;
use super::confirm::Confirmed;
use super::crashes::CrashKind;
use super::events::{CampaignEvent, EventSink};
use super::executor::Execution;
use super::exhaustion::exhausted_after;
use super::finding::{Evidence, Finding, blank_report, name_of, steps};
use super::fingerprint::Fingerprint;
use super::input::Input;
use super::joint::JointFinding;
use super::oracle::Oracle;
use super::program::Program;
use crate::protocol::{Protocol, ReadingName};
use crate::results::death::Death;
use crate::results::event::Failure;
use crate::results::kept::{Details, weight};
use crate::scenario::write;
use crate::synthesis::text::without_values;

/// What campaign the findings are of, for their scenario files.
pub(super) struct Origin {
    /// The protocol.
    pub protocol: Arc<Protocol>,
    /// The campaign's seed.
    pub seed: u64,
    /// How the target is given on the command line, and the folder of the findings.
    pub reproduce: String,
}

/// The findings of a campaign.
pub(super) struct Findings {
    origin: Origin,
    budget: Budget,
    most: usize,
    all: Vec<Finding>,
    /// What their reports show.
    details: Details,
    /// Everything that a finding has shown, joined or not.
    known: BTreeSet<Fingerprint>,
    /// (command, mutation) of findings of one input: they would hide others.
    known_inputs: BTreeSet<(String, String)>,
}

impl Findings {
    /// No findings yet, and no more than `most`.
    pub fn new(origin: Origin, budget: Budget, most: usize) -> Self {
        let (all, details) = (Vec::new(), Details::default());
        Self { origin, budget, most, all, details, known: BTreeSet::new(), known_inputs: BTreeSet::new() }
    }

    /// Findings so far.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are as many as there may be.
    pub fn is_full(&self) -> bool {
        self.all.len() >= self.most
    }

    /// How many different failures are known.
    pub fn known(&self) -> usize {
        self.known.len()
    }

    /// Whether a finding has shown this.
    pub fn is_known(&self, print: &Fingerprint) -> bool {
        self.known.contains(print)
    }

    /// Whether an input alone is a finding.
    pub fn is_known_input(&self, input: &Input) -> bool {
        self.known_inputs.contains(&(input.command.clone(), input.mutation.clone()))
    }

    /// Whether a finding reports a crash of this kind.
    pub fn reports_crash(&self, how: &Death) -> bool {
        let crash = Fingerprint::of_crash(how);
        self.known.iter().any(|print| print.oracle == Oracle::Target && print.may_be_crash(&crash))
    }

    /// Whether a finding may be of the same crash: all that is known of this one is how the process ended.
    pub fn may_report_crash(&self, print: &Fingerprint) -> bool {
        let same = |known: &Fingerprint| known.oracle == print.oracle && known.may_be_crash(print);
        print.oracle == Oracle::Target && self.known.iter().any(same)
    }

    /// Whether a finding shows this, in whichever state: the last words of a crash identify it.
    pub fn shows(&self, print: &Fingerprint) -> bool {
        let same = |known: &Fingerprint| known.oracle == print.oracle && known.identity() == print.identity();
        let identified = print.crash.as_ref().is_some_and(CrashKind::has_words);
        self.is_known(print) || identified && self.known.iter().any(same)
    }

    /// Whether a case has an input like one that shows this alone, according to a finding: in no state, or in the same. Once it is
    /// known, no such case is made.
    pub fn explain(&self, execution: &Execution, print: &Fingerprint) -> bool {
        let of = |evidence: &Evidence| {
            let Program { inputs, state, .. } = &evidence.program;
            let [alone] = inputs.as_slice() else { return false };
            evidence.fingerprint.is_same_defect(print)
                && (state.is_none() || *state == execution.program.state)
                && execution.program.inputs.iter().any(|input| input.is_like(alone))
        };
        let alone = self.all.iter().filter(|found| found.together.is_empty());
        alone.flat_map(|found| &found.evidence).any(of)
    }

    /// Adds what was confirmed, unless it is known.
    pub fn add(&mut self, confirmed: Confirmed, events: &mut EventSink<'_>) {
        let Confirmed { index, print, execution, replays } = confirmed;
        let all = execution.failures();
        let Some((fingerprint, failure)) = all.into_iter().find(|(one, _)| one.is_same_defect(&print)) else {
            return;
        };
        if !self.known.insert(fingerprint.clone()) {
            return;
        }
        if let [input] = execution.program.inputs.as_slice() {
            self.known_inputs.insert((input.command.clone(), input.mutation.clone()));
        }
        let evidence = Evidence::of(&execution, index, fingerprint, failure.as_ref(), exhaustion(&execution));
        match self.all.iter().position(|found| found.has_steps_of(&evidence.program)) {
            Some(at) => self.join(at, evidence, failure, events),
            None => {
                let name = name_of(&evidence.fingerprint);
                let mut report = execution.outcome.report;
                report.case = format!("fuzz/{name}");
                report.title =
                    format!("{}: {}", evidence.fingerprint.oracle, without_values(&evidence.message));
                report.covers.clone_from(&evidence.fingerprint.requirements);
                let (steps, at) = (steps(&evidence.program), self.budget.elapsed());
                let (evidence, together) = (vec![evidence], Vec::new());
                self.publish(Finding { evidence, together, steps, replays, at, name, report }, events);
            }
        }
    }

    /// Reports what the steps of a finding break besides with it.
    fn join(&mut self, at: usize, evidence: Evidence, failure: Option<Failure>, events: &mut EventSink<'_>) {
        let found = &mut self.all[at];
        if found.covers(&evidence.fingerprint) {
            return;
        }
        found.report.verdict = found.report.verdict.max(evidence.verdict);
        // The frames are those of another run.
        if failure.is_none() {
            found.report.reason.get_or_insert_with(|| evidence.message.clone());
        }
        self.details.forget(weight(&found.report));
        found.report.failures.extend(failure.map(|failure| Failure { frames: Vec::new(), ..failure }));
        found.evidence.push(evidence);
        found.report.covers = found.requirements();
        let scenario = self.origin.scenario(&self.all[at]);
        events.send(CampaignEvent::Joined(&self.all[at], &scenario));
        self.details.bound(&mut self.all[at].report);
    }

    /// Adds what several cases have caused together.
    pub fn add_joint(&mut self, joint: JointFinding, events: &mut EventSink<'_>) {
        let JointFinding { print, verdict, message, programs, .. } = joint;
        if !self.known.insert(print.clone()) {
            return;
        }
        // Without a case it is reported all the same.
        let programs = if programs.is_empty() { vec![(0, Program::default())] } else { programs };
        let (case, program) = programs[0].clone();
        let name = name_of(&print);
        let mut report = blank_report(&name, &message);
        report.verdict = verdict;
        report.reason = Some(message.clone());
        let steps = programs.iter().map(|(_, program)| steps(program)).sum();
        let evidence = vec![Evidence { fingerprint: print, verdict, message, case, program }];
        let at = self.budget.elapsed();
        self.publish(Finding { evidence, together: programs, steps, replays: 0, at, name, report }, events);
    }

    fn publish(&mut self, mut found: Finding, events: &mut EventSink<'_>) {
        let scenario = self.origin.scenario(&found);
        events.send(CampaignEvent::Finding(&found, &scenario));
        self.details.bound(&mut found.report);
        self.all.push(found);
    }

    /// The findings, at the end of the campaign.
    pub fn into_vec(self) -> Vec<Finding> {
        self.all
    }
}

/// That a harmless case, repeated, crashes the server, if it does.
fn exhaustion(execution: &Execution) -> Option<String> {
    exhausted_after(execution).map(|sent| {
        let how = execution.outcome.death().map(ToString::to_string).unwrap_or_default();
        format!("a harmless case, repeated, kills it after about {sent} messages: {how}")
    })
}

impl Origin {
    /// The scenario file of a finding.
    fn scenario(&self, found: &Finding) -> String {
        let cases = found.cases(&self.protocol);
        let first = found.first();
        let (seed, case, state) = (self.seed, first.case, &first.fingerprint.state);
        let mut comments =
            vec![format!("Found by frameproof fuzz, seed {seed}, case {case}, in state {state}.")];
        let oracle =
            |evidence: &Evidence| format!("Oracle {}: {}", evidence.fingerprint.oracle, evidence.message);
        comments.extend(found.evidence.iter().map(oracle));
        comments.push(format!("Run: frameproof run {}{}", self.reproduce, found.file_name()));
        comments.extend(cases.first().into_iter().flat_map(|case| reservations(&self.protocol, case)));
        write::file(&comments, "fuzz", &cases)
    }
}

/// Under which readings a case was judged, where they are not the default ones, and which invariants were not.
fn reservations(protocol: &Protocol, case: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    // One reading is taken for a whole run.
    if let Some(reading) = protocol.readings.values().find(|reading| **reading != ReadingName::default()) {
        lines.push(format!("Reading: {}.", format!("{reading:?}").to_lowercase()));
    }
    let suspended = case.get("suspend").and_then(Value::as_array).into_iter().flatten();
    let suspended: Vec<&str> = suspended.filter_map(Value::as_str).collect();
    if !suspended.is_empty() {
        lines.push(format!("Not judged: {}.", suspended.join(", ")));
    }
    lines
}
