//! Replies belong to requests.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::key::{Keys, Part};
use super::{End, Monitor, MonitorBuilder, Observation};
use crate::check::Violation;
use crate::check::bounded::Memory;
use crate::check::sessions::Conn;
use crate::check::tally::Tally;
use crate::frame::Pointer;
use crate::protocol::Matcher;
use crate::protocol::rules as rule;
use crate::results::Check;
use crate::source::Diagnostics;
use crate::trace::Direction;

/// How many requests of a connection are remembered.
const WINDOW: usize = 4096;
/// How many bytes of their ids.
const MAX_BYTES: usize = 1 << 20;

/// Memory: the last [`WINDOW`] requests of each open connection.
#[derive(Clone)]
pub(super) struct Correlation {
    check: Check,
    rule: Arc<rule::Correlation>,
    request: Matcher,
    optional: Option<Matcher>,
    reply: Matcher,
    instead: Option<Matcher>,
    ids: Keys,
    discriminator: Pointer,
    /// Where replies have their result and their error, if the protocol says so.
    outcomes: Option<[Pointer; 2]>,
    requests: FxHashMap<Conn, Asked>,
    /// Requests with an id that were answered on connections that are gone.
    answered: u64,
    forgotten: u64,
}

/// The requests of a connection.
#[derive(Clone, Default)]
struct Asked {
    requests: VecDeque<Request>,
    bytes: usize,
    /// Some were forgotten: what fits none may have been asked for.
    lacking: bool,
}

impl Asked {
    /// How many were forgotten for it.
    fn push(&mut self, request: Request) -> u64 {
        self.bytes += request.id.as_ref().map_or(0, String::len);
        self.requests.push_back(request);
        let mut forgotten = 0;
        while self.requests.len() > WINDOW || self.bytes > MAX_BYTES {
            let Some(request) = self.requests.pop_front() else { break };
            self.bytes -= request.id.as_ref().map_or(0, String::len);
            self.lacking = true;
            forgotten += 1;
        }
        forgotten
    }
}

#[derive(Clone)]
struct Request {
    id: Option<String>,
    event: u64,
    standing: Standing,
    /// Whoever receives it can tell that it is a request, and read its id: an answer with the id null is none to it.
    readable: bool,
    /// It is a member of a batch: others have the same `event`.
    batched: bool,
    /// The event of its first answer.
    answer: Option<u64>,
    replies: u32,
    insteads: u32,
}

/// Which answer a message of the client may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It must be answered.
    Due,
    /// It may be answered, and need not be.
    Optional,
    /// It is no request of the pattern's, and cannot be read: an answer with the id null may be to it.
    Unread,
}

/// Whether any receiver takes this id for one: a text or a whole number.
fn is_plain(id: &str) -> bool {
    id.starts_with('"') || id.parse::<i64>().is_ok() || id.parse::<u64>().is_ok()
}

impl Request {
    fn is_unanswered(&self) -> bool {
        self.replies + self.insteads == 0
    }

    /// It has had a reply, or what comes instead of one.
    fn count(&mut self, is_reply: bool) {
        *(if is_reply { &mut self.replies } else { &mut self.insteads }) += 1;
    }

    /// It has an id, and must be answered.
    fn is_due(&self) -> bool {
        self.standing == Standing::Due && self.id.is_some()
    }

    /// An answer is due.
    fn is_open(&self) -> bool {
        self.standing == Standing::Due && self.is_unanswered()
    }
}

impl Correlation {
    pub fn new(rule: &rule::Correlation, b: &mut MonitorBuilder<'_>) -> Result<Self, Diagnostics> {
        Ok(Self {
            check: b.check.clone(),
            request: b.pattern(&rule.request)?,
            optional: b.optional(rule.optional.as_ref())?,
            reply: b.pattern(&rule.reply)?,
            instead: b.optional(rule.instead.as_ref())?,
            ids: Keys::new(Some(&rule.id), b)?,
            discriminator: b.protocol.extension.discriminator.clone(),
            outcomes: b
                .protocol
                .extension
                .replies
                .as_ref()
                .map(|replies| [replies.result.clone(), replies.error.clone()]),
            rule: Arc::new(rule.clone()),
            requests: FxHashMap::default(),
            answered: 0,
            forgotten: 0,
        })
    }

    /// Whether a message of the client answers a request of the server.
    fn answers(&self, seen: &Observation<'_>) -> bool {
        let parts = self.outcomes.as_ref();
        parts.is_some_and(|parts| parts.iter().any(|part| part.get(seen.body).is_some()))
    }

    fn answered(&mut self, seen: &Observation<'_>, id: Option<String>, is_reply: bool, tally: &mut Tally) {
        // An answer whose id is null says that no id could be read.
        let null = id.is_none() && self.ids.is_null(seen);
        let Asked { requests, lacking, .. } = self.requests.entry(seen.conn).or_default();
        let (rule, check) = (&self.rule, &self.check);
        let what = |id: &str| format!("the answer with {} {id}", rule.id);
        let found = match &id {
            // An id may be used again once it is answered: the open request is meant, otherwise the newest.
            Some(id) => {
                let has_id = |request: &Request| request.id.as_deref() == Some(id);
                let open = |request: &Request| request.is_unanswered() && has_id(request);
                // Where it is open twice, the answer in a batch is that to the one in a batch.
                let alike = |request: &Request| request.batched == seen.batched;
                let open = requests
                    .iter()
                    .rposition(|one| open(one) && alike(one))
                    .or_else(|| requests.iter().rposition(open));
                let found = open.or_else(|| requests.iter().rposition(has_id));
                found.and_then(|at| requests.get_mut(at))
            }
            None => None,
        };
        if let (Some(request), Some(id)) = (found, &id) {
            let before = (request.replies, request.insteads);
            request.count(is_reply);
            let event = request.event;
            let is_first_of_batch = request.batched && request.answer.is_none();
            request.answer.get_or_insert(seen.event);
            if is_reply {
                [&rule.echo, &rule.foreign, &rule.twice, &rule.unsolicited]
                    .iter()
                    .for_each(|ids| tally.exercise(ids));
            }
            tally.exercise(&rule.both);
            let same = if is_reply { before.0 } else { before.1 };
            let other = if is_reply { before.1 } else { before.0 };
            let broken = if other > 0 {
                Some((&rule.both, format!("{} comes after another kind of answer to it", what(id))))
            } else if same > 0 && is_reply {
                Some((&rule.twice, format!("{} comes a second time", what(id))))
            } else {
                None
            };
            if let Some((ids, message)) = broken
                && let Some(violation) = tally.broken(check, ids, seen.event, message)
            {
                violation.related = Some(event);
            }
            if is_first_of_batch {
                tally.exercise(&rule.batched);
                let others = requests.iter().filter(|one| one.event == event && one.batched);
                let elsewhere = others.filter_map(|one| one.answer).any(|answer| answer != seen.event);
                let broken = match (seen.batched, elsewhere) {
                    (false, _) => Some("comes alone, and its request came in a batch"),
                    (true, true) => {
                        Some("comes in another frame than the answers before it to the same batch")
                    }
                    (true, false) => None,
                };
                if let Some(words) = broken
                    && let Some(violation) =
                        tally.broken(check, &rule.batched, seen.event, format!("{} {words}", what(id)))
                {
                    violation.related = Some(event);
                }
            }
            return;
        }
        if null && let Some(request) = requests.iter_mut().find(|one| one.is_unanswered() && !one.readable) {
            request.count(is_reply);
            if is_reply && request.id.is_none() {
                tally.exercise(&rule.invented);
                tally.exercise(&rule.unsolicited);
            }
            return;
        }
        if null && rule.echo.is_empty() && requests.iter().any(Request::is_open) {
            // Those are readable: it is the answer to none of them.
            return;
        }
        if !is_reply {
            // One without an id settles the oldest open request; an id that fits none is that of something else.
            if let Some(request) = requests.iter_mut().find(|request| id.is_none() && request.is_open()) {
                request.insteads += 1;
            }
            return;
        }
        if *lacking {
            if let Some(request) = requests.iter_mut().find(|request| id.is_none() && request.is_open()) {
                request.replies += 1;
            }
            return;
        }
        let nameless = requests.iter().any(|request| request.is_open() && request.id.is_none());
        if id.is_none() && !nameless && may_be_answered(requests) {
            return;
        }
        let any_open = requests.iter().any(Request::is_open);
        let open_without_id = requests.iter_mut().find(|request| request.is_open() && request.id.is_none());
        match (&id, open_without_id) {
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
            (_, None) => match requests.iter_mut().find(|request| request.is_open()) {
                Some(request) => {
                    request.replies += 1;
                    let asked = request.id.clone().unwrap_or_default();
                    let event = request.event;
                    let message = format!("the answer lacks {} {asked} of its request", rule.id);
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

/// An answer without an id answers the oldest request without one that may have one, if there is such a request.
fn may_be_answered(requests: &mut VecDeque<Request>) -> bool {
    let mut unanswered = requests
        .iter_mut()
        .filter(|request| request.standing == Standing::Optional && request.is_unanswered());
    let found = unanswered.find(|request| request.id.is_none());
    found.map(|request| request.replies += 1).is_some()
}

impl Monitor for Correlation {
    fn observe(&mut self, seen: &Observation<'_>, tally: &mut Tally) {
        let (is_reply, is_instead) = (seen.is(&self.reply), seen.is_any(self.instead.as_ref()));
        let id = self.ids.id(seen, Part::begins(!is_reply && !is_instead));
        if is_reply || is_instead {
            self.answered(seen, id, is_reply, tally);
        } else {
            let is_typed = || self.discriminator.get(seen.body).is_some_and(Value::is_string);
            let standing = if seen.is(&self.request) {
                Standing::Due
            } else if seen.is_any(self.optional.as_ref()) {
                Standing::Optional
            } else if seen.dir == Direction::Send
                && seen.message.is_none()
                && !is_typed()
                && !self.answers(seen)
            {
                Standing::Unread
            } else {
                return;
            };
            let readable = is_typed() && id.as_deref().is_some_and(is_plain);
            // What cannot be read takes no id from a request that has it.
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
        let answered = asked.requests.iter().filter(|request| request.is_due() && !request.is_open());
        self.answered += answered.count() as u64;
    }

    fn finish(&mut self, end: &End<'_>, tally: &mut Tally) {
        if !end.settled || self.rule.missing.is_empty() {
            return;
        }
        (0..self.answered).for_each(|_| tally.exercise(&self.rule.missing));
        let requests = self.requests.values().flat_map(|asked| &asked.requests);
        for request in
            requests.filter(|request| request.is_due() && (end.owes(request.event) || !request.is_open()))
        {
            tally.exercise(&self.rule.missing);
            if request.is_open() {
                let id = request.id.clone().unwrap_or_default();
                let message = format!("the request with {} {id} was never answered", self.rule.id);
                tally.push(Violation {
                    event: Some(request.event),
                    ..Violation::new(&self.check, &self.rule.missing, message)
                });
            }
        }
    }

    fn memory(&self) -> Memory {
        let entries = self.requests.values().map(|asked| asked.requests.len()).sum();
        Memory { entries, forgotten: self.forgotten } + self.ids.memory()
    }
}
