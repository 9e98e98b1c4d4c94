//! The event log of each session, as far as any of its clients has seen it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::monitor::{Conn, SessionNo, counter, field_hashes, hash_without};
use super::window::{ENTRIES, Memory};
use crate::frame::Pointer;
use crate::protocol::{Matcher, Protocol};
use crate::source::Diagnostics;
use crate::trace::Direction;

/// The first delivery of a logged event.
pub(crate) struct First {
    /// A hash of its content.
    pub hash: u64,
    /// Its event in the trace.
    pub event: u64,
    /// The connection that it came on.
    pub conn: Conn,
}

/// A logged event's id and the hash of its content, without what may differ between two deliveries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Logged {
    pub id: i128,
    pub hash: u64,
}

/// Memory: a hash and two numbers for each of the last [`ENTRIES`] ids of all sessions; older ones are forgotten and no
/// longer compared.
pub(crate) struct History {
    log: Option<Log>,
    sessions: FxHashMap<SessionNo, BTreeMap<i128, First>>,
    none: BTreeMap<i128, First>,
    /// The ids in the order of their first delivery.
    order: VecDeque<(SessionNo, i128)>,
    forgotten: u64,
    /// Of the message that was found to be logged last.
    fields: Vec<u64>,
}

/// The protocol's log, compiled.
struct Log {
    on: Matcher,
    id: Pointer,
    /// Top-level keys that may differ, each once.
    volatile: Vec<String>,
}

impl History {
    pub fn new(protocol: &Protocol) -> Result<Self, Diagnostics> {
        let log = protocol.extension.log.as_ref().map(|log| {
            let volatile = log.volatile.iter().map(|at| at.as_str().trim_start_matches('/').to_owned());
            Ok::<_, Diagnostics>(Log {
                on: Matcher::new(&log.on, protocol)?,
                id: log.id.clone(),
                volatile: volatile.collect::<BTreeSet<_>>().into_iter().collect(),
            })
        });
        let (sessions, none, order) = (FxHashMap::default(), BTreeMap::new(), VecDeque::new());
        Ok(Self { log: log.transpose()?, sessions, none, order, forgotten: 0, fields: Vec::new() })
    }

    /// The id and content of a message of the log; `None`: it is none.
    pub fn logged(&mut self, message: Option<usize>, dir: Direction, body: &Value) -> Option<Logged> {
        let log = self.log.as_ref().filter(|log| log.on.matches(message, dir, body))?;
        let id = counter(log.id.get(body)?)?;
        field_hashes(body, &mut self.fields);
        Some(Logged { id, hash: hash_without(&self.fields, body, &log.volatile) })
    }

    /// The hash of the message that was found to be [logged](Self::logged) last, without some of its top-level keys.
    pub fn hash_without(&self, body: &Value, volatile: &[String]) -> u64 {
        hash_without(&self.fields, body, volatile)
    }

    /// What was seen of a session so far, by id.
    pub fn of(&self, session: SessionNo) -> &BTreeMap<i128, First> {
        self.sessions.get(&session).unwrap_or(&self.none)
    }

    /// The first delivery of an event, if it was seen before.
    pub fn first(&self, session: SessionNo, id: i128) -> Option<&First> {
        let log = self.of(session);
        // Most ids are new, and greater than all before.
        log.last_key_value().filter(|(newest, _)| id <= **newest).and_then(|_| log.get(&id))
    }

    /// Remembers an event, once all monitors have looked at it.
    pub fn record(&mut self, session: SessionNo, logged: Logged, event: u64, conn: Conn) {
        let history = self.sessions.entry(session).or_default();
        let Entry::Vacant(slot) = history.entry(logged.id) else { return };
        slot.insert(First { hash: logged.hash, event, conn });
        self.order.push_back((session, logged.id));
        while self.order.len() > ENTRIES {
            let Some((oldest, id)) = self.order.pop_front() else { return };
            self.forgotten += 1;
            if let Some(history) = self.sessions.get_mut(&oldest) {
                history.remove(&id);
                if history.is_empty() {
                    self.sessions.remove(&oldest);
                }
            }
        }
    }

    /// What is remembered.
    pub fn memory(&self) -> Memory {
        Memory { entries: self.order.len(), forgotten: self.forgotten }
    }
}
