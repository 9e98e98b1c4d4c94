//! Requests of the server are answered and resolved once.

use std::sync::Arc;

use serde_json::Value;

use super::{End, Monitor, MonitorBuilder, Observation};
use crate::check::Violation;
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::protocol::extension::{PatternDirection, PatternWhere};
use crate::protocol::rules as rule;
use crate::protocol::{Pattern, Protocol, ServerRequest};
use crate::results::Check;
use crate::source::Diagnostics;
use crate::trace::Direction;

/// Memory: a window of requests, by connection, and one of the ids of all connections.
#[derive(Clone)]
pub(super) struct ServerRequests {
    check: Check,
    rule: Arc<rule::ServerRequests>,
    kinds: Arc<[ServerRequest]>,
    requests: BoundedMap<Request>,
    /// The ids of the requests of all connections, the ended ones as well, at the place [`ANYWHERE`].
    asked: BoundedMap<()>,
}

const ANYWHERE: u32 = 0;

/// What became of a request.
#[derive(Clone, Copy)]
struct Request {
    event: u64,
    answered: bool,
    resolved: bool,
}

/// What a message does about a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Asks,
    Answers,
    Resolves,
}

impl ServerRequests {
    pub fn new(rule: &rule::ServerRequests, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        let kinds: Arc<[ServerRequest]> = of(rule, b.protocol);
        for kind in kinds.iter() {
            b.matcher(&kind.matcher);
            kind.resolved.iter().for_each(|(matcher, _)| b.matcher(matcher));
        }
        // Any message of a client's may be an answer: its form tells.
        b.pattern(&Pattern::Where(PatternWhere { dir: PatternDirection::Send, ..PatternWhere::default() }))?;
        let rule = Arc::new(rule.clone());
        Ok(Self {
            check: b.check.clone(),
            rule,
            kinds,
            requests: BoundedMap::default(),
            asked: BoundedMap::default(),
        })
    }

    /// What a message does, and the id of the request.
    fn act<'v>(&self, seen: &Observation<'v>) -> Option<(Act, &'v Value)> {
        let mut kinds = self.kinds.iter();
        if seen.dir == Direction::Send {
            return Some((Act::Answers, kinds.find_map(|kind| kind.answered_by(seen.body))?));
        }
        if let Some(kind) = kinds.clone().find(|kind| seen.is(&kind.matcher)) {
            return Some((Act::Asks, kind.id.get(seen.body)?));
        }
        let (_, at) = kinds.find_map(|kind| kind.resolved.as_ref().filter(|(on, _)| seen.is(on)))?;
        Some((Act::Resolves, at.get(seen.body)?))
    }

    fn asks(&mut self, id: &str, seen: &Observation<'_>, tally: &mut Tally) {
        let (place, rule) = (seen.conn.0, &self.rule);
        tally.exercise(&rule.reused);
        let new = Request { event: seen.event, answered: false, resolved: false };
        self.asked.insert(ANYWHERE, Some(id), (), 0);
        let open = self.requests.insert(place, Some(id), new, 0);
        if let Some(open) = open.filter(|open| !open.answered && !open.resolved) {
            let message = format!("the id {id} is that of a request that is open");
            if let Some(violation) = tally.broken(&self.check, &rule.reused, seen.event, message) {
                violation.related = Some(open.event);
            }
        }
    }

    /// A request is answered or resolved.
    fn settles(&mut self, id: &str, act: Act, seen: &Observation<'_>, tally: &mut Tally) {
        let (place, rule) = (seen.conn.0, &self.rule);
        let (twice, unasked, what, on) = if act == Act::Resolves {
            (&rule.resolved_twice, &rule.resolved_unasked, "resolved", "")
        } else {
            (&rule.answered_twice, &rule.answered_unasked, "answered", " on this connection")
        };
        let forgotten = self.requests.may_have_forgotten(place);
        let Some(request) = self.requests.get(place, Some(id)) else {
            // Everybody who follows a session may be told what became of a request, also who came after it was made.
            let elsewhere = act == Act::Resolves
                && (self.asked.get(ANYWHERE, Some(id)).is_some() || self.asked.may_have_forgotten(ANYWHERE));
            if !forgotten && !elsewhere {
                tally.exercise(unasked);
                let message = format!("no request with the id {id} was made{on}");
                tally.broken(&self.check, unasked, seen.event, message);
            }
            return;
        };
        tally.exercise(unasked);
        tally.exercise(twice);
        let before = if act == Act::Resolves { &mut request.resolved } else { &mut request.answered };
        let (again, event) = (std::mem::replace(before, true), request.event);
        if again {
            let message = format!("the request with the id {id} is {what} a second time");
            if let Some(violation) = tally.broken(&self.check, twice, seen.event, message) {
                violation.related = Some(event);
            }
        }
    }
}

/// The requests that a rule is about.
fn of(rule: &rule::ServerRequests, protocol: &Protocol) -> Arc<[ServerRequest]> {
    let named = |one: &&ServerRequest| rule.of.as_ref().is_none_or(|of| of.as_slice().contains(&one.name));
    protocol.server_requests().iter().filter(named).cloned().collect()
}

impl Monitor for ServerRequests {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        // As JSON, so that 1 and "1" differ.
        match self.act(seen).map(|(act, id)| (act, id.to_string())) {
            Some((Act::Asks, id)) => self.asks(&id, seen, tally),
            Some((act, id)) => self.settles(&id, act, seen, tally),
            None => {}
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.requests.leave(conn.0);
    }

    fn finish(&mut self, end: &End<'_>, tally: &mut Tally) {
        let unresolved = &self.rule.unresolved;
        if !end.settled || unresolved.is_empty() {
            return;
        }
        for (_, id, request) in self.requests.iter().filter(|(.., request)| request.answered) {
            tally.exercise(unresolved);
            if !request.resolved {
                let id = id.unwrap_or_default();
                let message = format!("the request with the id {id} was answered and never resolved");
                tally.push(Violation {
                    event: Some(request.event),
                    ..Violation::new(&self.check, unresolved, message)
                });
            }
        }
    }

    fn memory(&self) -> Memory {
        self.requests.memory() + self.asked.memory()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::{Value, json};

    use crate::check::Judge;
    use crate::check::tests::protocol;
    use crate::frame::Limits;
    use crate::trace::{Direction, Event, Payload};

    #[test]
    fn others_may_be_told_what_became_of_a_request() {
        let protocol = protocol(&json!({
            "requests": { "questions": {
                "message": "say", "id": "/n", "reply": { "type": "ask", "n": "{{id}}", "ok": "{{reply}}" },
                "resolved": { "message": "done", "at": "/n" },
            } },
            "invariants": { "requests": { "about": "a", "monitor": { "server-requests": {
                "resolved-twice": ["R-1"], "resolved-unasked": ["R-1"],
            } } } },
        }));
        let broken = |frames: &[(&str, Value)]| {
            let mut judge = Judge::new(Arc::clone(&protocol), Limits::default(), &[]).expect("monitors");
            let found = frames.iter().map(|(client, frame)| {
                let (client, payload) = ((*client).into(), Payload::Text(frame.to_string().into()));
                let dir = Direction::Recv;
                judge.observe(&Event { at: Duration::ZERO, case: None, client, dir, payload, why: None })
            });
            found.map(|found| found.violations.len()).sum::<usize>()
        };
        let asked = |n: u64| json!({ "type": "say", "n": n });
        let resolved = |n: u64| json!({ "type": "done", "n": n });
        assert_eq!(broken(&[("a", asked(1)), ("a", resolved(1)), ("b", resolved(1))]), 0, "b came later");
        assert_eq!(broken(&[("a", asked(1)), ("b", resolved(2))]), 1, "asked of nobody");
        assert_eq!(broken(&[("a", asked(1)), ("a", resolved(1)), ("a", resolved(1))]), 1, "twice");
    }
}
