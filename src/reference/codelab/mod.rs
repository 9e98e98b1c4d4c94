//! The CodeLab dialect: `protocols/codelab/asyncapi.yaml`, default readings; where those leave a choice, the strict ones.
//!
//! The agent runs what the user approves, the IDE everything else. A `say` may hold `<<results>>`, what the turn's calls
//! have come to so far, in their order, and `<<text>>`, the user's text without its cue.

mod command;
mod connection;
mod faults;
mod session;
mod styles;
mod turn;
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

    #[allow(dead_code, reason = "a style is asked for where it matters, and that may be elsewhere")]
    fn style(&self, style: Style) -> bool {
        self.behaviour.style(style)
    }

    /// The session of an id, made where there is none.
    fn session(&self, id: &str) -> Arc<Session> {
        let id: String =
            if self.has(Defect::CutsSessionIds) { id.chars().take(9).collect() } else { id.to_owned() };
        if self.has(Defect::ForgetsOnReconnect) {
            self.sessions.forget(&id);
        }
        self.sessions.get_or_make(id, || Session::new(&self.behaviour.of_session()))
    }
}
