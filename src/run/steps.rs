//! The verbs.

use std::time::Instant;

use base64::Engine as _;
use serde_json::{Value, json};

use super::case::{Runner, Stop};
use super::clients::Received;
use super::waits::Waited;
use crate::protocol::extension::Offered;
use crate::protocol::{Matcher, ReadingName};
use crate::scenario::duration;
use crate::scenario::model::{Assertion, Joined, Step};
use crate::source::schema::Schema;
use crate::trace::{Direction, End, Payload};
use crate::wire::ConnectError;

/// Why a case that restarts the server is left out.
pub(super) const NO_RESTART: &str =
    "it restarts the server, which only one that frameproof starts itself lets us do";

impl Runner<'_> {
    /// Does steps one after the other.
    pub(super) async fn steps(&mut self, steps: &[Step], at: &str) -> Result<(), Stop> {
        for (index, step) in steps.iter().enumerate() {
            let place = format!("{at}/{index}");
            Box::pin(self.perform(step, &place)).await?;
            if self.is_broken() {
                return Err(Stop::Failed);
            }
        }
        Ok(())
    }

    /// The answer under which a failure of this step is judged: the reading's own, and never "default" where the default
    /// takes it either way.
    fn taken(&self, step: &Step) -> Option<ReadingName> {
        let answer = |id: &Option<String>| self.protocol.readings.get(id.as_ref()?).copied();
        let allowed = answer(&step.allowed).map(|taken| match taken {
            ReadingName::Default => ReadingName::Lenient,
            other => other,
        });
        allowed.or_else(|| answer(&step.tolerated))
    }

    async fn perform(&mut self, step: &Step, at: &str) -> Result<(), Stop> {
        let verb = step.verbs().first().copied().unwrap_or_default();
        self.step = format!("{at}/{verb}");
        self.mark();
        self.tolerated = self.taken(step);
        self.warns = step.warns;
        if let Some(condition) = &step.when
            && !self.relation(condition)?.0
        {
            return Ok(());
        }
        let failures = self.outcome.failures.len();
        let client = step.client.clone().or_else(|| self.first_client.clone()).unwrap_or_default();
        self.current.clone_from(&client);
        let blame =
            if step.covers.is_empty() { self.loaded.case.covers.clone() } else { step.covers.clone() };
        match verb {
            "open" => {
                let opened = self.open(step).await;
                if let Err(stop @ (Stop::Failed | Stop::Error(_))) = &opened {
                    self.note_opening(stop, failures);
                }
                opened?;
            }
            "expect_file" => self.expect_file(step, &blame).await?,
            "close" => self.close(step.close.as_deref().unwrap_or_default()).await?,
            "drop" => self.drop_client(step).await?,
            "stall" | "unstall" => {
                let stalled = step.stall.is_some();
                let name = step.stall.as_ref().or(step.unstall.as_ref()).cloned().unwrap_or_default();
                let state = self.client(&name)?;
                state.stalled = stalled;
                if let Some(connection) = &state.connection {
                    connection.stall(stalled);
                }
            }
            "send" => {
                let message = step.send.clone().unwrap_or_default();
                for _ in 0..step.count.unwrap_or(1) {
                    let message = self.expand(&message, None)?;
                    self.send_text(&client, message.to_string()).await?;
                }
            }
            "raw" => {
                let text = self.expand(&json!(step.raw), None)?;
                for _ in 0..step.count.unwrap_or(1) {
                    self.send_text(&client, text.as_str().unwrap_or_default().to_owned()).await?;
                }
            }
            "frame" => self.frame(&client, step).await?,
            "bytes" => self.bytes(&client, step).await?,
            "binary" => self.binary(&client, step).await?,
            "expect" => self.expect(&client, step, &blame).await?,
            "check" => self.check(&client, step, &blame)?,
            "never" => self.never(&client, step, &blame).await?,
            "ping" => self.ping(&client, step, &blame).await?,
            "joined" => self.joined(&client, step, &blame)?,
            "settle" => {
                let name = step.settle.clone().unwrap_or_default();
                self.barrier(&name).await?;
                self.client(&name)?.queue.clear();
            }
            "alive" => self.alive(step, &blame).await?,
            "ended" => self.ended(step, &blame).await?,
            "rejected" => self.rejected(&client, step, &blame).await?,
            "unseen" => self.unseen(&client, step, &blame)?,
            "restart" => self.restart().await?,
            "assert" => self.assert(step.assert.as_ref(), &blame)?,
            "unchanged" => self.unchanged(&client, step, at, &blame).await?,
            "parallel" => self.parallel(step, at).await?,
            _ => return Err(Stop::Error("a step without a verb".to_owned())),
        }
        self.tolerated = None;
        self.warns = false;
        if self.outcome.failures.len() == failures {
            self.exercise(&step.covers);
        }
        Ok(())
    }

    async fn restart(&mut self) -> Result<(), Stop> {
        let Some(restarter) = self.restarter.clone() else {
            return Err(Stop::NotApplicable(NO_RESTART.to_owned()));
        };
        // What the server says about its own death is not judged.
        let names: Vec<String> = self.clients.keys().cloned().collect();
        for name in names {
            if self.client(&name)?.connection.is_some() {
                self.record(&name, Direction::Send, Payload::End(End::Dropped));
                self.client(&name)?.disconnect();
            }
        }
        restarter.restart().await.map_err(Stop::Error)
    }

    async fn open(&mut self, step: &Step) -> Result<(), Stop> {
        let name = step.open.clone().unwrap_or_default();
        self.current.clone_from(&name);
        let with = step.with.as_ref().map(|with| self.expand(with, None)).transpose()?;
        if let Err(error) = self.connect(&name, step.session.as_deref(), with.as_ref()).await {
            let refused = matches!(error, ConnectError::Http { .. } | ConnectError::Broken(_));
            return match (refused, step.may_refuse, step.covers.is_empty()) {
                (true, true, _) => Ok(()),
                (true, false, false) => self.missed(&step.covers, error.to_string(), None, None),
                _ => Err(Stop::Error(error.to_string())),
            };
        }
        if step.opening.as_deref() == Some("none") {
            return Ok(());
        }
        let openings = &self.protocol.extension.openings;
        let opening = match &step.opening {
            Some(opening) => openings.get(opening),
            None => openings.values().next(),
        };
        let steps = opening.cloned().unwrap_or_default();
        self.exchange(&name, &steps, with.as_ref(), true).await?;
        self.client(&name)?.opened = true;
        self.needs(&name)
    }

    /// Keeps why an opening failed: cases that fail for the same reason are told together.
    fn note_opening(&mut self, stop: &Stop, before: usize) {
        let told = self.outcome.failures.get(before).map(|failure| failure.message.clone());
        let reason = if let Stop::Error(reason) = stop { Some(reason.clone()) } else { None };
        self.outcome.opening = reason.or(told);
    }

    /// Whether the server offers what the case needs. Judged once, by the messages of the first opening.
    fn needs(&mut self, client: &str) -> Result<(), Stop> {
        if self.first_client.as_deref() != Some(client) {
            return Ok(());
        }
        for need in &self.loaded.case.needs {
            let Some(capability) = self.protocol.extension.capabilities.get(need) else { continue };
            let offered = match capability.offered {
                Offered::Yes => true,
                Offered::Fixture => self.options.reference,
                Offered::No => false,
            };
            if capability.announced.is_none() && !offered {
                let reason = format!("`{need}` is offered if an overlay says so: {}", capability.about);
                return Err(Stop::NotApplicable(reason));
            }
        }
        let Some((need, _)) = self.needed.first() else { return Ok(()) };
        let about = self.protocol.extension.capabilities.get(need).map_or("", |known| &known.about);
        Err(Stop::NotApplicable(format!("the server does not offer `{need}`: {about}")))
    }

    async fn close(&mut self, name: &str) -> Result<(), Stop> {
        let deadline = self.deadline(None);
        let state = self.client(name)?;
        let understood = state.is_understood();
        if let Some(connection) = &mut state.connection.as_mut().filter(|_| understood) {
            // A connection that is gone already is as closed as can be.
            let _ = connection.close(deadline).await;
        }
        self.record(name, Direction::Send, Payload::Close { code: None, reason: "".into() });
        let until = Instant::now() + deadline;
        while self.client(name)?.ended.is_none() {
            if !self.pump(until).await? {
                break;
            }
        }
        self.record(name, Direction::Send, Payload::End(End::Closed));
        self.client(name)?.disconnect();
        Ok(())
    }

    async fn drop_client(&mut self, step: &Step) -> Result<(), Stop> {
        let name = step.drop.clone().unwrap_or_default();
        if let Some(after) = &step.after {
            let after = self.expand(after, None)?;
            let after =
                after.as_u64().ok_or_else(|| Stop::Error(format!("`after` is {after}, not a number")))?;
            self.received(&name, after as usize).await?;
        }
        self.record(&name, Direction::Send, Payload::End(End::Dropped));
        self.client(&name)?.disconnect();
        Ok(())
    }

    /// Waits until the client has received `count` events of the log since its last `send`, and makes the last of them
    /// the newest that it has seen. A turn that ends before ends a sweep.
    async fn received(&mut self, name: &str, count: usize) -> Result<(), Stop> {
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
                    return Err(Stop::SweepDone);
                }
                continue;
            }
            if state.ended.is_some() || !self.pump(until).await? {
                let message = format!("fewer than {count} events came, and the turn did not end");
                let covers = self.protocol.extension.turn.covers.clone();
                return self.missed(&covers, message, None, None);
            }
        }
    }

    async fn binary(&mut self, client: &str, step: &Step) -> Result<(), Stop> {
        let text = step.binary.clone().unwrap_or_default();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|error| Stop::Error(format!("`binary` is no base64: {error}")))?;
        let deadline = self.deadline(None);
        self.whole(client)?;
        let state = self.client(client)?;
        if let Some(connection) = &mut state.connection
            && connection.binary(bytes.clone(), deadline).await.is_err()
        {
            // Whoever waits for the answer finds the connection ended and says so.
            state.ended.get_or_insert(super::clients::Ended { code: None, how: Some(End::Reset) });
        }
        self.record(client, Direction::Send, Payload::Binary(bytes.into()));
        Ok(())
    }

    async fn expect(&mut self, client: &str, step: &Step, blame: &[String]) -> Result<(), Stop> {
        let names = step.expect.as_ref().map(|names| names.as_slice().to_vec()).unwrap_or_default();
        let mut wanted = self.wanted(&names, step.with.as_ref(), step.schema.as_ref())?;
        wanted.keep = step.keep;
        let own = step.within.as_deref().and_then(|text| duration(text).ok());
        let until = Instant::now() + self.deadline(own);
        for _ in 0..step.count.unwrap_or(1) {
            match self.wait(client, &wanted, until, step.past_errors).await? {
                Waited::Found(received) => {
                    for (name, at) in &step.save {
                        let Some(value) = at.get(&received.body).cloned() else {
                            let blame = self.blame(step, &names, blame);
                            let message = format!("it has no {at}, which is to be saved as `{name}`");
                            return self.missed(&blame, message, Some(&*received), None);
                        };
                        self.vars.insert(name.clone(), value);
                    }
                    self.client(client)?.taken = Some(*received);
                }
                Waited::Closed => {
                    let event = self.outcome.wire.len().saturating_sub(1) as u64;
                    let state = self.client(client)?;
                    let body = json!({ "code": state.ended.as_ref().and_then(|ended| ended.code) });
                    state.taken = Some(Received { event, body, message: None });
                }
                Waited::Missed(message, instead) => {
                    let blame = self.blame(step, &names, blame);
                    let mut expected = json!({ "type": wanted.label });
                    if let Some(Value::Object(with)) = &step.with {
                        let with = self.expand(&Value::Object(with.clone()), None)?;
                        expected.as_object_mut().into_iter().for_each(|map| {
                            map.extend(with.as_object().cloned().unwrap_or_default());
                        });
                    }
                    if let Some(schema) = &step.schema {
                        expected["where"] = schema.clone();
                    }
                    return self.missed(&blame, message, instead.as_deref(), Some(expected));
                }
            }
        }
        if step.covers.is_empty() && names.len() == 1 {
            // What its absence would have broken.
            let held = self.blame(step, &names, &[]);
            self.exercise(&held);
        }
        Ok(())
    }

    /// Who is to blame when an expected message does not come.
    fn blame(&self, step: &Step, names: &[String], case: &[String]) -> Vec<String> {
        if !step.covers.is_empty() {
            return step.covers.clone();
        }
        if names.iter().any(|name| name == "turn-end") {
            return self.protocol.extension.turn.covers.clone();
        }
        let absent: Vec<String> = names
            .iter()
            .filter_map(|name| self.protocol.message_named(name, Direction::Recv).ok())
            .flat_map(|message| self.protocol.messages[message].absent.clone())
            .collect();
        if absent.is_empty() { case.to_vec() } else { absent }
    }

    fn check(&mut self, client: &str, step: &Step, blame: &[String]) -> Result<(), Stop> {
        let schema = step.check.clone().unwrap_or_default();
        let schema = self.expand(&schema, None)?;
        let schema = self.loosened_schema(schema);
        let compiled = Schema::new(&schema).map_err(Stop::Error)?;
        let Some(taken) = self.client(client)?.taken.clone() else {
            return Err(Stop::Error("`check` comes after an `expect`".to_owned()));
        };
        let violations = compiled.violations(&taken.body);
        let Some(violation) = violations.first() else { return Ok(()) };
        let message = match violation.at.as_str() {
            "" => violation.problem.to_string(),
            at => format!("{at} {}", violation.problem),
        };
        // No expected value: the step, which is shown, says what it wants.
        self.missed(blame, message, Some(&taken), None)
    }

    async fn ping(&mut self, client: &str, step: &Step, blame: &[String]) -> Result<(), Stop> {
        let text = self.expand(&json!(step.ping), None)?;
        let bytes: Vec<u8> = text.as_str().unwrap_or_default().into();
        let deadline = self.deadline(None);
        self.whole(client)?;
        let state = self.client(client)?;
        state.pongs.clear();
        if let Some(connection) = &mut state.connection {
            connection.ping(bytes.clone(), deadline).await.map_err(Stop::Error)?;
        }
        self.record(client, Direction::Send, Payload::Ping(bytes.clone().into()));
        let until = Instant::now() + deadline;
        loop {
            let state = self.client(client)?;
            if state.pongs.iter().any(|pong| **pong == *bytes) {
                return Ok(());
            }
            if state.ended.is_some() || !self.pump(until).await? {
                return self.missed(blame, "no pong repeated the ping's text".to_owned(), None, None);
            }
        }
    }

    fn joined(&mut self, client: &str, step: &Step, blame: &[String]) -> Result<(), Stop> {
        let (Some(joined), Some(schema)) = (&step.joined, &step.schema) else { return Ok(()) };
        let schema = self.expand(schema, None)?;
        let schema = self.loosened_schema(schema);
        let compiled = Schema::new(&schema).map_err(Stop::Error)?;
        let of = Matcher::new(&joined.of, &self.protocol).map_err(|error| Stop::Error(error.to_string()))?;
        let looked = &self.client(client)?.looked;
        let event = looked.last().map_or(0, |received| received.event);
        let pieces = looked.iter().filter(|piece| of.matches(piece.message, Direction::Recv, &piece.body));
        let text = join(pieces.map(|piece| &piece.body), joined);
        let violations = compiled.violations(&text);
        let Some(violation) = violations.first() else { return Ok(()) };
        let message =
            format!("the pieces make {}, which {}", crate::protocol::shorten(&text), violation.problem);
        self.missed(blame, message, Some(&Received { event, body: text, message: None }), None)
    }

    fn assert(&mut self, assertion: Option<&Assertion>, blame: &[String]) -> Result<(), Stop> {
        let Some(assertion) = assertion else { return Ok(()) };
        let (holds, how, values) = self.relation(assertion)?;
        if holds {
            return Ok(());
        }
        let shown: Vec<String> = values.iter().map(crate::protocol::shorten).collect();
        self.missed(blame, format!("these are not {how}: {}", shown.join(", ")), None, None)
    }

    /// Whether values are as the assertion says, what it says in words, and the values.
    fn relation(&mut self, assertion: &Assertion) -> Result<(bool, &'static str, Vec<Value>), Stop> {
        let mut list = |values: &[Value]| -> Result<Vec<Value>, Stop> {
            values.iter().map(|value| self.expand(value, None)).collect()
        };
        Ok(if let Some(values) = &assertion.equal {
            let values = list(values)?;
            (values.windows(2).all(|pair| pair[0] == pair[1]), "equal", values)
        } else if let Some(values) = &assertion.differ {
            let values = list(values)?;
            let differ = (1..values.len()).all(|index| !values[..index].contains(&values[index]));
            (differ, "all different", values)
        } else if let Some(values) = &assertion.ascending {
            let values = list(values)?;
            let grows = values.windows(2).all(|pair| pair[0].as_f64() < pair[1].as_f64());
            (grows, "ascending", values)
        } else {
            let values = list(assertion.difference.as_ref().map_or(&[][..], |values| &values[..]))?;
            let number = |index: usize| values.get(index).and_then(Value::as_i64);
            let holds =
                matches!((number(0), number(1), number(2)), (Some(a), Some(b), Some(c)) if a - b == c);
            (holds, "a difference that fits", values)
        })
    }

    /// The state that the protocol lets a client see.
    async fn state(&mut self, client: &str) -> Result<Value, Stop> {
        let Some(state) = self.protocol.extension.state.clone() else {
            return Err(Stop::Error("the protocol declares no `state`, which `unchanged` needs".to_owned()));
        };
        let seen = self.exchange(client, &state.query, None, false).await?;
        let body = seen.map(|received| received.body).unwrap_or_default();
        Ok(state
            .at
            .iter()
            .map(|at| (at.to_string(), at.get(&body).cloned().unwrap_or(Value::Null)))
            .collect())
    }

    async fn unchanged(&mut self, client: &str, step: &Step, at: &str, blame: &[String]) -> Result<(), Stop> {
        let before = self.state(client).await?;
        let steps = step.unchanged.clone().unwrap_or_default();
        self.steps(&steps, &format!("{at}/unchanged")).await?;
        self.step = format!("{at}/unchanged");
        let after = self.state(client).await?;
        if before == after {
            return Ok(());
        }
        let message = "the state that the server shows has changed".to_owned();
        let received =
            Received { event: self.outcome.wire.len().saturating_sub(1) as u64, body: after, message: None };
        self.missed(blame, message, Some(&received), Some(before))
    }

    /// Takes the branches' steps in turn: first steps first, so that sends go out back to back.
    async fn parallel(&mut self, step: &Step, at: &str) -> Result<(), Stop> {
        let branches = step.parallel.clone().unwrap_or_default();
        let longest = branches.iter().map(Vec::len).max().unwrap_or(0);
        for index in 0..longest {
            for (number, branch) in branches.iter().enumerate() {
                if let Some(step) = branch.get(index) {
                    Box::pin(self.perform(step, &format!("{at}/parallel/{number}/{index}"))).await?;
                }
            }
        }
        Ok(())
    }
}

/// One text, or one for each key in the order of their first pieces.
fn join<'b>(pieces: impl Iterator<Item = &'b Value>, joined: &Joined) -> Value {
    let mut texts: Vec<(Option<&Value>, String)> = Vec::new();
    for body in pieces {
        let Some(piece) = joined.at.iter().find_map(|at| at.get(body)?.as_str()) else { continue };
        let key = joined.by.as_ref().and_then(|by| by.get(body));
        match texts.iter_mut().find(|(known, _)| *known == key) {
            Some((_, text)) => text.push_str(piece),
            None => texts.push((key, piece.to_owned())),
        }
    }
    let value = |text: String| match serde_json::from_str(&text) {
        Ok(value) if joined.json => value,
        _ => Value::from(text),
    };
    match joined.by {
        Some(_) => texts.into_iter().map(|(_, text)| value(text)).collect(),
        None => value(texts.into_iter().map(|(_, text)| text).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_by_key() {
        let pieces = [
            json!({ "id": 1, "text": "a" }),
            json!({ "id": 2, "text": "x" }),
            json!({ "id": 1, "parts": [{ "text": "b" }] }),
            json!({ "id": 1, "text": 7 }),
        ];
        for (by, expected) in [(json!("/id"), json!(["ab", "x"])), (json!(null), json!("axb"))] {
            let joined = json!({ "of": "m", "at": ["/text", "/parts/0/text"], "by": by });
            let joined: Joined = serde_json::from_value(joined).expect("joined");
            assert_eq!(join(pieces.iter(), &joined), expected);
        }
        let joined = json!({ "of": "m", "at": ["/text"], "json": true });
        let joined: Joined = serde_json::from_value(joined).expect("joined");
        assert_eq!(join([json!({ "text": "[1" }), json!({ "text": ",2]" })].iter(), &joined), json!([1, 2]));
        assert_eq!(join([json!({ "text": "[1" })].iter(), &joined), json!("[1"));
    }
}
