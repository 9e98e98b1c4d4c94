//! After a resume: live + replay = the uninterrupted history.

use std::sync::Arc;

use super::{End, Monitor, MonitorBuilder, Observation};
use crate::check::Violation;
use crate::check::bounded::{BoundedMap, Memory};
use crate::check::history::Logged;
use crate::check::sessions::{Conn, SessionId};
use crate::check::tally::Tally;
use crate::check::values::counter;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;

/// Memory: a window of a few numbers for each resumed connection, those that are gone included.
#[derive(Clone)]
pub(super) struct Replay {
    check: Check,
    rule: Arc<rule::Replay>,
    resume: (Matcher, Pointer),
    refused: Option<Matcher>,
    resets: Option<(Matcher, Pointer)>,
    instead: Option<(Matcher, Pointer)>,
    joined: Option<Matcher>,
    /// Connections that are in a session, resumed or not.
    members: BoundedMap<()>,
    resumed: BoundedMap<Resumed>,
}

#[derive(Clone)]
struct Resumed {
    /// The newest id that the client has; `None`: nothing seen.
    cursor: Option<i128>,
    /// The newest id of the session that was known when the resume was sent.
    newest_then: Option<i128>,
    session: Option<SessionId>,
    refused: bool,
    /// It was in the session before it resumed: what is newer than `newest_then` may have come of itself, before the replay.
    joined: bool,
    /// The newest id that a message instead of the replay contains.
    shown: Option<i128>,
    /// The last id delivered in an unbroken row.
    reached: i128,
    event: u64,
}

impl Replay {
    pub fn new(rule: &rule::Replay, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        b.log()?;
        Ok(Self {
            check: b.check.clone(),
            resume: b.place(&rule.resume)?,
            refused: b.optional(rule.refused.as_ref())?,
            resets: rule.resets.as_ref().map(|resets| b.place(resets)).transpose()?,
            instead: rule.instead.as_ref().map(|instead| b.place(instead)).transpose()?,
            joined: b.optional(rule.joined.as_ref())?,
            rule: Arc::new(rule.clone()),
            members: BoundedMap::default(),
            resumed: BoundedMap::default(),
        })
    }

    fn resumes(&mut self, seen: &Observation<'_>) {
        let cursor = self.resume.1.get(seen.body).and_then(counter);
        let resumed = Resumed {
            cursor,
            newest_then: None,
            session: None,
            refused: false,
            joined: self.members.has(seen.conn.0, None) || self.members.may_have_forgotten(seen.conn.0),
            shown: None,
            reached: cursor.unwrap_or(i128::MIN),
            event: seen.event,
        };
        self.resumed.insert(seen.conn.0, None, resumed, size_of::<Resumed>());
    }

    /// Judges an event on a resumed connection against what was known.
    fn judge(&mut self, seen: &Observation<'_>, Logged { id, hash, .. }: Logged, tally: &mut Tally) {
        let Some(resumed) = self.resumed.get(seen.conn.0, None) else { return };
        let known = seen.history.of(seen.session.id);
        if resumed.session.is_none()
            && let Some(shown) = resumed.shown.filter(|shown| id > *shown)
        {
            resumed.reached = resumed.reached.max(shown);
        }
        if resumed.session != Some(seen.session.id) {
            resumed.session = Some(seen.session.id);
            resumed.newest_then = known.newest_before(resumed.event);
        }
        let live = resumed.joined && resumed.newest_then.is_none_or(|newest| id > newest);
        if resumed.refused || live {
            return;
        }
        let check = &self.check;
        if let Some(cursor) = resumed.cursor {
            tally.exercise(&self.rule.floor);
            if id <= cursor {
                let message = format!("event {id} is replayed to a client that has seen up to {cursor}");
                let current = resumed.newest_then == Some(cursor);
                let mut ids = self.rule.floor.clone();
                ids.extend(self.rule.current.iter().filter(|_| current).cloned());
                tally.broken(check, &ids, seen.event, message);
                return;
            }
        }
        // What others saw only behind the resume may have come live here: whether they agree is no question of the replay.
        if let Some(first) = known.get(id)
            && first.conn != seen.conn
            && first.event < resumed.event
        {
            tally.exercise(&self.rule.content);
            if first.hash != hash {
                let message = format!("event {id} was replayed with different content");
                if let Some(violation) = tally.broken(check, &self.rule.content, seen.event, message) {
                    violation.related = Some(first.event);
                    violation.actual = Some(crate::check::evidence(seen.body));
                }
            }
        }
        let from = resumed.reached.saturating_add(1);
        if resumed.cursor.is_some() && from < id {
            let skipped = known.lowest(from, id.saturating_sub(1), |_, first| first.conn != seen.conn);
            if let Some((skipped, first)) = skipped {
                let message = format!("event {skipped} was skipped: the replay continues with {id}");
                if let Some(violation) = tally.broken(check, &self.rule.complete, seen.event, message) {
                    violation.related = Some(first.event);
                }
            }
        }
        resumed.reached = resumed.reached.max(id);
    }
}

impl Monitor for Replay {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        if seen.is(&self.resume.0) {
            self.resumes(seen);
            return;
        }
        if seen.is_any(self.joined.as_ref()) {
            self.members.insert(seen.conn.0, None, (), 0);
        }
        if let Some((resets, at)) = &self.resets
            && seen.is(resets)
            && let Some(resumed) = self.resumed.get(seen.conn.0, None)
            && resumed.session.is_none()
            && let Some(cursor) = resumed.cursor
            && at.get(seen.body).and_then(counter).is_none_or(|newest| newest < cursor)
        {
            // The log does not reach that far: the client begins anew.
            resumed.cursor = None;
        }
        if seen.is_any(self.refused.as_ref())
            && let Some(resumed) = self.resumed.get(seen.conn.0, None)
            && resumed.session.is_none()
        {
            resumed.refused = true;
        }
        if let Some((instead, at)) = &self.instead
            && seen.is(instead)
            && let Some(resumed) = self.resumed.get(seen.conn.0, None)
        {
            resumed.shown = at.get(seen.body).and_then(counter);
        }
        if let Some(logged) = seen.logged {
            self.judge(seen, logged, tally);
        }
    }

    fn closed(&mut self, conn: Conn, _: &mut Tally) {
        self.members.leave(conn.0);
    }

    fn finish(&mut self, end: &End<'_>, tally: &mut Tally) {
        if !end.settled {
            return;
        }
        for (conn, _, resumed) in self.resumed.iter() {
            let (Some(cursor), false) = (resumed.cursor, resumed.refused) else { continue };
            let Some(session) = resumed.session else { continue };
            let known = end.history.of(session);
            tally.exercise(&self.rule.complete);
            if resumed.newest_then == Some(cursor) {
                tally.exercise(&self.rule.current);
            }
            // What came before the last event that others saw must have come here too.
            let owed = resumed.newest_then.unwrap_or(cursor);
            if resumed.reached < owed
                && let Some((id, first)) =
                    known.lowest(resumed.reached.saturating_add(1), owed, |_, first| first.conn != Conn(conn))
            {
                let message = format!("event {id} was never replayed to a client that resumed from {cursor}");
                tally.push(Violation {
                    related: Some(first.event),
                    ..Violation::new(&self.check, &self.rule.complete, message)
                });
            }
        }
    }

    fn memory(&self) -> Memory {
        self.resumed.memory() + self.members.memory()
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
    fn a_resume_is_judged_by_what_was_known() {
        let protocol = protocol(&json!({
            "session": { "id": [{ "on": "log", "at": "/room" }] }, "log": { "on": "log", "id": "/n" },
            "invariants": { "replay": { "about": "a", "monitor": { "replay": {
                "resume": { "on": { "type": "ask", "dir": "send" }, "at": "/seen" }, "resets": { "on": "done", "at": "/n" },
                "instead": { "on": { "type": "done", "where": { "not": { "required": ["id"] } } }, "at": "/n" },
                "joined": "say", "floor": ["R-1"], "complete": ["R-1"], "content": ["R-1"],
            } } } },
        }));
        let event = |n: u64| json!({ "type": "log", "n": n, "room": "r" });
        let (join, ask) = (json!({ "type": "say" }), |seen: u64| json!({ "type": "ask", "seen": seen }));
        let broken = |steps: &[(&str, Value)]| {
            let mut judge = Judge::new(Arc::clone(&protocol), Limits::default(), &[]).expect("monitors");
            let broken = steps.iter().map(|(client, frame)| {
                let dir = if frame["type"] == "ask" { Direction::Send } else { Direction::Recv };
                let (client, payload) = ((*client).into(), Payload::Text(frame.to_string().into()));
                judge
                    .observe(&Event { at: Duration::ZERO, case: None, client, dir, payload, why: None })
                    .violations
                    .len()
            });
            broken.sum::<usize>() + judge.finish(true).violations.len()
        };
        let shows = |newest: Value| json!({ "type": "done", "n": newest });
        assert_eq!(broken(&[("b", ask(9)), ("b", event(1))]), 1, "beyond the log");
        assert_eq!(broken(&[("b", ask(9)), ("b", shows(json!(0))), ("b", event(1))]), 0, "begun anew");
        assert_eq!(
            broken(&[("b", ask(9)), ("b", shows(Value::Null)), ("b", event(1))]),
            0,
            "of an empty log"
        );
        assert_eq!(broken(&[("b", ask(9)), ("b", shows(json!(9))), ("b", event(9))]), 1, "nothing was reset");
        let known = [("a", event(1)), ("a", event(2)), ("b", join), ("b", ask(1))];
        let rest = [("a", event(3)), ("b", event(3)), ("b", event(2))];
        assert_eq!(broken(&[&known[..], &rest].concat()), 0, "3 came of itself before the replay");
        assert_eq!(broken(&[&known[..], &rest[..2]].concat()), 1, "2 was never replayed");
        assert_eq!(
            broken(&[&known[..2], &known[3..], &rest].concat()),
            1,
            "nothing comes of itself before a resume"
        );
        let gap = |then: &[(&str, Value)]| {
            let begin = [("a", event(1)), ("a", event(2)), ("a", event(3)), ("b", ask(1))];
            broken(&[&begin[..], then, &[("a", event(4))]].concat())
        };
        let state = |n: u64| ("b", json!({ "type": "done", "n": n }));
        assert_eq!(gap(&[("b", event(4))]), 1, "2 and 3 were skipped");
        assert_eq!(gap(&[state(3), ("b", event(4))]), 0, "the state has 2 and 3");
        assert_eq!(gap(&[state(2), ("b", event(4))]), 1, "the state has not got 3");
        assert_eq!(
            gap(&[state(3), ("b", event(2)), ("b", event(3)), ("b", event(4))]),
            0,
            "replayed all the same"
        );
        assert_eq!(gap(&[state(3), ("b", event(2)), ("b", event(4))]), 1, "replayed in part");
        assert_eq!(gap(&[("b", event(2)), state(3), ("b", event(4))]), 1, "the replay had begun");
        let asked = ("b", json!({ "type": "done", "n": 3, "id": "q" }));
        assert_eq!(gap(&[asked, ("b", event(4))]), 1, "an answer is no replay");
        let other = |n: u64| json!({ "type": "log", "n": n, "room": "r", "text": "other" });
        let begin = [("a", event(1)), ("a", event(2)), ("b", ask(1))];
        assert_eq!(broken(&[&begin[..], &[("b", other(2))]].concat()), 1, "2 was replayed otherwise");
        let live = [("b", event(2)), ("a", event(3)), ("b", other(3))];
        assert_eq!(
            broken(&[&begin[..], &live].concat()),
            0,
            "3 may have come live, where clients need not see the same"
        );
    }
}
