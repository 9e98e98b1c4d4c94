//! `frameproof check`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::reports::{Besides, Reports};
use super::source::{Filter, Reading, Source, quote};
use super::{Failure, harness, nothing, unreadable, usage};
use crate::check::{Exercised, JudgePair, Limit, PairJudged, RulesetPair, Violation};
use crate::exit::Exit;
use crate::frame::Limits;
use crate::protocol::Protocol;
use crate::recording::judged::{About, JudgedRecording};
use crate::report::check::{BlockOptions, Blocks, Seen};
use crate::report::escape::terminal;
use crate::report::often;
use crate::results::event::RunEvent;
use crate::results::excused::{ExcusedDeviation, ExcusedList};
use crate::scenario::LoadedCase;
use crate::trace::Reader;

/// Judge a recorded trace.
///
/// A recording may end before the server is done. What it has not sent by then (`missing` of a monitor, a `response` without `within`)
/// is therefore not judged; a `response` with `within` is, where the recording goes on for longer than that.
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
    /// Which answer applies where the protocol's document is ambiguous.
    #[arg(long, value_enum, value_name = "READING")]
    reading: Option<Reading>,
    /// The dialect of the recorded server. Default: the document's own.
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<String>,
    /// The largest number of requirements whose violations are shown.
    #[arg(long, value_name = "N", default_value_t = 50)]
    show: usize,
    /// Show each violation's message, and complete frames.
    #[arg(long, short)]
    verbose: bool,
    /// A folder of JSON Schemas that the server has generated: its messages are also validated against them.
    #[arg(long, value_name = "DIR")]
    schemas: Option<PathBuf>,
    #[command(flatten)]
    reports: Reports,
}

impl Check {
    pub fn run(self) -> Result<Exit, Failure> {
        let folder = PathBuf::from(&self.protocol);
        let is_folder = !Source::is_embedded(&self.protocol) && folder.is_dir();
        let mut source = Source {
            name: (!is_folder).then(|| self.protocol.clone()),
            protocol: is_folder.then_some(folder),
            overlay: self.overlay.clone(),
            reading: self.reading,
            dialect: self.dialect.clone(),
            schemas: self.schemas.clone(),
            ..Source::default()
        };
        let bare = source.bare()?;
        let protocol = source.protocol(&mut Filter::default())?;
        let shipped = ShippedCases { source: &source, cases: None };
        let (options, reproduce) = (self.options(), self.again());
        let name = match self.trace.display().to_string() {
            name if name == "-" => "standard input".to_owned(),
            name => name,
        };
        let besides = Besides { read: vec![&self.trace], ..Besides::default() };
        let reports = self.reports.settle(&format!("check-{}", protocol.name), &besides)?;
        let about = About { file: name.clone(), reproduce };
        // Nobody looks at what is not asked for.
        let recording = reports.are_wanted().then(|| JudgedRecording::new(&protocol, about));
        let tally = Tally { recording, ..Tally::new(options, bare.clone()) };
        let input: Box<dyn BufRead> = match self.trace.as_os_str() == "-" {
            true => Box::new(std::io::stdin().lock()),
            false => {
                let file =
                    crate::input::open(&self.trace).map_err(|error| unreadable(&self.trace, &error))?;
                Box::new(BufReader::new(file))
            }
        };
        let (exit, events) = judge(&protocol, bare.as_ref(), shipped, Reader::new(&name, input), tally)?;
        reports.write(&events, |error| harness(error, "the recording is judged; the verdict is above"))?;
        Ok(exit)
    }

    /// The command that does the same again.
    fn again(&self) -> String {
        let mut text = format!("frameproof check {}", quote(&self.trace.display().to_string()));
        text += &format!(" --protocol {}", quote(&self.protocol));
        for path in &self.overlay {
            text += &format!(" --overlay {}", quote(&path.display().to_string()));
        }
        if let Some(folder) = &self.schemas {
            text += &format!(" --schemas {}", quote(&folder.display().to_string()));
        }
        if let Some(reading) = self.reading.and_then(|reading| reading.to_possible_value()) {
            text += &format!(" --reading {}", reading.get_name());
        }
        if let Some(dialect) = &self.dialect {
            text += &format!(" --dialect {}", quote(dialect));
        }
        text
    }

    fn options(&self) -> BlockOptions {
        BlockOptions { most: self.show, verbose: self.verbose, width: super::width() }
    }
}

/// Cases of a trace that are judged side by side. `run` writes a case's frames together, so that more are only met in
/// traces that were mixed afterwards; memory is bounded in any case.
const MAX_OPEN: usize = 64;

/// The cases that ship with the protocol, loaded when the first frame of one is met: a plain recording is of none, and a suite takes
/// more memory than most recordings.
struct ShippedCases<'a> {
    source: &'a Source,
    cases: Option<Vec<LoadedCase>>,
}

impl ShippedCases<'_> {
    /// The monitors that a case suspends: what it breaks on purpose is not judged in its recording either.
    fn suspended(&mut self, id: &str, protocol: &Protocol) -> Result<&[String], Failure> {
        if self.cases.is_none() {
            self.cases = Some(self.source.cases(protocol)?);
        }
        let case = self.cases.iter().flatten().find(|case| case.id == id);
        Ok(case.map_or(&[], |case| &case.case.suspend))
    }
}

/// Judges the cases of a trace apart; a plain recording is one.
fn judge(
    protocol: &Arc<Protocol>,
    bare: Option<&Arc<Protocol>>,
    mut shipped: ShippedCases<'_>,
    reader: Reader<impl BufRead>,
    mut tally: Tally,
) -> Result<(Exit, Vec<RunEvent>), Failure> {
    // The one used last stands last.
    let mut judges: Vec<(Option<Arc<str>>, JudgePair)> = Vec::new();
    let rules = RulesetPair::compile(protocol, bare)?;
    let mut out = anstream::stdout();
    let mut events = 0u64;
    for event in reader {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                // What was found before it is not lost.
                tally.blocks.write(&mut out, protocol)?;
                return Err(usage(error, "`frameproof schema trace` describes a line"));
            }
        };
        events += 1;
        if judges.last().is_none_or(|(case, _)| *case != event.case) {
            let known = judges.iter().position(|(case, _)| *case == event.case);
            let next = match known {
                Some(index) => judges.remove(index),
                None => {
                    let suspended = match &event.case {
                        Some(id) => shipped.suspended(id, protocol)?,
                        None => &[],
                    };
                    (event.case.clone(), rules.judge(Limits::default(), suspended))
                }
            };
            if judges.len() >= MAX_OPEN {
                let (case, judge) = judges.remove(0);
                tally.finish(protocol, case.as_ref(), judge);
            }
            judges.push(next);
        }
        let Some((_, pair)) = judges.last_mut() else { continue };
        let PairJudged { judged, excused } = pair.observe(&event);
        if let Some(recording) = &mut tally.recording {
            recording.observe(&event, &judged);
        }
        tally.excuse(excused, Some(events));
        for violation in &judged.violations {
            tally.add(protocol, violation, Some((events, &event)));
        }
    }
    if events == 0 {
        return Err(nothing("the trace is empty", "is the file complete?"));
    }
    for (case, judge) in judges {
        tally.finish(protocol, case.as_ref(), judge);
    }
    tally.blocks.write(&mut out, protocol)?;
    tally.report_excused(&mut out)?;
    let exit = tally.close(&mut out, protocol, events)?;
    Ok((exit, tally.events()))
}

/// Most different deviations that are listed as excused.
const MAX_EXCUSED: usize = 200;

struct Tally {
    /// The protocol without its overlay, if it has one.
    bare: Option<Arc<Protocol>>,
    blocks: Blocks,
    violations: u64,
    fails: bool,
    broken: BTreeMap<String, u64>,
    exercised: Exercised,
    limits: Vec<Limit>,
    /// Each with the frame that it was seen in first, from 1.
    excused: ExcusedList<Option<u64>>,
    /// What reports tell; none: nobody has asked for one.
    recording: Option<JudgedRecording>,
}

impl Tally {
    fn new(options: BlockOptions, bare: Option<Arc<Protocol>>) -> Self {
        Self {
            bare,
            blocks: Blocks::new(options),
            violations: 0,
            fails: false,
            broken: BTreeMap::new(),
            exercised: Exercised::new(),
            limits: Vec::new(),
            excused: ExcusedList::default(),
            recording: None,
        }
    }

    /// What reports are made of.
    fn events(self) -> Vec<RunEvent> {
        let Some(recording) = self.recording else { return Vec::new() };
        let excused = self.excused.iter().map(|one| ExcusedDeviation {
            requirements: one.requirements.clone(),
            message: one.message.clone(),
            count: one.count,
            place: one.place.map_or_else(|| "the end".to_owned(), |frame| format!("frame {frame}")),
        });
        let (excused, limits) = (excused.collect(), self.limits.iter().map(Limit::to_string));
        recording.events(
            jiff::Timestamp::now().to_string(),
            self.exercised,
            excused,
            &limits.collect::<Vec<_>>(),
        )
    }

    /// Ends a case. A recording may end at any moment: what is open then is not judged.
    fn finish(&mut self, protocol: &Protocol, case: Option<&Arc<str>>, pair: JudgePair) {
        let PairJudged { judged, excused } = pair.finish(false);
        let crate::check::Outcome { violations, exercised, limits } = judged;
        for limit in limits {
            match self.limits.iter_mut().find(|known| known.check == limit.check) {
                Some(known) => known.forgotten += limit.forgotten,
                None => self.limits.push(limit),
            }
        }
        if let Some(recording) = &mut self.recording {
            recording.finish(case, &violations);
        }
        self.excuse(excused, None);
        for violation in &violations {
            self.add(protocol, violation, None);
        }
        for (id, count) in exercised {
            *self.exercised.entry(id).or_default() += count;
        }
    }

    /// Notes what breaks the bare protocol and not the adapted one.
    fn excuse(&mut self, excused: Vec<Violation>, place: Option<u64>) {
        let Some(bare) = &self.bare else { return };
        for one in excused {
            let message = one.description(bare);
            let one = ExcusedDeviation { requirements: one.requirements, message, count: 1, place };
            self.excused.add_within(MAX_EXCUSED, one);
        }
    }

    /// What the overlay excuses, so that nobody forgets it.
    fn report_excused(&self, out: &mut impl Write) -> std::io::Result<()> {
        if self.excused.is_empty() {
            return Ok(());
        }
        writeln!(out, "excused by the overlay:")?;
        for ExcusedDeviation { requirements, message, count, place } in &self.excused {
            let ids = requirements.join(" ");
            let first =
                place.map_or_else(|| "at the end".to_owned(), |frame| format!("first in frame {frame}"));
            let often = often(*count);
            writeln!(out, "  {} {} ({often}, {first})", terminal(&ids), terminal(message))?;
        }
        Ok(())
    }

    fn add(&mut self, protocol: &Protocol, violation: &Violation, seen: Seen<'_>) {
        let fails = !violation.warns && protocol.requirements.fails(&violation.requirements);
        self.fails |= fails;
        self.violations += 1;
        for id in &violation.requirements {
            *self.broken.entry(id.clone()).or_default() += 1;
        }
        self.blocks.add(protocol, violation, fails, seen);
    }

    fn close(&self, out: &mut impl Write, protocol: &Protocol, events: u64) -> Result<Exit, Failure> {
        for limit in &self.limits {
            writeln!(out, "LIMIT {}", terminal(&limit.to_string()))?;
        }
        let exercised = self.exercised.keys().filter(|id| protocol.requirements.get(id).is_some()).count();
        let verdict = if self.fails { "not conformant" } else { "conformant as far as recorded" };
        let counted =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        writeln!(
            out,
            "{verdict}: {}, {} of {}, {} exercised",
            counted(usize::try_from(events).unwrap_or(usize::MAX), "event"),
            counted(usize::try_from(self.violations).unwrap_or(usize::MAX), "violation"),
            counted(self.broken.len(), "requirement"),
            counted(exercised, "requirement")
        )?;
        Ok(if self.fails { Exit::Failed } else { Exit::Passed })
    }
}
