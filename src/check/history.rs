//! The event log of each session, as far as any of its clients has seen it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::monitor::{Conn, Seen, SessionNo, content_hash, counter};
use crate::frame::Pointer;
use crate::protocol::{Matcher, Protocol};
use crate::source::Diagnostics;

/// How many ids of a session are remembered; older ones are forgotten and no longer compared.
pub(super) const WINDOW: usize = 65_536;

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

/// Memory: a hash and two numbers for each of the last [`WINDOW`] ids of a session.
pub(crate) struct History {
    log: Option<Log>,
    sessions: FxHashMap<SessionNo, BTreeMap<i128, First>>,
    none: BTreeMap<i128, First>,
}

/// The protocol's log, compiled.
struct Log {
    on: Matcher,
    id: Pointer,
    /// Top-level keys that may differ.
    volatile: Vec<String>,
}

impl History {
    pub fn new(protocol: &Protocol) -> Result<Self, Diagnostics> {
        let log = protocol.extension.log.as_ref().map(|log| {
            let volatile = log.volatile.iter().map(|at| at.as_str().trim_start_matches('/').to_owned());
            Ok::<_, Diagnostics>(Log {
                on: Matcher::new(&log.on, protocol)?,
                id: log.id.clone(),
                volatile: volatile.collect(),
            })
        });
        Ok(Self { log: log.transpose()?, sessions: FxHashMap::default(), none: BTreeMap::new() })
    }

    /// The id and content of a message of the log; `None`: it is none.
    pub fn logged(&self, seen: &Seen<'_>) -> Option<Logged> {
        let log = self.log.as_ref().filter(|log| seen.is(&log.on))?;
        let id = counter(log.id.get(seen.body)?)?;
        Some(Logged { id, hash: content_hash(seen.body, &log.volatile) })
    }

    /// What was seen of a session so far, by id.
    pub fn of(&self, session: SessionNo) -> &BTreeMap<i128, First> {
        self.sessions.get(&session).unwrap_or(&self.none)
    }

    /// Remembers an event, once all monitors have looked at it.
    pub fn record(&mut self, session: SessionNo, logged: Logged, event: u64, conn: Conn) {
        let history = self.sessions.entry(session).or_default();
        history.entry(logged.id).or_insert(First { hash: logged.hash, event, conn });
        while history.len() > WINDOW {
            history.pop_first();
        }
    }
}
