//! The CodeLab dialect: `protocols/codelab/asyncapi.yaml`, default readings; where those leave a choice, the strict ones.
//!
//! The agent runs what the user approves, the IDE everything else. A `say` may hold `<<results>>`, what the calls of the
//! model response before came to, in the order of the calls, and `<<text>>`, the user's text without its cue.

mod command;
mod connection;
mod faults;
mod session;
mod turn;

pub(super) use faults::FAULTS;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use faults::Defect;
use session::Session;

/// Sessions that a server keeps; past that idle ones are forgotten.
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
    fn session(&self, id: &str) -> Arc<Session> {
        let id: String =
            if self.has(Defect::CutsSessionIds) { id.chars().take(9).collect() } else { id.to_owned() };
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS {
            sessions.retain(|_, session| Arc::strong_count(session) > 1);
        }
        if self.has(Defect::ForgetsOnReconnect) {
            sessions.remove(&id);
        }
        let made = || Arc::new(Session::new(self.defect));
        Arc::clone(sessions.entry(id).or_insert_with(made))
    }
}
