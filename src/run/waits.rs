//! Waiting: `expect`, exchanges, the barrier, `never`.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::case::{Runner, Stop};
use super::clients::Received;
use super::event::Verdict;
use crate::check::evidence;
use crate::protocol::extension::{Exchange, Join};
use crate::protocol::{Matcher, ReadingName, is_subset};
use crate::scenario::model::Step;
use crate::source::schema::Schema;
use crate::trace::{Direction, Payload};

/// How long an optional message of an exchange is waited for when nothing else comes.
const OPTIONAL: Duration = Duration::from_millis(300);

/// A silence is measured in this many pieces: when the machine stands still for a while, only one of them passes
/// unlived, and what the server said meanwhile is seen in the next.
const SLICES: u32 = 5;

/// What is waited for.
pub(super) struct Wanted {
    /// Indices of message types.
    messages: Vec<usize>,
    turn_end: Option<Matcher>,
    close: bool,
    with: Option<Value>,
    schema: Option<Schema>,
    /// What is looked past stays in the queue.
    pub keep: bool,
    /// How it is called in messages.
    pub label: String,
}

/// How a wait ended.
pub(super) enum Waited {
    Found(Box<Received>),
    Closed,
    /// Not found: why, and the frames that show it.
    Missed(String, Option<Box<Received>>),
}

impl Wanted {
    fn matches(&self, received: &Received) -> bool {
        (self.is_of_type(received) || self.is_turn_end(received)) && self.fits(&received.body)
    }

    fn is_turn_end(&self, received: &Received) -> bool {
        let end = self.turn_end.as_ref();
        end.is_some_and(|end| end.matches(received.message, Direction::Recv, &received.body))
    }

    /// One of the types that are waited for, whatever its content.
    pub fn is_of_type(&self, received: &Received) -> bool {
        received.message.is_some_and(|message| self.messages.contains(&message))
    }

    fn fits(&self, body: &Value) -> bool {
        self.with.as_ref().is_none_or(|with| is_subset(with, body))
            && self.schema.as_ref().is_none_or(|schema| schema.is_valid(body))
    }

    /// A message of the right type that lacks what is asked for.
    fn nearly(&self, received: &Received) -> bool {
        self.is_of_type(received) && !self.fits(&received.body)
    }
}

impl Runner<'_> {
    pub(super) fn wanted(
        &mut self,
        names: &[String],
        with: Option<&Value>,
        schema: Option<&Value>,
    ) -> Result<Wanted, Stop> {
        let bad = |error: String| Stop::Error(error);
        let with = with.map(|with| self.expand(with, None)).transpose()?;
        let mut wanted = Wanted {
            messages: Vec::new(),
            turn_end: None,
            close: false,
            with: with.map(|with| self.loosened(with)),
            schema: None,
            keep: false,
            label: names.join(" or "),
        };
        if let Some(schema) = schema {
            let schema = self.expand(schema, None)?;
            let schema = self.loosened_schema(schema);
            wanted.schema = Some(Schema::new(&schema).map_err(bad)?);
        }
        for name in names {
            match name.as_str() {
                "close" => wanted.close = true,
                "turn-end" => {
                    let end = Matcher::new(&self.protocol.extension.turn.end, &self.protocol);
                    wanted.turn_end = Some(end.map_err(|error| bad(error.to_string()))?);
                }
                name => {
                    let message = self.protocol.message_named(name, Direction::Recv);
                    wanted.messages.push(message.map_err(|error| bad(error.to_string()))?);
                }
            }
        }
        Ok(wanted)
    }

    pub(super) fn is_error(&self, received: &Received) -> Option<bool> {
        let errors = self.protocol.extension.errors.as_ref()?;
        let matcher = Matcher::new(&errors.on, &self.protocol).ok()?;
        Some(matcher.matches(received.message, Direction::Recv, &received.body))
    }

    /// Waits until `client` receives what is wanted, looking past other messages.
    pub(super) async fn wait(
        &mut self,
        client: &str,
        wanted: &Wanted,
        until: Instant,
        past_errors: bool,
    ) -> Result<Waited, Stop> {
        let began = Instant::now();
        let mut nearly = None;
        // A miss that is no more than a warning leaves everything where it was.
        let mut passed = Vec::new();
        // Where silence ends a turn, a step before may have taken the message that it follows.
        if self.quiet().is_some()
            && let Some(last) = self.client(client)?.looked.last().cloned()
            && wanted.is_turn_end(&last)
            && wanted.fits(&last.body)
            && self.is_last(client).await?
        {
            return Ok(Waited::Found(Box::new(last)));
        }
        let mut late = false;
        let missed = loop {
            while let Some(received) = self.client(client)?.queue.pop_front() {
                if wanted.matches(&received)
                    && (!wanted.is_turn_end(&received) || self.is_last(client).await?)
                {
                    if wanted.keep {
                        self.put_back(client, std::mem::take(&mut passed))?;
                    }
                    let looked = &mut self.client(client)?.looked;
                    looked.append(&mut passed);
                    looked.push(received.clone());
                    return Ok(Waited::Found(Box::new(received)));
                }
                if !past_errors && self.is_error(&received) == Some(true) {
                    let message = format!("an error came instead of {}", wanted.label);
                    self.put_back(client, passed)?;
                    return Ok(Waited::Missed(message, Some(Box::new(received))));
                }
                if wanted.nearly(&received) {
                    nearly = Some(Box::new(received.clone()));
                }
                let unfinished = wanted.matches(&received);
                passed.push(received);
                // The silence that was waited for may have taken all the time there is.
                if unfinished && Instant::now() > until {
                    late = true;
                    break;
                }
            }
            if let Some(ended) = self.client(client)?.ended.clone() {
                if wanted.close {
                    return Ok(Waited::Closed);
                }
                break format!("{} instead of sending {}", ended.describe(), wanted.label);
            }
            // What is there already is looked at once more behind the deadline; a server that never pauses would
            // otherwise be heard for ever.
            let last_look = late;
            late |= Instant::now() > until;
            if last_look || !self.pump(until).await? {
                break match &nearly {
                    Some(_) => format!("{} came, but not as expected", wanted.label),
                    None => format!("{} did not come within {:.1?}", wanted.label, until - began),
                };
            }
        };
        self.put_back(client, passed)?;
        Ok(Waited::Missed(missed, nearly))
    }

    fn put_back(&mut self, client: &str, passed: Vec<Received>) -> Result<(), Stop> {
        let queue = &mut self.client(client)?.queue;
        for received in passed.into_iter().rev() {
            queue.push_front(received);
        }
        Ok(())
    }

    // ---- silence -----------------------------------------------------------------------------------------------

    /// How long a silence must last that stands for an end; `None`: the protocol needs none.
    pub(super) fn quiet(&self) -> Option<Duration> {
        let own = self.protocol.extension.turn.quiet_ms?;
        let quiet = self.options.quiet.unwrap_or(Duration::from_millis(own.into()));
        Some(self.options.scaled(quiet))
    }

    /// Whether the message just taken ends the turn: where the protocol has a quiet period, nothing must follow it.
    async fn is_last(&mut self, client: &str) -> Result<bool, Stop> {
        let Some(quiet) = self.quiet() else { return Ok(true) };
        let protocol = std::sync::Arc::clone(&self.protocol);
        let ambient = &protocol.extension.ambient;
        let follows = self.client(client)?.queue.iter().any(|received| {
            !received.message.is_some_and(|message| ambient.contains(&protocol.messages[message].name))
        });
        Ok(!follows && self.silence(client, quiet).await?)
    }

    /// Waits for the quiet period. `false`: something came.
    async fn silence(&mut self, client: &str, quiet: Duration) -> Result<bool, Stop> {
        let before = self.client(client)?.received;
        for _ in 0..SLICES {
            let until = Instant::now() + quiet / SLICES;
            while self.client(client)?.ended.is_none() && self.pump(until).await? {
                if self.client(client)?.received != before {
                    return Ok(false);
                }
                // Ambient messages without a pause do not prolong it.
                if Instant::now() > until {
                    break;
                }
            }
        }
        Ok(true)
    }

    /// Waits until the server falls silent towards this client.
    async fn fall_silent(&mut self, client: &str, quiet: Duration) -> Result<(), Stop> {
        let until = Instant::now() + self.deadline(None).max(quiet * 2);
        while !self.silence(client, quiet).await? {
            if Instant::now() > until {
                let covers = self.protocol.extension.turn.covers.clone();
                return self.missed(&covers, "the server does not fall silent".to_owned(), None, None);
            }
        }
        Ok(())
    }

    /// Does an exchange of the protocol: an opening, a barrier, a state query. Returns the last message taken.
    pub(super) async fn exchange(
        &mut self,
        client: &str,
        steps: &[Exchange],
        with: Option<&Value>,
        opening: bool,
    ) -> Result<Option<Received>, Stop> {
        let mut first = opening;
        let mut last = None;
        for step in steps {
            if let Some(message) = &step.send {
                let mut message = self.expand(message, with)?;
                if std::mem::take(&mut first) {
                    self.join(client, &mut message, with);
                }
                self.send_text(client, message.to_string()).await?;
            }
            let Some(names) = &step.expect else { continue };
            let wanted = self.wanted(names.as_slice(), step.with.as_ref(), step.schema.as_ref())?;
            if step.optional {
                last = self.optional(client, &wanted, &step.covers).await?.or(last);
                continue;
            }
            let until = Instant::now() + self.deadline(None);
            match self.wait(client, &wanted, until, false).await? {
                Waited::Found(received) => {
                    self.exercise(&step.covers);
                    for (name, at) in &step.save {
                        let value = at.get(&received.body).cloned().unwrap_or(Value::Null);
                        self.vars.insert(name.clone(), value);
                    }
                    last = Some(*received);
                }
                Waited::Closed => {}
                Waited::Missed(message, instead) => {
                    let covers = step.covers.clone();
                    self.missed(&covers, message, instead.as_deref(), None)?;
                }
            }
        }
        Ok(last)
    }

    /// Puts the session's id into the first message of an opening.
    fn join(&mut self, client: &str, message: &mut Value, with: Option<&Value>) {
        let Join::Field(at) = &self.protocol.extension.session.join else { return };
        let session = self.clients.get(client).map(|client| client.session.clone()).unwrap_or_default();
        let key = at.as_str().trim_start_matches('/').to_owned();
        if let (Some(id), Some(map)) =
            (self.sessions.get(&session).cloned().flatten(), message.as_object_mut())
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
        wanted: &Wanted,
        covers: &[String],
    ) -> Result<Option<Received>, Stop> {
        let until = Instant::now() + self.options.scaled(OPTIONAL);
        let ambient = self.protocol.extension.ambient.clone();
        loop {
            let protocol = std::sync::Arc::clone(&self.protocol);
            let state = self.client(client)?;
            let is_ambient = |received: &Received| {
                received.message.is_some_and(|message| ambient.contains(&protocol.messages[message].name))
            };
            if let Some(index) = state.queue.iter().position(|received| !is_ambient(received)) {
                if wanted.matches(&state.queue[index]) {
                    let taken = state.queue.remove(index);
                    self.exercise(covers);
                    return Ok(taken);
                }
                break;
            }
            if state.ended.is_some() || !self.pump(until).await? {
                break;
            }
        }
        if !covers.is_empty() {
            let message = format!("{} was left out", wanted.label);
            self.missed(covers, message, None, None)?;
        }
        Ok(None)
    }

    /// Records that something did not come. Ends the case if that breaks a MUST.
    pub(super) fn missed(
        &mut self,
        blame: &[String],
        message: String,
        instead: Option<&Received>,
        expected: Option<Value>,
    ) -> Result<(), Stop> {
        if self.tolerated == Some(ReadingName::Lenient) {
            return Ok(());
        }
        let tolerated = self.tolerated == Some(ReadingName::Default);
        let fails = self.protocol.requirements.fails(blame) && !tolerated && !self.warns;
        let verdict = if fails { Verdict::Failed } else { Verdict::Warned };
        let frames = instead.map(|received| received.event).into_iter().collect();
        let actual = instead.map(|received| evidence(&received.body));
        let expected = expected.as_ref().map(evidence);
        self.fail(verdict, "step", blame, message, expected, actual, frames);
        if fails {
            self.set_broken();
            return Err(Stop::Failed);
        }
        Ok(())
    }

    pub(super) async fn send_text(&mut self, client: &str, text: String) -> Result<(), Stop> {
        let deadline = self.deadline(None);
        self.whole(client)?;
        let state = self.client(client)?;
        state.speaks();
        let Some(connection) = &mut state.connection else {
            return Err(Stop::Error(format!("client `{client}` is not connected")));
        };
        let sent = connection.text(text.clone(), deadline).await;
        self.record(client, Direction::Send, Payload::Text(text.into()));
        if let Err(error) = sent {
            // Whoever waits for the answer finds the connection ended and says so.
            let state = self.client(client)?;
            state
                .ended
                .get_or_insert(super::clients::Ended { code: None, how: Some(crate::trace::End::Reset) });
            let _ = error;
        }
        Ok(())
    }

    /// Does the protocol's barrier, or waits for the silence that stands for one: when it returns, everything that the server had to say to this client before
    /// has been received. The barrier's answer is taken out of the queue, and nothing else.
    pub(super) async fn barrier(&mut self, client: &str) -> Result<(), Stop> {
        let Some(steps) = self.protocol.extension.barrier.clone() else {
            return match self.quiet() {
                Some(quiet) => self.fall_silent(client, quiet).await,
                None => Ok(()),
            };
        };
        match self.answered(client, &steps).await? {
            None => Ok(()),
            Some((why, covers)) => self.missed(&covers, why, None, None),
        }
    }

    /// Does a correlated query. `None`: it was answered; else why not, and the requirements that this breaks.
    pub(super) async fn answered(
        &mut self,
        client: &str,
        steps: &[Exchange],
    ) -> Result<Option<(String, Vec<String>)>, Stop> {
        let waiting = std::mem::take(&mut self.client(client)?.queue);
        let mut kept: Vec<Received> = Vec::new();
        for step in steps {
            if let Some(message) = &step.send {
                let message = self.expand(message, None)?;
                let seen = self.client(client)?.since_send.clone();
                let over = self.client(client)?.turn_over;
                let looked = std::mem::take(&mut self.client(client)?.looked);
                self.send_text(client, message.to_string()).await?;
                let state = self.client(client)?;
                state.since_send.splice(0..0, seen);
                state.turn_over |= over;
                state.looked = looked;
            }
            let Some(names) = &step.expect else { continue };
            let wanted = self.wanted(names.as_slice(), step.with.as_ref(), step.schema.as_ref())?;
            let until = Instant::now() + self.deadline(None);
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
                if ended.is_some() || !self.pump(until).await? {
                    let why = ended.map_or_else(
                        || format!("{} did not come in time", wanted.label),
                        |ended| format!("{} instead of sending {}", ended.describe(), wanted.label),
                    );
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

    /// `never`: nothing wanted comes until the barrier is answered, or within the window.
    pub(super) async fn never(&mut self, client: &str, step: &Step, blame: &[String]) -> Result<(), Stop> {
        let names = step.never.as_ref().map(|names| names.as_slice().to_vec()).unwrap_or_default();
        let wanted = self.wanted(&names, step.with.as_ref(), step.schema.as_ref())?;
        match step.window.as_deref().map(crate::scenario::duration) {
            Some(Ok(window)) => {
                let until = Instant::now() + self.options.scaled(window);
                while self.client(client)?.ended.is_none() && self.pump(until).await? {}
            }
            _ => self.barrier(client).await?,
        }
        let state = self.client(client)?;
        let closed = wanted.close && state.ended.is_some();
        let found = state.queue.iter().find(|received| wanted.matches(received)).cloned();
        if closed || found.is_some() {
            let message = format!("{} came, which must not come here", wanted.label);
            return self.missed(blame, message, found.as_ref(), None);
        }
        Ok(())
    }
}
