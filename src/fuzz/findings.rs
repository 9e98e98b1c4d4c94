//! What a campaign keeps: each finding once, and with it whatever else the same steps show.

use serde_json::Value;

use super::campaign::{Campaign, Event};
use super::confirm::no_finding;
use super::executor::{Execution, is_same_defect};
use super::exhaustion::exhausted_after;
use super::finding::{self, Finding, Fingerprint, Shown, fingerprints, name_of};
use super::program::Program;
use crate::protocol::{Protocol, ReadingName};
use crate::results::event::{Failure, Verdict};
use crate::run::testbed::death_of;

/// A failure that replays have shown each time.
pub(super) struct Confirmed {
    /// The number of the case.
    pub index: u64,
    /// What it shows.
    pub print: Fingerprint,
    /// The run of the smallest program so far that shows it.
    pub ran: Execution,
    /// Cases run to confirm and shrink it.
    pub replays: usize,
}

/// What several cases have brought about, and none of them alone.
pub(super) struct JointFinding {
    /// What it is.
    pub print: Fingerprint,
    /// How bad it is.
    pub verdict: Verdict,
    /// One sentence, which says that no case alone does it.
    pub message: String,
    /// The same where the search for one was cut short.
    pub cut: String,
    /// The cases, with their numbers.
    pub programs: Vec<(u64, Program)>,
}

impl JointFinding {
    /// What is left of it where the search for a case ended before its time; `None`: a case of this oracle was `confirmed`, and
    /// explains it.
    fn cut_short(self, confirmed: Option<&str>) -> Option<Self> {
        let is_open = confirmed != Some(&self.print.oracle);
        is_open.then(|| Self { message: self.cut.clone(), ..self })
    }
}

impl Campaign<'_> {
    /// Keeps what was confirmed, unless it is known.
    pub(super) fn keep(&mut self, confirmed: Confirmed) {
        let Confirmed { index, print, ran, replays } = confirmed;
        let all = fingerprints(&ran.program, &ran.rendered, &ran.single);
        let Some((fingerprint, failure)) = all.into_iter().find(|(one, _)| is_same_defect(one, &print))
        else {
            return;
        };
        if !self.known.insert(fingerprint.clone()) {
            return;
        }
        if let [input] = ran.program.inputs.as_slice() {
            self.known_inputs.insert((input.command.clone(), input.mutation.clone()));
        }
        let worn = exhausted_after(&ran).map(|sent| {
            let how = ran.single.broke().and_then(death_of).unwrap_or_default();
            format!("a harmless case, repeated, kills it after about {sent} messages: {how}")
        });
        let message = worn.or_else(|| failure.as_ref().map(|failure| failure.message.clone()));
        let shown = Shown {
            fingerprint,
            verdict: failure.as_ref().map_or(Verdict::Failed, |failure| failure.verdict),
            message: message.or(ran.single.report.reason.clone()).unwrap_or_default(),
            case: index,
            program: ran.program,
        };
        match self.report.findings.iter().position(|found| found.has_steps_of(&shown.program)) {
            Some(at) => self.join(at, shown, failure),
            None => {
                let name = name_of(&shown.fingerprint);
                let mut report = ran.single.report;
                report.case = format!("fuzz/{name}");
                report.title = format!("{}: {}", shown.fingerprint.oracle, finding::normal(&shown.message));
                report.covers.clone_from(&shown.fingerprint.requirements);
                let steps = finding::steps(&shown.program);
                let (shown, together, at) = (vec![shown], Vec::new(), self.since_start());
                self.add(Finding { shown, together, steps, replays, at, name, report });
            }
        }
    }

    /// Tells what the steps of a finding show besides with it: it is one story.
    fn join(&mut self, at: usize, shown: Shown, failure: Option<Failure>) {
        let found = &mut self.report.findings[at];
        if found.tells(&shown.fingerprint) {
            return;
        }
        found.report.verdict = found.report.verdict.max(shown.verdict);
        // The frames are those of another run.
        if failure.is_none() {
            found.report.reason.get_or_insert_with(|| shown.message.clone());
        }
        found.report.failures.extend(failure.map(|failure| Failure { frames: Vec::new(), ..failure }));
        found.shown.push(shown);
        found.report.covers = found.requirements();
        let scenario = self.written(&self.report.findings[at]);
        (self.sink)(Event::Joined(&self.report.findings[at], &scenario));
    }

    fn add(&mut self, found: Finding) {
        let scenario = self.written(&found);
        (self.sink)(Event::Finding(&found, &scenario));
        self.report.findings.push(found);
    }

    /// At the end of the campaign: keeps what was being looked into, as far as that has come.
    pub(super) fn keep_rest(&mut self) {
        let confirmed = self.confirmed.take();
        let oracle = confirmed.as_ref().map(|confirmed| confirmed.print.oracle.clone());
        let looking = self.looking.take();
        match (confirmed, looking) {
            (Some(confirmed), _) => self.keep(confirmed),
            // Of what is told below there is no more to say.
            (None, Some((_, print))) if self.tells_together(&print) => {}
            (None, Some((index, print))) => {
                let (like, text) = no_finding(index, &print, "the end came before it was confirmed");
                self.note(like, text);
            }
            (None, None) => {}
        }
        if let Some(rest) = self.unexplained.take().and_then(|rest| rest.cut_short(oracle.as_deref())) {
            self.keep_together(rest);
        }
    }

    /// Whether what is wrong for certain, and not looked into to the end, is of the same oracle.
    fn tells_together(&self, print: &Fingerprint) -> bool {
        self.unexplained.as_ref().is_some_and(|together| together.print.oracle == print.oracle)
    }

    /// Keeps what several cases have brought about together.
    pub(super) fn keep_together(&mut self, together: JointFinding) {
        let JointFinding { print, verdict, message, programs, .. } = together;
        if !self.known.insert(print.clone()) {
            return;
        }
        // Without a case it is told all the same.
        let programs = if programs.is_empty() { vec![(0, Program::default())] } else { programs };
        let (first, program) = programs[0].clone();
        let name = name_of(&print);
        let mut report = finding::blank_report(&name, &message);
        report.verdict = verdict;
        report.reason = Some(message.clone());
        let steps = programs.iter().map(|(_, program)| finding::steps(program)).sum();
        let shown = Shown { fingerprint: print, verdict, message, case: first, program };
        let (shown, together, at) = (vec![shown], programs, self.since_start());
        self.add(Finding { shown, together, steps, replays: 0, at, name, report });
    }

    /// The scenario file of a finding.
    fn written(&self, found: &Finding) -> String {
        let protocol = self.executor.ground.protocol();
        let cases = match found.together.as_slice() {
            [] => found.cases(protocol),
            together => {
                let case = |(index, program): &(u64, Program)| {
                    let name = format!("{}-{index}", found.name);
                    program.render(protocol, &name, &format!("Case {index}"), &[]).case
                };
                together.iter().map(case).collect()
            }
        };
        let first = found.first();
        let (seed, case, state) = (self.options.seed, first.case, &first.fingerprint.state);
        let mut comments =
            vec![format!("Found by frameproof fuzz, seed {seed}, case {case}, in state {state}.")];
        let oracle = |shown: &Shown| format!("Oracle {}: {}", shown.fingerprint.oracle, shown.message);
        comments.extend(found.shown.iter().map(oracle));
        comments.push(format!("Run: frameproof run {} --scenario THIS", self.options.reproduce));
        comments.extend(cases.first().into_iter().flat_map(|case| reservations(protocol, case)));
        finding::scenario(&comments, &cases)
    }
}

/// Under which readings a case was judged, where they are not the default ones, and which invariants were not.
fn reservations(protocol: &Protocol, case: &Value) -> Vec<String> {
    let mut said = Vec::new();
    // One reading is taken for a whole run.
    if let Some(reading) = protocol.readings.values().find(|reading| **reading != ReadingName::default()) {
        said.push(format!("Reading: {}.", format!("{reading:?}").to_lowercase()));
    }
    let suspended = case.get("suspend").and_then(Value::as_array).into_iter().flatten();
    let suspended: Vec<&str> = suspended.filter_map(Value::as_str).collect();
    if !suspended.is_empty() {
        said.push(format!("Not judged: {}.", suspended.join(", ")));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_short_says_so_unless_a_case_explains_it() {
        let together = || JointFinding {
            print: Fingerprint::of_death("process `a` exited with status 3"),
            verdict: Verdict::Error,
            message: "no case alone".to_owned(),
            cut: "not looked into to the end".to_owned(),
            programs: Vec::new(),
        };
        for (confirmed, expected) in
            [(None, Some(together().cut)), (Some("memory"), Some(together().cut)), (Some("target"), None)]
        {
            assert_eq!(together().cut_short(confirmed).map(|rest| rest.message), expected, "{confirmed:?}");
        }
    }
}
