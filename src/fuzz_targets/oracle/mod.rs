//! What the monitors say, worked out anew for each event from the whole trace before it: slow, and without state that
//! could go stale. Written from the rules' documentation (`protocol::rules`), not from the monitors.

mod cued;
mod history;
mod keyed;
mod keys;
mod order;
mod pieces;
mod replies;

use std::time::Duration;

use serde_json::{Value, json};

use crate::frame::{self, Limits, Pointer};
use crate::protocol::extension::At;
use crate::protocol::rules::Rule;
use crate::protocol::{ConnectionEvent, Matcher, Pattern, Protocol, Time};
use crate::trace::{Direction, Event, Payload};

/// The event that a violation belongs to (none: a duty that is open at the end of all), and the requirements broken.
pub(super) type Finding = (Option<u64>, Vec<String>);

/// One message, or one part of one, with where it belongs.
pub(super) struct Item {
    /// Its place in the trace.
    pub index: usize,
    pub event: u64,
    pub at: Duration,
    /// Number of the connection, in the order of opening.
    pub conn: usize,
    /// How many connections had been opened.
    pub opened: usize,
    /// Number of the session, as far as it is known at this message.
    pub session: usize,
    /// The session went on while none of its connections was open.
    pub unwatched: bool,
    /// Its connection came in the midst of a turn that has not ended for it.
    pub late: bool,
    pub dir: Direction,
    pub message: Option<usize>,
    pub body: Value,
    /// Id in the log and content without what may differ.
    pub logged: Option<(i128, Value)>,
}

/// A trace as the monitors see it.
pub(super) struct Items {
    pub all: Vec<Item>,
    /// The event with which each connection ended, if it did.
    pub ended: Vec<Option<u64>>,
}

impl Items {
    /// What came before the item at `index`, newest first, with their indices.
    pub fn before(&self, index: usize) -> impl Iterator<Item = (usize, &Item)> {
        self.all[..index].iter().enumerate().rev()
    }

    /// The same, on the same connection.
    pub fn before_on_conn(&self, index: usize) -> impl Iterator<Item = (usize, &Item)> {
        let conn = self.all[index].conn;
        self.before(index).filter(move |(_, item)| item.conn == conn)
    }

    /// What came after it on the same connection, oldest first.
    pub fn after_on_conn(&self, index: usize) -> impl Iterator<Item = &Item> {
        let conn = self.all[index].conn;
        self.all[index + 1..].iter().filter(move |item| item.conn == conn)
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Item)> {
        self.all.iter().enumerate()
    }

    /// Whether a connection is open at the end.
    pub fn is_open(&self, conn: usize) -> bool {
        self.ended[conn].is_none()
    }
}

impl Item {
    pub fn is(&self, matcher: &Matcher) -> bool {
        matcher.matches(self.message, self.dir, &self.body)
    }

    pub fn is_any(&self, matcher: Option<&Matcher>) -> bool {
        matcher.is_some_and(|matcher| self.is(matcher))
    }

    pub fn get(&self, at: &Pointer) -> Option<&Value> {
        at.get(&self.body)
    }

    pub fn text(&self, at: &Pointer) -> Option<&str> {
        self.get(at).and_then(Value::as_str)
    }

    /// A key: strings as they are, numbers by value, other values as JSON.
    pub fn key(&self, at: &Pointer) -> Option<String> {
        self.get(at).map(key)
    }
}

pub(super) fn key(value: &Value) -> String {
    let number = || whole(value).map_or_else(|| value.to_string(), |whole| whole.to_string());
    value.as_str().map_or_else(number, str::to_owned)
}

/// The whole number that a JSON number stands for, read off its text: `2`, `2.0` and `2e0` are one.
pub(super) fn whole(value: &Value) -> Option<i128> {
    let text = value.as_number()?.to_string();
    text.parse().ok().or_else(|| {
        let float: f64 = text.parse().ok()?;
        (float == float.trunc() && float.abs() < 1e30).then_some(float as i128)
    })
}

/// Compiles what the protocol has been checked to have.
pub(super) struct Compile<'p>(pub &'p Protocol);

impl Compile<'_> {
    pub fn pattern(&self, pattern: &Pattern) -> Matcher {
        Matcher::of_connection(pattern, self.0)
            .unwrap_or_else(|errors| panic!("the pattern compiled before: {errors}"))
    }

    pub fn optional(&self, pattern: Option<&Pattern>) -> Option<Matcher> {
        pattern.map(|pattern| self.pattern(pattern))
    }

    pub fn time(&self, time: &Time) -> Duration {
        self.0.time(&time.0).unwrap_or_else(|error| panic!("the time was read before: {error:?}"))
    }

    pub fn place(&self, place: &At) -> (Matcher, Pointer) {
        (self.pattern(&place.message), place.at.clone())
    }

    pub fn places(&self, places: &[At]) -> Vec<(Matcher, Pointer)> {
        places.iter().map(|place| self.place(place)).collect()
    }
}

/// What a monitor must find.
pub(super) fn judge(rule: &Rule, protocol: &Protocol, items: &Items, settled: bool) -> Vec<Finding> {
    let c = &Compile(protocol);
    match rule {
        Rule::Increasing(rule) => order::increasing(rule, c, items),
        Rule::Precedence(rule) => order::precedence(rule, c, items),
        Rule::Absence(rule) => order::absence(rule, c, items),
        Rule::Bracket(rule) => order::bracket(rule, c, items, settled),
        Rule::Response(rule) => order::response(rule, c, items, settled),
        Rule::Existence(rule) => order::existence(rule, c, items, settled),
        Rule::Cadence(rule) => order::cadence(rule, c, items),
        Rule::Unique(rule) => keyed::unique(rule, c, items),
        Rule::Constant(rule) => keyed::constant(rule, c, items),
        Rule::States(rule) => keyed::states(rule, c, items),
        Rule::Holds(rule) => keyed::holds(rule, c, items),
        Rule::Relation(rule) => keyed::relation(rule, c, items),
        Rule::Proportion(rule) => keyed::proportion(rule, c, items),
        Rule::Concatenation(rule) => pieces::concatenation(rule, c, items),
        Rule::Increments(rule) => pieces::increments(rule, c, items),
        Rule::Series(rule) => pieces::series(rule, c, items, settled),
        Rule::Cued(rule) => cued::cued(rule, c, items),
        Rule::Dialogue(rule) => pieces::dialogue(rule, c, items),
        Rule::Echo(rule) => replies::echo(rule, c, items),
        Rule::Correlation(rule) => replies::correlation(rule, c, items, settled),
        Rule::ServerRequests(rule) => replies::server_requests(rule, protocol, items, settled),
        Rule::Agreement(rule) => history::agreement(rule, items, settled),
        Rule::Replay(rule) => history::replay(rule, c, items, settled),
        Rule::Projection(rule) => history::projection(rule, c, items),
    }
}

/// The beginning or the end of a connection; of its end, what each side shows first.
fn lifecycle(
    protocol: &Protocol,
    items: &Items,
    (event, index): (&Event, usize),
    (conn, (session, unwatched)): (usize, (usize, bool)),
    late: bool,
) -> Option<Item> {
    let closed = protocol.index_of_event(ConnectionEvent::Close);
    let has_closed = |dir| {
        items.all.iter().any(|item| item.conn == conn && item.message == Some(closed) && item.dir == dir)
    };
    let by_client = event.dir == Direction::Send || has_closed(Direction::Send);
    let end = |code, reason: Option<&str>| {
        let by = if by_client { "client" } else { "server" };
        json!({ "code": code, "reason": reason, "clean": reason.is_some(), "by": by })
    };
    let (dir, message, body) = match &event.payload {
        Payload::Open { url } => {
            (Direction::Recv, protocol.index_of_event(ConnectionEvent::Open), json!({ "url": **url }))
        }
        _ if has_closed(event.dir) => return None,
        Payload::Close { code, reason } => (event.dir, closed, end(*code, Some(reason))),
        _ => (event.dir, closed, end(None, None)),
    };
    let (event, at) = (index as u64, event.at);
    Some(Item {
        index: 0,
        event,
        at,
        conn,
        opened: items.ended.len(),
        session,
        unwatched,
        late,
        dir,
        message: Some(message),
        body,
        logged: None,
    })
}

/// Reads a trace: who sent what on which connection and in which session.
pub(super) fn read(protocol: &Protocol, events: &[Event]) -> Items {
    let c = Compile(protocol);
    let ids = c.places(&protocol.extension.session.id);
    let start = protocol.message_of(&protocol.extension.turn.start, Direction::Send);
    let end = c.pattern(&protocol.extension.turn.end);
    let log = protocol.extension.log.as_ref().map(|log| (c.pattern(&log.message), log));
    let mut items = Items { all: Vec::new(), ended: Vec::new() };
    let mut conns: Vec<(String, usize)> = Vec::new();
    // The session that each connection is in, and the ids that were told; each with whether it was left alone.
    let mut sessions: Vec<(usize, bool)> = Vec::new();
    let mut told: Vec<(String, (usize, bool))> = Vec::new();
    // Of each connection: whether it knows of a turn that goes on, and whether it came in the midst of one.
    let mut turns: Vec<(bool, bool)> = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let (opens, ends) =
            (matches!(event.payload, Payload::Open { .. }), matches!(event.payload, Payload::End(_)));
        let open = |conns: &[(String, usize)]| conns.iter().position(|(client, _)| *client == *event.client);
        if let Payload::End(_) = event.payload
            && let Some(at) = open(&conns)
        {
            let conn = conns[at].1;
            let end = lifecycle(protocol, &items, (event, index), (conn, sessions[conn]), turns[conn].1);
            items.all.extend(end);
        }
        if opens || ends {
            if let Some(at) = open(&conns) {
                items.ended[conns.remove(at).1] = Some(index as u64);
            }
            if ends {
                continue;
            }
        }
        let known = conns.iter().find(|(client, _)| *client == *event.client).map(|(_, conn)| *conn);
        let conn = known.unwrap_or_else(|| {
            conns.push((event.client.to_string(), sessions.len()));
            items.ended.push(None);
            sessions.push((sessions.len(), false));
            turns.push((false, false));
            sessions.len() - 1
        });
        let mut join = |id: &str, sessions: &mut Vec<(usize, bool)>, turns: &mut Vec<(bool, bool)>| {
            let at = told.iter().position(|(known, _)| known == id).unwrap_or(told.len());
            if at == told.len() {
                told.push((id.to_owned(), sessions[conn]));
            }
            let (number, unwatched) = &mut told[at].1;
            let was = sessions[conn];
            *unwatched |=
                was == (*number, true) || conns.iter().all(|(_, open)| sessions[*open].0 != *number);
            sessions[conn] = told[at].1;
            if was.0 != sessions[conn].0 {
                // Its own turn in another session does not go on in this one.
                let mut others = conns.iter().filter(|(_, open)| *open != conn);
                let goes_on = others.any(|(_, open)| sessions[*open].0 == sessions[conn].0 && turns[*open].0);
                turns[conn] = (goes_on, goes_on);
            }
        };
        if let Payload::Open { url } = &event.payload
            && let Some(id) = protocol.session_in(url)
        {
            join(id, &mut sessions, &mut turns);
        }
        if matches!(event.payload, Payload::Open { .. } | Payload::Close { .. }) {
            let seen = lifecycle(protocol, &items, (event, index), (conn, sessions[conn]), turns[conn].1);
            items.all.extend(seen);
        }
        let opened = items.ended.len();
        let item = |message, body, ((session, unwatched), late), logged| Item {
            index: 0,
            event: index as u64,
            at: event.at,
            conn,
            opened,
            session,
            unwatched,
            late,
            dir: event.dir,
            message,
            body,
            logged,
        };
        let body = match &event.payload {
            Payload::Text(text) => frame::parse(text.as_bytes(), &Limits::default()).ok(),
            Payload::Binary(_) => None,
            _ => continue,
        };
        let Some(body) = body else {
            // What a client sends is a request, whatever it is.
            if event.dir == Direction::Send {
                items.all.push(item(None, Value::Null, (sessions[conn], turns[conn].1), None));
            }
            continue;
        };
        let message = replies::identify(protocol, &items, conn, event.dir, &body);
        let place = ids.iter().find(|(on, _)| on.matches(message, event.dir, &body));
        if let Some(id) = place.and_then(|(_, at)| at.get(&body)).and_then(Value::as_str) {
            join(id, &mut sessions, &mut turns);
        }
        let logged =
            log.as_ref().filter(|(on, _)| on.matches(message, event.dir, &body)).and_then(|(_, log)| {
                let mut content = body.clone();
                for at in &log.volatile {
                    content.as_object_mut().map(|map| map.remove(at.as_str().trim_start_matches('/')));
                }
                Some((whole(log.id.get(&body)?)?, content))
            });
        let within = (sessions[conn], turns[conn].1);
        items.all.push(item(message, body.clone(), within, logged));
        for (number, part) in protocol.parts().iter().enumerate() {
            if message.is_some_and(|message| part.of.contains(&message)) {
                for element in part.elements(&body) {
                    items.all.push(item(Some(protocol.messages.len() + number), element, within, None));
                }
            }
        }
        if event.dir == Direction::Send && message.is_some() && message == start {
            for (_, open) in &conns {
                turns[*open].0 |= sessions[*open].0 == sessions[conn].0;
            }
        } else if event.dir == Direction::Recv && turns[conn].0 && end.matches(message, event.dir, &body) {
            turns[conn] = (false, false);
        }
    }
    items.all.iter_mut().enumerate().for_each(|(index, item)| item.index = index);
    items
}
