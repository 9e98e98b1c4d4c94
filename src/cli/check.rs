//! `frameproof check`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::source::{Filter, Reading, Source};
use super::{Failure, nothing, unreadable, usage};
use crate::check::{Exercised, Judge, Violation};
use crate::frame::Limits;
use crate::protocol::Protocol;
use crate::report::escape::terminal;
use crate::scenario::LoadedCase;
use crate::trace::{Event, Payload, Reader};

/// Judge a recorded trace.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The trace: NDJSON, one frame a line. `-` reads standard input.
    trace: PathBuf,
    /// The protocol: a shipped one's name, or a folder.
    #[arg(long, value_name = "NAME|PATH")]
    protocol: String,
    /// JSON Merge Patches on the protocol.
    #[arg(long, value_name = "FILE")]
    overlay: Vec<PathBuf>,
    /// Which answer to take where the protocol's document is ambiguous.
    #[arg(long, value_enum, value_name = "READING")]
    reading: Option<Reading>,
    /// Most violations shown in full.
    #[arg(long, value_name = "N", default_value_t = 50)]
    show: usize,
}

impl Check {
    pub fn run(self) -> Result<u8, Failure> {
        let folder = PathBuf::from(&self.protocol);
        let is_folder = !Source::is_embedded(&self.protocol) && folder.is_dir();
        let mut source = Source {
            name: (!is_folder).then(|| self.protocol.clone()),
            protocol: is_folder.then_some(folder),
            overlay: self.overlay.clone(),
            reading: self.reading,
            scenario: Vec::new(),
        };
        let protocol = source.protocol(&mut Filter::default())?;
        let cases = source.cases(&protocol)?;
        let name = self.trace.display().to_string();
        if name == "-" {
            return judge(
                &protocol,
                &cases,
                Reader::new("standard input", std::io::stdin().lock()),
                self.show,
            );
        }
        let file = File::open(&self.trace).map_err(|error| unreadable(&self.trace, &error))?;
        judge(&protocol, &cases, Reader::new(&name, BufReader::new(file)), self.show)
    }
}

/// Cases of a trace that are judged side by side. `run` writes a case's frames together, so that more are only met in
/// traces that were mixed afterwards; memory is bounded in any case.
const MAX_OPEN: usize = 64;

/// Judges the cases of a trace apart; a plain recording is one.
fn judge(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    reader: Reader<impl std::io::BufRead>,
    show: usize,
) -> Result<u8, Failure> {
    // The one used last stands last.
    let mut judges: Vec<(Option<Arc<str>>, Judge)> = Vec::new();
    let mut out = anstream::stdout().lock();
    let mut tally = Tally { show, ..Tally::default() };
    let mut events = 0u64;
    for event in reader {
        let hint = "`frameproof schema trace` describes a line";
        let event = event.map_err(|error| usage(error, hint))?;
        events += 1;
        if judges.last().is_none_or(|(case, _)| *case != event.case) {
            let known = judges.iter().position(|(case, _)| *case == event.case);
            let next = match known {
                Some(index) => judges.remove(index),
                None => {
                    // What a shipped case breaks on purpose is not judged in its recording either.
                    let case = cases.iter().find(|case| Some(case.id.as_str()) == event.case.as_deref());
                    let suspended = case.map_or(&[][..], |case| &case.case.suspend);
                    (event.case.clone(), Judge::new(Arc::clone(protocol), Limits::default(), suspended)?)
                }
            };
            if judges.len() >= MAX_OPEN {
                tally.finish(&mut out, protocol, judges.remove(0).1)?;
            }
            judges.push(next);
        }
        let Some((_, judge)) = judges.last_mut() else { continue };
        for violation in &judge.observe(&event).violations {
            tally.add(&mut out, protocol, violation, Some((events, &event)))?;
        }
    }
    if events == 0 {
        return Err(nothing("the trace is empty", "was it written to the end?"));
    }
    for (_, judge) in judges {
        tally.finish(&mut out, protocol, judge)?;
    }
    tally.close(&mut out, protocol, events)
}

#[derive(Default)]
struct Tally {
    show: usize,
    shown: usize,
    violations: u64,
    fails: bool,
    broken: BTreeMap<String, u64>,
    exercised: Exercised,
}

impl Tally {
    /// Ends a case. A recording may end at any moment: what is open then is not judged.
    fn finish(&mut self, out: &mut impl Write, protocol: &Protocol, judge: Judge) -> std::io::Result<()> {
        let (violations, exercised) = judge.finish(false);
        for violation in &violations {
            self.add(out, protocol, violation, None)?;
        }
        for (id, count) in exercised {
            *self.exercised.entry(id).or_default() += count;
        }
        Ok(())
    }

    fn add(
        &mut self,
        out: &mut impl Write,
        protocol: &Protocol,
        violation: &Violation,
        seen: Option<(u64, &Event)>,
    ) -> std::io::Result<()> {
        let fails = !violation.warns && protocol.requirements.fails(&violation.requirements);
        self.fails |= fails;
        self.violations += 1;
        for id in &violation.requirements {
            *self.broken.entry(id.clone()).or_default() += 1;
        }
        self.shown += 1;
        if self.shown > self.show {
            return Ok(());
        }
        let word = if fails { "FAIL" } else { "WARN" };
        let place = seen.map_or_else(
            || "at the end".to_owned(),
            |(number, event)| {
                let case = event.case.as_ref().map(|case| format!("case {case}, ")).unwrap_or_default();
                let ms = event.at.as_secs_f64() * 1e3;
                format!("frame {number} of the trace, {case}{ms:.1} ms, client {}", event.client)
            },
        );
        let about = protocol.extension.invariants.get(&violation.check);
        let about = about.map(|invariant| format!("{}: ", invariant.about)).unwrap_or_default();
        writeln!(out, "{word} {}: {}", terminal(&place), terminal(&format!("{about}{}", violation.message)))?;
        if let Some((_, Event { payload: Payload::Text(text), .. })) = seen {
            writeln!(out, "     {}", terminal(&crate::protocol::clip(text)))?;
        }
        for id in &violation.requirements {
            let Some(known) = protocol.requirements.get(id) else { continue };
            writeln!(out, "     {id} {} {} ({})", known.level, known.text, known.source)?;
        }
        Ok(())
    }

    fn close(&self, out: &mut impl Write, protocol: &Protocol, events: u64) -> Result<u8, Failure> {
        if self.shown > self.show {
            writeln!(out, "… and {} more", self.shown - self.show)?;
        }
        let exercised = self.exercised.keys().filter(|id| protocol.requirements.get(id).is_some()).count();
        let verdict = if self.fails { "not conformant" } else { "conformant as far as it goes" };
        writeln!(
            out,
            "{verdict}: {events} events, {} violations of {} requirements, {exercised} requirements exercised",
            self.violations,
            self.broken.len()
        )?;
        Ok(u8::from(self.fails))
    }
}
