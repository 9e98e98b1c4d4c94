//! All clients of a session see the same content under the same id.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::Violation;
use super::history::{Logged, WINDOW};
use super::monitor::{Conn, End, Findings, Monitor, Seen, SessionNo};
use super::monitors::Builder;
use crate::protocol::invariant as rule;
use crate::source::Diagnostics;

/// Memory: the last [`WINDOW`] ids of each connection.
pub(super) struct Agreement {
    name: String,
    rule: rule::Agreement,
    conns: FxHashMap<Conn, Span>,
}

/// The ids that a connection has received.
struct Span {
    session: SessionNo,
    first: i128,
    last: i128,
    ids: BTreeSet<i128>,
}

impl Agreement {
    pub fn new(rule: &rule::Agreement, b: &mut Builder<'_>) -> Result<Self, Diagnostics> {
        b.log()?;
        Ok(Self { name: b.name.clone(), rule: rule.clone(), conns: FxHashMap::default() })
    }
}

impl Monitor for Agreement {
    fn observe(&mut self, seen: &Seen<'_>, findings: &mut Findings) {
        let Some(Logged { id, hash }) = seen.logged else { return };
        let span = self.conns.entry(seen.conn).or_insert_with(|| Span {
            session: seen.session,
            first: id,
            last: id,
            ids: BTreeSet::new(),
        });
        span.session = seen.session;
        span.last = span.last.max(id);
        let again = !span.ids.insert(id);
        while span.ids.len() > WINDOW {
            span.ids.pop_first();
            span.first = span.ids.first().copied().unwrap_or(id);
        }
        if again {
            // An id that comes twice on one connection is another matter.
            return;
        }
        let first = seen.history.of(seen.session).get(&id);
        let Some(first) = first.filter(|first| first.conn != seen.conn) else { return };
        findings.exercise(&self.rule.content);
        if first.hash != hash {
            let message = format!("event {id} shows two clients different contents");
            if let Some(violation) = findings.broken(&self.name, &self.rule.content, seen.event, message) {
                violation.related = Some(first.event);
                violation.actual = Some(seen.body.clone());
            }
        }
    }

    fn finish(&mut self, end: &End<'_>, findings: &mut Findings) {
        if !end.settled {
            return;
        }
        for (conn, span) in &self.conns {
            let history = end.history.of(span.session);
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
