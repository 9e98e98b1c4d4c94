//! The codex dialect: `protocols/codex/asyncapi.yaml`, default readings, on a machine that is in memory.

mod asking;
mod builtins;
mod connection;
mod deviations;
mod ending;
mod exec;
mod exec_request;
mod faults;
mod files;
mod filing;
mod fs;
mod items;
mod lists;
mod more_faults;
mod patch;
mod player;
mod rpc;
mod shell;
mod state;
mod steering;
mod store;
mod styles;
mod threads;
mod tools;

pub(super) use faults::FAULTS;
pub(super) use styles::STYLES;

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

use faults::Defect;
use state::State;
use styles::Style;

use crate::reference::engine::Setup;

/// What a server does otherwise than the plain one.
type Behaviour = crate::reference::engine::Behaviour<Defect, Style>;

/// A server. What it has under way ends with it.
pub(super) struct Service {
    core: Arc<Core>,
}

/// What connections, turns and commands share.
struct Core {
    behaviour: Behaviour,
    state: Mutex<State>,
    /// Turns and commands.
    tasks: Mutex<JoinSet<()>>,
}

impl Service {
    pub(super) fn new(setup: &Setup) -> Self {
        let behaviour = Behaviour::new(setup);
        let state = State::new(behaviour.clone());
        Self::on(behaviour, state)
    }

    fn on(behaviour: Behaviour, state: State) -> Self {
        Self { core: Arc::new(Core { behaviour, state: Mutex::new(state), tasks: Mutex::default() }) }
    }

    /// The server that begins on what this one has stored.
    fn successor(&self) -> Self {
        self.core.tasks().abort_all();
        let state = self.core.lock().stored();
        Self::on(self.core.behaviour.clone(), state)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // They hold the core, which holds them.
        self.core.tasks().abort_all();
    }
}

impl Core {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        // Those that are done are taken out.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}
