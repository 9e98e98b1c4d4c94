//! The tinyvex dialect: `protocols/tinyvex/asyncapi.yaml`, default readings, on a journal.

mod agent;
mod connection;
mod faults;
mod methods;
mod past;
mod rpc;
mod spelling;
mod store;
mod streams;
mod styles;

pub(super) use faults::FAULTS;
pub(super) use styles::STYLES;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

use faults::Defect;
use spelling::Spelling;
use store::{Disk, Store};
use streams::Streams;
use styles::Style;

use crate::reference::engine::Canceller;
use crate::reference::engine::Setup;
use crate::reference::engine::notes::Notes;
use crate::shortage;

/// What a server does otherwise than the plain one.
type Behaviour = crate::reference::engine::Behaviour<Defect, Style>;

/// A server: its state, and the prompts that are being answered, which end with it.
pub(super) struct Service {
    behaviour: Behaviour,
    spelling: Spelling,
    /// The file of the database. It goes when the last server on it does.
    data: Option<Disk>,
    /// None where the database cannot be opened: then no connection is served.
    core: Option<Arc<Core>>,
    players: Mutex<JoinSet<()>>,
}

/// What connections and prompts share.
struct Core {
    behaviour: Behaviour,
    spelling: Spelling,
    state: Mutex<State>,
}

/// A prompt on its way.
struct Running {
    /// The connection that has sent it.
    client: u64,
    cancel: Canceller,
}

/// Everything that changes. Requests are carried out one after the other, under its lock.
struct State {
    store: Store,
    streams: Streams,
    /// Sessions with a prompt.
    running: HashMap<String, Running>,
    /// Notes by session.
    notes: HashMap<String, Notes>,
    /// The newest session that each client made.
    newest: HashMap<u64, String>,
    next_client: u64,
    calls: u64,
}

impl Service {
    /// A server on a journal of its own.
    pub(super) fn new(setup: &Setup) -> Self {
        let data = shortage::note_result(Disk::new()).ok();
        Self::on(Behaviour::new(setup), Spelling::Acp, data)
    }

    /// The same, with ACP spelt as its snake_case port does.
    pub(super) fn in_snake_case(setup: &Setup) -> Self {
        let Self { behaviour, data, .. } = Self::new(setup);
        Self::on(behaviour, Spelling::SnakeCase, data)
    }

    fn on(behaviour: Behaviour, spelling: Spelling, data: Option<Disk>) -> Self {
        let store = data.as_ref().and_then(|disk| shortage::note_result(Store::open(disk)).ok());
        let core = store.map(|store| {
            let state = State {
                store,
                streams: Streams::new(&behaviour),
                running: HashMap::new(),
                notes: HashMap::new(),
                newest: HashMap::new(),
                next_client: 0,
                calls: 0,
            };
            Arc::new(Core { behaviour: behaviour.clone(), spelling, state: Mutex::new(state) })
        });
        Self { behaviour, spelling, data, core, players: Mutex::default() }
    }

    fn play(&self, player: agent::Player, text: String) {
        let mut players = self.players.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are done are taken out.
        while players.try_join_next().is_some() {}
        players.spawn(player.answer(text));
    }
}

impl Core {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
