//! The verbs.

use std::time::Instant;

use base64::Engine as _;
use serde_json::{Value, json};

use crate::protocol::ReadingName;
use crate::results::Check;
use crate::run::case::client::Ended;
use crate::run::case::interpreter::{Runner, Stop};
use crate::scenario::model::Step;
use crate::trace::{Direction, End, Payload};

impl Runner<'_> {
    /// Does steps one after the other.
    pub(crate) async fn steps(&mut self, steps: &[Step], at: &str) -> Result<(), Stop> {
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
        let answer = |id: &Option<String>| self.cx.protocol.readings.get(id.as_ref()?).copied();
        let allowed = answer(&step.allowed).map(|taken| match taken {
            ReadingName::Default => ReadingName::Lenient,
            other => other,
        });
        allowed.or_else(|| answer(&step.tolerated))
    }

    async fn perform(&mut self, step: &Step, at: &str) -> Result<(), Stop> {
        let verb = step.verbs().first().copied().unwrap_or_default();
        self.step.pointer = format!("{at}/{verb}");
        self.mark();
        self.step.tolerated = self.taken(step);
        self.step.warns = step.warns;
        if let Some(condition) = &step.when
            && !self.relation(condition)?.0
        {
            return Ok(());
        }
        let failures = self.verdict.failures.len();
        let client = step.client.clone().or_else(|| self.conns.first_client.clone()).unwrap_or_default();
        self.step.client.clone_from(&client);
        let blame =
            if step.covers.is_empty() { self.cx.loaded.case.covers.clone() } else { step.covers.clone() };
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
                    self.say(&client, message).await?;
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
            "unseen" => self.unseen(&client, step, &blame).await?,
            "restart" => self.restart().await?,
            "assert" => self.assert(step.assert.as_ref(), &blame)?,
            "unchanged" => self.unchanged(&client, step, at, &blame).await?,
            "parallel" => self.parallel(step, at).await?,
            _ => return Err(Stop::Error("a step without a verb".to_owned())),
        }
        self.step.tolerated = None;
        self.step.warns = false;
        if self.verdict.failures.len() == failures {
            self.exercise(&step.covers);
        }
        Ok(())
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

impl Runner<'_> {
    /// Sends a message as the server spells it.
    pub(crate) async fn say(&mut self, client: &str, mut message: Value) -> Result<(), Stop> {
        self.cx.protocol.spell(&mut message);
        self.send_text(client, message.to_string()).await
    }

    async fn send_text(&mut self, client: &str, text: String) -> Result<(), Stop> {
        let deadline = self.deadline(None);
        self.whole(client)?;
        let state = self.client(client)?;
        state.speaks();
        let Some(connection) = &mut state.connection else {
            return Err(Stop::Error(format!("client `{client}` is not connected")));
        };
        let sent = connection.text(text.clone(), deadline).await;
        self.record(client, Direction::Send, Payload::Text(text.into()));
        if sent.is_err() {
            // Whoever waits for the answer finds the connection ended and says so.
            self.client(client)?.ended.get_or_insert(Ended::by(End::Reset));
        }
        self.make_room()
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
            state.ended.get_or_insert(Ended::by(End::Reset));
        }
        self.record(client, Direction::Send, Payload::Binary(bytes.into()));
        Ok(())
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
            if let Some(ended) = &state.ended {
                let ended = ended.clone();
                state.told = true;
                let message = self.ended_instead(client, &ended, " instead of repeating the ping's text");
                return self.ended_by(Check::Step, client, blame, message);
            }
            if !self.pump(until).await? {
                let message = self.nothing_came(client, "no pong repeated the ping's text", false);
                return self.missed(blame, message, None, None);
            }
        }
    }
}
