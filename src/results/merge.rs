//! Several shards of one run, put together again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};

use crate::exit::Exit;
use crate::results::event::{RequirementResult, RunEvent, RunStarted, Shard, StopReason, Summary, Verdict};
use crate::results::recorded::{Merged, Place, Recorded};
use crate::text::normalize;

/// Why shards do not make one run. Files are meant by their places in the list, from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// A file has no run in it.
    #[error("it has no run")]
    Empty(usize),
    /// A run without its end.
    #[error("it ends in the middle of the run of {1}")]
    Cut(usize, String),
    /// A run that is not a part of one.
    #[error("its run of {1} is not a shard: it was not run with --shard")]
    Whole(usize, String),
    /// One of another number of shards, of another version, protocol, seed, or reading.
    #[error("{2} of its run of {1} is {3}, and {4} in the first file")]
    Other(usize, String, &'static str, String, String),
    /// One of another selection of cases.
    #[error("its run of {1} has other cases than that of the first file: was it run with the same filters?")]
    OtherCases(usize, String),
    /// The same shard twice.
    #[error("it is shard {1}, which was given before")]
    Doubled(usize, Shard),
    /// A case that another file has, too.
    #[error("the case {1} is in another file, too")]
    Again(usize, String),
    /// Shards that no file has.
    #[error("{} missing", shards(.0))]
    Missing(Vec<Shard>),
    /// A file that has changed while it was read, and why.
    #[error("{1}")]
    Gone(usize, String),
    /// Cases that no shard has run.
    #[error("{1} of the {2} cases of {0} are missing")]
    Incomplete(String, usize, usize),
}

impl MergeError {
    /// The file that is meant, if it is one.
    pub fn file(&self) -> Option<usize> {
        match self {
            Self::Empty(file)
            | Self::Cut(file, _)
            | Self::Whole(file, _)
            | Self::Other(file, ..)
            | Self::OtherCases(file, _)
            | Self::Doubled(file, _)
            | Self::Again(file, _)
            | Self::Gone(file, _) => Some(*file),
            Self::Missing(_) | Self::Incomplete(..) => None,
        }
    }
}

fn shards(missing: &[Shard]) -> String {
    let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let verb = if names.len() == 1 { "shard {} is" } else { "shards {} are" };
    verb.replace("{}", &names.join(", "))
}

/// Where cases are, and digests of their ids.
type Cases = Vec<(usize, u64)>;

/// One protocol's run in one file.
struct Part {
    started: RunStarted,
    shard: Shard,
    cases: Cases,
    summary: Summary,
}

/// The events of the run that the files, each with the events of one shard, are parts of.
///
/// # Errors
/// See [`MergeError`].
pub fn merge<F: Recorded>(files: Vec<F>) -> Result<Merged<F>, MergeError> {
    let digest = RandomState::new();
    let mut parts = Vec::new();
    for (file, events) in files.iter().enumerate() {
        let own = split(file, events, &digest)?;
        check_alike(file, &own, parts.first())?;
        parts.extend(own.into_iter().map(|part| (file, part)));
    }
    check_shards(&parts)?;
    // Who stopped has not begun with the protocols that come later.
    let has_stopped = parts.iter().any(|(_, part)| part.summary.stopped.is_some());
    let mut protocols: Vec<(String, Vec<(usize, Part)>)> = Vec::new();
    for (file, part) in parts {
        match protocols.iter_mut().find(|(name, _)| *name == part.started.protocol) {
            Some((_, known)) => known.push((file, part)),
            None => protocols.push((part.started.protocol.clone(), vec![(file, part)])),
        }
    }
    let mut events = Vec::new();
    for (name, mut parts) in protocols {
        parts.sort_by_key(|(_, part)| part.shard.index);
        events.extend(together(&name, parts, has_stopped, &files)?);
    }
    Ok(Merged::new(files, events))
}

fn split(file: usize, events: &impl Recorded, digest: &RandomState) -> Result<Vec<Part>, MergeError> {
    let mut parts = Vec::new();
    let mut open: Option<(RunStarted, Shard, Cases)> = None;
    for at in 0..events.count() {
        let event = events.event(at).map_err(|error| MergeError::Gone(file, error))?;
        match &*event {
            RunEvent::RunStarted(started) => {
                if let Some((open, ..)) = open {
                    return Err(MergeError::Cut(file, open.protocol));
                }
                let Some(shard) = started.shard else {
                    return Err(MergeError::Whole(file, started.protocol.clone()));
                };
                open = Some(((**started).clone(), shard, Vec::new()));
            }
            RunEvent::CaseStarted { .. } => {}
            RunEvent::CaseFinished(report) => {
                if let Some((_, _, cases)) = &mut open {
                    cases.push((at, digest.hash_one(&report.case)));
                }
            }
            RunEvent::RunFinished(summary) => {
                if let Some((started, shard, cases)) = open.take() {
                    parts.push(Part { started, shard, cases, summary: (**summary).clone() });
                }
            }
        }
    }
    match open {
        Some((started, ..)) => Err(MergeError::Cut(file, started.protocol)),
        None if parts.is_empty() => Err(MergeError::Empty(file)),
        None => Ok(parts),
    }
}

/// What has to be the same in all shards, by the words for it.
fn common(part: &Part) -> [(&'static str, String); 5] {
    let started = &part.started;
    [
        ("the number of shards", part.shard.total.to_string()),
        ("the version of frameproof", started.version.clone()),
        ("the seed", started.seed.to_string()),
        ("the reading", started.reading.clone()),
        // But for ports and the like.
        ("the server", normalize(&started.target)),
    ]
}

fn check_alike(file: usize, own: &[Part], first: Option<&(usize, Part)>) -> Result<(), MergeError> {
    let first = first.map_or(&own[0], |(_, part)| part);
    for part in own {
        for ((what, one), (_, other)) in common(part).into_iter().zip(common(first)) {
            if one != other {
                let protocol = part.started.protocol.clone();
                return Err(MergeError::Other(file, protocol, what, one, other));
            }
        }
    }
    Ok(())
}

fn check_shards(parts: &[(usize, Part)]) -> Result<(), MergeError> {
    let mut of: BTreeMap<u32, usize> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (file, part) in parts {
        let known = of.entry(part.shard.index).or_insert(*file);
        if known != file || !seen.insert((part.shard.index, part.started.protocol.as_str())) {
            return Err(MergeError::Doubled(*file, part.shard));
        }
    }
    let total = parts.first().map_or(0, |(_, part)| part.shard.total);
    let missing = (1..=total).filter(|index| !of.contains_key(index));
    let missing: Vec<Shard> = missing.map(|index| Shard { index, total, all: 0, selection: 0 }).collect();
    if missing.is_empty() { Ok(()) } else { Err(MergeError::Missing(missing)) }
}

/// The shards of one protocol's run, in their order.
fn together<F: Recorded>(
    name: &str,
    parts: Vec<(usize, Part)>,
    has_stopped: bool,
    files: &[F],
) -> Result<Vec<Place>, MergeError> {
    let mut owners: HashMap<u64, usize> = HashMap::new();
    let (mut cases, mut summaries) = (Vec::new(), Vec::new());
    let mut whole: Option<RunStarted> = None;
    let (all, selection) = parts.first().map_or((0, 0), |(_, part)| (part.shard.all, part.shard.selection));
    for (file, part) in parts {
        if part.shard.all != all {
            let (own, first) = (part.shard.all.to_string(), all.to_string());
            return Err(MergeError::Other(file, name.to_owned(), "the number of cases", own, first));
        }
        if part.shard.selection != selection {
            return Err(MergeError::OtherCases(file, name.to_owned()));
        }
        for (at, case) in part.cases {
            if *owners.entry(case).or_insert(file) != file {
                let event = files[file].event(at).map_err(|error| MergeError::Gone(file, error))?;
                let RunEvent::CaseFinished(report) = &*event else { continue };
                return Err(MergeError::Again(file, report.case.clone()));
            }
            cases.push(Place::In(file, at));
        }
        summaries.push(part.summary);
        match &mut whole {
            Some(whole) => {
                whole.requirements.extend(part.started.requirements);
                whole.started = std::mem::take(&mut whole.started).min(part.started.started);
            }
            // The others' servers and run ids are their own.
            None => whole = Some(RunStarted { shard: None, cases: all, ends_within: None, ..part.started }),
        }
    }
    let summary = sum(summaries);
    let missing = all.saturating_sub(owners.len());
    if missing > 0 && !has_stopped {
        return Err(MergeError::Incomplete(name.to_owned(), missing, all));
    }
    let begin = whole.map(|whole| Place::Own(RunEvent::RunStarted(Box::new(whole))));
    let end = Place::Own(RunEvent::RunFinished(Box::new(summary)));
    Ok(begin.into_iter().chain(cases).chain([end]).collect())
}

/// The summary of shards that ran side by side.
fn sum(summaries: Vec<Summary>) -> Summary {
    let code = Exit::most_severe(summaries.iter().map(|summary| summary.exit_code)).code();
    let mut whole = Summary { exit_code: code, ..Summary::default() };
    let mut hints = BTreeSet::new();
    for summary in summaries {
        for (verdict, count) in summary.cases {
            *whole.cases.entry(verdict).or_default() += count;
        }
        for (id, result) in summary.requirements {
            match whole.requirements.get_mut(&id) {
                Some(known) => add(known, result),
                None => {
                    whole.requirements.insert(id, result);
                }
            }
        }
        whole.stale_baseline.extend(summary.stale_baseline);
        whole.excused.merge(summary.excused);
        whole.hints.extend(summary.hints.into_iter().filter(|hint| hints.insert(hint.clone())));
        whole.stopped = worse(whole.stopped, summary.stopped);
        whole.seconds = whole.seconds.max(summary.seconds);
    }
    whole
}

fn add(known: &mut RequirementResult, other: RequirementResult) {
    known.verdict = match known.verdict.max(other.verdict) {
        // Where nothing has touched it, a case that was not applicable says why.
        Verdict::NotExercised if known.verdict != other.verdict => Verdict::NotApplicable,
        worst => worst,
    };
    known.exercised += other.exercised;
    known.broken_in.extend(other.broken_in);
}

fn worse(one: Option<StopReason>, other: Option<StopReason>) -> Option<StopReason> {
    let weight = |stop: &Option<StopReason>| match stop {
        None => 0,
        Some(StopReason::FailFast) => 1,
        Some(StopReason::Time) => 2,
        Some(StopReason::Shortage) => 3,
        Some(StopReason::Interrupted) => 4,
    };
    if weight(&other) > weight(&one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::event::CaseReport;

    fn merge(files: Vec<Vec<RunEvent>>) -> Result<Vec<RunEvent>, MergeError> {
        super::merge(files).map(|merged| merged.all().expect("all of them").into_owned())
    }

    fn shard(index: u32, cases: &[(&str, Verdict)], verdict: Verdict, code: u8) -> Vec<RunEvent> {
        let started = RunStarted {
            version: "1".to_owned(),
            protocol: "p".to_owned(),
            title: "P".to_owned(),
            target: "here".to_owned(),
            started: format!("2026-01-0{index}"),
            seed: 1,
            run_id: None,
            shard: Some(Shard { index, total: 2, all: 3, selection: 7 }),
            reading: "default".to_owned(),
            cases: cases.len(),
            jobs: 8,
            ends_within: None,
            requirements: BTreeMap::new(),
            left_out: 0,
        };
        let report = |(case, verdict): &(&str, Verdict)| CaseReport {
            case: (*case).to_owned(),
            verdict: *verdict,
            ..CaseReport::default()
        };
        let mut summary = Summary { exit_code: code, seconds: f64::from(index), ..Summary::default() };
        for (_, verdict) in cases {
            *summary.cases.entry(*verdict).or_default() += 1;
        }
        let result = RequirementResult { verdict, exercised: 2, broken_in: Vec::new() };
        summary.requirements.insert("R-1".to_owned(), result);
        let begin = std::iter::once(RunEvent::RunStarted(Box::new(started)));
        let cases = cases.iter().map(|case| RunEvent::CaseFinished(Box::new(report(case))));
        begin.chain(cases).chain([RunEvent::RunFinished(Box::new(summary))]).collect()
    }

    fn first() -> Vec<RunEvent> {
        shard(1, &[("a/one", Verdict::Passed), ("a/two", Verdict::Failed)], Verdict::NotExercised, 1)
    }

    fn second() -> Vec<RunEvent> {
        shard(2, &[("a/three", Verdict::NotApplicable)], Verdict::NotApplicable, 4)
    }

    #[test]
    fn two_halves_are_the_whole_whatever_their_order() {
        for files in [vec![first(), second()], vec![second(), first()]] {
            let events = merge(files).expect("one run");
            let [RunEvent::RunStarted(started), .., RunEvent::RunFinished(summary)] = &events[..] else {
                panic!("{events:?}")
            };
            assert_eq!((started.cases, started.shard, started.started.as_str()), (3, None, "2026-01-01"));
            assert_eq!(events.len(), 5);
            assert_eq!(summary.cases.values().sum::<usize>(), 3);
            let result = &summary.requirements["R-1"];
            assert_eq!((result.verdict, result.exercised), (Verdict::NotApplicable, 4));
            assert_eq!((summary.exit_code, summary.seconds), (1, 2.0));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let missing = merge(vec![first()]).expect_err("half");
        assert_eq!(missing.to_string(), "shard 2/2 is missing");
        let doubled = merge(vec![first(), second(), second()]).expect_err("twice");
        assert!(matches!(doubled, MergeError::Doubled(2, _)), "{doubled}");
        let again = shard(2, &[("a/one", Verdict::Passed)], Verdict::Passed, 0);
        let again = merge(vec![first(), again]).expect_err("twice");
        assert_eq!(again, MergeError::Again(1, "a/one".to_owned()));
        let mut cut = second();
        cut.pop();
        let cut = merge(vec![first(), cut]).expect_err("no end");
        assert_eq!(cut, MergeError::Cut(1, "p".to_owned()));
        let fewer = shard(2, &[], Verdict::Passed, 0);
        let fewer = merge(vec![first(), fewer]).expect_err("one is missing");
        assert_eq!(fewer.to_string(), "1 of the 3 cases of p are missing");
        let mut whole = second();
        if let RunEvent::RunStarted(started) = &mut whole[0] {
            started.shard = None;
        }
        let whole = merge(vec![first(), whole]).expect_err("no shard");
        assert_eq!(whole, MergeError::Whole(1, "p".to_owned()));
        let mut other = second();
        if let RunEvent::RunStarted(started) = &mut other[0] {
            started.shard = started.shard.map(|shard| Shard { selection: 8, ..shard });
        }
        let other = merge(vec![first(), other]).expect_err("other filters");
        assert_eq!(other, MergeError::OtherCases(1, "p".to_owned()));
        let same = merge(vec![first(), [second(), second()].concat()]).expect_err("twice in one file");
        assert!(matches!(same, MergeError::Doubled(1, _)), "{same}");
        let mut seed = second();
        if let RunEvent::RunStarted(started) = &mut seed[0] {
            started.seed = 7;
        }
        let seed = merge(vec![first(), seed]).expect_err("another run");
        assert_eq!(
            (seed.file(), seed.to_string().as_str()),
            (Some(1), "the seed of its run of p is 7, and 1 in the first file")
        );
    }
}
