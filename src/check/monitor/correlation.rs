//! Replies belong to requests.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::asked::{Answer, Asked, Request, Standing};
use super::key::{Keys, Part};
use super::{End, Monitor, MonitorBuilder, Observation};
use crate::check::Violation;
use crate::check::bounded::Memory;
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::protocol::extension::{PatternDirection, PatternWhere};
use crate::protocol::rules as rule;
use crate::protocol::{Matcher, Pattern, Protocol};
use crate::results::Check;
use crate::source::Diagnostics;
use crate::trace::Direction;

/// Memory: the last requests of each open connection ([`Asked`]).
#[derive(Clone)]
pub(super) struct Correlation {
    check: Check,
    rule: Arc<rule::Correlation>,
    protocol: Arc<Protocol>,
    request: Matcher,
    optional: Option<Matcher>,
    reply: Matcher,
    instead: Option<Matcher>,
    ids: Keys,
    requests: FxHashMap<Conn, Asked>,
    /// Requests with an id that were answered on connections that are gone.
    answered: u64,
    forgotten: u64,
}

impl Correlation {
    pub fn new(rule: &rule::Correlation, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        // Whatever is sent may have to be refused.
        b.pattern(&Pattern::Where(PatternWhere { dir: PatternDirection::Send, ..PatternWhere::default() }))?;
        Ok(Self {
            check: b.check.clone(),
            protocol: Arc::clone(b.protocol),
            request: b.pattern(&rule.request)?,
            optional: b.optional(rule.optional.as_ref())?,
            reply: b.pattern(&rule.reply)?,
            instead: b.optional(rule.instead.as_ref())?,
            ids: Keys::new(rule.id.as_ref(), b)?,
            rule: Arc::new(rule.clone()),
            requests: FxHashMap::default(),
            answered: 0,
            forgotten: 0,
        })
    }

    /// Which answer a message of the client may have, if any.
    fn standing(&self, seen: &Observation<'_>) -> Option<Standing> {
        if seen.is(&self.request) {
            return Some(Standing::Due);
        }
        if seen.is_any(self.optional.as_ref()) {
            return Some(Standing::Optional);
        }
        // It may answer a request of the server.
        let replies = self.protocol.extension.replies.as_ref();
        let answers = replies.is_some_and(|replies| {
            [&replies.result, &replies.error].iter().any(|part| part.get(seen.body).is_some())
        });
        (seen.dir == Direction::Send && seen.message.is_none() && !answers).then_some(Standing::Unread)
    }

    /// Whether any receiver must take it for a request, and its id for one.
    fn is_readable(&self, seen: &Observation<'_>, id: Option<&str>) -> bool {
        self.protocol.extension.discriminator.get(seen.body).is_some_and(Value::is_string)
            && id.is_some_and(is_plain)
            && seen
                .message
                .and_then(|at| self.protocol.messages.get(at))
                .is_none_or(|message| message.is_valid(seen.body))
    }

    fn answered(&mut self, seen: &Observation<'_>, id: Option<String>, is_reply: bool, tally: &mut Tally) {
        // An answer whose id is null says that no id could be read. Where ids may be left out, it is one without.
        let null = id.is_none() && self.rule.echo.is_empty() && self.ids.is_null(seen);
        let asked = self.requests.entry(seen.conn).or_default();
        let (rule, check) = (&self.rule, &self.check);
        let what = |id: &str| format!("the answer with {} {id}", place(rule));
        let answer = Answer { event: seen.event, batched: seen.batched, is_reply };
        let name = id.as_deref().unwrap_or("null");
        let found = match &id {
            Some(id) => asked.named(id, answer),
            None if null => asked.null(answer),
            None => None,
        };
        if let Some(found) = found {
            let mut broken = Vec::new();
            if id.is_some() {
                if is_reply {
                    [&rule.echo, &rule.foreign, &rule.twice, &rule.unsolicited]
                        .iter()
                        .for_each(|ids| tally.exercise(ids));
                }
                tally.exercise(&rule.both);
                let (replies, insteads) = found.before;
                let (same, other) = if is_reply { (replies, insteads) } else { (insteads, replies) };
                if other > 0 {
                    broken.push((&rule.both, "comes after another kind of answer to it"));
                } else if same > 0 && is_reply {
                    broken.push((&rule.twice, "comes a second time"));
                }
            } else if is_reply {
                tally.exercise(&rule.invented);
                tally.exercise(&rule.unsolicited);
            }
            if found.in_batch {
                tally.exercise(&rule.batched);
            }
            broken.extend(found.misplaced.map(|words| (&rule.batched, words)));
            for (ids, words) in broken {
                let message = format!("{} {words}", what(name));
                if let Some(violation) = tally.broken(check, ids, seen.event, message) {
                    violation.related = Some(found.event);
                }
            }
            return;
        }
        let any_open = asked.iter().any(Request::is_open);
        if null && any_open {
            // Those are readable: it is the answer to none of them.
            if is_reply {
                let message = "an answer with the id null came, but the id of each open request can be read";
                tally.broken(check, &rule.unsolicited, seen.event, message.to_owned());
            }
            return;
        }
        if !is_reply || asked.lacking {
            // One without an id settles the oldest open request; an id that fits none is that of something else.
            if let Some(request) = asked.open(|_| true).filter(|_| id.is_none()) {
                request.count(is_reply);
            }
            return;
        }
        let nameless = asked.open(|request| request.id.is_none()).is_some();
        if id.is_none() && !nameless && asked.optional().map(|request| request.replies += 1).is_some() {
            return;
        }
        match (&id, asked.open(|request| request.id.is_none())) {
            (None, Some(request)) => {
                request.replies += 1;
                tally.exercise(&rule.invented);
                tally.exercise(&rule.unsolicited);
            }
            (Some(id), Some(request)) if !rule.invented.is_empty() => {
                request.replies += 1;
                let event = request.event;
                let message = format!("{} has an id, but its request had none", what(id));
                if let Some(violation) = tally.broken(check, &rule.invented, seen.event, message) {
                    violation.related = Some(event);
                }
            }
            (Some(id), None) if !rule.foreign.is_empty() => {
                tally.broken(
                    check,
                    &rule.foreign,
                    seen.event,
                    format!("{} belongs to no request on this connection", what(id)),
                );
            }
            (_, Some(request)) => request.replies += 1,
            // With an id of its own it is the answer to no request of another id.
            (Some(_), None) if any_open => {}
            (_, None) => match asked.open(|_| true) {
                Some(request) => {
                    // Whether this was its answer is a guess: the right one may still come, and need not.
                    request.standing = Standing::Optional;
                    let asked = request.id.clone().unwrap_or_default();
                    let event = request.event;
                    let message = format!("the answer lacks {} {asked} of its request", place(rule));
                    if let Some(violation) = tally.broken(check, &rule.echo, seen.event, message) {
                        violation.related = Some(event);
                    }
                }
                None => {
                    let message = "an answer came, but this client had no open request".to_owned();
                    tally.broken(check, &rule.unsolicited, seen.event, message);
                }
            },
        }
    }
}

/// Where messages have their ids, for a sentence about one.
fn place(rule: &rule::Correlation) -> String {
    rule.id.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// Whether any receiver takes this id for one: a text or a whole number.
fn is_plain(id: &str) -> bool {
    id.starts_with('"') || id.parse::<i64>().is_ok() || id.parse::<u64>().is_ok()
}

impl Monitor for Correlation {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let (is_reply, is_instead) = (seen.is(&self.reply), seen.is_any(self.instead.as_ref()));
        let id = self.ids.id(seen, Part::begins(!is_reply && !is_instead));
        if is_reply || is_instead {
            self.answered(seen, id, is_reply, tally);
        } else {
            let Some(standing) = self.standing(seen) else { return };
            let readable = self.is_readable(seen, id.as_deref());
            // What is none takes no id from a request that has it.
            let id = id.filter(|_| standing != Standing::Unread);
            let (event, batched) = (seen.event, seen.batched);
            let request =
                Request { id, event, standing, readable, batched, answer: None, replies: 0, insteads: 0 };
            self.forgotten += self.requests.entry(seen.conn).or_default().push(request);
        }
    }

    fn closed(&mut self, conn: Conn, _findings: &mut Tally) {
        self.ids.closed(conn);
        // What was still to come on it, nobody can tell.
        let asked = self.requests.remove(&conn).unwrap_or_default();
        let answered = asked.iter().filter(|request| request.is_due() && !request.is_open());
        self.answered += answered.count() as u64;
    }

    fn is_owed(&self, end: &End<'_>) -> bool {
        let mut due = self.requests.values().flat_map(Asked::due);
        !self.rule.missing.is_empty()
            && due.any(|(request, is_answered)| !is_answered && end.owes(request.event))
    }

    fn finish(&mut self, end: &End<'_>, tally: &mut Tally) {
        if !end.settled || self.rule.missing.is_empty() {
            return;
        }
        (0..self.answered).for_each(|_| tally.exercise(&self.rule.missing));
        for (request, is_answered) in self.requests.values().flat_map(Asked::due) {
            if !is_answered && !end.owes(request.event) {
                continue;
            }
            tally.exercise(&self.rule.missing);
            if !is_answered {
                let id = request.id.clone().unwrap_or_default();
                let message = format!("the request with {} {id} was never answered", place(&self.rule));
                tally.push(Violation {
                    event: Some(request.event),
                    ..Violation::new(&self.check, &self.rule.missing, message)
                });
            }
        }
    }

    fn memory(&self) -> Memory {
        let entries = self.requests.values().map(Asked::len).sum();
        Memory { entries, forgotten: self.forgotten } + self.ids.memory()
    }
}
