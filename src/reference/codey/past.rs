//! What a session remembers of its past only because a defect needs it.

use std::collections::BTreeSet;
use std::sync::Weak;

use super::session::Session;
use crate::reference::engine::notes::{self, Class};

/// Who a session is.
#[derive(Default)]
pub(super) struct Badge {
    /// Its number on the server, and its id.
    pub number: u64,
    pub id: String,
    /// The id of another session, which it is given.
    pub borrowed: Option<String>,
    /// The sessions that were given its id.
    pub borrowers: Vec<Weak<Session>>,
    /// Its client is gone.
    pub gone: bool,
}

/// What has happened in a session so far.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// The text of the newest turn.
    pub message: Option<String>,
    /// How many errors the client has been told.
    pub errors: u64,
    /// How many times the client has cancelled a text.
    pub cancelled_texts: u64,
    /// The ids of the calls of a turn that was cancelled.
    pub cancelled_calls: Vec<String>,
    /// How many calls have failed.
    pub failures: u64,
    /// The newest message that was addressed at all was addressed to an agent that does not exist.
    pub lost_address: bool,
    /// The client has denied a call; a rule has.
    pub has_denied: bool,
    pub rule_has_denied: bool,
    /// The next piece of text is lost.
    pub loses_text: bool,
}

/// What has become of the calls of one request.
#[derive(Debug, Default)]
pub(super) struct Request {
    /// The names of their tools.
    pub tools: Vec<String>,
    /// What the client has said first about one of them.
    pub first_decision: Option<bool>,
    /// One that needs approval has run.
    pub guarded_ran: bool,
}

impl Request {
    /// Whether it has a call that needs approval.
    pub fn asks(&self) -> bool {
        self.tools.iter().any(|tool| notes::class(tool) == Class::Guarded)
    }
}

/// What clients have approved, and in which sessions: all of the server's sessions share it.
#[derive(Debug, Default)]
pub(super) struct Approvals(BTreeSet<(String, u64)>);

impl Approvals {
    pub fn add(&mut self, call: String, session: u64) {
        self.0.insert((call, session));
    }

    /// Whether another session's client has approved such a call.
    pub fn others_have(&self, call: &str, session: u64) -> bool {
        self.0.iter().any(|(approved, by)| approved == call && *by != session)
    }
}
