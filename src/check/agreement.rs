//! All clients of a session see the same content under the same id.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::Violation;
use super::monitor::{Conn, Findings, Monitor, Seen, SessionNo, content_hash};
use super::monitors::Builder;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::invariant as rule;
use crate::source::Diagnostics;

/// How many ids of a session are remembered; older ones are forgotten and no longer compared.
pub(super) const WINDOW: usize = 65_536;

/// Memory: a hash and two numbers for each of the last [`WINDOW`] ids of a session, and two numbers a connection.
pub(super) struct Agreement {
    name: String,
    rule: rule::Agreement,
    log: Option<(Matcher, Pointer, Vec<String>)>,
    history: FxHashMap<SessionNo, BTreeMap<i64, First>>,
    conns: FxHashMap<Conn, Span>,
}

/// The first delivery of an id.
pub(super) struct First {
    pub hash: u64,
    pub event: u64,
    pub conn: Conn,
}

/// The ids that a connection has received.
struct Span {
    session: SessionNo,
    first: i64,
    last: i64,
    ids: std::collections::BTreeSet<i64>,
}

/// Drops the oldest ids beyond the window.
pub(super) fn trim<V>(history: &mut BTreeMap<i64, V>) {
    while history.len() > WINDOW {
        history.pop_first();
    }
}

impl Agreement {
    pub fn new(rule: &rule::Agreement, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            name: b.name.clone(),
            rule: rule.clone(),
            log: b.log()?,
            history: FxHashMap::default(),
            conns: FxHashMap::default(),
        })
    }
}

impl Monitor for Agreement {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        let Some((on, at, volatile)) = &self.log else { return };
        if !seen.is(on) {
            return;
        }
        let Some(id) = at.get(seen.body).and_then(serde_json::Value::as_i64) else { return };
        let hash = content_hash(seen.body, volatile);
        let span = self.conns.entry(seen.conn).or_insert_with(|| Span {
            session: seen.session,
            first: id,
            last: id,
            ids: std::collections::BTreeSet::new(),
        });
        span.session = seen.session;
        span.last = span.last.max(id);
        span.ids.insert(id);
        while span.ids.len() > WINDOW {
            span.ids.pop_first();
            span.first = span.ids.first().copied().unwrap_or(id);
        }
        let history = self.history.entry(seen.session).or_default();
        match history.get(&id) {
            None => {
                history.insert(id, First { hash, event: seen.event, conn: seen.conn });
                trim(history);
            }
            Some(first) if first.conn != seen.conn => {
                findings.exercise(&self.rule.content);
                if first.hash != hash {
                    let message = format!("{at} {id} shows two clients different events");
                    if let Some(violation) =
                        findings.broken(&self.name, &self.rule.content, seen.event, message)
                    {
                        violation.related = Some(first.event);
                        violation.actual = Some(seen.body.clone());
                    }
                }
            }
            Some(_) => {}
        }
    }

    fn finish(&mut self, settled: bool, findings: &mut Findings) {
        if !settled {
            return;
        }
        for (conn, span) in &self.conns {
            let Some(history) = self.history.get(&span.session) else { continue };
            let mut others = false;
            for (id, first) in history.range(span.first..=span.last) {
                others |= first.conn != *conn;
                if first.conn != *conn && !span.ids.contains(id) {
                    let message = format!("a client of the session never got event {id}, which others got");
                    findings.push(Violation {
                        related: Some(first.event),
                        ..Violation::new(&self.name, &self.rule.complete, message)
                    });
                    break;
                }
            }
            if others {
                findings.exercise(&self.rule.complete);
            }
        }
    }
}
