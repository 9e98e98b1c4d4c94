//! Running one case from beginning to end, with its sweep and repeats.

use std::time::Instant;

use crate::results::Check;
use crate::results::event::{Failure, Verdict};
use crate::run::case::barrier::About;
use crate::run::case::context::CaseContext;
use crate::run::case::environment::CaseServer;
use crate::run::case::interpreter::{Abort, CaseOutcome, Interpreter};
use crate::run::case::outcome::CaseEnd;
use crate::run::case::verbs::connection::NO_RESTART;
use crate::run::context::RunContext;
use crate::run::options::CaseOptions;
use crate::scenario::LoadedCase;

/// Why a case that watches the server's memory is left out.
const NO_MEMORY: &str =
    "it measures the server's memory, which needs a server that frameproof launches itself";
/// Most iterations of a sweep; a turn with more events is cut there.
const MAX_SWEEP: u32 = 200;

/// Why a case cannot be run against a server that is not ours to start, whatever it says.
pub(crate) fn not_applicable_reason(loaded: &LoadedCase) -> Option<&'static str> {
    if loaded.case.steps.iter().any(|step| step.restarts()) {
        Some(NO_RESTART)
    } else {
        loaded.case.rounds.max_growth.map(|_| NO_MEMORY)
    }
}

/// Runs a case once, in sessions of its own.
pub(crate) async fn run_case(
    run: &RunContext,
    loaded: &LoadedCase,
    options: CaseOptions,
    server: &CaseServer,
) -> CaseOutcome {
    if loaded.case.rounds.max_growth.is_some() && server.memory().await.is_none() {
        return CaseOutcome::of(CaseEnd::NotApplicable(NO_MEMORY.to_owned()));
    }
    let rounds = match &loaded.case.rounds.sweep {
        Some(_) => MAX_SWEEP,
        None => loaded.case.rounds.repeat.unwrap_or(1),
    };
    let cx = CaseContext::new(run, loaded, options, server);
    let mut total = CaseOutcome::default();
    let mut first = None;
    for round in 1..=rounds {
        let done = run_round(&cx, round, &mut total).await;
        if let Round::CaseDone = done {
            return total;
        }
        if let Round::SweepDone = done {
            break;
        }
        if round == 1 && loaded.case.rounds.max_growth.is_some() {
            // The first round fills what every server fills once.
            first = server.memory().await;
        }
    }
    if let (Some(first), Some(last), Some(most)) =
        (first, server.memory().await, loaded.case.rounds.max_growth)
    {
        let grown = last.saturating_sub(first) >> 20;
        if grown > u64::from(most) {
            total.failures.push(memory_growth(grown, most, rounds));
            return total;
        }
    }
    for id in &loaded.case.covers {
        *total.exercised.entry(id.clone()).or_default() += 1;
    }
    total
}

/// Whether another round follows.
enum Round {
    Next,
    /// A sweep has passed the turn's end.
    SweepDone,
    /// What was found ends the case.
    CaseDone,
}

/// Runs the steps once, and adds what came of it.
async fn run_round(cx: &CaseContext<'_>, round: u32, total: &mut CaseOutcome) -> Round {
    let seed = cx.options.seed.wrapping_add(u64::from(round).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut interpreter = Interpreter::new(cx, seed);
    let sweep = cx.loaded.case.rounds.sweep.as_ref();
    if let Some(name) = sweep {
        interpreter.vars.set(name, round);
    }
    let abort = run_steps(&mut interpreter).await.err();
    if abort.is_none() && sweep.is_none() && cx.loaded.case.rounds.repeat.is_none() {
        interpreter.verdict.complete(&cx.loaded.case.covers);
    }
    let close_handshake = interpreter.close_all().await;
    let mut outcome = CaseOutcome { close_handshake, reached_end: abort.is_none(), ..interpreter.finish() };
    if let Some(name) = sweep {
        outcome.failures.iter_mut().for_each(|failure| failure.in_round(name, round));
    }
    total.add_round(outcome);
    let given_up = matches!(abort, Some(Abort::Error(_) | Abort::NotApplicable(_)));
    let probe = cx.probe.as_ref().filter(|_| !given_up);
    let ids = &cx.protocol.extension.fuzzing.isolated;
    let leaked = probe.and_then(|probe| probe.attribute(&mut total.failures, ids));
    if let Some(kind) = leaked {
        total.leaked(kind);
    }
    let is_sweep_done = matches!(abort, Some(Abort::SweepDone));
    let is_vacuous = matches!(abort, Some(Abort::Vacuous));
    match abort {
        Some(Abort::Error(error)) => total.end = CaseEnd::Error(error),
        Some(Abort::NotApplicable(reason)) => total.end = CaseEnd::NotApplicable(reason),
        Some(Abort::SweepDone | Abort::Failed | Abort::Vacuous) | None => {}
    }
    let has_failed = || total.failures.iter().any(|failure| failure.verdict == Verdict::Failed);
    if leaked.is_some() {
        Round::CaseDone
    } else if is_sweep_done {
        Round::SweepDone
    } else if !total.end.has_run() || is_vacuous || has_failed() {
        Round::CaseDone
    } else {
        Round::Next
    }
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
    if interpreter.cx.server.restarter.is_none() && loaded.case.steps.iter().any(|step| step.restarts()) {
        return Err(Abort::NotApplicable(NO_RESTART.to_owned()));
    }
    interpreter.has_prompts()?;
    let protocol = &interpreter.cx.protocol;
    let source = protocol.lacks_parameters().then(|| loaded.source().into());
    if let Some(missing) = source.and_then(|source| protocol.missing_parameter(&source)) {
        return Err(Abort::NotApplicable(missing));
    }
    interpreter.steps(&loaded.case.steps, "/steps").await?;
    let names = interpreter.conns.names();
    if loaded.case.settle {
        settle(interpreter, &names).await?;
    } else if !interpreter.cx.protocol.extension.has_whole_barrier() {
        // What was sent last is judged by its answer, also where nothing else is.
        for name in &names {
            interpreter.await_quiet(name).await?;
        }
    }
    if let Some(linger) = loaded.case.beginning.linger {
        let until = Instant::now() + linger;
        while interpreter.receive_until(until).await? {}
        interpreter.take_effect()?;
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
        if !client.is_connected() {
            continue;
        }
        if client.can_ask() {
            interpreter.step.client.clone_from(name);
            interpreter.barrier(name, About::Everything).await?;
        } else {
            if !client.is_opened() && interpreter.log.awaits_answer(name) {
                interpreter.await_quiet(name).await?;
            }
            all = false;
        }
    }
    if all {
        interpreter.await_owed().await?;
    }
    interpreter.settling.settled = all;
    Ok(())
}
