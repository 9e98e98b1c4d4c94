//! Exchanges that the protocol declares: openings, barriers, queries.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::protocol::extension::{Exchange, Join};
use crate::results::Check;
use crate::results::cause::Statement;
use crate::run::case::client::{Client, Received};
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::receive::Waited;
use crate::run::case::wait::{Expectation, OnError, WaitOutcome, is_error};
use crate::run::case::wait_deadline::WaitDeadline;
use crate::run::triage::activity::Optional;

/// How long an optional message of an exchange is waited for when nothing else comes.
const OPTIONAL: Duration = Duration::from_millis(300);

/// What is sent for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A step of the case says so: what comes next is looked at as the answer.
    Stimulus,
    /// To find out whether the server has said all: it leaves the exchange that is under way as it is.
    Housekeeping,
}

/// What an exchange is done for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExchangeKind {
    /// It opens a connection: its first message may name the session.
    Opening,
    /// It asks for something.
    Query,
}

impl Interpreter<'_> {
    /// Does an exchange of the protocol: an opening, a barrier, a state query. Returns the last message taken.
    pub(crate) async fn exchange(
        &mut self,
        client: &str,
        steps: &[Exchange],
        with: Option<&Value>,
        purpose: ExchangeKind,
    ) -> Result<Option<Received>, Abort> {
        let mut first = purpose == ExchangeKind::Opening;
        let mut last = None;
        let mut sent = Value::Null;
        for step in steps {
            if let Some(message) = &step.send {
                let mut message = self.expand_message(message, with)?;
                if std::mem::take(&mut first) {
                    self.join(client, &mut message, with);
                }
                sent.clone_from(&message);
                self.note_asides(client, steps, &sent)?;
                self.send_json(client, message, Purpose::Stimulus).await?;
            }
            if step.expect.is_none() {
                continue;
            }
            let wanted = self.wanted_of(step, None)?.answering(step.echo.as_ref(), &sent);
            if step.optional {
                let taken = self.optional(client, &wanted, &step.covers).await?;
                if let Some(received) = &taken {
                    self.answer_exchange(client, step, received).await?;
                }
                last = taken.or(last);
                continue;
            }
            let mut wait_deadline = WaitDeadline::for_silence(self.deadline(None));
            match self.wait(client, &wanted, &mut wait_deadline, OnError::Fail).await? {
                WaitOutcome::Found(received) => {
                    self.verdict.exercise(&step.covers);
                    for (name, at) in &step.save {
                        let value = at.get(&received.body).cloned().unwrap_or(Value::Null);
                        self.vars.set(name, value);
                    }
                    self.answer_exchange(client, step, &received).await?;
                    last = Some(*received);
                }
                WaitOutcome::Closed(_) => {}
                WaitOutcome::Ended(message) => {
                    self.fail_on_end(Check::Step, client, &step.covers, message)?
                }
                WaitOutcome::Missed(message, instead) => {
                    if let Some(other) = self.fallback(step, instead.as_deref()) {
                        return Box::pin(self.exchange(client, &other, with, purpose)).await;
                    }
                    let covers = step.covers.clone();
                    self.fail_step(&covers, message, instead.as_deref(), None)?;
                }
            }
        }
        Ok(last)
    }

    /// What answers this message of an exchange is for none of the steps, also where it comes later than the exchange is over.
    /// A second reply is another matter: it answers nothing.
    fn note_asides(&mut self, client: &str, steps: &[Exchange], sent: &Value) -> Result<(), Abort> {
        let extension = &self.cx.protocol.extension;
        // A barrier that is made for a value has the same id as the messages of the steps that it is about.
        if extension.replies.is_some()
            || extension.barrier.as_ref().is_some_and(|barrier| barrier.per().is_some())
        {
            return Ok(());
        }
        let inbox = &mut self.client(client)?.inbox;
        for echo in steps.iter().filter_map(|step| step.echo.as_ref()) {
            if let Some(id) = echo.sent().get(sent).filter(|id| !id.is_null()) {
                inbox.note_aside(echo.answered(), id);
            }
        }
        Ok(())
    }

    /// The opening that is done instead of one whose step was answered by an error.
    fn fallback(&self, step: &Exchange, instead: Option<&Received>) -> Option<Vec<Exchange>> {
        let refused = instead.is_some_and(|other| is_error(&self.cx.protocol, other));
        let other = step.or.as_ref().filter(|_| refused)?;
        self.cx.protocol.extension.openings.get(other).cloned()
    }

    /// Puts the session's id into the first message of an opening.
    fn join(&mut self, client: &str, message: &mut Value, with: Option<&Value>) {
        let Join::Field(at) = &self.cx.protocol.extension.session.join else { return };
        let key = at.as_str().trim_start_matches('/').to_owned();
        let id = self.conns.get(client).and_then(|client| self.conns.sessions.id(client.session()));
        if let (Some(id), Some(map)) = (id, message.as_object_mut()) {
            map.insert(key, id.into());
        }
        if let (Some(Value::Object(extra)), Some(map)) =
            (with.and_then(|with| with.get("extra")), message.as_object_mut())
        {
            map.extend(extra.clone());
        }
    }

    /// Takes the next message if it is the wanted one; leaves another where it is.
    async fn optional(
        &mut self,
        client: &str,
        wanted: &Expectation,
        covers: &[String],
    ) -> Result<Option<Received>, Abort> {
        let activity = Arc::clone(&self.cx.run.activity);
        let optional_wait = if activity.leaves_out(&wanted.label) { Duration::ZERO } else { OPTIONAL };
        let until = Instant::now() + self.cx.run.options.timing.scaled(optional_wait);
        let next = |state: &mut Client| {
            let queue = &mut state.inbox.queue;
            let is_next =
                |received: &Received| !received.ambient && (!received.aside || wanted.matches(received));
            let index = queue.iter().position(is_next)?;
            Some(if wanted.matches(&queue[index]) { queue.remove(index) } else { None })
        };
        if let Waited::Done(Some(taken)) = self.wait_until(client, until, next).await? {
            if taken.breaks {
                return Err(self.built_on());
            }
            activity.note_optional(&wanted.label, Optional::Came);
            self.verdict.exercise(covers);
            return Ok(Some(taken));
        }
        activity.note_optional(&wanted.label, Optional::Missed);
        if !covers.is_empty() {
            let message = format!("{} was missing", wanted.label);
            self.fail_step(covers, message, None, None)?;
        }
        Ok(None)
    }

    /// Sends a message right behind the query of the barrier, so that the server may read both at once, and takes its answer out of the queue.
    pub(crate) async fn send_behind_query(&mut self, client: &str, message: Value) -> Result<(), Abort> {
        let protocol = Arc::clone(&self.cx.protocol);
        let query = protocol.extension.barrier_query();
        match self.query_before(client, query, Some(&Value::Null), Some(message)).await? {
            // Why the connection has ended is for the steps that follow to judge.
            Some((why, covers)) if !self.client(client)?.has_ended() => {
                self.fail_step(&covers, why, None, None)
            }
            _ => Ok(()),
        }
    }

    /// Does a correlated query, with these values of its templates. `None`: it was answered; else why not, and the requirements that this breaks.
    pub(crate) async fn query(
        &mut self,
        client: &str,
        steps: &[Exchange],
        with: Option<&Value>,
    ) -> Result<Option<(Statement, Vec<String>)>, Abort> {
        self.query_before(client, steps, with, None).await
    }

    /// As [`Self::query`]; a message of the case follows the first one of the query at once.
    async fn query_before(
        &mut self,
        client: &str,
        steps: &[Exchange],
        with: Option<&Value>,
        mut message_behind: Option<Value>,
    ) -> Result<Option<(Statement, Vec<String>)>, Abort> {
        let waiting = std::mem::take(&mut self.client(client)?.inbox.queue);
        let mut kept: Vec<Received> = Vec::new();
        let mut sent = Value::Null;
        let mut unanswered = None;
        for step in steps {
            if let Some(message) = &step.send {
                let message = self.expand_message(message, with)?;
                sent.clone_from(&message);
                self.note_asides(client, steps, &sent)?;
                if let Some(link) = self.client(client)?.link().filter(|_| message_behind.is_some()) {
                    link.hold_next();
                }
                self.send_json(client, message, Purpose::Housekeeping).await?;
                if let Some(behind) = message_behind.take() {
                    self.send_json(client, behind, Purpose::Stimulus).await?;
                }
            }
            if step.expect.is_none() {
                continue;
            }
            let wanted = self.wanted_of(step, with)?.answering(step.echo.as_ref(), &sent);
            let began = Instant::now();
            let until = began + self.deadline(None);
            let answer = |state: &mut Client| {
                while let Some(received) = state.inbox.queue.pop_front() {
                    if wanted.matches(&received) || (received.breaks && wanted.could_be(&received)) {
                        return Some(received);
                    }
                    kept.push(received);
                }
                None
            };
            let why = match self.wait_until(client, until, answer).await? {
                Waited::Done(received) if received.breaks => return Err(self.built_on()),
                Waited::Done(received) => {
                    self.verdict.exercise(&step.covers);
                    self.answer_exchange(client, step, &received).await?;
                    continue;
                }
                Waited::Ended(ended) => {
                    self.client(client)?.report_end();
                    let rest = format!(" instead of sending {}", wanted.label);
                    self.ended_instead(client, &ended, &rest)
                }
                Waited::TimedOut => self.explain_wait(client, &wanted, until - began),
            };
            unanswered = Some((why, step.covers.clone()));
            break;
        }
        // What came before the answer, and what came behind it, is still there.
        let inbox = &mut self.client(client)?.inbox;
        inbox.put_back(waiting.into_iter().chain(kept).collect());
        Ok(unanswered)
    }
}
