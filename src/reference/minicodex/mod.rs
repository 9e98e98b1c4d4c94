//! The MiniCodex dialect: `protocols/minicodex/asyncapi.yaml`, default readings.

mod command;
mod connection;
mod faults;
mod handshake;
mod orders;
mod past;
mod run;
mod session;
mod slips;
mod styles;
mod variants;

pub(super) use faults::FAULTS;
pub(super) use styles::STYLES;

use std::sync::Arc;

use faults::Defect;
use session::Session;
use styles::Style;

use crate::reference::engine::Sessions;
use crate::reference::engine::Setup;

/// What a server does otherwise than the plain one.
type Behaviour = crate::reference::engine::Behaviour<Defect, Style>;

/// A server: its sessions and its defect.
pub(super) struct Service {
    behaviour: Behaviour,
    sessions: Sessions<Session>,
}

impl Service {
    pub(super) fn new(setup: &Setup) -> Self {
        Self { behaviour: Behaviour::new(setup), sessions: Sessions::default() }
    }

    fn has(&self, defect: Defect) -> bool {
        self.behaviour.strikes(defect)
    }

    /// The session of an id, made where there is none.
    fn session(&self, id: Option<&str>) -> Arc<Session> {
        let id = id.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned);
        self.sessions.get_or_make(id.clone(), || Session::new(&id, &self.behaviour.of_session()))
    }

    /// Another session of the same id, for a defect.
    fn twin(&self, id: &str) -> Arc<Session> {
        self.sessions.get_or_make(format!("{id}#"), || Session::new(id, &self.behaviour.of_session()))
    }
}
