//! What a campaign makes of failures: confirmed, shrunk and kept; deaths and growing memory of a launched target.

use std::time::Duration;

use serde_json::Value;

use super::bench::{Ran, is_same_defect};
use super::campaign::{Campaign, Ended, Event, Growth};
use super::finding::{self, Finding, Fingerprint, fingerprints};
use super::program::Program;
use super::shrink::shrink;
use crate::protocol::{Protocol, ReadingName};
use crate::run::event::Verdict;

/// How often what looks like the same defect is looked into: shrinking shows whether it is.
const LOOKS: usize = 6;
/// Replays that must all show a finding.
const CONFIRM: usize = 3;
/// How often a target that refuses is asked again, and how long is waited before each time.
const RETRIES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];
/// How often a case is repeated that may make the target's memory grow.
const REPEAT: u32 = 24;
/// Looks at the memory, the heaviest of which are kept: the cases before each.
const HEAVIEST: usize = 4;
/// Replays side by side.
const JOBS: usize = 4;

impl Campaign<'_> {
    pub(super) fn is_worth_a_look(&self, print: &Fingerprint) -> bool {
        let looks = self.looks.get(&subject(print)).copied().unwrap_or(0);
        !self.known.contains(print) && looks < LOOKS
    }

    /// Confirms, shrinks and keeps a finding, unless it is known. `false`: replays did not show it.
    pub(super) async fn look_into(&mut self, index: u64, ran: Ran, print: &Fingerprint) -> bool {
        let (seed, patient) = (self.seed_of(index), self.options.deadline * 3);
        // Who shares a server with a case that kills it dies with it.
        if print.oracle == "target"
            && !self
                .bench
                .replay(ran.program.clone(), seed, patient)
                .await
                .is_some_and(|ran| ran.shows(print))
        {
            return false;
        }
        *self.looks.entry(subject(print)).or_default() += 1;
        let again = vec![ran.program.clone(); CONFIRM];
        let again = self.bench.replay_all(again, seed, patient, CONFIRM).await;
        let shown = again.iter().flatten().filter(|ran| ran.shows(print)).count();
        if shown < CONFIRM {
            self.report.unconfirmed += 1;
            let message = format!(
                "case {index} failed, and {shown} of {CONFIRM} replays did: no finding. {}: {}",
                print.oracle,
                print.what()
            );
            (self.sink)(Event::Note(message));
            return false;
        }
        let shrunk = shrink(&self.bench, ran, print, seed, self.options.deadline).await;
        let (ran, replays) = (shrunk.ran, shrunk.replays + CONFIRM);
        let all = fingerprints(&ran.program, &ran.rendered, &ran.single);
        let Some((print, failure)) = all.into_iter().find(|(one, _)| is_same_defect(one, print)) else {
            return true;
        };
        if !self.known.insert(print.clone()) {
            return true;
        }
        if let [input] = ran.program.inputs.as_slice() {
            self.known_inputs.insert((input.command.clone(), input.mutation.clone()));
        }
        let name = finding::name_of(&print);
        let message = failure.as_ref().map(|failure| failure.message.clone());
        let message = message.or(ran.single.report.reason.clone()).unwrap_or_default();
        let protocol = self.bench.ground.protocol();
        let title = finding::normal(&message);
        let case = ran.program.render(protocol, &name, &title, &print.requirements).case;
        let mut comments = vec![
            format!(
                "Found by frameproof fuzz, seed {}, case {index}, in state {}.",
                self.options.seed, print.state
            ),
            format!("Oracle {}: {message}", print.oracle),
            format!("Run: frameproof run {} --scenario THIS", self.options.reproduce),
        ];
        comments.extend(reservations(protocol, &case));
        let mut report = ran.single.report.clone();
        report.case = format!("fuzz/{name}");
        report.title = format!("{}: {title}", print.oracle);
        report.covers.clone_from(&print.requirements);
        let found = Finding {
            verdict: failure.as_ref().map_or(Verdict::Failed, |failure| failure.verdict),
            steps: finding::steps(&ran.program),
            scenario: finding::scenario(&comments, &[case]),
            fingerprint: print,
            program: ran.program,
            case: index,
            message,
            replays,
            name,
            report,
        };
        (self.sink)(Event::Finding(&found));
        self.report.findings.push(found);
        true
    }

    /// Keeps the death of a launched target that no single case shows again, with the inputs that led there. Where a case is
    /// known that it dies of in the same way, that is a note.
    pub(super) fn mourn(&mut self, how: &str, programs: &[(u64, Program)]) {
        if self.deaths.contains(how) {
            let cases: Vec<String> = programs.iter().map(|(index, _)| index.to_string()).collect();
            let message = format!("{how} again, as in a finding; these cases ran: {}", cases.join(", "));
            (self.sink)(Event::Note(message));
            return;
        }
        let message = format!("{how}; no case alone shows it again");
        self.keep_together("target", finding::normal(how), Verdict::Error, &message, programs);
    }

    /// Keeps what several cases have brought about together.
    fn keep_together(
        &mut self,
        oracle: &str,
        shape: String,
        verdict: Verdict,
        message: &str,
        programs: &[(u64, Program)],
    ) {
        let state = super::guide::OPENED.to_owned();
        let print = Fingerprint { oracle: oracle.to_owned(), requirements: Vec::new(), state, shape };
        let Some((first, program)) = programs.first() else { return };
        if !self.known.insert(print.clone()) {
            return;
        }
        let cases: Vec<String> = programs.iter().map(|(index, _)| index.to_string()).collect();
        let message = format!("{message}, these led there: {}", cases.join(", "));
        let name = finding::name_of(&print);
        let protocol = self.bench.ground.protocol().clone();
        let scenarios = programs.iter().map(|(index, program)| {
            program.render(&protocol, &format!("{name}-{index}"), &format!("Case {index}"), &[]).case
        });
        let scenarios: Vec<_> = scenarios.collect();
        let comments = vec![
            format!("Found by frameproof fuzz, seed {}.", self.options.seed),
            format!("Oracle {oracle}: {message}"),
            format!("Run: frameproof run {} --scenario THIS", self.options.reproduce),
        ];
        let mut report = finding::blank_report(&name, &message);
        report.verdict = verdict;
        report.reason = Some(message.clone());
        let found = Finding {
            verdict,
            steps: programs.iter().map(|(_, program)| finding::steps(program)).sum(),
            scenario: finding::scenario(&comments, &scenarios),
            fingerprint: print,
            program: program.clone(),
            case: *first,
            message,
            replays: CONFIRM,
            name,
            report,
        };
        (self.sink)(Event::Finding(&found));
        self.report.findings.push(found);
    }

    /// Whether a launched target's memory has grown past its bound. Remembers what made it grow most.
    pub(super) async fn has_grown(&mut self, programs: Vec<(u64, Program)>) -> bool {
        let Some(now) = self.bench.ground.memory().await else { return false };
        let base = *self.growth.base.get_or_insert(now);
        let grown = now.saturating_sub(self.growth.last.max(base));
        self.growth.last = now;
        if grown > 0 {
            let heaviest = &mut self.growth.heaviest;
            let at = heaviest.partition_point(|(most, _)| *most >= grown);
            heaviest.insert(at, (grown, programs));
            heaviest.truncate(HEAVIEST);
        }
        now.saturating_sub(base) > self.options.max_growth
    }

    /// Looks for the case that makes a launched target's memory grow. Growth that no case alone shows is a finding with the
    /// cases that made it grow most. The target begins anew.
    pub(super) async fn weigh(&mut self) {
        let Growth { base, last, heaviest } = std::mem::take(&mut self.growth);
        let alone = |(index, program): (u64, Program)| {
            let bare = Program { own: false, fresh: false, witness: false, witness_state: None, ..program };
            (index, Program { repeat: Some(REPEAT), ..bare })
        };
        let suspects: Vec<(u64, Program)> =
            heaviest.first().into_iter().flat_map(|(_, programs)| programs.clone()).map(alone).collect();
        let (indices, programs): (Vec<u64>, Vec<Program>) = suspects.into_iter().unzip();
        let (seed, patient) = (self.options.seed, self.options.deadline * 3);
        let ran = self.bench.replay_all(programs, seed, patient, JOBS).await;
        let before = self.known.len();
        for (index, ran) in indices.into_iter().zip(ran) {
            let Some(ran) = ran else { continue };
            let print = ran.wrong().into_iter().find(|print| print.oracle == "memory");
            if let Some(print) = print.filter(|print| self.is_worth_a_look(print)) {
                self.look_into(index, ran, &print).await;
                break;
            }
        }
        if self.known.len() == before {
            let grown = last.saturating_sub(base.unwrap_or(last)) >> 20;
            let message =
                format!("the target's memory grew by {grown} MiB; no case alone, repeated, makes it grow");
            let mut together: Vec<(u64, Program)> =
                heaviest.into_iter().flat_map(|(_, programs)| programs).collect();
            together.sort_by_key(|(index, _)| *index);
            together.dedup_by_key(|(index, _)| *index);
            self.keep_together("memory", finding::normal(&message), Verdict::Failed, &message, &together);
        }
        self.bench.ground.renew().await;
    }

    /// After a failure: an embedded server begins anew, another must still take connections; one that was
    /// launched is launched again, should it not.
    pub(super) async fn recover(&mut self) -> bool {
        if !self.bench.ground.is_launched() {
            self.bench.ground.renew().await;
        }
        let mut why = String::new();
        for wait in std::iter::once(Duration::ZERO).chain(RETRIES) {
            tokio::time::sleep(wait).await;
            match self.bench.ground.probe().await {
                Ok(()) => return true,
                Err(error) => why = error.to_string(),
            }
            // A launched target that takes no connections, though it runs, may do so after a restart.
            if self.bench.ground.renew().await {
                self.growth = Growth::default();
            }
        }
        self.report.ended = Ended::Refusing(why);
        false
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

/// What a failure is about, before it is known what it takes. Of RFC 6455 many things can be broken in one way, and no
/// requirement tells them apart.
fn subject(print: &Fingerprint) -> (String, Vec<String>, String) {
    let shape = if print.oracle == "framing" { print.shape.clone() } else { String::new() };
    (print.oracle.clone(), print.requirements.clone(), shape)
}
