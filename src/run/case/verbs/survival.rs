//! The verbs that a fuzzed case ends with: does the server live, has it refused, has it kept its secrets?

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use crate::protocol::{Barrier, ConnectionEvent, Protocol};
use crate::results::Check;
use crate::results::event::{Failure, Verdict};
use crate::run::case::barrier::About;
use crate::run::case::client::{Client, EndBlame, ObservedEnd, Received};
use crate::run::case::context::StepScope;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::receive::Waited;
use crate::run::case::unanswered::Awaiting;
use crate::run::case::wait::is_error;
use crate::scenario::case;
use crate::trace::{Direction, End, Payload};

/// The text of the ping that stands for a barrier.
const PING: &[u8] = b"alive?";

impl Interpreter<'_> {
    /// `alive`: the connection is there and the server answers on it.
    pub(crate) async fn alive(&mut self, verb: &case::Alive, cx: &StepScope<'_>) -> Result<(), Abort> {
        let (name, blame) = (verb.client.clone(), cx.blame);
        if self.client(&name)?.is_silence_reported() {
            return Ok(());
        }
        if !self.client(&name)?.has_ended() {
            let protocol = Arc::clone(&self.cx.protocol);
            // One that is made for a value asks nothing without it.
            let query = protocol.extension.barrier.as_ref().filter(|barrier| barrier.per().is_none());
            let query = query.map(Barrier::query).unwrap_or_default();
            let opened = self.client(&name)?.is_opened();
            let silent = if query.is_empty() || !opened {
                !self.pong(&name).await?
            } else {
                self.query(&name, query, None).await?.is_some()
            };
            if silent && !self.client(&name)?.has_ended() {
                self.client(&name)?.report_silence();
                let message = self.nothing_came(
                    &name,
                    "the server no longer answers on this connection",
                    Awaiting::Anything,
                );
                return self.fail_step(blame, message, None, None);
            }
            // A pong, or the answer of a barrier that orders a part only, may overtake the answer to what was sent before.
            if !self.cx.protocol.extension.has_whole_barrier() {
                self.await_quiet(&name).await?;
            }
        }
        // A server that ends the connection says so behind its last answer.
        let state = self.client(&name)?;
        if verb.codes.is_some() {
            state.allow_end();
        }
        let Some(ended) = state.ended().cloned() else { return Ok(()) };
        state.report_end();
        match &verb.codes {
            Some(codes) if may_close(codes, &ended) => Ok(()),
            Some(_) if matches!(ended.how, Some(End::Eof | End::Reset)) => {
                // Dropping TCP where a close frame is due is bad manners, and common.
                let message = format!("{}, where a close frame was expected", ended.describe());
                self.fail(Failure::new(Check::Step, Verdict::Warned, message).breaking(blame));
                Ok(())
            }
            _ => {
                let message = format!("{}, and nothing that the client sent permits that", ended.describe());
                self.fail_on_end(Check::Step, &name, blame, message)
            }
        }
    }

    /// `ended`: the server ends the connection, and in good order.
    pub(crate) async fn ended(&mut self, verb: &case::Ended, cx: &StepScope<'_>) -> Result<(), Abort> {
        let (name, blame) = (verb.client.clone(), cx.blame);
        // Who hears nothing any more cannot be blamed for what it does not answer.
        if self.client(&name)?.is_silence_reported() {
            return Ok(());
        }
        let until = Instant::now() + self.deadline(None);
        self.client(&name)?.allow_end();
        let Some(ended) = self.wait_for_end(&name, until).await? else {
            let message = "the server does not end the connection".to_owned();
            return self.fail_step(blame, message, None, None);
        };
        let codes = &verb.codes;
        if may_close(codes, &ended) {
            return Ok(());
        }
        let due: Vec<String> = codes.iter().map(u16::to_string).collect();
        let due =
            if due.is_empty() { "a close frame".to_owned() } else { format!("code {}", due.join(" or ")) };
        let message = format!("{}, where {due} was expected", ended.describe());
        // Where the step says what this breaks, it is what the step is about.
        let is_lenient = cx.covers.is_empty();
        if is_lenient && (may_close(&[], &ended) || matches!(ended.how, Some(End::Eof | End::Reset))) {
            self.fail(Failure::new(Check::Step, Verdict::Warned, message).breaking(blame));
            return Ok(());
        }
        self.fail_on_end(Check::Step, &name, blame, message)
    }

    /// A WebSocket ping. `false`: no pong came in time, or the connection has ended.
    async fn pong(&mut self, name: &str) -> Result<bool, Abort> {
        let deadline = self.deadline(None);
        let state = self.client(name)?;
        state.inbox.forget_pongs();
        let began = Instant::now();
        if let Some(connection) = state.link()
            && connection.ping(PING.to_vec(), deadline).await.is_err()
        {
            state.note_broken();
            return Ok(false);
        }
        self.record_since(began, name, Payload::Ping(PING.into()));
        Ok(matches!(self.wait_for_pong(name, PING, deadline).await?, Waited::Done(())))
    }

    /// `rejected`: so many errors have come by the time the barrier is answered.
    pub(crate) async fn rejected(&mut self, verb: &case::Rejected, cx: &StepScope<'_>) -> Result<(), Abort> {
        let (client, blame, wanted) = (cx.client, cx.blame, verb.count);
        let proven = self.is_proven(About::Errors);
        let protocol = Arc::clone(&self.cx.protocol);
        let barrier = protocol.extension.barrier_query();
        // That a barrier was answered says which silence it was not.
        let mut spoke = false;
        if proven && self.conns.get(client).is_some_and(Client::is_opened) {
            if self.errors(client)? < wanted && !self.client(client)?.has_ended() {
                spoke = self.query(client, barrier, None).await?.is_none();
                // An answer that names no question may be one to an earlier question: its silence tells then.
                let is_sure = barrier.iter().all(|step| step.expect.is_none() || step.echo.is_some());
                if spoke && !is_sure && self.errors(client)? < wanted {
                    self.await_quiet(client).await?;
                }
            }
        } else {
            let until = Instant::now() + self.deadline(None);
            let enough = |state: &mut Client| (errors_in(&protocol, state) >= wanted).then_some(());
            self.wait_until(client, until, enough).await?;
        }
        let found = self.errors(client)? + usize::from(self.refuses_by_close(client)?);
        let queue = std::mem::take(&mut self.client(client)?.inbox.queue);
        let (errors, rest): (Vec<Received>, Vec<Received>) =
            queue.into_iter().partition(|received| is_error(&protocol, received));
        let instead = rest.last().cloned();
        self.client(client)?.inbox.queue = rest.into();
        drop(errors);
        if found >= wanted {
            return Ok(());
        }
        if let Some(ended) = self.client(client)?.ended().cloned() {
            let message = self.ended_instead(client, &ended, " instead of refusing what was sent");
            return self.fail_on_end(Check::Step, client, blame, message);
        }
        let message = match wanted {
            1 if spoke => "the message was not refused".into(),
            1 => self.nothing_came(client, "the message was not refused", Awaiting::Anything),
            _ => format!("{wanted} messages should have been refused, {found} were").into(),
        };
        self.fail_step(blame, message, instead.as_ref(), None)
    }

    /// Whether the end of the connection is one of the protocol's `errors`: no step needs to await it any more.
    fn refuses_by_close(&mut self, client: &str) -> Result<bool, Abort> {
        let (protocol, last) = (&self.cx.protocol, self.log.last_index());
        let Some((errors, _)) = protocol.roles().errors.as_ref() else { return Ok(false) };
        let close = protocol.index_of_event(ConnectionEvent::Close);
        let state = self.client(client)?;
        // An end that a step has awaited was taken by that step.
        let refuses = state.blame() != EndBlame::Allowed
            && state.end(last).is_some_and(|end| errors.matches(Some(close), Direction::Recv, &end.body));
        if refuses {
            state.allow_end();
        }
        Ok(refuses)
    }

    fn errors(&mut self, client: &str) -> Result<usize, Abort> {
        let protocol = &self.cx.protocol;
        Ok(errors_in(protocol, self.client(client)?))
    }

    /// `unseen`: a text that this client must not come to know, by the time the barrier is answered.
    pub(crate) async fn unseen(&mut self, verb: &case::Text, cx: &StepScope<'_>) -> Result<(), Abort> {
        let client = cx.client;
        let state = self.client(client)?;
        let listens = state.is_opened() && !state.is_stalled() && !state.has_ended();
        if listens && state.blame() == EndBlame::Unexplained && state.is_understood() {
            self.barrier(client, About::Everything).await?;
        }
        let text = self.expand(&json!(verb.text), None)?;
        let Some(text) = text.as_str().filter(|text| !text.is_empty()) else { return Ok(()) };
        let shown = self.log.texts_of(client).find(|received| shows(&received.text, text));
        let Some(shown) = shown else { return Ok(()) };
        let message = "a text of another session was sent to this client".to_owned();
        let received = Received::made(shown.index, json!(&*shown.text));
        self.fail_step(cx.blame, message, Some(&received), None)
    }
}

/// How many errors a client has received that no step has taken.
fn errors_in(protocol: &Protocol, state: &Client) -> usize {
    state.inbox.queue.iter().filter(|received| !received.breaks && is_error(protocol, received)).count()
}

/// Whether a frame bears a text: as it stands, or in a string or key however that is escaped.
fn shows(frame: &str, text: &str) -> bool {
    fn bears(value: &Value, text: &str) -> bool {
        match value {
            Value::String(string) => string.contains(text),
            Value::Array(items) => items.iter().any(|item| bears(item, text)),
            Value::Object(map) => map.iter().any(|(key, value)| key.contains(text) || bears(value, text)),
            _ => false,
        }
    }
    frame.contains(text) || crate::frame::parse_within(frame).is_ok_and(|body| bears(&body, text))
}

/// Whether a connection ended as it may: by a close frame with one of these codes, or with any that may be sent.
fn may_close(codes: &[u16], ended: &ObservedEnd) -> bool {
    match ended.code {
        Some(code) if codes.is_empty() => crate::trace::may_be_sent(code),
        Some(code) => codes.contains(&code),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_however_it_is_escaped() {
        for (frame, expected) in [
            (r#"{"a":["x secret y"]}"#, true),
            (r#"{"a":["\u0073ecret"]}"#, true),
            (r#"{"secret":1}"#, true),
            ("not JSON, secret", true),
            (r#"{"a":["s","ecret"]}"#, false),
        ] {
            assert_eq!(shows(frame, "secret"), expected, "{frame}");
        }
    }

    #[test]
    fn connections_end_by_the_rule() {
        let ended = |code| ObservedEnd { code, ..ObservedEnd::default() };
        for (codes, code, expected) in [
            (&[1002, 1007][..], Some(1002), true),
            (&[1002], Some(1000), false),
            (&[1002], None, false),
            (&[], Some(1000), true),
            (&[], Some(1005), false),
            (&[], Some(2000), false),
            (&[], Some(4001), true),
            (&[], None, false),
        ] {
            assert_eq!(may_close(codes, &ended(code)), expected, "{codes:?} {code:?}");
        }
    }
}
