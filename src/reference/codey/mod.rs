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
use session::{Inner, Session};
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
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let lends: Option<fn(&Inner) -> bool> = if session.behaviour.prepares(Defect::LendsIds) {
            Some(|inner| inner.messages == 0)
        } else if session.behaviour.prepares(Defect::LendsIdsWhileAsking) {
            Some(|inner| !inner.pending.is_empty())
        } else {
            None
        };
        session.lock().badge.borrowed = lends.and_then(|lends| sessions.lend(session, lends));
        session.lock().badge.number = sessions.count;
        sessions.count += 1;
        sessions.open.retain(|session| session.strong_count() > 0);
        sessions.open.push(Arc::downgrade(session));
    }

    /// The session that waits for a decision about this call.
    fn waiting(&self, call_id: &str) -> Option<Arc<Session>> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = sessions.open.iter().filter_map(Weak::upgrade);
        open.find(|session| session.lock().pending.iter().any(|call| call.id == call_id))
    }
}

impl Sessions {
    /// The id of an open session that lends it. One whose borrowers are not all there any more keeps it: who comes back is to have
    /// another id than before.
    fn lend(&self, borrower: &Arc<Session>, would_lend: fn(&Inner) -> bool) -> Option<String> {
        let is_there =
            |session: &Weak<Session>| session.upgrade().is_some_and(|session| !session.lock().badge.gone);
        let mut open = self.open.iter().filter_map(Weak::upgrade);
        let lender = open.find(|session| {
            let (lends, borrowers) = {
                let inner = session.lock();
                let badge = &inner.badge;
                let is_own = !badge.gone && badge.borrowed.is_none() && !badge.id.is_empty();
                (is_own && would_lend(&inner), badge.borrowers.clone())
            };
            lends && borrowers.iter().all(is_there)
        })?;
        let badge = &mut lender.lock().badge;
        badge.borrowers.push(Arc::downgrade(borrower));
        Some(badge.id.clone())
    }
}

impl ConnectionHandler for Service {
    fn serve<'d>(&'d self, socket: Socket, _path: String) -> BoxFuture<'d, ()> {
        Box::pin(connection::serve(self, socket))
    }
}
