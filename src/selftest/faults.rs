//! The kill matrix: the suite against every fault of a reference server, or every mutant of a target.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::protocol::Protocol;
use crate::protocol::extension::Offered;
use crate::reference::{self, Fault, Variant};
use crate::results::event::{CaseReport, Failure, Verdict};
use crate::run::{RunError, RunOptions, Target};
use crate::scenario::LoadedCase;
use crate::selftest::driver::{AT_ONCE, run_until, side_by_side, with_deadline};

/// A server with one defect that the suite must find.
#[derive(Debug, Clone)]
pub struct SeededDefect {
    /// Its name.
    pub name: String,
    /// The requirements that it violates: each must be found broken.
    pub violates: Vec<String>,
    /// Requirements that may be found broken, too.
    pub also: Vec<String>,
}

impl From<Fault> for SeededDefect {
    fn from(fault: Fault) -> Self {
        let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        Self { name: fault.name.to_owned(), violates: owned(fault.violates), also: owned(fault.also) }
    }
}

/// What the suite made of one defect.
#[derive(Debug, Clone)]
pub struct FaultResult {
    /// The defect; `None` for the correct server.
    pub fault: Option<SeededDefect>,
    /// For each requirement found broken, the cases that found it.
    pub by: BTreeMap<String, Vec<String>>,
    /// Requirements that the fault violates and that were not found broken.
    pub missing: Vec<String>,
    /// Requirements found broken that the fault does not violate.
    pub unrelated: Vec<String>,
    /// Requirements not exercised (of the correct server).
    pub not_exercised: Vec<String>,
}

impl FaultResult {
    /// The suite judged the fault (or the correct server) rightly.
    pub fn is_right(&self) -> bool {
        self.missing.is_empty() && self.unrelated.is_empty() && self.not_exercised.is_empty()
    }
}

/// A fault that makes the server silent costs a deadline in every case; this is long on loopback.
const SHORT: Duration = Duration::from_millis(500);

/// Runs the suite against the correct server and against every fault whose name is in `only` (all, if empty), and
/// reports each to `sink`, in their order. Several servers run at the same time.
///
/// # Errors
/// See [`RunError`].
pub async fn selftest(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    options: &RunOptions,
    only: &[String],
    sink: &mut (dyn FnMut(&FaultResult) + Send),
) -> Result<bool, RunError> {
    let faults = reference::faults(&protocol.name).iter().copied();
    let wanted = faults.filter(|fault| only.is_empty() || only.iter().any(|name| name == fault.name));
    let correct = only.is_empty().then_some(Variant::default());
    let correct = correct.map(|variant| (None, Target::Reference(variant)));
    let wanted = wanted.map(|fault| {
        let variant = Variant { fault: Some(fault.name.to_owned()), ..Variant::default() };
        (Some(SeededDefect::from(fault)), Target::Reference(variant))
    });
    let servers = correct.into_iter().chain(wanted);
    let (_keep, stopped) = watch::channel(false);
    matrix(protocol, cases, options, (servers, &stopped), (SHORT, AT_ONCE), sink).await
}

/// A first try against a mutant of a target; one that may be misjudged for it is tried again without.
const OWN: Duration = Duration::from_secs(1);

/// Runs the suite against servers of the user, so many of them at the same time: without a defect, and with one each.
///
/// # Errors
/// See [`RunError`].
pub async fn selftest_own(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    options: &RunOptions,
    (servers, at_once): (Vec<(Option<SeededDefect>, Target)>, usize),
    stopped: &watch::Receiver<bool>,
    sink: &mut (dyn FnMut(&FaultResult) + Send),
) -> Result<bool, RunError> {
    matrix(protocol, cases, options, (servers, stopped), (OWN, at_once), sink).await
}

async fn matrix(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    options: &RunOptions,
    (servers, stopped): (impl IntoIterator<Item = (Option<SeededDefect>, Target)>, &watch::Receiver<bool>),
    (short, at_once): (Duration, usize),
    sink: &mut (dyn FnMut(&FaultResult) + Send),
) -> Result<bool, RunError> {
    let tries = servers.into_iter().map(|(defect, target)| async move {
        if *stopped.borrow() {
            return Ok(None);
        }
        let server = (defect.as_ref(), &target);
        let first = defect.as_ref().map(|_| short);
        let mut result = one(protocol, cases, options, server, first, stopped).await?;
        if defect.is_some() && !result.is_right() {
            // Perhaps only because the machine is busy.
            result = one(protocol, cases, options, server, None, stopped).await?;
        }
        Ok((!*stopped.borrow()).then_some(result))
    });
    let mut right = true;
    side_by_side(tries, at_once, |result| {
        if let Some(result) = result {
            right &= result.is_right();
            sink(&result);
        }
    })
    .await?;
    Ok(right)
}

async fn one(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    options: &RunOptions,
    (fault, target): (Option<&SeededDefect>, &Target),
    step_deadline: Option<Duration>,
    stopped: &watch::Receiver<bool>,
) -> Result<FaultResult, RunError> {
    let is_own = matches!(target, Target::Configured(_));
    let mut by: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // What no server offers under this reading is left out on purpose; elsewhere a fault must not hide a case.
    let unoffered = |case: &LoadedCase| {
        let needs = case.case.needs.iter().filter_map(|need| protocol.extension.capabilities.get(need));
        needs.into_iter().any(|need| need.announced.is_none() && need.offered == Offered::No)
    };
    let offered: Vec<LoadedCase> = cases.iter().filter(|case| !unoffered(case)).cloned().collect();
    // A step of a preamble that fails accuses the server of nothing: the cases that are about it do.
    let accuses_nothing = |report: &CaseReport, failure: &Failure| {
        let case = cases.iter().find(|case| case.id == report.case);
        fault.is_some()
            && failure.requirements.is_empty()
            && case.zip(failure.step.as_ref()).is_some_and(|(case, step)| case.is_in_preamble(&step.pointer))
    };
    let mut on_case = |report: &CaseReport| {
        let failures = report.failures.iter().filter(|failure| !failure.is_note());
        for failure in failures.filter(|failure| !accuses_nothing(report, failure)) {
            let ids = failure.requirements.clone();
            let ids = if ids.is_empty() { vec![format!("({})", failure.check)] } else { ids };
            for id in ids {
                let cases = by.entry(id).or_default();
                if !cases.contains(&report.case) {
                    cases.push(report.case.clone());
                }
            }
        }
        // A fault may take a capability back; the correct reference server has them all.
        let excused = (fault.is_some() || is_own) && report.verdict == Verdict::NotApplicable;
        if let (Some(reason), true, false) = (&report.reason, report.failures.is_empty(), excused) {
            by.entry(format!("(error: {reason})")).or_default().push(report.case.clone());
        }
    };
    let options = with_deadline(options, step_deadline.unwrap_or(options.timing.step_deadline));
    let summary =
        run_until(target.clone(), protocol, offered, options, stopped.clone(), &mut on_case).await?;
    let violates: BTreeSet<&str> =
        fault.iter().flat_map(|fault| fault.violates.iter().map(String::as_str)).collect();
    let missing = violates.iter().filter(|id| !by.contains_key(**id)).map(|id| (*id).to_owned()).collect();
    let is_declared =
        |id: &String| violates.contains(id.as_str()) || fault.is_some_and(|fault| fault.also.contains(id));
    let unrelated = by.keys().filter(|id| !is_declared(id)).cloned().collect();
    let not_exercised = summary
        .requirements
        .iter()
        .filter(|(id, result)| {
            fault.is_none()
                && result.exercised == 0
                && protocol.requirements.get(id).is_some_and(|requirement| requirement.unexercised.is_none())
        })
        .map(|(id, _)| id.clone())
        .collect();
    Ok(FaultResult { fault: fault.cloned(), by, missing, unrelated, not_exercised })
}
