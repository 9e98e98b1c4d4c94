//! The kill matrix: the suite against every fault of a reference server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::protocol::Protocol;
use crate::protocol::extension::Offered;
use crate::reference::{self, Fault, Variant};
use crate::results::Check;
use crate::results::event::{CaseReport, Failure, Verdict};
use crate::run::{RunError, RunOptions};
use crate::scenario::LoadedCase;
use crate::selftest::driver::{run_against, with_deadline};

/// What the suite made of one fault.
#[derive(Debug, Clone)]
pub struct FaultResult {
    /// The fault; `None` for the correct server.
    pub fault: Option<Fault>,
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
/// reports each to `sink`. Faults run one after the other: a run fills the machine already.
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
    let wanted =
        faults.filter(|fault| only.is_empty() || only.iter().any(|name| name == fault.name)).map(Some);
    let correct = only.is_empty().then_some(None);
    let mut right = true;
    for fault in correct.into_iter().chain(wanted) {
        let mut result = one(protocol, cases, options, fault, fault.map(|_| SHORT)).await?;
        if fault.is_some() && !result.is_right() {
            // Perhaps only because the machine is busy.
            result = one(protocol, cases, options, fault, None).await?;
        }
        right &= result.is_right();
        sink(&result);
    }
    Ok(right)
}

async fn one(
    protocol: &Arc<Protocol>,
    cases: &[LoadedCase],
    options: &RunOptions,
    fault: Option<Fault>,
    step_deadline: Option<Duration>,
) -> Result<FaultResult, RunError> {
    let variant = Variant { fault: fault.map(|fault| fault.name.to_owned()), ..Variant::default() };
    let mut by: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // What no server offers under this reading is left out on purpose; elsewhere a fault must not hide a case.
    let unoffered = |case: &LoadedCase| {
        let needs = case.case.needs.iter().filter_map(|need| protocol.extension.capabilities.get(need));
        needs.into_iter().any(|need| need.announced.is_none() && need.offered == Offered::No)
    };
    let cases: Vec<LoadedCase> = cases.iter().filter(|case| !unoffered(case)).cloned().collect();
    let mut on_case = |report: &CaseReport| {
        // That more came than is listed is nothing wrong of its own.
        let is_note = |failure: &&Failure| {
            failure.check == Check::Limit
                && failure.verdict == Verdict::Warned
                && failure.requirements.is_empty()
        };
        for failure in report.failures.iter().filter(|failure| !is_note(failure)) {
            let ids = failure.requirements.clone();
            let ids = if ids.is_empty() { vec![format!("({})", failure.check)] } else { ids };
            for id in ids {
                let cases = by.entry(id).or_default();
                if !cases.contains(&report.case) {
                    cases.push(report.case.clone());
                }
            }
        }
        // A fault may take a capability back; the correct server has them all.
        let excused = fault.is_some() && report.verdict == Verdict::NotApplicable;
        if let (Some(reason), true, false) = (&report.reason, report.failures.is_empty(), excused) {
            by.entry(format!("(error: {reason})")).or_default().push(report.case.clone());
        }
    };
    let options = with_deadline(options, step_deadline.unwrap_or(options.timing.step_deadline));
    let summary = run_against(variant, protocol, cases, options, &mut on_case).await?;
    let violates: BTreeSet<&str> = fault.iter().flat_map(|fault| fault.violates.iter().copied()).collect();
    let missing = violates.iter().filter(|id| !by.contains_key(**id)).map(|id| (*id).to_owned()).collect();
    let unrelated = by.keys().filter(|id| !violates.contains(id.as_str())).cloned().collect();
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
    Ok(FaultResult { fault, by, missing, unrelated, not_exercised })
}
