//! The codey dialect: `protocols/codey/asyncapi.yaml`, default readings. A connection is a session.

mod command;
mod connection;
mod faults;
mod frame_faults;
mod session;
mod styles;
mod tool;
mod turn;
mod variants;

pub(super) use faults::FAULTS;
pub(super) use styles::STYLES;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use faults::Defect;
use futures_util::future::BoxFuture;
use session::Session;
use styles::Style;

use super::engine::Setup;
use super::engine::notes::Notes;
use super::{ConnectionHandler, Socket};

/// What a server does otherwise than the plain one.
type Behaviour = crate::reference::engine::Behaviour<Defect, Style>;

/// A server: its notes, which all sessions share as they would a machine's files, and its defect.
pub(super) struct Service {
    behaviour: Behaviour,
    notes: Arc<Mutex<Notes>>,
    sessions: Mutex<Vec<Weak<Session>>>,
}

impl Service {
    pub(super) fn new(setup: &Setup) -> Self {
        Self { behaviour: Behaviour::new(setup), notes: Arc::default(), sessions: Mutex::default() }
    }

    fn add(&self, session: &Arc<Session>) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(session));
    }

    /// The session that waits for a decision about this call.
    fn waiting(&self, call_id: &str) -> Option<Arc<Session>> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = sessions.iter().filter_map(Weak::upgrade);
        open.find(|session| session.lock().pending.iter().any(|call| call.id == call_id))
    }
}

impl ConnectionHandler for Service {
    fn serve<'d>(&'d self, socket: Socket, _path: String) -> BoxFuture<'d, ()> {
        Box::pin(connection::serve(self, socket))
    }
}
