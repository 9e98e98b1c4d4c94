//! The verbs that send something: `send`, `raw`, `binary`, `ping`.

use std::time::Instant;

use serde_json::{Value, json};

use crate::results::Check;
use crate::run::case::client::Ended;
use crate::run::case::interpreter::{Runner, Stop};
use crate::run::case::steps::StepScope;
use crate::scenario::case::{SendBinary, SendMessage, SendText, Text};
use crate::trace::{Direction, End, Payload};

impl Runner<'_> {
    pub(crate) async fn send_message(&mut self, verb: &SendMessage, cx: &StepScope<'_>) -> Result<(), Stop> {
        for _ in 0..verb.count {
            let message = self.expand(&verb.message, None)?;
            self.say(cx.client, message).await?;
        }
        Ok(())
    }

    pub(crate) async fn raw(&mut self, verb: &SendText, cx: &StepScope<'_>) -> Result<(), Stop> {
        let text = self.expand(&json!(verb.text), None)?;
        for _ in 0..verb.count {
            self.send_text(cx.client, text.as_str().unwrap_or_default().to_owned()).await?;
        }
        Ok(())
    }

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

    pub(crate) async fn binary(&mut self, verb: &SendBinary, cx: &StepScope<'_>) -> Result<(), Stop> {
        let (client, bytes) = (cx.client, &verb.bytes);
        let deadline = self.deadline(None);
        self.whole(client)?;
        let state = self.client(client)?;
        if let Some(connection) = &mut state.connection
            && connection.binary(bytes.clone(), deadline).await.is_err()
        {
            // Whoever waits for the answer finds the connection ended and says so.
            state.ended.get_or_insert(Ended::by(End::Reset));
        }
        self.record(client, Direction::Send, Payload::Binary(bytes.as_slice().into()));
        Ok(())
    }

    pub(crate) async fn ping(&mut self, verb: &Text, cx: &StepScope<'_>) -> Result<(), Stop> {
        let client = cx.client;
        let text = self.expand(&json!(verb.text), None)?;
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
                return self.ended_by(Check::Step, client, cx.blame, message);
            }
            if !self.pump(until).await? {
                let message = self.nothing_came(client, "no pong repeated the ping's text", false);
                return self.missed(cx.blame, message, None, None);
            }
        }
    }
}
