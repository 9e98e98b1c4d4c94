//! Waiting for a message.

use std::time::Instant;

use serde_json::{Value, json};

use crate::frame::Pointer;
use crate::protocol::extension::{Echo, Exchange};
use crate::protocol::{Matcher, Protocol, is_subset};
use crate::results::cause::Statement;
use crate::run::case::client::{EndBlame, Looked, Received};
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::wait_deadline::WaitDeadline;
use crate::scenario::case::{Awaited, Constraint};
use crate::scenario::{CLOSE, TURN_END, means};
use crate::source::ordered::ordered;
use crate::source::schema::Schema;
use crate::trace::Direction;

/// What is waited for.
pub(crate) struct Expectation {
    /// Indices of message types.
    messages: Vec<usize>,
    turn_end: Option<Matcher>,
    /// The end of the connection, by a close frame.
    pub close: bool,
    with: Option<Value>,
    schema: Option<Schema>,
    /// What the message bears at a place, if anything.
    echo: Option<(Pointer, Value)>,
    /// The ambiguity that the step is about.
    pub reading: Option<String>,
    /// What is looked past stays in the queue.
    pub keep: bool,
    /// How it is called in messages.
    pub label: String,
    /// The kinds of messages that would do.
    pub names: Vec<String>,
}

/// What an error does to a wait for something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnError {
    /// It ends it.
    Fail,
    /// It is looked past as every other message.
    LookPast,
}

/// How a wait ended.
pub(crate) enum WaitOutcome {
    Found(Box<Received>),
    /// The end of the connection, which was waited for.
    Closed(Box<Received>),
    /// The connection ended instead: the sentence about it.
    Ended(Statement),
    /// Not found: why, and the frame that shows it.
    Missed(Statement, Option<Box<Received>>),
}

impl Expectation {
    pub fn matches(&self, received: &Received) -> bool {
        self.heeds(received)
            && (self.is_of_type(received) || self.is_turn_end(received))
            && self.fits(&received.body)
    }

    /// Whether a message has to do with what is waited for: no step looks at what answers an exchange, and one at what repeats a
    /// value only if it is about that.
    fn heeds(&self, received: &Received) -> bool {
        (!received.aside || self.echo.is_some())
            && (received.repeats.is_none() || received.repeats.as_deref() == self.reading.as_deref())
    }

    /// Indices of the message types that are waited for.
    pub fn messages(&self) -> &[usize] {
        &self.messages
    }

    /// What it must have at a place, if anything.
    pub fn value_at(&self, at: &Pointer) -> Option<&Value> {
        self.with.as_ref().and_then(|with| at.get(with))
    }

    /// Nothing but the connection's end would do.
    pub fn is_only_close(&self) -> bool {
        self.close && self.messages.is_empty() && self.turn_end.is_none()
    }

    /// The end of a turn is waited for.
    pub fn is_for_turn_end(&self) -> bool {
        self.turn_end.is_some()
    }

    fn is_turn_end(&self, received: &Received) -> bool {
        let end = self.turn_end.as_ref();
        end.is_some_and(|end| end.matches(received.message, Direction::Recv, &received.body))
    }

    /// One of the types that are waited for, whatever its content.
    pub fn is_of_type(&self, received: &Received) -> bool {
        received.message.is_some_and(|message| self.messages.contains(&message))
    }

    /// Of a type that is waited for, or the end of a turn.
    pub fn could_be(&self, received: &Received) -> bool {
        self.is_of_type(received) || self.is_turn_end(received)
    }

    /// The same, as an answer to a message that was sent.
    pub fn answering(mut self, echo: Option<&Echo>, sent: &Value) -> Self {
        self.echo = echo.and_then(|echo| Some((echo.answered().clone(), echo.sent().get(sent)?.clone())));
        self
    }

    /// It has what is asked for.
    pub fn fits(&self, body: &Value) -> bool {
        self.echo.as_ref().is_none_or(|(at, sent)| answers(body, at, sent))
            && self.with.as_ref().is_none_or(|with| is_subset(with, body))
            && self.schema.as_ref().is_none_or(|schema| schema.is_valid(body))
    }

    /// Where a message has not what is asked for, as far as there is a place.
    fn difference(&self, body: &Value) -> Option<String> {
        let echo = self.echo.as_ref().filter(|(at, sent)| !answers(body, at, sent));
        let echo = echo.map(|(at, _)| format!("{at} differs"));
        let with = || self.with.as_ref().and_then(|with| first_difference(with, body, ""));
        let schema = || {
            let violations = self.schema.as_ref()?.violations_within(body);
            violations
                .iter()
                .find(|one| !one.at.is_empty())
                .map(|one| format!("{} is not as required", one.at))
        };
        echo.or_else(with).or_else(schema)
    }

    /// A message of the right type that lacks what is asked for.
    fn nearly(&self, received: &Received) -> bool {
        self.heeds(received) && self.is_of_type(received) && !self.fits(&received.body)
    }
}

/// The sentence about a message of the right type that lacks what is asked for: which message, and the first place.
fn mismatch(protocol: &Protocol, wanted: &Expectation, received: &Received) -> String {
    let name = received.message.and_then(|message| protocol.messages.get(message));
    let name = name.map_or(&wanted.label, |message| &message.name);
    let place = wanted.difference(&received.body);
    format!("{name} came, but did not match{}", place.map(|place| format!(": {place}")).unwrap_or_default())
}

/// The first place where a value has not what a part of it should be.
fn first_difference(part: &Value, whole: &Value, at: &str) -> Option<String> {
    match (part, whole) {
        (Value::Object(part), Value::Object(map)) => part.iter().find_map(|(key, due)| {
            let at = format!("{at}/{key}");
            match map.get(key) {
                _ if is_subset(&json!({ key: due }), whole) => None,
                Some(came) => first_difference(due, came, &at),
                None => Some(format!("{at} is missing")),
            }
        }),
        _ if at.is_empty() || is_subset(part, whole) => None,
        _ => Some(format!("{at} differs")),
    }
}

/// Whether a message refuses something, as far as the protocol has such messages.
pub(crate) fn is_error(protocol: &Protocol, received: &Received) -> bool {
    let errors = protocol.roles().errors.as_ref();
    errors.is_some_and(|(on, _)| on.matches(received.message, Direction::Recv, &received.body))
}

/// Whether a message may answer one that bore this id. One without an id may.
fn answers(body: &Value, at: &Pointer, sent: &Value) -> bool {
    at.get(body).is_none_or(|came| came.is_null() || came == sent)
}

impl Interpreter<'_> {
    /// What a step waits for, with its templates filled in.
    pub(crate) fn wanted(&mut self, awaited: &Awaited) -> Result<Expectation, Abort> {
        let schema = awaited.schema.as_ref().map(|schema| self.compiled(schema)).transpose()?;
        self.wanted_with(&awaited.names, awaited.with.as_ref(), schema.map(|(_, compiled)| compiled))
    }

    /// What an exchange of the protocol waits for.
    pub(crate) fn wanted_of(
        &mut self,
        exchange: &Exchange,
        with: Option<&Value>,
    ) -> Result<Expectation, Abort> {
        let names = exchange.expect.as_ref().map(|names| names.as_slice()).unwrap_or_default();
        let mut filled = |value: Option<&Value>| value.map(|value| self.expand(value, with)).transpose();
        let (part, schema) = (filled(exchange.with.as_ref())?, filled(exchange.schema.as_ref())?);
        let schema = match schema {
            Some(given) => Some(self.compiled(&Constraint { given, fixed: None })?.1),
            None => None,
        };
        self.wanted_with(names, part.as_ref(), schema)
    }

    /// A step's JSON Schema, and the same compiled.
    pub(crate) fn compiled(&mut self, constraint: &Constraint) -> Result<(Value, Schema), Abort> {
        let given = &constraint.given;
        let schema = self.expand(given, None)?;
        let schema = self.schema_without_model_words(schema);
        let compiled = match &constraint.fixed {
            _ if schema != *given => ordered(&schema).and_then(|schema| Schema::new(&schema)),
            Some(fixed) => Ok(fixed.clone()),
            None => self.cx.protocol.schema(&schema),
        };
        Ok((schema, compiled.map_err(Abort::Error)?))
    }

    fn wanted_with(
        &mut self,
        names: &[String],
        with: Option<&Value>,
        schema: Option<Schema>,
    ) -> Result<Expectation, Abort> {
        let with = with.map(|with| self.expand(with, None)).transpose()?;
        let mut wanted = Expectation {
            messages: Vec::new(),
            turn_end: None,
            close: false,
            with: with.map(|with| self.without_model_words(with)),
            schema,
            echo: None,
            reading: None,
            keep: false,
            label: names.join(" or "),
            names: names.to_vec(),
        };
        for name in names {
            match name.as_str() {
                CLOSE if means(name, CLOSE, &self.cx.protocol) => wanted.close = true,
                TURN_END => wanted.turn_end = Some(self.cx.protocol.roles().turn_end.clone()),
                name => {
                    let message = self.cx.protocol.message_named(name, Direction::Recv);
                    wanted.messages.push(message.map_err(|error| Abort::Error(error.to_string()))?);
                }
            }
        }
        Ok(wanted)
    }

    /// Waits until `client` receives what is wanted, looking past other messages.
    pub(crate) async fn wait(
        &mut self,
        client: &str,
        wanted: &Expectation,
        wait_deadline: &mut WaitDeadline,
        on_error: OnError,
    ) -> Result<WaitOutcome, Abort> {
        let began = Instant::now();
        let state = self.client(client)?;
        // An end that a failure has told of is one, however it came about.
        let was_reported = state.blame() == EndBlame::Reported;
        if wanted.close {
            state.allow_end();
        }
        let mut nearly = None;
        // A miss that is no more than a warning leaves everything where it was.
        let mut passed = Vec::new();
        // Where silence ends a turn, a step before may have taken the message that it follows.
        let mut ending = None;
        if self.quiet().is_some()
            && let Some(last) = self.client(client)?.inbox.looked.last().map(|last| last.received.clone())
            && wanted.is_turn_end(&last)
            && wanted.fits(&last.body)
        {
            if self.is_last(client).await? {
                return Ok(WaitOutcome::Found(Box::new(last)));
            }
            ending = Some(last);
        }
        let mut late = false;
        let missed = loop {
            while let Some(received) = self.client(client)?.inbox.queue.pop_front() {
                if received.breaks && self.builds_on(client, wanted, on_error, &received) {
                    return Err(self.built_on());
                }
                if !received.ambient {
                    wait_deadline.prolong();
                }
                if wanted.matches(&received)
                    && (!wanted.is_turn_end(&received) || self.is_last(client).await?)
                {
                    return self.found(client, wanted, passed, received);
                }
                let is_error = wanted.heeds(&received) && is_error(&self.cx.protocol, &received);
                if on_error == OnError::Fail && is_error && !self.is_for_another(client, wanted, &received) {
                    let message = if wanted.nearly(&received) {
                        mismatch(&self.cx.protocol, wanted, &received)
                    } else {
                        format!("an error came instead of {}", wanted.label)
                    };
                    self.put_back(client, passed)?;
                    return Ok(WaitOutcome::Missed(message.into(), Some(Box::new(received))));
                }
                if wanted.nearly(&received) {
                    nearly = Some(Box::new(received.clone()));
                }
                let unfinished = wanted.matches(&received);
                let refuses = is_error && on_error == OnError::LookPast;
                if unfinished && wanted.is_turn_end(&received) {
                    ending = Some(received.clone());
                } else if !refuses && !received.ambient {
                    ending = None;
                }
                passed.push(received);
                // A refusal that comes late does not continue the turn.
                if let Some(end) = ending.as_ref().filter(|_| refuses).cloned()
                    && self.is_last(client).await?
                {
                    if let Some(at) = passed.iter().position(|one| one.event == end.event) {
                        let end = passed.remove(at);
                        return self.found(client, wanted, passed, end);
                    }
                    // A step before has taken it.
                    self.look_past(client, wanted, passed)?;
                    return Ok(WaitOutcome::Found(Box::new(end)));
                }
                // The silence that was waited for may have taken all the time there is.
                if unfinished && wait_deadline.is_over() {
                    late = true;
                    break;
                }
            }
            self.take_effect()?;
            if let Some(ended) = self.client(client)?.ended().cloned() {
                let state = self.client(client)?;
                if wanted.close && (was_reported || ended.is_close() || state.may_be_cut()) {
                    return self.closed(client, wanted, passed);
                }
                state.report_end();
                let message = if wanted.close {
                    format!("{}, where a close frame was expected", ended.describe()).into()
                } else {
                    // A frame that would nearly have done is not what is wrong.
                    let rest = format!(" instead of sending {}", wanted.label);
                    self.ended_instead(client, &ended, &rest)
                };
                self.put_back(client, passed)?;
                return Ok(WaitOutcome::Ended(message));
            }
            // What is there already is looked at once more behind the deadline; a server that never pauses would
            // otherwise be heard for ever.
            let last_look = late;
            late |= wait_deadline.is_over();
            if last_look || !self.receive_until(wait_deadline.until).await? {
                if wait_deadline.concede(self.cx.run.lag.total()) {
                    late = false;
                    continue;
                }
                let missed: Statement = match &nearly {
                    Some(nearly) => mismatch(&self.cx.protocol, wanted, nearly).into(),
                    None => self.explain_wait(
                        client,
                        wanted,
                        wait_deadline.until.saturating_duration_since(began),
                    ),
                };
                let missed = missed.noting(&self.came_before(client, wanted));
                break if nearly.is_none() { missed.noting(wait_deadline.note()) } else { missed };
            }
        };
        self.put_back(client, passed)?;
        Ok(WaitOutcome::Missed(missed, nearly))
    }

    /// Whether a message that breaks a MUST is, or may have been, what is waited for, or would end the wait.
    fn builds_on(&self, client: &str, wanted: &Expectation, on_error: OnError, received: &Received) -> bool {
        let refuses = on_error == OnError::Fail && is_error(&self.cx.protocol, received);
        wanted.could_be(received) || (refuses && !self.is_for_another(client, wanted, received))
    }

    /// Whether an error answers another request than what is waited for: it bears the id of one that has another reply, or not the id
    /// that is waited for.
    fn is_for_another(&self, client: &str, wanted: &Expectation, error: &Received) -> bool {
        let Some(replies) = &self.cx.protocol.extension.replies else { return false };
        let Some(id) = replies.id.get(&error.body) else { return false };
        let echo = wanted.echo.as_ref().filter(|(at, _)| *at == replies.id).map(|(_, id)| id);
        let awaits_results = wanted.names.iter().all(|name| name.ends_with(".result"));
        // Without an id it answers a message whose id the server could not read: one of ours it can.
        if id.is_null() {
            return echo.is_some() || awaits_results;
        }
        if let Some(asked) = echo.or_else(|| wanted.with.as_ref().and_then(|with| replies.id.get(with))) {
            return asked != id;
        }
        let mut requests = self.log.of_client(client).rev().flat_map(|entry| &entry.asks);
        let request = requests.find(|asked| asked.id == *id).and_then(|asked| asked.kind.as_deref());
        let reply = request.map(|request| format!("{request}.result"));
        reply.is_some_and(|reply| !wanted.names.contains(&reply) && awaits_results)
    }

    /// The connection has ended, which was waited for: in this way, or in another.
    fn closed(
        &mut self,
        client: &str,
        wanted: &Expectation,
        passed: Vec<Received>,
    ) -> Result<WaitOutcome, Abort> {
        let last = self.log.last_index();
        let state = self.client(client)?;
        let end = Box::new(state.end(last).unwrap_or_else(|| Received::made(last, Value::Null)));
        if wanted.fits(&end.body) {
            self.look_past(client, wanted, passed)?;
            return Ok(WaitOutcome::Closed(end));
        }
        state.report_end();
        let how = end.ended.clone().unwrap_or_default();
        self.put_back(client, passed)?;
        Ok(WaitOutcome::Missed(format!("{how}, but not as expected").into(), Some(end)))
    }

    /// A message is what was waited for, and this step takes it.
    fn found(
        &mut self,
        client: &str,
        wanted: &Expectation,
        passed: Vec<Received>,
        received: Received,
    ) -> Result<WaitOutcome, Abort> {
        self.look_past(client, wanted, passed)?;
        let looked = Looked { received: received.clone(), step: self.step.pointer.clone(), taken: true };
        self.client(client)?.inbox.looked.push(looked);
        Ok(WaitOutcome::Found(Box::new(received)))
    }

    /// What was looked past is gone, unless it is to stay.
    fn look_past(&mut self, client: &str, wanted: &Expectation, passed: Vec<Received>) -> Result<(), Abort> {
        if wanted.keep {
            return self.put_back(client, passed);
        }
        let step = self.step.pointer.clone();
        let looked = passed.into_iter().map(|received| Looked { received, step: step.clone(), taken: false });
        self.client(client)?.inbox.looked.extend(looked);
        Ok(())
    }

    /// Where what did not come had come, since the client's last `send`, and another step took it or looked past it: a
    /// sentence that says so.
    fn came_before(&self, client: &str, wanted: &Expectation) -> String {
        let looked = self.conns.get(client).map(|state| &state.inbox.looked[..]).unwrap_or_default();
        let mut before = looked.iter().rev().filter(|one| one.step != self.step.pointer);
        let Some(one) = before.find(|one| wanted.matches(&one.received)) else { return String::new() };
        let event = one.received.event;
        let ms = self.log.get(event).map_or(0.0, |entry| entry.line.ms);
        let (line, ..) = self.cx.loaded.place(&one.step);
        let verb = one.step.rsplit('/').next().unwrap_or_default();
        let how =
            if one.taken { "took it" } else { "skipped it (`keep: true` there leaves it for later steps)" };
        format!(". One came as frame {event}, at {ms:.0} ms, and the `{verb}` in line {line} {how}")
    }

    fn put_back(&mut self, client: &str, passed: Vec<Received>) -> Result<(), Abort> {
        self.client(client)?.inbox.put_back(passed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_differs_is_named() {
        let whole = json!({ "type": "error", "at": { "list": [1, 2], "n": 1.0, "none": null } });
        for (part, place) in [
            (json!({ "type": "error", "req_id": "r1" }), Some("/req_id is missing")),
            (json!({ "at": { "n": 2 } }), Some("/at/n differs")),
            (json!({ "at": { "list": [1, 3] } }), Some("/at/list differs")),
            (json!({ "at": { "n": 1, "list": [1, 2], "none": null } }), None),
            (json!([]), None),
        ] {
            assert_eq!(first_difference(&part, &whole, "").as_deref(), place, "{part}");
        }
    }

    #[test]
    fn an_answer_to_another_request_is_told_by_its_id() {
        let at: Pointer = serde_json::from_value(json!("/id")).expect("a pointer");
        for (body, expected) in [
            (json!({ "id": "a" }), true),
            (json!({ "id": "b" }), false),
            (json!({ "id": null }), true),
            (json!({}), true),
        ] {
            assert_eq!(answers(&body, &at, &json!("a")), expected, "{body}");
        }
    }
}
