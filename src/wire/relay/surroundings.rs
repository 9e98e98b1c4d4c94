//! What a mutation knows of the conversation on its connection, and of those beside it on the same server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::protocol::Protocol;
use crate::trace::Direction;

/// Values of other sessions that are kept.
const VALUES: usize = 16;
/// How deep values of other messages are looked for.
const MAX_DEPTH: usize = 6;

/// The connections of all servers before which a mutation stands. One of them gets what was meant for another.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    connections: Mutex<Connections>,
    number: AtomicU64,
}

#[derive(Debug, Default)]
struct Connections {
    open: Vec<Connection>,
    /// The last values of the mutated field: where they were seen, and what they were.
    values: Vec<(Place, Value)>,
}

/// A session of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    server: String,
    session: String,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    place: Place,
    inbox: Vec<Vec<u8>>,
}

/// Who gets a message too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Receivers {
    /// Every other client of the session.
    SameSession,
    /// The client of another session that came last.
    OtherSession,
}

impl Neighbours {
    fn with<T>(&self, what: impl FnOnce(&mut Connections) -> T) -> T {
        what(&mut self.connections.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One connection among its neighbours.
pub(super) struct Surroundings {
    neighbours: Arc<Neighbours>,
    protocol: Arc<Protocol>,
    number: u64,
    place: Place,
    /// What the client asked for, by the ids of its requests.
    requests: HashMap<String, String>,
    in_turn: bool,
    /// The last values of fields by their name, with the kind of message that had them.
    values: HashMap<String, Vec<(Option<String>, Value)>>,
}

impl Drop for Surroundings {
    fn drop(&mut self) {
        self.neighbours.with(|all| all.open.retain(|one| one.number != self.number));
    }
}

impl Surroundings {
    pub fn new(neighbours: &Arc<Neighbours>, protocol: &Arc<Protocol>, server: &str) -> Self {
        let number = neighbours.number.fetch_add(1, Ordering::Relaxed);
        // Until it is told otherwise, it is in a session of its own.
        let place = Place { server: server.to_owned(), session: format!("#{number}") };
        neighbours.with(|all| {
            all.open.push(Connection { number, place: place.clone(), inbox: Vec::new() });
        });
        Self {
            neighbours: Arc::clone(neighbours),
            protocol: Arc::clone(protocol),
            number,
            place,
            requests: HashMap::new(),
            in_turn: false,
            values: HashMap::new(),
        }
    }

    fn join(&mut self, session: &str) {
        if self.place.session != session {
            session.clone_into(&mut self.place.session);
            let (number, place) = (self.number, self.place.clone());
            self.neighbours.with(|all| {
                all.open
                    .iter_mut()
                    .filter(|one| one.number == number)
                    .for_each(|one| one.place = place.clone());
            });
        }
    }

    /// The head of the client's request: its path may name the session.
    pub fn head(&mut self, bytes: &[u8]) {
        let head = String::from_utf8_lossy(bytes);
        if let Some(path) = head.strip_prefix("GET ").and_then(|rest| rest.split(' ').next())
            && let Some(session) = self.protocol.session_in(path)
        {
            let session = session.to_owned();
            self.join(&session);
        }
    }

    /// The client has sent this.
    pub fn sent(&mut self, body: &Value) {
        let message = self.protocol.message_of(body, Direction::Send);
        self.in_turn |= message.is_some() && message == self.protocol.roles().turn_start;
        if let (Some(replies), Some(name)) = (&self.protocol.extension.replies, self.protocol.type_of(body))
            && let Some(id) = replies.id.get(body)
        {
            self.requests.insert(id.to_string(), name.to_owned());
        }
    }

    /// The server has sent this: whether it ends a turn.
    pub fn received(&mut self, body: &Value) -> bool {
        let protocol = Arc::clone(&self.protocol);
        let message = if protocol.is_reply(body) {
            let id = protocol.extension.replies.as_ref().and_then(|replies| replies.id.get(body));
            let request = id.and_then(|id| self.requests.get(&id.to_string()));
            protocol.reply_of(body, Direction::Recv, request.map(String::as_str))
        } else {
            protocol.message_of(body, Direction::Recv)
        };
        for (on, at) in &protocol.roles().session.ids {
            if on.matches(message, Direction::Recv, body)
                && let Some(id) = at.get(body).and_then(Value::as_str)
            {
                self.join(id);
            }
        }
        let ends = protocol.roles().turn_end.matches(message, Direction::Recv, body);
        self.in_turn &= !ends;
        ends
    }

    /// A turn has begun and not ended.
    pub fn is_in_turn(&self) -> bool {
        self.in_turn
    }

    /// Keeps the values of a message's fields for messages of other kinds.
    pub fn keep_values(&mut self, body: &Value) {
        let kind = self.protocol.type_of(body).map(str::to_owned);
        self.keep(body, kind.as_ref(), 0);
    }

    fn keep(&mut self, value: &Value, kind: Option<&String>, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        for (name, value) in value.as_object().into_iter().flatten() {
            if value.is_object() || value.is_array() {
                self.keep(value, kind, depth + 1);
            } else {
                let known = self.values.entry(name.clone()).or_default();
                known.retain(|(of, _)| of.as_ref() != kind);
                known.push((kind.cloned(), value.clone()));
            }
        }
        value.as_array().into_iter().flatten().for_each(|item| self.keep(item, kind, depth + 1));
    }

    /// The last value of a field of this name in a message of another kind, of the same type and not the same.
    pub fn value_of_another(&self, name: &str, kind: Option<&str>, value: &Value) -> Option<Value> {
        let same_type = |one: &Value| std::mem::discriminant(one) == std::mem::discriminant(value);
        let fits = |(of, other): &&(Option<String>, Value)| {
            of.as_deref() != kind && same_type(other) && other != value
        };
        self.values.get(name)?.iter().rev().find(fits).map(|(_, value)| value.clone())
    }

    /// Keeps a value for other sessions, and returns the last one of another session on this server that differs.
    pub fn value_of_session(&self, value: &Value) -> Option<Value> {
        self.neighbours.with(|all| {
            let other = |(place, other): &&(Place, Value)| {
                place.server == self.place.server && place.session != self.place.session && other != value
            };
            let found = all.values.iter().rev().find(other).map(|(_, value)| value.clone());
            all.values.retain(|(place, _)| *place != self.place);
            all.values.push((self.place.clone(), value.clone()));
            if all.values.len() > VALUES {
                all.values.remove(0);
            }
            found
        })
    }

    /// Puts a frame into the boxes of others.
    pub fn post(&self, to: Receivers, bytes: &[u8]) {
        self.neighbours.with(|all| {
            let beside = all.open.iter_mut().filter(|one| {
                let same = one.place.session == self.place.session;
                one.number != self.number
                    && one.place.server == self.place.server
                    && same == (to == Receivers::SameSession)
            });
            match to {
                Receivers::SameSession => beside.for_each(|one| one.inbox.push(bytes.to_vec())),
                Receivers::OtherSession => {
                    beside.last().into_iter().for_each(|one| one.inbox.push(bytes.to_vec()))
                }
            }
        });
    }

    /// What others have put into the box of this connection.
    pub fn letters(&self) -> Vec<Vec<u8>> {
        self.neighbours.with(|all| {
            let own = all.open.iter_mut().filter(|one| one.number == self.number);
            own.flat_map(|one| std::mem::take(&mut one.inbox)).collect()
        })
    }
}
