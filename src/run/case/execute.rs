//! Running one case from beginning to end, with its sweep and repeats.

use crate::results::Check;
use crate::results::cause::Cause;
use crate::results::event::{Failure, Verdict};
use crate::run::case::context::CaseContext;
use crate::run::case::environment::CaseServer;
use crate::run::case::interpreter::{Abort, CaseOutcome, Interpreter};
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
pub(crate) fn not_applicable_reason(loaded: &LoadedCase, ours: bool) -> Option<&'static str> {
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
) -> CaseOutcome {
    let mut total = CaseOutcome::default();
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
        let mut interpreter = match Interpreter::new(&cx, seed) {
            Ok(interpreter) => interpreter,
            Err(error) => {
                total.reason = Some((Verdict::Error, error));
                return total;
            }
        };
        if let Some(name) = &loaded.case.sweep {
            interpreter.vars.set(name, round);
        }
        let stop = run_steps(&mut interpreter).await.err();
        interpreter.close_all().await;
        let mut outcome = interpreter.finish_judge();
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
        let given_up = matches!(stop, Some(Abort::Error(_) | Abort::NotApplicable(_)));
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
            Some(Abort::Error(error)) => total.reason = Some((Verdict::Error, error)),
            Some(Abort::NotApplicable(reason)) => total.reason = Some((Verdict::NotApplicable, reason)),
            Some(Abort::SweepDone) if !leaked => break,
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
            total.failures.push(memory_growth(grown, most, times));
            return total;
        }
    }
    for id in &loaded.case.covers {
        *total.exercised.entry(id.clone()).or_default() += 1;
    }
    total
}

/// The failure of a server whose memory grows.
fn memory_growth(grown: u64, most: u32, times: u32) -> Failure {
    let message = format!(
        "the server's memory grew by {grown} MiB while the case ran {times} times, more than {most} MiB"
    );
    Failure::new(Check::Memory, Verdict::Failed, message)
}

async fn run_steps(interpreter: &mut Interpreter<'_>) -> Result<(), Abort> {
    let loaded = interpreter.cx.loaded;
    if interpreter.cx.server.restarter.is_none() && loaded.case.steps.iter().any(Step::restarts) {
        return Err(Abort::NotApplicable(NO_RESTART.to_owned()));
    }
    interpreter.has_prompts()?;
    interpreter.steps(&loaded.case.steps, "/steps").await?;
    interpreter.step.pointer.clear();
    let names: Vec<String> = interpreter.conns.clients.keys().cloned().collect();
    match loaded.case.settle {
        true => settle(interpreter, &names).await?,
        // What was sent last is judged by its answer, also where nothing else is.
        false if interpreter.cx.protocol.extension.barrier.is_none() => {
            for name in &names {
                interpreter.await_quiet(name).await?;
            }
        }
        false => {}
    }
    for name in &names {
        interpreter.expect_connected(name)?;
    }
    Ok(())
}

/// Has every client wait for what the server still has to say to it.
async fn settle(interpreter: &mut Interpreter<'_>, names: &[String]) -> Result<(), Abort> {
    let mut all = true;
    for name in names {
        let client = interpreter.client(name)?;
        if client.connection.is_none() {
            continue;
        }
        if client.opened && !client.stalled && client.ended.is_none() && client.is_understood() {
            interpreter.step.client.clone_from(name);
            interpreter.barrier(name).await?;
        } else {
            if !client.opened && interpreter.awaits(name) {
                interpreter.await_quiet(name).await?;
            }
            all = false;
        }
    }
    interpreter.settling.settled = all;
    Ok(())
}
