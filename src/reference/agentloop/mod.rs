//! The AgentLoop dialect: `protocols/agentloop/asyncapi.yaml`, default readings.
//!
//! Each connection is a conversation of its own; the notes, like the files of a working folder, are shared.

mod asking;
mod connection;
mod context;
mod conversation;
mod ending;
mod faults;
mod items;
mod styles;
mod turn;
mod variants;

pub(super) use faults::FAULTS;
pub(super) use styles::STYLES;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use faults::Defect;
use styles::Style;

use crate::reference::engine::Setup;
use crate::reference::engine::clients::Outbox;
use crate::reference::engine::notes::Notes;

/// What a server does otherwise than the plain one.
type Behaviour = crate::reference::engine::Behaviour<Defect, Style>;

/// A server: what its connections share, and its defect.
pub(super) struct Service {
    shared: Arc<Shared>,
}

/// What all connections have in common.
struct Shared {
    behaviour: Behaviour,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    notes: Notes,
    /// Commands that were approved, with the connection that did (a defect asks no other one).
    approved: HashMap<Vec<String>, u64>,
    /// Commands that wait for their approval, with the connection that asks (a defect asks no other one).
    waiting: HashMap<Vec<String>, u64>,
    /// Commands that always approves on every connection (a defect).
    always: HashSet<Vec<String>>,
    /// The connection that uses a message id (a defect answers there).
    routes: HashMap<String, (u64, Outbox)>,
    /// Ids of turns whose connection is gone (a defect lets them go on).
    orphans: HashSet<String>,
    connections: u64,
}

impl Service {
    pub(super) fn new(setup: &Setup) -> Self {
        let behaviour = Behaviour::new(setup);
        Self { shared: Arc::new(Shared { behaviour, state: Mutex::default() }) }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
