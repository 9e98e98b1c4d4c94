//! The verbs that open and end connections.

use std::time::Instant;

use crate::results::Check;
use crate::results::cause::Cause;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::steps::StepScope;
use crate::scenario::case::{Cut, Open, Opening};
use crate::trace::{Direction, End, Payload};
use crate::wire::ConnectError;

/// Why a case that restarts the server is left out.
pub(crate) const NO_RESTART: &str =
    "it restarts the server, which needs a server that frameproof starts itself";

impl Interpreter<'_> {
    pub(crate) async fn restart(&mut self) -> Result<(), Abort> {
        let Some(restarter) = self.cx.server.restarter.clone() else {
            return Err(Abort::NotApplicable(NO_RESTART.to_owned()));
        };
        // What the server says about its own death is not judged.
        let names: Vec<String> = self.conns.clients.keys().cloned().collect();
        for name in names {
            if self.client(&name)?.connection.is_some() {
                self.record(&name, Direction::Send, Payload::End(End::Dropped));
                self.client(&name)?.disconnect();
            }
        }
        restarter.restart().await.map_err(Abort::Error)
    }

    pub(crate) async fn open(&mut self, verb: &Open, cx: &StepScope<'_>) -> Result<(), Abort> {
        let failures = self.verdict.failures.len();
        let opened = self.opened(verb, cx).await;
        if let Err(stop @ (Abort::Failed | Abort::Error(_))) = &opened {
            self.note_opening(stop, failures);
        }
        opened
    }

    async fn opened(&mut self, verb: &Open, cx: &StepScope<'_>) -> Result<(), Abort> {
        let name = verb.client.clone();
        if self.conns.clients.contains_key(&name) {
            self.expect_connected(&name)?;
        }
        self.step.client.clone_from(&name);
        let with = verb.with.as_ref().map(|with| self.expand(with, None)).transpose()?;
        if let Err(error) = self.connect(&name, verb.session.as_deref(), with.as_ref()).await {
            let refused = matches!(error, ConnectError::Http { .. } | ConnectError::Broken(_));
            return match (refused, verb.may_refuse, cx.covers.is_empty()) {
                (true, true, _) => Ok(()),
                (true, false, false) => self.fail_step(cx.covers, error.to_string(), None, None),
                _ => Err(Abort::Error(error.to_string())),
            };
        }
        let openings = &self.cx.protocol.extension.openings;
        let opening = match &verb.opening {
            Opening::None => return Ok(()),
            Opening::Named(opening) => openings.get(opening),
            Opening::First => openings.values().next(),
        };
        let steps = opening.cloned().unwrap_or_default();
        self.exchange(&name, &steps, with.as_ref(), true).await?;
        self.client(&name)?.opened = true;
        self.check_capabilities(&name)
    }

    /// Keeps why an opening failed: cases that fail for the same reason are told together.
    fn note_opening(&mut self, stop: &Abort, before: usize) {
        let told = self.verdict.failures.get(before).map(|failure| failure.message.clone());
        let reason = if let Abort::Error(reason) = stop { Some(reason.clone()) } else { None };
        self.verdict.cause = reason.or(told).map(Cause::Told);
    }

    /// Stops a client from reading, or has it read again.
    pub(crate) fn stall(&mut self, name: &str, stalled: bool) -> Result<(), Abort> {
        let state = self.client(name)?;
        state.stalled = stalled;
        if let Some(connection) = &state.connection {
            connection.stall(stalled);
        }
        Ok(())
    }

    pub(crate) async fn close(&mut self, name: &str) -> Result<(), Abort> {
        let deadline = self.deadline(None);
        self.expect_connected(name)?;
        let state = self.client(name)?;
        state.may_end = true;
        let understood = state.is_understood();
        if let Some(connection) = &mut state.connection.as_mut().filter(|_| understood) {
            // A connection that is gone already is as closed as can be.
            let _ = connection.close(None, deadline).await;
        }
        self.record(name, Direction::Send, Payload::Close { code: None, reason: "".into() });
        self.end_of(name).await?;
        self.record(name, Direction::Send, Payload::End(End::Closed));
        self.client(name)?.disconnect();
        Ok(())
    }

    /// Waits until the client's connection has ended, for no longer than the deadline.
    async fn end_of(&mut self, name: &str) -> Result<(), Abort> {
        let until = Instant::now() + self.deadline(None);
        while self.client(name)?.ended.is_none() {
            if !self.receive_until(until).await? {
                break;
            }
        }
        Ok(())
    }

    pub(crate) async fn drop_client(&mut self, verb: &Cut) -> Result<(), Abort> {
        let name = verb.client.clone();
        if let Some(after) = &verb.after {
            let after = self.expand(after, None)?;
            let after =
                after.as_u64().ok_or_else(|| Abort::Error(format!("`after` is {after}, not a number")))?;
            self.received(&name, after as usize).await?;
        }
        self.expect_connected(&name)?;
        if verb.noticed {
            self.half_close(&name).await?;
        }
        self.record(&name, Direction::Send, Payload::End(End::Dropped));
        self.client(&name)?.disconnect();
        Ok(())
    }

    /// Ends this side's half of the connection, and waits until the server, which has noticed, ends the other: what comes next comes
    /// after that. One that does not is cut at the deadline.
    async fn half_close(&mut self, name: &str) -> Result<(), Abort> {
        let deadline = self.deadline(None);
        let state = self.client(name)?;
        let Some(connection) = &mut state.connection else { return Ok(()) };
        state.may_end = true;
        // A connection that is gone already is over.
        match connection.finish(deadline).await {
            Ok(()) => self.end_of(name).await,
            Err(_) => Ok(()),
        }
    }

    /// Waits until the client has received `count` events of the log since its last `send`, and makes the last of them
    /// the newest that it has seen. A turn that ends before ends a sweep.
    async fn received(&mut self, name: &str, count: usize) -> Result<(), Abort> {
        let until = Instant::now() + self.deadline(None);
        loop {
            let state = self.client(name)?;
            if let Some(id) = state.since_send.get(count.saturating_sub(1)).copied() {
                state.last_seen = Some(id);
                return Ok(());
            }
            if state.turn_over {
                // What comes right behind the turn's end belongs to it.
                self.barrier(name).await?;
                let state = self.client(name)?;
                if state.since_send.len() < count {
                    return Err(Abort::SweepDone);
                }
                continue;
            }
            let ended = state.ended.clone();
            state.told |= ended.is_some();
            if ended.is_some() || !self.receive_until(until).await? {
                let message = format!("fewer than {count} events came");
                let covers = self.cx.protocol.extension.turn.covers.clone();
                if let Some(ended) = ended {
                    let message = format!("{message}, and {}", ended.describe());
                    return self.fail_on_end(Check::Step, name, &covers, message);
                }
                let message = self.nothing_came(name, format!("{message}, and the turn did not end"), true);
                return self.fail_step(&covers, message, None, None);
            }
        }
    }
}
