//! What comes: each event goes to the judges and to the log, each message to its client.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::check::{Judged, Member, PairJudged, counter_as};
use crate::frame::cost;
use crate::protocol::Matcher;
use crate::results::Check;
use crate::results::event::{Failure, Verdict};
use crate::run::alone::Alone;
use crate::run::case::client::{Client, ObservedEnd, Received};
use crate::run::case::holding::Share;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::log::{Part, Request};
use crate::run::options::GoesOn;
use crate::run::triage::activity::ActivityLevel;
use crate::trace::{Direction, Event, Payload};
use crate::wire::Incoming;

/// Longest wait for what follows at once, on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(1);

/// How a wait for something on a client's connection ended.
pub(crate) enum Waited<T> {
    Done(T),
    /// The connection has ended before.
    Ended(ObservedEnd),
    TimedOut,
}

impl Interpreter<'_> {
    /// Records what a client did itself just now, and shows it to the judges.
    pub fn record(&mut self, client: &str, payload: Payload) {
        self.record_since(Instant::now(), client, payload);
    }

    /// Records what a client began to write at a time: the answer to it can come before the write returns.
    pub fn record_since(&mut self, began: Instant, client: &str, payload: Payload) {
        let event = self.log.event(Some(began), client, Direction::Send, payload);
        self.observe(event);
    }

    /// Shows an event to the judges and the log: what it is, and what each parsed body takes in memory.
    fn observe(&mut self, event: Event) -> (Judged, Vec<Share>) {
        // A large frame takes much more memory while it is judged than it has bytes: one at a time.
        let alone = Alone::wait(event.payload.length());
        let PairJudged { mut judged, excused } = match &alone {
            Some(alone) => alone.look(|| self.judges.observe(&event)),
            None => self.judges.observe(&event),
        };
        judged.messages().for_each(|message| self.note_activity(&event, message));
        self.note_sent(&event, &judged);
        let bodies = || judged.body.iter().chain(judged.batch.iter().map(|one| &one.body));
        let asks = bodies().filter_map(|body| self.asks(&event, body)).collect();
        let held = self.log.holding();
        let shares = bodies().map(|body| held.share(size_of::<Received>() + cost(body))).collect();
        self.log.push(event, &judged, asks);
        self.keep_within_bounds();
        self.verdict.excuse(self.cx, excused);
        for violation in std::mem::take(&mut judged.violations) {
            self.verdict.violated(self.cx, &self.step.pointer, violation);
        }
        // No step looks at what broke a MUST, or is too much to keep.
        if alone.is_some() && (self.verdict.is_over() || self.verdict.is_pending()) {
            judged.body = None;
            judged.batch.clear();
        }
        drop(alone);
        (judged, shares)
    }

    /// Behind what a client sends, a value may be new to it that is the same as before.
    fn note_sent(&mut self, event: &Event, judged: &Judged) {
        let rules = self.cx.protocol.repeats();
        let Some(client) = self.conns.get_mut(&event.client).filter(|_| event.dir == Direction::Send) else {
            return;
        };
        let whole = judged.body.iter().map(|body| (judged.message, body));
        let members = judged.batch.iter().map(|one| (one.message, &one.body));
        for (message, body) in whole.chain(members) {
            client.inbox.known_values.note(rules, message, Direction::Send, body);
        }
    }

    /// The request that is sent, if it is one that will have a reply.
    fn asks(&self, event: &Event, body: &Value) -> Option<Request> {
        let replies = self.cx.protocol.extension.replies.as_ref().filter(|_| event.dir == Direction::Send)?;
        let id = replies.id.get(body).filter(|id| !id.is_null())?.clone();
        Some(Request { id, kind: self.cx.protocol.type_of(body).map(str::to_owned) })
    }

    /// Fails the case where it holds more than there is room for.
    fn keep_within_bounds(&mut self) {
        if let Some(passed) = self.log.passed_bound().filter(|_| !self.verdict.is_over()) {
            self.fail(Failure::new(Check::Limit, Verdict::Failed, passed.to_string()));
            self.verdict.end();
        }
    }

    /// Notes what a client asks behind its opening, and that the server speaks.
    fn note_activity(&mut self, event: &Event, message: Option<usize>) {
        let said = matches!(event.payload, Payload::Text(_) | Payload::Binary(_));
        let Some(client) = self.conns.get_mut(&event.client).filter(|_| said) else { return };
        let (roles, activity) = (self.cx.protocol.roles(), &self.cx.run.activity);
        if event.dir == Direction::Send {
            if !roles.opens(message) {
                client.note_asked();
            }
        } else if message.is_some_and(|message| roles.is_ambient(message)) {
            activity.note_ambient();
        } else {
            // A greeting may be late.
            let answers = client.has_asked() && !roles.greets(message);
            activity.note(if answers { ActivityLevel::Answers } else { ActivityLevel::Openings });
        }
    }

    /// Receives until `done` finds what it looks for in the client's state, the connection has ended, or the time is over. What
    /// has come already is looked at first.
    pub async fn wait_until<T>(
        &mut self,
        client: &str,
        until: Instant,
        mut done: impl FnMut(&mut Client) -> Option<T>,
    ) -> Result<Waited<T>, Abort> {
        loop {
            if let Some(found) = done(self.client(client)?) {
                return Ok(Waited::Done(found));
            }
            self.take_effect()?;
            if let Some(ended) = self.client(client)?.ended() {
                return Ok(Waited::Ended(ended.clone()));
            }
            if !self.receive_until(until).await? {
                return Ok(Waited::TimedOut);
            }
        }
    }

    /// Receives until the client's connection has ended, for no longer than this. The result is how it ended, if it has.
    pub async fn wait_for_end(&mut self, client: &str, until: Instant) -> Result<Option<ObservedEnd>, Abort> {
        match self.wait_until(client, until, |_| None::<()>).await? {
            Waited::Ended(ended) => Ok(Some(ended)),
            Waited::Done(()) | Waited::TimedOut => Ok(None),
        }
    }

    /// Waits for the next thing that any client receives. `false`: nothing came before the deadline.
    pub async fn receive_until(&mut self, until: Instant) -> Result<bool, Abort> {
        self.take_effect()?;
        let Some(incoming) = self.conns.receive(until).await else { return Ok(false) };
        let mut owed = incoming.more.then_some(incoming.connection);
        self.receive(incoming);
        // Nothing is looked at behind the frame that broke a MUST, or was too much to keep.
        while !self.verdict.is_pending() && !self.verdict.is_over() {
            let next = match owed {
                Some(_) => self.conns.receive(Instant::now() + AT_ONCE).await,
                None => self.conns.received(),
            };
            let Some(incoming) = next else { break };
            if incoming.more {
                owed = Some(incoming.connection);
            } else if owed == Some(incoming.connection) {
                owed = None;
            }
            self.receive(incoming);
        }
        self.act_by_rules().await?;
        Ok(true)
    }

    /// Takes in what has come where much is waiting: a server whose answers nobody reads would stop reading itself.
    pub async fn make_room(&mut self) -> Result<(), Abort> {
        while !self.verdict.is_pending()
            && !self.verdict.is_over()
            && self.conns.is_crowded()
            && let Some(incoming) = self.conns.received()
        {
            self.receive(incoming);
        }
        self.act_by_rules().await?;
        self.go_on()
    }

    /// Whoever waits has looked at all that came before the frame that broke a MUST: it ends the case.
    pub fn take_effect(&mut self) -> Result<(), Abort> {
        self.verdict.take_effect(self.cx, &self.step.pointer);
        self.go_on()
    }

    /// What broke a MUST is what a step asks for: the case ends with that, whatever else there is to say of the frame.
    pub fn built_on(&mut self) -> Abort {
        self.verdict.end();
        self.verdict.take_effect(self.cx, &self.step.pointer);
        Abort::Failed
    }

    /// The case goes on unless a MUST is broken that it builds on.
    pub fn go_on(&self) -> Result<(), Abort> {
        if self.verdict.is_over() { Err(Abort::Failed) } else { Ok(()) }
    }

    fn receive(&mut self, incoming: Incoming) {
        let Some(name) = self.conns.receiver_of(&incoming).map(str::to_owned) else { return };
        let over = self.log.count(&incoming.payload, &self.cx.run.options.limits);
        if let Some(over) = over.filter(|_| !self.verdict.is_pending()) {
            self.verdict.postpone_the_end(Failure::new(Check::Limit, Verdict::Failed, over));
        }
        let Incoming { mut payload, detail, at, .. } = incoming;
        if let (Some(locale), Payload::Text(text)) = (self.pseudolocale(), &mut payload) {
            *text = locale.revert(text).into();
        }
        let index = self.log.next_index();
        if let (Some(probe), Payload::Text(text)) = (&self.cx.probe, &payload) {
            probe.note_received(&name, index, text);
        }
        let event = self.log.event(Some(at), &name, Direction::Recv, payload.clone());
        let (judged, shares) = self.observe(Event { why: detail.as_deref().map(Into::into), ..event });
        if let Payload::Pong(bytes) = &payload
            && let Some(client) = self.conns.get_mut(&name)
        {
            client.receive_pong(bytes);
        }
        if let Some(ended) = ObservedEnd::from(&payload, detail.as_deref()) {
            self.receive_end(&name, index, ended);
        }
        let breaks = self.verdict.is_pending() && self.cx.options.goes_on != GoesOn::Always;
        // What is no message of the protocol can have been any.
        let is_text = matches!(payload, Payload::Text(_) | Payload::Binary(_));
        if breaks && is_text && (!judged.is_known() || judged.body.is_none() && judged.batch.is_empty()) {
            self.verdict.end();
        }
        let one = judged.body.map(|body| Member { body, message: judged.message });
        for (Member { body, message }, share) in one.into_iter().chain(judged.batch).zip(shares) {
            // A member of a batch that is no message.
            if !body.is_object() {
                self.log.classify(index, Part::default());
                continue;
            }
            let rules = self.cx.protocol.repeats();
            let client = self.conns.get_mut(&name);
            let repeats = client
                .and_then(|client| client.inbox.known_values.note(rules, message, Direction::Recv, &body));
            let ambient =
                repeats.is_some() || message.is_some_and(|message| self.cx.protocol.is_ambient(message));
            let (event, aside, ended) = (index, false, None);
            self.deliver(
                &name,
                Received { event, body, message, ambient, aside, repeats, ended, breaks, share },
            );
        }
    }

    /// Takes in how a connection ended, shows it in the log, and sees to it that bytes which no WebSocket client can read fail the
    /// case, whether or not a requirement speaks of them.
    fn receive_end(&mut self, name: &str, index: u64, mut ended: ObservedEnd) {
        if ended.detail.is_some() {
            self.log.describe(index, ended.describe());
        }
        if ended.is_breach() {
            let message = ended.describe();
            match self.verdict.first_pending() {
                Some(failure) => {
                    failure.message = message;
                    self.verdict.end();
                }
                None => {
                    let failure = Failure::new(Check::Frame, Verdict::Failed, message);
                    self.verdict.postpone_the_end(failure.shown_by([index]));
                }
            }
        }
        if let Some(client) = self.conns.get_mut(name) {
            ended.answers = client.is_closing();
            // It may have been found when writing, before this came.
            client.note_end(ended, Some(index));
        }
    }

    /// Hands a message to its client, with what it tells.
    fn deliver(&mut self, name: &str, received: Received) {
        let roles = self.cx.protocol.roles();
        self.vars.ids.learn(roles, name, &received);
        let seen = |matcher: &Matcher| matcher.matches(received.message, Direction::Recv, &received.body);
        let told = roles.session.ids.iter().find(|(on, _)| seen(on));
        let id = told.and_then(|(_, at)| at.get(&received.body)).and_then(Value::as_str).map(str::to_owned);
        let logged = roles.log.as_ref().filter(|(on, _)| seen(on));
        let logged = logged.and_then(|(_, at)| at.get(&received.body)).and_then(counter_as);
        let refuses = roles.errors.as_ref().is_some_and(|(on, _)| seen(on));
        let part = Part { ends_turn: seen(&roles.turn_end), refuses, ambient: received.ambient };
        self.log.classify(received.event, part);
        if part.ends_turn && self.log.continues(name, received.event) {
            self.cx.run.activity.note(ActivityLevel::Turns);
        }
        self.capabilities.announced(roles, seen);
        if let Some(id) = id {
            self.join_session(name, received.event, id);
        }
        self.note_marks(name, &received);
        self.note_automatic(name, &received);
        if let Some(client) = self.conns.get_mut(name) {
            client.receive(received, logged, part);
        }
    }

    /// The server gives a client what is for those of its session alone.
    fn note_marks(&self, name: &str, received: &Received) {
        let Some(probe) = &self.cx.probe else { return };
        let (message, body) = (received.message, &received.body);
        let marks = self.cx.protocol.roles().session.marks.iter();
        for (_, at) in marks.filter(|(on, _)| on.matches(message, Direction::Recv, body)) {
            if let Some(mark) = at.get(body).and_then(Value::as_str) {
                let text = self.log.get(received.event).map_or("", |entry| &entry.line.text);
                probe.note_mark(name, received.event, mark, text);
            }
        }
    }

    /// The server says in which session a client is.
    fn join_session(&mut self, name: &str, event: u64, id: String) {
        if let Some(probe) = self.cx.probe.as_ref().filter(|_| !self.log.may_have_sent(&id)) {
            let text = self.log.get(event).map_or("", |entry| &entry.line.text);
            probe.joins(name, event, &id, text);
        }
        let Some(session) = self.conns.get(name).map(|client| client.session().to_owned()) else { return };
        self.conns.sessions.set_id(&session, id);
    }
}
