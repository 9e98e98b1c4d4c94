//! Running one case from beginning to end, with its sweep and repeats.

use crate::results::Check;
use crate::results::cause::Cause;
use crate::results::event::{Failure, Verdict};
use crate::run::case::context::CaseContext;
use crate::run::case::environment::CaseServer;
use crate::run::case::interpreter::{Outcome, Runner, Stop};
use crate::run::case::verbs::connection::NO_RESTART;
use crate::run::context::RunContext;
use crate::run::options::CaseOptions;
use crate::scenario::LoadedCase;
use crate::scenario::case::Step;

/// Why a case that watches the server's memory is left out.
const NO_MEMORY: &str =
    "it watches the server's memory, which only one that frameproof launches itself shows";
/// Most iterations of a sweep; a turn with more events is cut there.
const MAX_SWEEP: u32 = 200;

/// Why a case cannot be run against a server that is not ours to start, whatever it says.
pub(crate) fn inapplicable(loaded: &LoadedCase, ours: bool) -> Option<&'static str> {
    match ours {
        true => None,
        false if loaded.case.steps.iter().any(Step::restarts) => Some(NO_RESTART),
        false => loaded.case.max_growth.map(|_| NO_MEMORY),
    }
}

/// Runs a case once, in sessions of its own.
pub(crate) async fn run_case(
    run: &RunContext,
    loaded: &LoadedCase,
    options: CaseOptions,
    server: &CaseServer,
) -> Outcome {
    let mut total = Outcome::default();
    let times = match (&loaded.case.sweep, loaded.case.repeat) {
        (Some(_), _) => MAX_SWEEP,
        (None, times) => times.unwrap_or(1),
    };
    if loaded.case.max_growth.is_some() && server.memory().await.is_none() {
        total.reason = Some((Verdict::NotApplicable, NO_MEMORY.to_owned()));
        return total;
    }
    let mut first = None;
    let cx = match CaseContext::new(run, loaded, options, server) {
        Ok(cx) => cx,
        Err(error) => {
            total.reason = Some((Verdict::Error, error));
            return total;
        }
    };
    for round in 1..=times {
        let seed = options.seed.wrapping_add(u64::from(round).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut runner = match Runner::new(&cx, seed) {
            Ok(runner) => runner,
            Err(error) => {
                total.reason = Some((Verdict::Error, error));
                return total;
            }
        };
        if let Some(name) = &loaded.case.sweep {
            runner.vars.set(name, round);
        }
        let stop = body(&mut runner).await.err();
        runner.farewell().await;
        let mut outcome = runner.finish_judge();
        for (id, count) in std::mem::take(&mut outcome.exercised) {
            *total.exercised.entry(id).or_default() += count;
        }
        total.trace.append(&mut outcome.trace);
        total.marks.append(&mut outcome.marks);
        total.failed_at.append(&mut outcome.failed_at);
        total.wire = outcome.wire;
        total.began = outcome.began;
        total.lost |= outcome.lost;
        total.cut |= outcome.cut;
        total.cause = outcome.cause.take();
        total.excused.merge(std::mem::take(&mut outcome.excused));
        if let Some(name) = loaded.case.sweep.as_ref().filter(|_| !outcome.failures.is_empty()) {
            outcome.failures.iter_mut().for_each(|failure| failure.in_round(name, round));
        }
        total.failures.append(&mut outcome.failures);
        let given_up = matches!(stop, Some(Stop::Error(_) | Stop::NotApplicable(_)));
        let ids = &run.protocol.extension.fuzzing.isolated;
        let probe = cx.probe.as_ref().filter(|_| !given_up);
        let leaked = probe.and_then(|probe| probe.attribute(&mut total.failures, ids));
        if let Some(kind) = leaked {
            // Which step met the leak says nothing.
            total.failed_at = vec![String::new(); total.failures.len()];
            total.cause = Some(Cause::Leak(kind));
        }
        let leaked = leaked.is_some();
        match stop {
            Some(Stop::Error(error)) => total.reason = Some((Verdict::Error, error)),
            Some(Stop::NotApplicable(reason)) => total.reason = Some((Verdict::NotApplicable, reason)),
            Some(Stop::SweepDone) if !leaked => break,
            _ => {}
        }
        if leaked
            || total.reason.is_some()
            || total.failures.iter().any(|failure| failure.verdict == Verdict::Failed)
        {
            return total;
        }
        if round == 1 && loaded.case.max_growth.is_some() {
            // The first round fills what every server fills once.
            first = server.memory().await;
        }
    }
    if let (Some(first), Some(last), Some(most)) = (first, server.memory().await, loaded.case.max_growth) {
        let grown = last.saturating_sub(first) >> 20;
        if grown > u64::from(most) {
            total.failed_at.push(String::new());
            total.failures.push(grew(grown, most, times));
            return total;
        }
    }
    for id in &loaded.case.covers {
        *total.exercised.entry(id.clone()).or_default() += 1;
    }
    total
}

/// The failure of a server whose memory grows.
fn grew(grown: u64, most: u32, times: u32) -> Failure {
    let message = format!(
        "the server's memory grew by {grown} MiB while the case ran {times} times, more than {most} MiB"
    );
    Failure::new(Check::Memory, Verdict::Failed, message)
}

async fn body(runner: &mut Runner<'_>) -> Result<(), Stop> {
    let loaded = runner.cx.loaded;
    if runner.cx.server.restarter.is_none() && loaded.case.steps.iter().any(Step::restarts) {
        return Err(Stop::NotApplicable(NO_RESTART.to_owned()));
    }
    runner.has_prompts()?;
    runner.steps(&loaded.case.steps, "/steps").await?;
    runner.step.pointer.clear();
    let names: Vec<String> = runner.conns.clients.keys().cloned().collect();
    match loaded.case.settle {
        true => settle(runner, &names).await?,
        // What was sent last is judged by its answer, also where nothing else is.
        false if runner.cx.protocol.extension.barrier.is_none() => {
            for name in &names {
                runner.hear_out(name).await?;
            }
        }
        false => {}
    }
    for name in &names {
        runner.lost(name)?;
    }
    Ok(())
}

/// Has every client wait for what the server still has to say to it.
async fn settle(runner: &mut Runner<'_>, names: &[String]) -> Result<(), Stop> {
    let mut all = true;
    for name in names {
        let client = runner.client(name)?;
        if client.connection.is_none() {
            continue;
        }
        if client.opened && !client.stalled && client.ended.is_none() && client.is_understood() {
            runner.step.client.clone_from(name);
            runner.barrier(name).await?;
        } else {
            if !client.opened && runner.awaits(name) {
                runner.hear_out(name).await?;
            }
            all = false;
        }
    }
    runner.settling.settled = all;
    Ok(())
}
