//! The verbs that send something: `send`, `raw`, `binary`, `ping`.

use std::time::Instant;

use serde_json::{Value, json};

use crate::results::Check;
use crate::run::case::client::ObservedEnd;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::steps::StepScope;
use crate::scenario::case::{SendBinary, SendMessage, SendText, Text};
use crate::trace::{Direction, End, Payload};

impl Interpreter<'_> {
    pub(crate) async fn send_message(&mut self, verb: &SendMessage, cx: &StepScope<'_>) -> Result<(), Abort> {
        for _ in 0..verb.count {
            let message = self.expand(&verb.message, None)?;
            self.send_json(cx.client, message).await?;
        }
        Ok(())
    }

    pub(crate) async fn raw(&mut self, verb: &SendText, cx: &StepScope<'_>) -> Result<(), Abort> {
        let text = self.expand(&json!(verb.text), None)?;
        for _ in 0..verb.count {
            self.send_text(cx.client, text.as_str().unwrap_or_default().to_owned()).await?;
        }
        Ok(())
    }

    /// Sends a message as the server spells it.
    pub(crate) async fn send_json(&mut self, client: &str, mut message: Value) -> Result<(), Abort> {
        self.cx.protocol.spell(&mut message);
        self.send_text(client, message.to_string()).await
    }

    async fn send_text(&mut self, client: &str, text: String) -> Result<(), Abort> {
        let deadline = self.deadline(None);
        self.check_frame_boundary(client)?;
        let state = self.client(client)?;
        state.begin_exchange();
        let Some(connection) = &mut state.connection else {
            return Err(Abort::Error(format!("client `{client}` is not connected")));
        };
        let sent = connection.text(text.clone(), deadline).await;
        self.record(client, Direction::Send, Payload::Text(text.into()));
        if sent.is_err() {
            // Whoever waits for the answer finds the connection ended and says so.
            self.client(client)?.ended.get_or_insert(ObservedEnd::by(End::Reset));
        }
        self.make_room()
    }

    pub(crate) async fn binary(&mut self, verb: &SendBinary, cx: &StepScope<'_>) -> Result<(), Abort> {
        let (client, bytes) = (cx.client, &verb.bytes);
        let deadline = self.deadline(None);
        self.check_frame_boundary(client)?;
        let state = self.client(client)?;
        if let Some(connection) = &mut state.connection
            && connection.binary(bytes.clone(), deadline).await.is_err()
        {
            // Whoever waits for the answer finds the connection ended and says so.
            state.ended.get_or_insert(ObservedEnd::by(End::Reset));
        }
        self.record(client, Direction::Send, Payload::Binary(bytes.as_slice().into()));
        Ok(())
    }

    pub(crate) async fn ping(&mut self, verb: &Text, cx: &StepScope<'_>) -> Result<(), Abort> {
        let client = cx.client;
        let text = self.expand(&json!(verb.text), None)?;
        let bytes: Vec<u8> = text.as_str().unwrap_or_default().into();
        let deadline = self.deadline(None);
        self.check_frame_boundary(client)?;
        let state = self.client(client)?;
        state.pongs.clear();
        if let Some(connection) = &mut state.connection {
            connection.ping(bytes.clone(), deadline).await.map_err(Abort::Error)?;
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
                return self.fail_on_end(Check::Step, client, cx.blame, message);
            }
            if !self.receive_until(until).await? {
                let message = self.nothing_came(client, "no pong repeated the ping's text", false);
                return self.fail_step(cx.blame, message, None, None);
            }
        }
    }
}
