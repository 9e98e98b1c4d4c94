//! Before anything is fuzzed: which states the target can be brought into.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt;

use super::events::Note;
use super::executor::{Execution, Executor};
use super::investigate::Investigator;
use super::program::Program;

/// The states that this target can be brought into and out of, and a first turn without any harm. `jobs`: cases side by side.
pub(super) async fn reachable_states(
    investigator: &mut Investigator<'_>,
    jobs: usize,
    time: Option<Duration>,
) -> Vec<Option<String>> {
    let mut reached = vec![None];
    let began = Instant::now();
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
    let mut states: Vec<Option<String>> =
        investigator.executor.protocol().extension.fuzzing.states.keys().cloned().map(Some).collect();
    let (pace, all) = (began.elapsed(), states.len());
    if let Some(most) = affordable(pace, jobs, time).filter(|most| *most < all) {
        states.truncate(most);
        investigator.events.note(Note::unique(format!(
            "a case takes {pace:.1?}, most of it spent in waiting: {most} of {all} states are fuzzed in this time. {}, or more --time, allows \
             for the others",
            match investigator.executor.protocol().extension.has_whole_barrier() {
                true => "A smaller --timeout-scale",
                false => "A shorter silence (`quiet-period` of the target, or --quiet-period)",
            }
        )));
    }
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

/// How many states can be entered in a quarter of a campaign's time, where a case takes so long; none: as many as there are.
fn affordable(pace: Duration, jobs: usize, time: Option<Duration>) -> Option<usize> {
    let rounds = time?.as_secs_f64() / 4.0 / pace.as_secs_f64().max(1e-3);
    Some((rounds * jobs.max(1) as f64) as usize)
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
            bystander: executor.protocol().lacks_isolation().is_none(),
            bystander_state: None,
            repeat: None,
        };
        let seed = executor.seed().wrapping_add(index as u64);
        executor.run(program, seed, executor.replay_deadline())
    };
    let entered = futures_util::stream::iter(states.into_iter().enumerate()).map(enter).buffered(jobs.max(1));
    entered.filter_map(std::future::ready).collect().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_servers_are_fuzzed_in_the_states_that_the_time_allows() {
        let seconds = Duration::from_secs;
        assert_eq!(affordable(seconds(6), 1, Some(seconds(60))), Some(2));
        assert_eq!(affordable(seconds(6), 4, Some(seconds(60))), Some(10));
        assert_eq!(affordable(seconds(30), 1, Some(seconds(60))), Some(0));
        assert_eq!(affordable(seconds(6), 1, None), None);
    }
}
