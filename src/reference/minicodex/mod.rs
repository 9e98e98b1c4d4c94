//! The MiniCodex dialect: `protocols/minicodex/asyncapi.yaml`, default readings.

mod command;
mod connection;
mod faults;
mod run;
mod session;

pub(super) use faults::FAULTS;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use faults::Defect;
use session::Session;

/// Sessions that a server keeps; past that the oldest idle ones are not kept track of any more.
const MAX_SESSIONS: usize = 100_000;

/// A server: its sessions and its defect.
pub(super) struct Service {
    defect: Option<Defect>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
}

impl Service {
    pub(super) fn new(fault: Option<&str>) -> Self {
        Self { defect: fault.and_then(Defect::named), sessions: Mutex::default() }
    }

    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    /// The session of an id, made where there is none.
    fn session(&self, id: Option<&str>) -> Arc<Session> {
        let id = id.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS {
            sessions.retain(|_, session| Arc::strong_count(session) > 1);
        }
        let made = || Arc::new(Session::new(&id, self.defect));
        Arc::clone(sessions.entry(id.clone()).or_insert_with(made))
    }
}
