//! Before anything is fuzzed: which states the target can be brought into.

use std::collections::BTreeMap;

use futures_util::StreamExt;

use super::campaign::Campaign;
use super::executor::Execution;
use super::program::Program;

impl Campaign<'_> {
    /// The states that this target can be brought into and out of, and a first turn without any harm.
    pub(super) async fn reachable(&mut self) -> Vec<Option<String>> {
        let mut reached = vec![None];
        if let Some(ran) = self.enter(vec![None]).await.pop() {
            let obstacle = ran.obstacle();
            if let Some((_, why)) = &obstacle {
                let text = format!(
                    "left out all states but the opened one, for that fails without any fuzzing: {why}"
                );
                self.note(text.clone(), text);
            }
            let blocked = obstacle.is_some();
            // What is no obstacle may be a finding all the same.
            let print = obstacle.map(|(print, _)| print).or_else(|| ran.wrong().into_iter().next());
            if let Some(print) = print {
                self.look_into(0, ran, &print).await;
            }
            if blocked {
                return reached;
            }
        }
        let states: Vec<Option<String>> =
            self.executor.ground.protocol().extension.fuzzing.states.keys().cloned().map(Some).collect();
        let mut obstacles: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let entered = self.enter(states).await;
        let programs: Vec<(u64, Program)> =
            (0..).zip(entered.iter().map(|ran| ran.program.clone())).collect();
        for ran in entered {
            let state = ran.program.state.clone();
            match ran.obstacle() {
                None => reached.push(state),
                Some((_, why)) => obstacles.entry(why).or_default().extend(state),
            }
        }
        for (why, states) in obstacles {
            let text = format!("left out states that fail without any fuzzing: {}: {why}", states.join(", "));
            self.note(text.clone(), text);
        }
        // Nothing was fuzzed yet: a server that dies all the same is a finding, too.
        for how in self.fallen().await {
            self.mourn(&how, &programs).await;
        }
        reached
    }

    /// Enters and leaves states, as many at once as cases may run.
    async fn enter(&self, states: Vec<Option<String>>) -> Vec<Execution> {
        // Each has sessions of its own.
        let enter = |(index, state)| {
            let program = Program {
                state,
                inputs: Vec::new(),
                own: true,
                fresh: true,
                witness: true,
                witness_state: None,
                repeat: None,
            };
            let seed = self.options.seed.wrapping_add(index as u64);
            self.executor.run(program, seed, self.options.deadline * 3)
        };
        let ran = futures_util::stream::iter(states.into_iter().enumerate())
            .map(enter)
            .buffered(self.options.jobs.max(1));
        ran.filter_map(std::future::ready).collect().await
    }
}
