//! The verbs that open and end connections.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::results::Check;
use crate::results::cause::Cause;
use crate::run::case::barrier::About;
use crate::run::case::client::{Client, Reading, Received, Taken};
use crate::run::case::context::StepScope;
use crate::run::case::exchange::ExchangeKind;
use crate::run::case::fail::Evidence;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::receive::Waited;
use crate::run::case::unanswered::Awaiting;
use crate::scenario::case::{Cut, Expect, Open, Opening, Selected, Upgrade};
use crate::trace::{End, Payload};
use crate::wire::{ConnectError, named_status};

/// Why a case that restarts the server is left out.
pub(crate) const NO_RESTART: &str =
    "it restarts the server, which needs a server that frameproof starts itself";

/// A refusal as steps judge it. A connection that broke during the upgrade has no status.
fn refusal(error: &ConnectError) -> Value {
    let ConnectError::Http { status, headers, body } = error else {
        return unanswered();
    };
    answered(*status, headers, body)
}

/// That there was no HTTP answer, as steps judge it.
pub(crate) fn unanswered() -> Value {
    json!({ "status": null, "headers": {}, "body": "" })
}

/// An answer to an HTTP request as steps judge it.
pub(crate) fn answered(status: u16, headers: &[(String, String)], body: &str) -> Value {
    let mut named = Map::new();
    for (name, value) in headers {
        let before = named.get(name).and_then(Value::as_str).map(|before| format!("{before}, {value}"));
        named.insert(name.clone(), before.unwrap_or_else(|| value.clone()).into());
    }
    json!({ "status": status, "headers": named, "body": body })
}

/// How a refusal is told.
fn describe_refusal(refusal: &Value) -> String {
    let status = refusal["status"].as_u64().and_then(|status| u16::try_from(status).ok());
    status.map_or("no HTTP answer".to_owned(), |status| format!("HTTP {}", named_status(status)))
}

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
        let upgrade = self.upgrade_of(&verb.upgrade)?;
        let defaults = self.cx.protocol.upgrade_headers().map_err(Abort::NotApplicable)?;
        let session = verb.session.as_deref();
        let began = Instant::now();
        let connected = self.connect(&name, session, with.as_ref(), &defaults, &upgrade).await;
        let offered = connected.as_ref().ok().cloned().flatten();
        if let Err(error) = connected {
            let refused = matches!(error, ConnectError::Http { .. } | ConnectError::Broken(_));
            if refused && verb.may_refuse {
                self.client(&name)?.note_refusal(refusal(&error));
                return Ok(());
            }
            // A server that is there and does not do what it should is a verdict in any case.
            if error.is_verdict() || (refused && !cx.covers.is_empty()) {
                let own = self.cx.protocol.extension.upgrade.as_ref().filter(|_| error.is_verdict());
                let own = own.map(|upgrade| upgrade.covers.as_slice()).unwrap_or_default();
                let blame = if cx.covers.is_empty() { own } else { cx.covers };
                return self.fail_step(blame, error.to_string(), None, None);
            }
            if matches!(error, ConnectError::Unanswered(_)) {
                self.verdict.opening_failed(Some(Cause::UpgradeUnanswered));
            }
            return Err(Abort::Error(error.to_string()));
        }
        self.selected(&name, offered.as_deref(), &upgrade, cx)?;
        let openings = &self.cx.protocol.extension.openings;
        let opening = match &verb.opening {
            Opening::None => return Ok(()),
            Opening::Named(opening) => openings.get(opening),
            Opening::First => openings.values().next(),
        };
        let steps = opening.cloned().unwrap_or_default();
        self.exchange(&name, &steps, with.as_ref(), ExchangeKind::Opening).await?;
        self.client(&name)?.set_opened();
        self.cx.run.activity.note_opening(began.elapsed());
        self.check_capabilities(&name)
    }

    /// What an `open` says of the upgrade, with its templates filled in.
    pub(crate) fn upgrade_of(&mut self, upgrade: &Upgrade) -> Result<Upgrade, Abort> {
        let mut filled = upgrade.clone();
        let headers = filled.headers.iter_mut().filter_map(|(_, value)| value.as_mut());
        for text in headers.chain(filled.protocols.iter_mut().flatten()) {
            if let Value::String(value) = self.expand(&Value::String(text.clone()), None)? {
                *text = value;
            }
        }
        Ok(filled)
    }

    /// The server has selected the sub-protocol that the step wants, or that the protocol wants where its own offer was made.
    fn selected(
        &mut self,
        name: &str,
        offered: Option<&str>,
        upgrade: &Upgrade,
        cx: &StepScope<'_>,
    ) -> Result<(), Abort> {
        let protocol = Arc::clone(&self.cx.protocol);
        let rules = protocol.extension.upgrade.as_ref();
        // Whether a rule of the protocol is judged, or what the step says of this connection.
        let (wanted, rule) = match &upgrade.selects {
            Some(Selected::None) => (Some(None), None),
            Some(Selected::Named(wanted)) => (Some(Some(wanted.as_str())), None),
            None => match rules.filter(|rules| rules.offer().as_deref() == offered) {
                Some(rules) => (rules.selected(), Some(&*rules.covers)),
                None => return Ok(()),
            },
        };
        let selected = self.client(name)?.selected();
        if wanted.is_none_or(|wanted| selected == wanted) {
            self.verdict.exercise(rule.unwrap_or_default());
            return Ok(());
        }
        let told = |name: Option<&str>| name.map_or("no sub-protocol".to_owned(), |name| format!("`{name}`"));
        let message = format!("the server selects {}, not {}", told(selected), told(wanted.flatten()));
        self.fail_step(rule.unwrap_or(cx.blame), message, None, None)
    }

    /// `expect: refused`: the server has refused the connection, in the way that the step says.
    pub(crate) fn expect_refusal(&mut self, verb: &Expect, cx: &StepScope<'_>) -> Result<(), Abort> {
        let (client, blame) = (cx.client, cx.blame);
        let wanted = self.wanted(&verb.awaited)?;
        let expected = self.asked_for(&verb.awaited)?;
        let last = self.log.last_index();
        let Some(body) = self.client(client)?.refusal().cloned() else {
            self.client(client)?.inbox.taken = Taken::Missed;
            self.vars.miss(verb.save.keys());
            let message = "the server accepted the connection, where a refusal was expected";
            return self.fail_with(Check::Step, blame, message, Evidence { expected, ..Evidence::default() });
        };
        if !wanted.fits(&body) {
            let message = format!(
                "the server refused the connection with {}, but not as expected",
                describe_refusal(&body)
            );
            let evidence = Evidence { expected, actual: Some(body), frames: Vec::new() };
            self.client(client)?.inbox.taken = Taken::Missed;
            self.vars.miss(verb.save.keys());
            return self.fail_with(Check::Step, blame, message, evidence);
        }
        let received = Received::made(last, body);
        if self.save(verb, &received, cx)? {
            self.client(client)?.inbox.taken = Taken::Message(Box::new(received));
        }
        Ok(())
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
        let began = Instant::now();
        if let Some(connection) = state.link().filter(|_| understood) {
            // A connection that is gone already is as closed as can be.
            let _ = connection.close(None, deadline).await;
        }
        self.record_since(began, name, Payload::Close { code: None, reason: "".into() });
        // What the server sends now is an answer.
        self.client(name)?.note_closing();
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
        if verb.leaves {
            self.conns.leave(&name);
        }
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
            self.barrier(name, About::Everything).await?;
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
