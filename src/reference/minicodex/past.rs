//! What the defects remember that a correct server forgets.

use std::collections::HashSet;
use std::time::Instant;

use serde_json::Value;
use uuid::Uuid;

use super::session::Call;

/// Of a session.
#[derive(Default)]
pub(super) struct Past {
    /// The `client_msg_id` of refused messages.
    pub refused_ids: HashSet<String>,
    /// The runs that are over.
    pub runs: Vec<String>,
    /// An abort was refused because no run was active.
    pub aborted: bool,
    /// The newest run that was aborted by its run_id.
    pub aborted_by_id: Option<Uuid>,
    /// The next event begins the ids anew.
    pub restarts: bool,
    /// The next event has the newest id once more.
    pub repeats: bool,
    /// A call was approved.
    pub approved: bool,
    /// A call was asked about.
    pub asked: bool,
    pub abort: PastAbort,
    /// The clients that have joined during the active run.
    pub latecomers: HashSet<u64>,
    /// What a run is to be started with when the active one is over.
    pub postponed: Option<String>,
    /// The cursor of the first resume.
    pub resumed_from: Option<i64>,
    /// The event before the newest run.
    pub first_event: u64,
}

/// Of the newest abort or decision.
#[derive(Default)]
pub(super) struct PastAbort {
    /// The run.
    pub run: Option<Uuid>,
    /// When it stopped a tool.
    pub tool_stopped: Option<Instant>,
    /// Who is to get an error for it, and with which req_id.
    pub late_error: Option<(u64, String)>,
    /// The client that does not get the event that is about to be sent.
    pub muted: Option<u64>,
    /// The calls that it or a denial has dropped.
    pub dropped: Vec<Call>,
}

/// Of a client.
#[derive(Default)]
pub(super) struct PeerPast {
    /// The req_id of its newest command that had one.
    pub req_id: Option<String>,
    /// The cursor for which it was pointed to get_snapshot.
    pub gap: Option<i64>,
    /// What it was shown when it joined others.
    pub shown: Option<Value>,
    /// Its newest snapshot was of an idle session.
    pub saw_end: bool,
}

/// The command that has started a run.
#[derive(Default)]
pub(super) struct Order {
    pub text: String,
    pub message_id: Option<String>,
    /// Who has sent it.
    pub client: u64,
    pub req_id: Option<String>,
}
