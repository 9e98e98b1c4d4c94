//! The connections of a case: its clients, the sessions they are in, and the queue in which all that is received comes.

use std::collections::HashMap;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::run::case::client::{Client, Clients, Live};
use crate::run::case::outcome::{Abort, CloseHandshake};
use crate::run::triage::activity::{Optional, ServerActivity};
use crate::target::Vars;
use crate::trace::Payload;
use crate::wire::{ConnectError, Endpoint, Incoming, Link, LinkMode};

/// Messages that wait for the interpreter; a server that sends more is kept waiting by TCP.
const QUEUE: usize = 256;

/// The clients of a case, and what their connections deliver. A number belongs to one connection, and to no other ever.
pub(crate) struct Connections {
    clients: Clients,
    first: Option<String>,
    pub sessions: Sessions,
    sender: mpsc::Sender<Incoming>,
    receiver: mpsc::Receiver<Incoming>,
    /// Which client a connection belongs to, by its number.
    numbers: HashMap<u64, String>,
}

/// The sessions of a case, by name.
#[derive(Default)]
pub(crate) struct Sessions {
    /// The id, once it is known.
    ids: HashMap<String, Option<String>>,
    /// What the set-up calls of each session found.
    vars: HashMap<String, Vars>,
}

impl Default for Connections {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        Self {
            clients: Clients::new(),
            first: None,
            sessions: Sessions::default(),
            sender,
            receiver,
            numbers: HashMap::new(),
        }
    }
}

impl Connections {
    /// A client that was opened before.
    pub fn client(&mut self, name: &str) -> Result<&mut Client, Abort> {
        self.get_mut(name).ok_or_else(|| Abort::Error(format!("client `{name}` was never opened")))
    }

    pub fn get(&self, name: &str) -> Option<&Client> {
        self.clients.get(name)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Client> {
        self.clients.get_mut(name)
    }

    pub fn all(&self) -> impl Iterator<Item = &Client> {
        self.clients.values()
    }

    /// The names of all clients, in alphabetical order.
    pub fn names(&self) -> Vec<String> {
        self.clients.keys().cloned().collect()
    }

    /// The client that was opened first: who does what no step says who does.
    pub fn first(&self) -> Option<&str> {
        self.first.as_deref()
    }

    /// Who is opened next is the first one, if this client was.
    pub fn leave(&mut self, name: &str) {
        self.first.take_if(|first| first == name);
    }

    /// Connects a client in a session. After a refusal the client is there all the same, with its connection ended.
    pub async fn connect(
        &mut self,
        name: &str,
        session: String,
        endpoint: &Endpoint,
        mode: LinkMode,
    ) -> Result<(), ConnectError> {
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(number, name.to_owned());
        let opened = Link::open(endpoint, number, self.sender.clone(), mode).await;
        let (live, refused) = match opened {
            Ok(link) => (Some(Live::new(link, number)), Ok(())),
            Err(error) => (None, Err(error)),
        };
        let client = self.clients.entry(name.to_owned()).or_insert_with(|| Client::new(&session));
        client.connect(session, live);
        self.first.get_or_insert_with(|| name.to_owned());
        refused
    }

    /// Waits for the next thing that any client receives; none: nothing came before the deadline.
    pub async fn receive(&mut self, until: Instant) -> Option<Incoming> {
        tokio::time::timeout_at(until.into(), self.receiver.recv()).await.ok().flatten()
    }

    /// The next thing that has been received already.
    pub fn received(&mut self) -> Option<Incoming> {
        self.receiver.try_recv().ok()
    }

    /// So much is waiting that the server may soon be kept waiting.
    pub fn is_crowded(&self) -> bool {
        self.receiver.len() * 2 > QUEUE
    }

    /// Whose connection something came on; none: the client has left it.
    pub fn receiver_of(&self, incoming: &Incoming) -> Option<&str> {
        let name = self.numbers.get(&incoming.connection)?;
        let is_present = self.get(name)?.number() == Some(incoming.connection);
        is_present.then_some(name)
    }

    /// Closes what is open still with this code, and waits until it has ended. Nothing of it is judged.
    pub async fn close_all(&mut self, code: u16, until: Instant, awaited: Awaited<'_>) -> CloseHandshake {
        let mut open = HashSet::new();
        let mut close_handshake = CloseHandshake::Completed;
        for client in self.clients.values_mut() {
            let polite = !client.has_ended() && !client.is_stalled() && client.is_understood();
            let number = client.number();
            let Some(link) = client.link().filter(|_| polite) else { continue };
            match link.close(Some(code), until.saturating_duration_since(Instant::now())).await {
                Ok(()) => open.extend(number),
                Err(_) => close_handshake = CloseHandshake::Missed,
            }
        }
        let mut ends = open.clone();
        let done = close_handshake.max(wait_for_frames(&mut self.receiver, open, &mut ends, until).await);
        if let Awaited::TcpEnd(activity) = awaited
            && done == CloseHandshake::Completed
            && !ends.is_empty()
            && !activity.leaves_out(TCP_END)
        {
            let until = Instant::now() + PATIENCE_FOR_TCP;
            wait_for_tcp(&mut self.receiver, &mut ends, until).await;
            activity.note_optional(TCP_END, if ends.is_empty() { Optional::Came } else { Optional::Missed });
        }
        done
    }
}

/// What is waited for when a connection is closed that nobody needs any more.
#[derive(Clone, Copy)]
pub(crate) enum Awaited<'a> {
    /// The server's close frame.
    Frame,
    /// The end of the TCP connection, too: a server may tidy up behind it, and the next case must not come in between. One that leaves
    /// connections open is known after a few.
    TcpEnd(&'a ServerActivity),
}

/// What the waits for the end of TCP connections are noted as.
const TCP_END: &str = "the end of the TCP connection";
/// How long it may take behind the close frame.
const PATIENCE_FOR_TCP: Duration = Duration::from_secs(1);

/// Waits until this connection has ended. What else comes is thrown away.
pub(crate) async fn wait_for_end(receiver: &mut mpsc::Receiver<Incoming>, number: u64, until: Instant) {
    wait_for_tcp(receiver, &mut HashSet::from([number]), until).await;
}

async fn wait_for_tcp(receiver: &mut mpsc::Receiver<Incoming>, ends: &mut HashSet<u64>, until: Instant) {
    while !ends.is_empty()
        && let Ok(Some(incoming)) = tokio::time::timeout_at(until.into(), receiver.recv()).await
    {
        if matches!(incoming.payload, Payload::End(_)) {
            ends.remove(&incoming.connection);
        }
    }
}

/// Waits until a close frame has come on these connections, or they have ended: the latter leave `ends`.
async fn wait_for_frames(
    receiver: &mut mpsc::Receiver<Incoming>,
    mut open: HashSet<u64>,
    ends: &mut HashSet<u64>,
    until: Instant,
) -> CloseHandshake {
    let mut close_handshake = CloseHandshake::Completed;
    while !open.is_empty()
        && let Ok(Some(incoming)) = tokio::time::timeout_at(until.into(), receiver.recv()).await
    {
        let ended = matches!(incoming.payload, Payload::End(_));
        if ended {
            ends.remove(&incoming.connection);
        }
        if (ended || matches!(incoming.payload, Payload::Close { .. })) && open.remove(&incoming.connection) {
            close_handshake =
                close_handshake.max(if ended { CloseHandshake::Missed } else { CloseHandshake::Completed });
        }
    }
    if open.is_empty() { close_handshake } else { CloseHandshake::Missed }
}

impl Sessions {
    /// A session's id, once it is known.
    pub fn id(&self, session: &str) -> Option<String> {
        self.ids.get(session).cloned().flatten()
    }

    /// A session's id becomes known.
    pub fn set_id(&mut self, session: &str, id: String) {
        self.ids.insert(session.to_owned(), Some(id));
    }

    /// What the set-up calls of a session found.
    pub fn vars(&self, session: &str) -> Option<&Vars> {
        self.vars.get(session)
    }

    pub fn set_vars(&mut self, session: &str, vars: Vars) {
        self.vars.insert(session.to_owned(), vars);
    }
}
