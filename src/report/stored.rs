//! A file of events that is read where it is needed, and not held: of each case it is known where it stands.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};

use super::json;
use crate::results::event::RunEvent;
use crate::results::kept::{Cut, Details, Rank, Ways, trim};
use crate::results::recorded::Recorded;

/// The events of a file that [`json::line`] wrote, as far as reports need them: a case that was run again and again is there once for
/// each way in which it ended, and what cases show is bounded, as where events are kept in memory.
pub struct StoredEvents {
    input: RefCell<BufReader<File>>,
    entries: Vec<Entry>,
}

/// Where an event stands, and what becomes of it when it is read.
struct Entry {
    from: u64,
    length: usize,
    kind: Kind,
}

enum Kind {
    Start,
    Case(Case),
    Other,
}

/// How a report of a case is shown, and what decides whether a later one is shown in its place.
struct Case {
    repeats: u64,
    cut: Cut,
    rank: Rank,
    weight: usize,
}

const CHANGED: &str = "the file of events has changed since it was looked through";

impl StoredEvents {
    /// Looks through a file. One that can be read only once, such as a pipe, is copied to a temporary one.
    ///
    /// # Errors
    /// The first line that is no event, with its number; or the file system's reason.
    pub fn open(input: File) -> Result<Self, String> {
        let mut entries: Vec<Entry> = Vec::new();
        let (mut ways, mut details) = (Ways::default(), Details::default());
        let input = read_again(input, |input| {
            json::each(input, |from, length, event| {
                let kind = match event {
                    RunEvent::CaseStarted { case, attempt } if !ways.starts(&case, attempt) => return,
                    RunEvent::RunStarted(_) => {
                        ways.clear();
                        Kind::Start
                    }
                    RunEvent::CaseFinished(mut report) => {
                        let (ending, rank) = (ways.ending(&report), Rank::of(&report));
                        let alike = ways.alike(ending).and_then(|place| entries.get_mut(place));
                        if let Some(Entry {
                            from: known_from,
                            length: known_length,
                            kind: Kind::Case(known),
                        }) = alike
                        {
                            known.repeats = known.repeats.saturating_add(report.repeats).saturating_add(1);
                            if rank > known.rank {
                                details.forget(known.weight);
                                (known.cut, known.weight) = details.bound(&mut report);
                                known.rank = rank;
                                (*known_from, *known_length) = (from, length);
                            }
                            return;
                        }
                        ways.enter(ending, entries.len());
                        let (cut, weight) = details.bound(&mut report);
                        Kind::Case(Case { repeats: report.repeats, cut, rank, weight })
                    }
                    RunEvent::CaseStarted { .. } | RunEvent::RunFinished(_) => Kind::Other,
                };
                entries.push(Entry { from, length, kind });
            })
        })?;
        Ok(Self { input: RefCell::new(input), entries })
    }
}

impl Recorded for StoredEvents {
    fn count(&self) -> usize {
        self.entries.len()
    }

    fn event(&self, at: usize) -> Result<Cow<'_, RunEvent>, String> {
        let Some(Entry { from, length, kind }) = self.entries.get(at) else {
            return Err("there is no such event".to_owned());
        };
        let mut input = self.input.borrow_mut();
        let mut bytes = vec![0; *length];
        let here = input.stream_position().map_err(|error| error.to_string())?;
        // Where it is near, what was read ahead is used.
        let read = input
            .seek_relative(i64::try_from(*from).unwrap_or(i64::MAX) - i64::try_from(here).unwrap_or(0))
            .and_then(|()| input.read_exact(&mut bytes));
        read.map_err(|error| format!("what was read before is gone: {error}"))?;
        let mut event = json::event(&bytes).map_err(|_| CHANGED)?;
        match (kind, &mut event) {
            (Kind::Case(case), RunEvent::CaseFinished(report)) => {
                report.repeats = case.repeats;
                trim(report, case.cut);
            }
            (Kind::Start, RunEvent::RunStarted(_)) | (Kind::Other, _) => {}
            _ => return Err(CHANGED.to_owned()),
        }
        Ok(Cow::Owned(event))
    }

    fn starts(&self) -> Result<Vec<usize>, String> {
        let starts = self.entries.iter().enumerate();
        Ok(starts.filter(|(_, entry)| matches!(entry.kind, Kind::Start)).map(|(at, _)| at).collect())
    }
}

/// Looks through a file and returns what it can be read from once more. What is none is copied as far as it was looked through.
fn read_again(
    mut input: File,
    look: impl FnOnce(&mut dyn BufRead) -> Result<(), String>,
) -> Result<BufReader<File>, String> {
    let why = |error: std::io::Error| error.to_string();
    if input.metadata().map_err(why)?.is_file() {
        input.seek(SeekFrom::Start(0)).map_err(why)?;
        let mut input = BufReader::new(input);
        look(&mut input)?;
        return Ok(input);
    }
    let copy = tempfile::tempfile().map_err(why)?;
    look(&mut BufReader::with_capacity(COPIED_AT_ONCE, Copying { input: input.take(MOST), copy: &copy }))?;
    Ok(BufReader::new(copy))
}

/// Copies what is read.
struct Copying<'c> {
    input: std::io::Take<File>,
    copy: &'c File,
}

impl Read for Copying<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = self.input.read(into)?;
        self.copy.write_all(&into[..length])?;
        Ok(length)
    }
}

/// Bytes that are copied with one write.
const COPIED_AT_ONCE: usize = 64 << 10;

/// Most bytes of what is not a file that are copied to one.
const MOST: u64 = 4 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Check;
    use crate::results::event::{CaseReport, Failure, FrameRecord, RunStarted, Verdict, Way};

    fn report(case: usize, verdict: Verdict, message: &str, lines: usize) -> RunEvent {
        let line = |index| FrameRecord {
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
        };
        RunEvent::CaseFinished(Box::new(CaseReport {
            case: format!("a/{case}"),
            verdict,
            failures: vec![Failure::new(Check::Step, verdict, message.to_owned())],
            wire: (0..lines as u64).map(line).collect(),
            ..CaseReport::default()
        }))
    }

    /// Runs of cases again and again, in several ways, with more to show than is kept.
    #[test]
    fn they_are_what_is_kept_in_memory() {
        let started = || {
            RunEvent::RunStarted(Box::new(RunStarted {
                version: "1".to_owned(),
                protocol: "p".to_owned(),
                title: "P".to_owned(),
                target: "here".to_owned(),
                started: "2026-01-01".to_owned(),
                seed: 1,
                run_id: None,
                shard: None,
                reading: "default".to_owned(),
                cases: 1,
                jobs: 1,
                ends_within: None,
                requirements: std::collections::BTreeMap::new(),
                left_out: 0,
            }))
        };
        let mut text = Vec::new();
        for run in 0..2 {
            let mut events = vec![started()];
            for case in 0..130 {
                events.push(RunEvent::CaseStarted { case: format!("a/{}", case % 100), attempt: 1 });
                let verdict = if case % 7 == run { Verdict::Warned } else { Verdict::Failed };
                events.push(report(case % 100, verdict, ["one", "other"][case / 100], 200));
                events.push(report(case % 100, verdict, "one", 1));
            }
            events.push(RunEvent::RunFinished(Box::default()));
            text.extend(json::render(&events).into_bytes());
        }
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&text).expect("written");
        let stored = StoredEvents::open(file).expect("events");
        let kept = json::read(&text[..]).expect("events");
        assert_eq!(json::render(&stored.all().expect("all of them")), json::render(&kept));
        assert_eq!(stored.starts(), kept.starts());
        let cut =
            |event: &RunEvent| matches!(event, RunEvent::CaseFinished(report) if report.wire_omitted > 0);
        assert!(kept.iter().any(cut), "some show less");
    }
}
