//! One case on a server: leased, run, and asked afterwards whether the server lives.

use std::sync::Arc;
use std::time::Instant;

use crate::results::event::LogLine;
use crate::run::RunError;
use crate::run::case::execute::run_case;
use crate::run::case::outcome::CaseOutcome;
use crate::run::context::RunContext;
use crate::run::options::CaseOptions;
use crate::run::server::pool::ServerPool;
use crate::scenario::LoadedCase;

/// Runs a case once, on the server that it is given.
pub(crate) async fn run_on_server(
    pool: &ServerPool,
    run: &RunContext,
    loaded: &LoadedCase,
    options: CaseOptions,
) -> CaseOutcome {
    let clock = Instant::now();
    let lease = match pool.lease(loaded).await {
        Ok(lease) => lease,
        Err(error) => return not_served(&error, clock),
    };
    let mut outcome = run_case(run, loaded, options, &lease.server).await;
    if let Some(instance) = &lease.server.instance
        && (!outcome.failures.is_empty() || !outcome.end.has_run())
    {
        if let Some(how) = lease.death(&outcome).await {
            outcome.died(how, Some(Arc::clone(&lease.reported)));
        }
        // What it wrote while it was launched for this case is no part of what it wrote meanwhile.
        let began = outcome.record.began.unwrap_or(clock);
        outcome.log = LogLine::of(&instance.log().between(began, Instant::now()), began);
    }
    lease.await_end(&outcome).await;
    lease.finish().await;
    outcome
}

/// What becomes of a case for which there is no server.
pub(crate) fn not_served(error: &RunError, clock: Instant) -> CaseOutcome {
    let output = if let RunError::Launch(failure) = error { failure.output.as_slice() } else { &[] };
    let log = LogLine::of(output, clock);
    CaseOutcome { log, ..CaseOutcome::error(error.to_string()) }
}
