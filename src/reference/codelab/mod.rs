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
    fn session(&self, id: &str) -> Arc<Session> {
        let id: String =
            if self.has(Defect::CutsSessionIds) { id.chars().take(9).collect() } else { id.to_owned() };
        if self.has(Defect::ForgetsOnReconnect) {
            self.sessions.forget(&id);
        }
        self.sessions.get_or_make(id, || Session::new(self.defect))
    }
}
