//! Before anything is fuzzed: which states the target can be brought into.

use std::collections::BTreeMap;

use futures_util::StreamExt;

use super::events::Note;
use super::executor::{Execution, Executor};
use super::investigate::Investigator;
use super::program::Program;

/// The states that this target can be brought into and out of, and a first turn without any harm. `jobs`: cases side by side.
pub(super) async fn reachable_states(
    investigator: &mut Investigator<'_>,
    jobs: usize,
) -> Vec<Option<String>> {
    let mut reached = vec![None];
    if let Some(execution) = enter(&investigator.executor, vec![None], jobs).await.pop() {
        let obstacle = execution.obstacle();
        if let Some((_, why)) = &obstacle {
            investigator.events.note(Note::unique(format!(
                "only the opened state is fuzzed, because even that one fails without any fuzzing: {why}"
            )));
        }
        let is_blocked = obstacle.is_some();
        // What is no obstacle may be a finding all the same.
        let print = obstacle.map(|(print, _)| print).or_else(|| execution.fingerprints().into_iter().next());
        if let Some(print) = print {
            investigator.confirm(0, execution, &print).await;
        }
        if is_blocked {
            return reached;
        }
    }
    let states =
        investigator.executor.protocol().extension.fuzzing.states.keys().cloned().map(Some).collect();
    let mut obstacles: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let entered = enter(&investigator.executor, states, jobs).await;
    let programs: Vec<(u64, Program)> =
        (0..).zip(entered.iter().map(|execution| execution.program.clone())).collect();
    for execution in entered {
        let state = execution.program.state.clone();
        match execution.obstacle() {
            None => reached.push(state),
            Some((_, why)) => obstacles.entry(why).or_default().extend(state),
        }
    }
    for (why, states) in obstacles {
        let states = states.join(", ");
        investigator
            .events
            .note(Note::unique(format!("skipped states that fail without any fuzzing: {states}: {why}")));
    }
    // Nothing was fuzzed yet: a server that crashes all the same is a finding, too.
    for how in investigator.take_crashes().await {
        investigator.record_crash(&how, &programs).await;
    }
    reached
}

/// Enters and leaves states, as many at once as cases may run.
async fn enter(executor: &Executor, states: Vec<Option<String>>, jobs: usize) -> Vec<Execution> {
    // Each has sessions of its own.
    let enter = |(index, state)| {
        let program = Program {
            state,
            inputs: Vec::new(),
            clean_turn_after: true,
            fresh_connection_after: true,
            bystander: true,
            bystander_state: None,
            repeat: None,
        };
        let seed = executor.seed().wrapping_add(index as u64);
        executor.run(program, seed, executor.replay_deadline())
    };
    let entered = futures_util::stream::iter(states.into_iter().enumerate()).map(enter).buffered(jobs.max(1));
    entered.filter_map(std::future::ready).collect().await
}
