//! Which steps of a suite are of use: cases that lack one step each, against defects that the whole case finds. A step without which
//! each of them is still found is dead, or the defects are too weak.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::protocol::Protocol;
use crate::results::event::{CaseReport, Verdict};
use crate::run::{RunError, RunOptions};
use crate::scenario::LoadedCase;
use crate::scenario::case::Verb;
use crate::selftest::driver::{sampled, with_deadline};
use crate::selftest::subject::{Defect, Subject};
use crate::synthesis::rng::SeededRng;

/// What is to be tried.
#[derive(Debug, Clone)]
pub struct Plan {
    /// So many cases at most; none: all of them.
    pub cases: Option<usize>,
    /// So many defects at most; none: all of them.
    pub defects: Option<usize>,
    /// What chooses both.
    pub seed: u64,
}

/// What a step turned out to be good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// Without it the case fails on the correct server: what comes behind needs it.
    Needed,
    /// Without it a defect is not found.
    Decides,
    /// Without it each defect is found, and one of them by other requirements.
    Blames,
    /// Without it each defect is found as with it.
    Dead,
    /// No defect that was tried is found by the case: nothing is known.
    Unknown,
}

impl Use {
    /// A word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Needed => "needed",
            Self::Decides => "decides",
            Self::Blames => "blames",
            Self::Dead => "DEAD",
            Self::Unknown => "unknown",
        }
    }
}

/// A step, and what it is good for.
#[derive(Debug, Clone)]
pub struct StepResult {
    /// The case.
    pub case: String,
    /// Its file and line.
    pub place: String,
    /// The step as it stands there.
    pub source: String,
    /// What it is good for.
    pub is: Use,
    /// A defect that shows it; where there is none, how many were tried that the case finds.
    pub by: Result<String, usize>,
}

/// A defect may silence a server; this is long on loopback.
const SHORT: Duration = Duration::from_millis(500);

/// A case without one of its steps.
struct Without {
    case: LoadedCase,
    /// The case's id.
    of: String,
    /// The step's index.
    index: usize,
}

/// What a defect makes of cases: the requirements found broken, by the id of the case; cases that passed are not in it.
type Found = HashMap<String, BTreeSet<String>>;

/// Takes each step that judges out of its case in turn, and reports each to `sink`. `true`: none is dead.
///
/// # Errors
/// See [`RunError`].
pub async fn selftest(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    subject: &Subject,
    options: &RunOptions,
    plan: &Plan,
    sink: &mut (dyn FnMut(&StepResult) + Send),
) -> Result<bool, RunError> {
    let cases = sampled(cases.to_vec(), plan.cases, SeededRng::new(plan.seed, 2));
    let without: Vec<Without> = cases.iter().flat_map(shortened).collect();
    let all: Vec<LoadedCase> =
        cases.iter().cloned().chain(without.iter().map(|one| one.case.clone())).collect();
    let short = with_deadline(options, SHORT);
    let correct = found(subject, None, protocol, all.clone(), &short).await?;
    // What fails on the correct server says nothing, and neither does what is not run there.
    let runs = |id: &str| !correct.contains_key(id);
    let left: Vec<LoadedCase> = all.into_iter().filter(|case| runs(&case.id)).collect();
    let mut uses: BTreeMap<usize, (Use, Result<String, usize>)> = BTreeMap::new();
    let mut tried: HashMap<&str, usize> = HashMap::new();
    for defect in subject.defects(protocol, &cases, plan.defects, plan.seed) {
        // Steps that are known to decide need no further defect.
        let open = without
            .iter()
            .enumerate()
            .filter(|(index, _)| uses.get(index).is_none_or(|(is, _)| *is != Use::Decides));
        let wanted: BTreeSet<&str> =
            open.flat_map(|(_, one)| [one.of.as_str(), one.case.id.as_str()]).collect();
        let chosen: Vec<LoadedCase> =
            left.iter().filter(|case| wanted.contains(&*case.id)).cloned().collect();
        if chosen.is_empty() {
            break;
        }
        let broken = found(subject, Some(&defect), protocol, chosen, &short).await?;
        for case in &cases {
            *tried.entry(&case.id).or_default() += usize::from(broken.contains_key(&case.id));
        }
        for (index, one) in without.iter().enumerate() {
            let Some(whole) =
                broken.get(&one.of).filter(|_| runs(&one.case.id) && wanted.contains(&*one.case.id))
            else {
                continue;
            };
            let is = match broken.get(&one.case.id) {
                None => Use::Decides,
                Some(ids) if ids != whole => Use::Blames,
                Some(_) => continue,
            };
            let best = uses.entry(index).or_insert_with(|| (is, Ok(defect.name())));
            if is < best.0 {
                *best = (is, Ok(defect.name()));
            }
        }
    }
    let mut alive = true;
    for (index, one) in without.iter().enumerate() {
        let tried = tried.get(&*one.of).copied().unwrap_or_default();
        let (is, by) = match uses.remove(&index) {
            _ if !runs(&one.of) => continue,
            _ if !runs(&one.case.id) => (Use::Needed, Err(0)),
            Some(known) => known,
            None if tried == 0 => (Use::Unknown, Err(0)),
            None => (Use::Dead, Err(tried)),
        };
        alive &= is != Use::Dead;
        let (line, _, source) = one.case.place(&format!("/steps/{}", one.index));
        let place = format!("{}:{line}", one.case.file);
        sink(&StepResult { case: one.of.clone(), place, source: source.trim().to_owned(), is, by });
    }
    Ok(alive)
}

/// Whether a step can be taken out for what it judges: without `unchanged`, what is within it would not be done either.
fn is_removable(verb: &Verb) -> bool {
    verb.judges() && !matches!(verb, Verb::Unchanged(_))
}

/// The cases that lack one step each that judges something.
fn shortened(case: &LoadedCase) -> Vec<Without> {
    let steps = &case.case.steps;
    let judging = steps.iter().enumerate().filter(|(_, step)| is_removable(&step.verb));
    judging
        .map(|(index, _)| {
            let mut shorter = case.clone();
            shorter.id = format!("{}#{index}", case.id);
            shorter.case.steps.remove(index);
            Without { case: shorter, of: case.id.clone(), index }
        })
        .collect()
}

/// Runs cases against one defect, or the correct server.
async fn found(
    subject: &Subject,
    defect: Option<&Defect>,
    protocol: &Arc<Protocol>,
    cases: Vec<LoadedCase>,
    options: &RunOptions,
) -> Result<Found, RunError> {
    let mut found = Found::new();
    let mut on_case = |report: &CaseReport| {
        if matches!(report.verdict, Verdict::Passed) {
            return;
        }
        let ids = report.failures.iter().flat_map(|failure| failure.requirements.iter().cloned());
        found.insert(report.case.clone(), ids.collect());
    };
    subject.run(defect, protocol, cases, options.clone(), &mut on_case).await?;
    Ok(found)
}
