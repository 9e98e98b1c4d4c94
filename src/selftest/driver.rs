//! The suite against one variant of a reference server.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::watch;

use crate::protocol::Protocol;
use crate::reference::Variant;
use crate::results::event::{CaseReport, RunEvent, Summary};
use crate::run::{RunError, RunOptions, Target, run};
use crate::scenario::LoadedCase;
use crate::synthesis::rng::SeededRng;

/// Runs the cases against this server, and hands over the report of each.
pub(super) async fn run_against(
    variant: Variant,
    protocol: &Arc<Protocol>,
    cases: Vec<LoadedCase>,
    options: RunOptions,
    on_case: &mut (dyn FnMut(&CaseReport) + Send),
) -> Result<Summary, RunError> {
    run_on(Target::Reference(variant), protocol, cases, options, on_case).await
}

/// The same against any server.
pub(super) async fn run_on(
    target: Target,
    protocol: &Arc<Protocol>,
    cases: Vec<LoadedCase>,
    options: RunOptions,
    on_case: &mut (dyn FnMut(&CaseReport) + Send),
) -> Result<Summary, RunError> {
    let (_keep, stop) = watch::channel(false);
    run_until(target, protocol, cases, options, stop, on_case).await
}

/// The same until `stop` becomes `true`.
pub(super) async fn run_until(
    target: Target,
    protocol: &Arc<Protocol>,
    cases: Vec<LoadedCase>,
    options: RunOptions,
    stop: watch::Receiver<bool>,
    on_case: &mut (dyn FnMut(&CaseReport) + Send),
) -> Result<Summary, RunError> {
    let mut sink = |event: &RunEvent| {
        if let RunEvent::CaseFinished(report) = event {
            on_case(report);
        }
    };
    run(Arc::clone(protocol), cases, target, options, &mut sink, stop).await
}

/// How many embedded servers are tried at the same time: with one, a run waits most of the time for the deadlines of its last cases.
pub(super) const AT_ONCE: usize = 4;

/// Tries so many servers at the same time, and hands over what became of each, in their order.
pub(super) async fn side_by_side<R>(
    tries: impl IntoIterator<Item = impl Future<Output = Result<R, RunError>>>,
    at_once: usize,
    mut take: impl FnMut(R),
) -> Result<(), RunError> {
    let mut results = stream::iter(tries).buffered(at_once);
    while let Some(result) = results.try_next().await? {
        take(result);
    }
    Ok(())
}

/// The same options for a server that may be silent: it costs a deadline in every case.
pub(super) fn with_deadline(options: &RunOptions, step_deadline: Duration) -> RunOptions {
    let mut options = options.clone();
    options.timing.step_deadline = step_deadline;
    options
}

/// So many of them at most, in their order.
pub(super) fn sampled<T>(mut all: Vec<T>, most: Option<usize>, mut rng: SeededRng) -> Vec<T> {
    while most.is_some_and(|most| all.len() > most) {
        all.remove(rng.below(all.len()));
    }
    all
}
