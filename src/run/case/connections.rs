//! The connections of a case: its clients, the sessions they are in, and the queue in which all that is received comes.

use std::collections::HashMap;

use tokio::sync::mpsc;

use crate::run::case::client::Clients;
use crate::target::Vars;
use crate::wire::Incoming;

/// Messages that wait for the interpreter; a server that sends more is kept waiting by TCP.
pub(crate) const QUEUE: usize = 256;

/// The clients of a case, and what their connections deliver.
pub(crate) struct Connections {
    pub clients: Clients,
    pub first_client: Option<String>,
    pub sessions: Sessions,
    pub sender: mpsc::Sender<Incoming>,
    pub receiver: mpsc::Receiver<Incoming>,
    /// Which client a connection belongs to, by its number.
    pub numbers: HashMap<u64, String>,
    pub next_number: u64,
}

/// The sessions of a case, by name.
#[derive(Default)]
pub(crate) struct Sessions {
    /// The id, once it is known.
    pub ids: HashMap<String, Option<String>>,
    /// What the set-up calls of each session found.
    pub vars: HashMap<String, Vars>,
}

impl Default for Connections {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        Self {
            clients: Clients::new(),
            first_client: None,
            sessions: Sessions::default(),
            sender,
            receiver,
            numbers: HashMap::new(),
            next_number: 0,
        }
    }
}
