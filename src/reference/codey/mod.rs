//! The codey dialect: `protocols/codey/asyncapi.yaml`, default readings. A connection is a session.

mod command;
mod connection;
mod faults;
mod frame_faults;
mod past;
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
use past::Approvals;
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
    approvals: Arc<Mutex<Approvals>>,
    sessions: Mutex<Sessions>,
}

/// The sessions that are open, and how many there were.
#[derive(Default)]
struct Sessions {
    open: Vec<Weak<Session>>,
    count: u64,
}

impl Service {
    pub(super) fn new(setup: &Setup) -> Self {
        let behaviour = Behaviour::new(setup);
        Self { behaviour, notes: Arc::default(), approvals: Arc::default(), sessions: Mutex::default() }
    }

    fn add(&self, session: &Arc<Session>) {
        let borrowed = self.unused_id();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let past = &mut session.lock().past;
        past.number = sessions.count;
        past.borrowed = borrowed;
        sessions.count += 1;
        sessions.open.retain(|session| session.strong_count() > 0);
        sessions.open.push(Arc::downgrade(session));
    }

    /// The id of an open session that has it to itself and has heard nothing from its client yet.
    fn unused_id(&self) -> Option<String> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = sessions.open.iter().filter_map(Weak::upgrade);
        open.find_map(|session| {
            let inner = session.lock();
            let is_unused = inner.messages == 0 && inner.past.borrowed.is_none() && !inner.past.id.is_empty();
            is_unused.then(|| inner.past.id.clone())
        })
    }

    /// The session that waits for a decision about this call.
    fn waiting(&self, call_id: &str) -> Option<Arc<Session>> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = sessions.open.iter().filter_map(Weak::upgrade);
        open.find(|session| session.lock().pending.iter().any(|call| call.id == call_id))
    }
}

impl ConnectionHandler for Service {
    fn serve<'d>(&'d self, socket: Socket, _path: String) -> BoxFuture<'d, ()> {
        Box::pin(connection::serve(self, socket))
    }
}
