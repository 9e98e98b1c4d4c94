//! The MiniCodex dialect: `protocols/minicodex/asyncapi.yaml`, default readings.

mod command;
mod connection;
mod entrance;
mod faults;
mod orders;
mod run;
mod session;

pub(super) use faults::FAULTS;

use std::sync::Arc;

use faults::Defect;
use session::Session;

use crate::reference::engine::Sessions;

/// A server: its sessions and its defect.
pub(super) struct Service {
    defect: Option<Defect>,
    sessions: Sessions<Session>,
}

impl Service {
    pub(super) fn new(fault: Option<&str>) -> Self {
        Self { defect: fault.and_then(Defect::named), sessions: Sessions::default() }
    }

    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    /// The session of an id, made where there is none.
    fn session(&self, id: Option<&str>) -> Arc<Session> {
        let id = id.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned);
        self.sessions.get_or_make(id.clone(), || Session::new(&id, self.defect))
    }
}
