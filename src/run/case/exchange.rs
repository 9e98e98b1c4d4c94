//! Exchanges that the protocol declares: openings, barriers, queries.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::protocol::extension::{Exchange, Join};
use crate::results::Check;
use crate::results::cause::Statement;
use crate::run::case::client::Received;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::wait::{Expectation, WaitOutcome};

/// How long an optional message of an exchange is waited for when nothing else comes.
const OPTIONAL: Duration = Duration::from_millis(300);

impl Interpreter<'_> {
    /// Does an exchange of the protocol: an opening, a barrier, a state query. Returns the last message taken.
    pub(crate) async fn exchange(
        &mut self,
        client: &str,
        steps: &[Exchange],
        with: Option<&Value>,
        opening: bool,
    ) -> Result<Option<Received>, Abort> {
        let mut first = opening;
        let mut last = None;
        let mut sent = Value::Null;
        for step in steps {
            if let Some(message) = &step.send {
                let mut message = self.expand(message, with)?;
                if std::mem::take(&mut first) {
                    self.join(client, &mut message, with);
                }
                sent.clone_from(&message);
                self.send_json(client, message).await?;
            }
            if step.expect.is_none() {
                continue;
            }
            let wanted = self.wanted_of(step)?.answering(step.echo.as_ref(), &sent);
            if step.optional {
                last = self.optional(client, &wanted, &step.covers).await?.or(last);
                continue;
            }
            let until = Instant::now() + self.deadline(None);
            match self.wait(client, &wanted, until, false).await? {
                WaitOutcome::Found(received) => {
                    self.exercise(&step.covers);
                    for (name, at) in &step.save {
                        let value = at.get(&received.body).cloned().unwrap_or(Value::Null);
                        self.vars.set(name, value);
                    }
                    last = Some(*received);
                }
                WaitOutcome::Closed(_) => {}
                WaitOutcome::Ended(message) => {
                    self.fail_on_end(Check::Step, client, &step.covers, message)?
                }
                WaitOutcome::Missed(message, instead) => {
                    let covers = step.covers.clone();
                    self.fail_step(&covers, message, instead.as_deref(), None)?;
                }
            }
        }
        Ok(last)
    }

    /// Puts the session's id into the first message of an opening.
    fn join(&mut self, client: &str, message: &mut Value, with: Option<&Value>) {
        let Join::Field(at) = &self.cx.protocol.extension.session.join else { return };
        let session = self.conns.clients.get(client).map(|client| client.session.clone()).unwrap_or_default();
        let key = at.as_str().trim_start_matches('/').to_owned();
        if let (Some(id), Some(map)) =
            (self.conns.sessions.ids.get(&session).cloned().flatten(), message.as_object_mut())
        {
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
        let until = Instant::now() + self.cx.run.options.timing.scaled(OPTIONAL);
        loop {
            let state = self.client(client)?;
            if let Some(index) = state.queue.iter().position(|received| !received.ambient) {
                if wanted.matches(&state.queue[index]) {
                    let taken = state.queue.remove(index);
                    self.exercise(covers);
                    return Ok(taken);
                }
                break;
            }
            if state.ended.is_some() || !self.receive_until(until).await? {
                break;
            }
        }
        if !covers.is_empty() {
            let message = format!("{} was missing", wanted.label);
            self.fail_step(covers, message, None, None)?;
        }
        Ok(None)
    }

    /// Does a correlated query. `None`: it was answered; else why not, and the requirements that this breaks.
    pub(crate) async fn query(
        &mut self,
        client: &str,
        steps: &[Exchange],
    ) -> Result<Option<(Statement, Vec<String>)>, Abort> {
        let waiting = std::mem::take(&mut self.client(client)?.queue);
        let mut kept: Vec<Received> = Vec::new();
        let mut sent = Value::Null;
        for step in steps {
            if let Some(message) = &step.send {
                let message = self.expand(message, None)?;
                let seen = self.client(client)?.since_send.clone();
                let over = self.client(client)?.turn_over;
                let looked = std::mem::take(&mut self.client(client)?.looked);
                sent.clone_from(&message);
                self.send_json(client, message).await?;
                let state = self.client(client)?;
                state.since_send.splice(0..0, seen);
                state.turn_over |= over;
                state.looked = looked;
            }
            if step.expect.is_none() {
                continue;
            }
            let wanted = self.wanted_of(step)?.answering(step.echo.as_ref(), &sent);
            let began = Instant::now();
            let until = began + self.deadline(None);
            loop {
                let state = self.client(client)?;
                if let Some(received) = state.queue.pop_front() {
                    if wanted.matches(&received) {
                        self.exercise(&step.covers);
                        break;
                    }
                    kept.push(received);
                    continue;
                }
                let ended = state.ended.clone();
                state.told |= ended.is_some();
                if ended.is_some() || !self.receive_until(until).await? {
                    let why = match ended {
                        None => self.explain_wait(client, &wanted, until - began),
                        Some(ended) => {
                            let rest = format!(" instead of sending {}", wanted.label);
                            self.ended_instead(client, &ended, &rest)
                        }
                    };
                    self.client(client)?.queue = waiting.into_iter().chain(kept).collect();
                    return Ok(Some((why, step.covers.clone())));
                }
            }
        }
        let state = self.client(client)?;
        let rest = std::mem::take(&mut state.queue);
        state.queue = waiting.into_iter().chain(kept).chain(rest).collect();
        Ok(None)
    }
}
