//! What a server knows: its machine, its threads, who is connected, and what is under way.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{RwLock, mpsc, oneshot};
use tokio_tungstenite::tungstenite::Message;

use super::Behaviour;
use super::deviations;
use super::faults::Defect;
use super::files::Files;
use super::rpc::{Refusal, refuse};
use super::shell::Size;
use super::store::{Settings, Thread, Threads};
use super::styles::Style;
use crate::cue::Response;
use crate::reference::engine::Canceller;
use crate::reference::engine::clients::Outbox;

/// The home of the server's user, and its own.
pub(super) const USER_HOME: &str = "/home/codex";
pub(super) const HOME: &str = "/home/codex/.codex";
/// Where threads run that name no directory.
pub(super) const WORK: &str = "/home/codex/work";
/// Most threads.
const MOST_THREADS: usize = 100_000;

/// A connection.
pub(super) struct Client {
    pub outbox: Outbox,
    pub behaviour: Behaviour,
    /// What initialize has agreed on; none: it has not come yet.
    pub agreed: Option<Agreed>,
    /// A project of its was not marked as trusted, under a defect.
    pub untrusted: bool,
    /// It has sent initialized.
    pub greeted: bool,
    /// The threads that it has unsubscribed from.
    pub left: BTreeSet<String>,
}

impl Client {
    pub fn new(outbox: Outbox, behaviour: Behaviour) -> Self {
        Self { outbox, behaviour, agreed: None, untrusted: false, greeted: false, left: BTreeSet::new() }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Agreed {
    pub experimental: bool,
    pub opted_out: HashSet<String>,
}

/// What the status of a thread says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Idle,
    Failed,
    Active {
        /// An approval is pending.
        waiting: bool,
    },
}

impl Status {
    pub fn to_json(self) -> Value {
        match self {
            Self::Idle => json!({ "type": "idle" }),
            Self::Failed => json!({ "type": "systemError" }),
            Self::Active { waiting: false } => json!({ "type": "active", "activeFlags": [] }),
            Self::Active { waiting: true } => {
                json!({ "type": "active", "activeFlags": ["waitingOnApproval"] })
            }
        }
    }
}

/// What a turn does.
pub(super) enum Work {
    /// Answers the user.
    Input(Vec<Value>),
    Compaction,
    /// Runs a command of the user's.
    Shell(String),
    /// The same, and answers a client's request at its end, under a defect.
    Answered(Box<Work>, (u64, Value, Value)),
}

impl Work {
    /// What is done, apart from the answer.
    pub fn plain(&self) -> &Self {
        match self {
            Self::Answered(work, _) => work,
            work => work,
        }
    }
}

/// The turn that a thread is in.
pub(super) struct Active {
    pub turn: String,
    pub canceller: Arc<Canceller>,
    /// What the model says to what was added by steering.
    pub steered: Vec<Response>,
    /// Held for reading by what belongs to the turn besides: it does not end before.
    pub asides: Arc<RwLock<()>>,
}

/// A loaded thread.
pub(super) struct Live {
    pub behaviour: Behaviour,
    pub subscribers: BTreeSet<u64>,
    pub status: Status,
    pub active: Option<Active>,
    /// Turns that wait for the active one to end, with what they do.
    pub queue: VecDeque<(String, Work)>,
    /// Who gets nothing of it for now, under a defect.
    pub held: BTreeSet<u64>,
    /// The next turn is cancelled as it begins, under a defect.
    pub doomed: bool,
    /// What turns should run with, where a defect has forgotten it.
    pub due: Option<Settings>,
    /// What waits for its approval was done before, under a defect.
    pub done_early: bool,
    /// What was accepted for the session: commands, and files.
    pub allowed: HashMap<String, Grant>,
    pub tokens: u64,
}

/// Whether something needs an approval any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grant {
    /// A client has accepted it for the session.
    Given,
    /// Nobody has, under a defect.
    Presumed,
    /// A client has, and that is forgotten, under a defect.
    Forgotten,
}

impl Grant {
    /// Whether nobody needs to be asked.
    pub fn counts(self, behaviour: &Behaviour) -> bool {
        if self != Self::Given {
            behaviour.took_effect();
        }
        self != Self::Forgotten
    }
}

/// What a command begins with that needs no approval.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub words: Vec<String>,
    pub grant: Grant,
}

/// A request of the server that waits for its answer.
pub(super) struct Pending {
    pub asked: BTreeSet<u64>,
    /// Its id.
    pub told: Value,
    /// Takes the result; none: an error.
    pub decide: oneshot::Sender<Option<Value>>,
}

/// A command of command/exec that runs.
pub(super) struct Process {
    pub canceller: Arc<Canceller>,
    /// None: it is closed, or was never open.
    pub input: Option<mpsc::UnboundedSender<Vec<u8>>>,
    pub size: Option<Size>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Watch {
    pub client: u64,
    pub id: String,
    pub path: String,
}

/// How many there have been.
#[derive(Default)]
pub(super) struct Counts {
    pub clients: u64,
    pub requests: u64,
    pub threads: u64,
    pub processes: u64,
}

pub(super) struct State {
    pub behaviour: Behaviour,
    pub files: Files,
    pub threads: Threads,
    pub live: HashMap<String, Live>,
    pub clients: BTreeMap<u64, Client>,
    pub pending: BTreeMap<u64, Pending>,
    pub processes: HashMap<(u64, String), Process>,
    pub watches: Vec<Watch>,
    /// What commands begin with that need no approval any more.
    pub rules: Vec<Rule>,
    pub counts: Counts,
    /// It goes on with what another process has stored.
    pub restarted: bool,
    /// Commands that were asked about, with their threads, under a defect.
    pub asked_about: HashMap<u64, (String, String)>,
}

impl State {
    pub fn new(behaviour: Behaviour) -> Self {
        let sessions = [format!("{HOME}/sessions"), format!("{HOME}/archived_sessions")];
        let mut files = Files::with(&[WORK, "/tmp", &sessions[0], &sessions[1]]);
        // A fresh disk has room for it.
        let _ = files.write(&format!("{HOME}/config.toml"), b"model = \"gpt-5\"\n".to_vec());
        files.changes();
        Self {
            behaviour,
            files,
            threads: Threads::new(),
            live: HashMap::new(),
            clients: BTreeMap::new(),
            pending: BTreeMap::new(),
            processes: HashMap::new(),
            watches: Vec::new(),
            rules: Vec::new(),
            counts: Counts::default(),
            restarted: false,
            asked_about: HashMap::new(),
        }
    }

    /// What is left of it when the process is killed.
    pub fn stored(&self) -> Self {
        let behaviour =
            |thread: &Thread| thread.behaviour.clone().unwrap_or_else(|| self.behaviour.of_session());
        let has = |thread: &Thread, defect| behaviour(thread).strikes(defect);
        let mut next = Self::new(self.behaviour.clone());
        next.files = self.files.clone();
        next.rules.clone_from(&self.rules);
        next.counts.threads = self.counts.threads;
        next.restarted = true;
        let kept = self.threads.values().filter(|thread| {
            !thread.turns.is_empty()
                && (!thread.about.ephemeral || has(thread, Defect::KeepsEphemeral))
                && (!thread.is_open() || !has(thread, Defect::RestartForgetsOpenThreads))
        });
        next.threads = kept.map(|thread| (thread.about.id.clone(), thread.clone())).collect();
        for thread in next.threads.values_mut() {
            if thread.is_open() && !has(thread, Defect::OpenTurnsStayOpen) {
                thread.break_off();
            }
            let behaviour = behaviour(thread);
            deviations::stored(thread, &behaviour);
        }
        next
    }

    // ---- sending ------------------------------------------------------------------------------------------------

    pub fn send(&self, client: u64, frame: Value) {
        let Some(client) = self.clients.get(&client) else { return };
        for frame in deviations::frames(&client.behaviour, frame) {
            let text = frame.to_string();
            let binary = client.behaviour.strikes(Defect::BinaryFrames);
            client.outbox.send(if binary { Message::binary(text) } else { Message::text(text) });
        }
    }

    /// Notifies a client, unless it has not initialized or has opted out.
    pub fn notify(&self, to: u64, method: &str, params: &Value) {
        let Some(client) = self.clients.get(&to) else { return };
        let Some(agreed) = &client.agreed else { return };
        let out = |name: &str| agreed.opted_out.contains(name);
        let mut opted_out = out(method);
        client.behaviour.mutate(&mut opted_out, |defect, opted_out| match defect {
            Defect::IgnoresOptOut => *opted_out = false,
            Defect::OptsOutByPrefix => {
                *opted_out = agreed.opted_out.iter().any(|name| method.starts_with(name.as_str()));
            }
            Defect::WildcardsOptOut => {
                *opted_out |= agreed.opted_out.iter().any(|name| {
                    name.strip_suffix('*').is_some_and(|start| start.len() > 1 && method.starts_with(start))
                });
            }
            Defect::NoOptOutOfItems => *opted_out &= !method.starts_with("item/"),
            _ => {}
        });
        if !opted_out {
            self.send(to, json!({ "method": method, "params": params }));
        }
    }

    /// Whether a subscriber of a thread gets this notification. A defect of what nobody gets cannot be noticed.
    pub fn is_received(&self, thread: &str, method: &str) -> bool {
        let Some(live) = self.live.get(thread) else { return false };
        let mut listeners = live.subscribers.difference(&live.held).filter_map(|id| self.clients.get(id));
        listeners
            .any(|client| client.agreed.as_ref().is_some_and(|agreed| !agreed.opted_out.contains(method)))
    }

    /// Notifies the subscribers of a thread.
    pub fn publish(&self, thread: &str, method: &str, params: &Value) {
        let Some(live) = self.live.get(thread) else { return };
        let is_item = method.starts_with("item/");
        if is_item && live.behaviour.prepares(Defect::ItemIdsDifferForClients) {
            for client in &live.subscribers {
                let own = deviations::with_own_item_ids(method, params, *client);
                if live.subscribers.len() > 1 && own != *params {
                    live.behaviour.took_effect();
                }
                self.notify(*client, method, &own);
            }
            return;
        }
        let is_delta = method == "item/agentMessage/delta";
        if is_delta
            && let Some(first) = live.subscribers.first().filter(|_| live.subscribers.len() > 1)
            && live.behaviour.strikes(Defect::DeltasGoToTheFirst)
        {
            return self.notify(*first, method, params);
        }
        let whose = match method.split_once('/') {
            Some(("item", _)) => Some(Defect::OptOutIsForTheThread),
            Some(("turn", _)) => Some(Defect::OptOutOfTurnsIsForTheThread),
            _ => None,
        };
        let mut agreed =
            live.subscribers.iter().filter_map(|client| self.clients.get(client)?.agreed.as_ref());
        if let Some(whose) = whose
            && agreed.any(|agreed| agreed.opted_out.contains(method))
            && self.is_received(thread, method)
            && live.behaviour.strikes(whose)
        {
            return;
        }
        if live.subscribers.iter().any(|client| live.held.contains(client)) {
            live.behaviour.took_effect();
        }
        live.subscribers.difference(&live.held).for_each(|client| self.notify(*client, method, params));
    }

    /// Tells who watches of what has changed in the files.
    pub fn announce_changes(&mut self) {
        let changes = self.files.changes();
        for path in changes {
            for watch in &self.watches {
                let Some(client) = self.clients.get(&watch.client) else { continue };
                let has = |defect| client.behaviour.strikes(defect);
                let root = format!("{}/", watch.path.trim_end_matches('/'));
                if path != watch.path && !path.starts_with(&root) {
                    continue;
                }
                if has(Defect::ChangesAreNotTold) {
                    continue;
                }
                let mut told = path.as_str();
                client.behaviour.mutate(&mut told, |defect, told| match defect {
                    Defect::ChangesAreRelative => *told = path.rsplit('/').next().unwrap_or_default(),
                    Defect::ChangesNameTheFolder if path == watch.path => {
                        *told = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
                    }
                    _ => {}
                });
                let params = json!({ "watchId": watch.id, "changedPaths": [told] });
                if self.clients.len() > 1 && has(Defect::ChangesAreToldToAll) {
                    self.clients.keys().for_each(|client| self.notify(*client, "fs/changed", &params));
                } else {
                    self.notify(watch.client, "fs/changed", &params);
                }
            }
        }
    }

    /// Another thread that has a turn in progress and a subscriber of this one: its id, and that of the turn.
    pub fn neighbour(&self, thread: &str) -> Option<(&str, &str)> {
        let mine = &self.live.get(thread)?.subscribers;
        let shared =
            self.live.iter().filter(|(id, live)| *id != thread && !mine.is_disjoint(&live.subscribers));
        shared.filter_map(|(id, live)| Some((id.as_str(), live.active.as_ref()?.turn.as_str()))).min()
    }

    /// The newest thread that this client is subscribed to.
    pub fn newest_of(&self, client: u64) -> Option<&Thread> {
        let follows = |thread: &&Thread| self.is_subscribed(&thread.about.id, client);
        self.threads.values().filter(follows).max_by_key(|thread| thread.about.number)
    }

    pub fn is_subscribed(&self, thread: &str, client: u64) -> bool {
        self.live.get(thread).is_some_and(|live| live.subscribers.contains(&client))
    }

    /// Whether something was done for this client that it has not approved yet, under a defect.
    pub fn is_ahead(&self, client: u64) -> bool {
        self.live.values().any(|live| live.done_early && live.subscribers.contains(&client))
    }

    // ---- threads ------------------------------------------------------------------------------------------------

    pub fn thread(&self, id: &str) -> Result<&Thread, Refusal> {
        self.threads.get(id).ok_or_else(|| refuse(format!("thread not found: {id}")))
    }

    /// A thread that is loaded, and what goes on in it.
    pub fn loaded(&mut self, id: &str) -> Result<(&mut Thread, &mut Live), Refusal> {
        let unknown = || refuse(format!("thread not found: {id}"));
        let live = self.live.get_mut(id).ok_or_else(unknown)?;
        Ok((self.threads.get_mut(id).ok_or_else(unknown)?, live))
    }

    pub fn status(&self, id: &str) -> Value {
        self.live.get(id).map_or_else(|| json!({ "type": "notLoaded" }), |live| live.status.to_json())
    }

    /// The thread as it is told.
    pub fn to_json(&self, id: &str, turns: bool) -> Value {
        let Some(thread) = self.threads.get(id) else { return Value::Null };
        thread.to_json(HOME, &self.status(id), turns)
    }

    /// Loads a thread, if it is not, and subscribes a client to it, whose session becomes that of the thread.
    pub fn open(&mut self, id: &str, client: u64) {
        let (Some(thread), Some(of_client)) = (self.threads.get_mut(id), self.clients.get(&client)) else {
            return;
        };
        let behaviour = thread.behaviour.get_or_insert_with(|| of_client.behaviour.clone());
        of_client.behaviour.join(behaviour);
        let live = self.live.entry(id.to_owned()).or_insert_with(|| Live {
            behaviour: behaviour.clone(),
            subscribers: BTreeSet::new(),
            status: Status::Idle,
            active: None,
            queue: VecDeque::new(),
            held: BTreeSet::new(),
            doomed: false,
            due: None,
            done_early: false,
            allowed: HashMap::new(),
            tokens: 0,
        });
        live.subscribers.insert(client);
    }

    /// Adds a thread. Refused where there are too many.
    pub fn add(&mut self, thread: Thread, client: u64) -> Result<String, Refusal> {
        if self.threads.len() >= MOST_THREADS {
            return Err(refuse("there are too many threads"));
        }
        let id = thread.about.id.clone();
        self.threads.insert(id.clone(), thread);
        self.open(&id, client);
        Ok(id)
    }

    /// Writes a thread's file.
    pub fn save(&mut self, id: &str) {
        let Some(thread) = self.threads.get(id) else { return };
        let Some(path) = thread.path(HOME) else { return };
        let line = json!({ "id": id, "turns": thread.turns.len(), "updatedAt": thread.about.updated });
        // A full disk is told by what the client writes itself.
        let _ = self.files.write(&path, format!("{line}\n").into_bytes());
        self.announce_changes();
    }

    pub fn set_status(&mut self, id: &str, status: Status) {
        let is_received = self.is_received(id, "thread/status/changed");
        let Some(live) = self.live.get_mut(id) else { return };
        let told = live.status.to_json() != status.to_json() && is_received;
        live.status = status;
        let has = |defect| live.behaviour.strikes(defect);
        let quiet = || match status {
            Status::Active { .. } => has(Defect::NeverActive),
            Status::Idle => has(Defect::NeverIdle),
            Status::Failed => false,
        };
        if told && !quiet() {
            let mut params = json!({ "threadId": id, "status": status.to_json() });
            if live.behaviour.style(Style::NoWaitingFlag) {
                let waits = params["status"]["activeFlags"].as_array().is_some_and(|flags| !flags.is_empty());
                if waits {
                    params["status"]["activeFlags"] = json!(["waiting"]);
                }
            }
            let twice = status == Status::Idle && has(Defect::StatusTwice);
            self.publish(id, "thread/status/changed", &params);
            if twice {
                self.publish(id, "thread/status/changed", &params);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::codex::store::Turn;
    use crate::reference::codex::threads::defaults;
    use crate::reference::engine::{Happening, Setup, Trigger, clients};

    #[test]
    fn the_clients_of_a_thread_and_its_successor_share_what_has_happened() {
        let setup =
            Setup { fault: Some("no-usage".to_owned()), trigger: Trigger::AfterError, ..Setup::default() };
        let mut state = State::new(Behaviour::new(&setup));
        for client in 1..=3 {
            let (outbox, _outgoing) = clients::channel();
            let behaviour = state.behaviour.of_session();
            state.clients.insert(client, Client::new(outbox, behaviour));
        }
        let mut thread = Thread::new(1, defaults(), false);
        thread.turns.push(Turn::new("turn".to_owned()));
        let Ok(id) = state.add(thread, 1) else { panic!("there is room") };
        state.open(&id, 2);
        let strikes = |behaviour: &Behaviour| behaviour.strikes(Defect::NoUsage);
        assert!(!strikes(&state.live[&id].behaviour));
        state.clients[&2].behaviour.note(Happening::Error);
        assert!(strikes(&state.live[&id].behaviour) && strikes(&state.clients[&1].behaviour));
        assert!(!strikes(&state.clients[&3].behaviour), "it is in no session with them");
        let stored = state.stored();
        assert!(stored.threads[&id].behaviour.as_ref().is_some_and(strikes));
    }
}
