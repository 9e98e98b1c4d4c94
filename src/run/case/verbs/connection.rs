//! The verbs that open and end connections.

use std::time::Instant;

use crate::results::Check;
use crate::results::cause::Cause;
use crate::run::case::client::{Client, Reading};
use crate::run::case::context::StepScope;
use crate::run::case::exchange::ExchangeKind;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::receive::Waited;
use crate::run::case::unanswered::Awaiting;
use crate::scenario::case::{Cut, Open, Opening};
use crate::trace::{End, Payload};
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
        for name in self.conns.names() {
            if self.client(&name)?.is_connected() {
                self.record(&name, Payload::End(End::Dropped));
                self.client(&name)?.disconnect();
            }
        }
        restarter.restart().await.map_err(Abort::Error)
    }

    pub(crate) async fn open(&mut self, verb: &Open, cx: &StepScope<'_>) -> Result<(), Abort> {
        let failures = self.verdict.count();
        let opened = self.opened(verb, cx).await;
        if let Err(stop @ (Abort::Failed | Abort::Error(_))) = &opened {
            self.note_opening(stop, failures);
        }
        opened
    }

    async fn opened(&mut self, verb: &Open, cx: &StepScope<'_>) -> Result<(), Abort> {
        let name = verb.client.clone();
        if self.conns.get(&name).is_some() {
            self.expect_connected(&name)?;
        }
        self.step.client.clone_from(&name);
        let with = verb.with.as_ref().map(|with| self.expand(with, None)).transpose()?;
        if let Err(error) = self.connect(&name, verb.session.as_deref(), with.as_ref()).await {
            let refused = matches!(error, ConnectError::Http { .. } | ConnectError::Broken(_));
            if refused && verb.may_refuse {
                return Ok(());
            }
            // A server that is there and does not do what it should is a verdict in any case.
            if error.is_verdict() || (refused && !cx.covers.is_empty()) {
                return self.fail_step(cx.covers, error.to_string(), None, None);
            }
            return Err(Abort::Error(error.to_string()));
        }
        let openings = &self.cx.protocol.extension.openings;
        let opening = match &verb.opening {
            Opening::None => return Ok(()),
            Opening::Named(opening) => openings.get(opening),
            Opening::First => openings.values().next(),
        };
        let steps = opening.cloned().unwrap_or_default();
        self.exchange(&name, &steps, with.as_ref(), ExchangeKind::Opening).await?;
        self.client(&name)?.set_opened();
        self.check_capabilities(&name)
    }

    /// Keeps why an opening failed: cases that fail for the same reason are told together.
    fn note_opening(&mut self, stop: &Abort, before: usize) {
        let told = self.verdict.first_since(before).map(|failure| failure.message.clone());
        let reason = if let Abort::Error(reason) = stop { Some(reason.clone()) } else { None };
        self.verdict.opening_failed(reason.or(told).map(Cause::Told));
    }

    /// Stops a client from reading, or has it read again.
    pub(crate) fn stall(&mut self, name: &str, reading: Reading) -> Result<(), Abort> {
        self.client(name)?.set_reading(reading);
        Ok(())
    }

    pub(crate) async fn close(&mut self, name: &str) -> Result<(), Abort> {
        let deadline = self.deadline(None);
        self.expect_connected(name)?;
        let state = self.client(name)?;
        state.allow_end();
        let understood = state.is_understood();
        if let Some(connection) = state.link().filter(|_| understood) {
            // A connection that is gone already is as closed as can be.
            let _ = connection.close(None, deadline).await;
        }
        self.record(name, Payload::Close { code: None, reason: "".into() });
        self.end_of(name).await?;
        self.record(name, Payload::End(End::Closed));
        self.client(name)?.disconnect();
        Ok(())
    }

    /// Waits until the client's connection has ended, for no longer than the deadline.
    async fn end_of(&mut self, name: &str) -> Result<(), Abort> {
        let until = Instant::now() + self.deadline(None);
        self.wait_for_end(name, until).await.map(drop)
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
        self.record(&name, Payload::End(End::Dropped));
        self.client(&name)?.disconnect();
        Ok(())
    }

    /// Ends this side's half of the connection, and waits until the server, which has noticed, ends the other: what comes next comes
    /// after that. One that does not is cut at the deadline.
    async fn half_close(&mut self, name: &str) -> Result<(), Abort> {
        let deadline = self.deadline(None);
        let state = self.client(name)?;
        if !state.is_connected() {
            return Ok(());
        }
        state.allow_end();
        let Some(connection) = state.link() else { return Ok(()) };
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
        let reached = |state: &mut Client| {
            let nth = state.turn.since_send.get(count.saturating_sub(1)).copied();
            nth.map(Some).or(state.turn.over.then_some(None))
        };
        let covers = &self.cx.protocol.extension.turn.covers;
        let mut waited = self.wait_until(name, until, reached).await?;
        if let Waited::Done(None) = waited {
            // What comes right behind the turn's end belongs to it.
            self.barrier(name).await?;
            waited = self.wait_until(name, until, reached).await?;
        }
        let message = format!("fewer than {count} events came");
        match waited {
            Waited::Done(Some(id)) => {
                self.client(name)?.turn.last_seen = Some(id);
                Ok(())
            }
            Waited::Done(None) => Err(Abort::SweepDone),
            Waited::Ended(ended) => {
                self.client(name)?.report_end();
                let message = format!("{message}, and {}", ended.describe());
                self.fail_on_end(Check::Step, name, covers, message)
            }
            Waited::TimedOut => {
                let message = self.nothing_came(
                    name,
                    format!("{message}, and the turn did not end"),
                    Awaiting::TurnEnd,
                );
                self.fail_step(covers, message, None, None)
            }
        }
    }
}
