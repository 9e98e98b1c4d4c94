//! The verbs that send something: `send`, `raw`, `binary`, `ping`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cue::pseudolocale::Pseudolocale;
use crate::frame::respell::respelled;
use crate::results::Check;
use crate::run::case::context::StepScope;
use crate::run::case::exchange::Purpose;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::receive::Waited;
use crate::run::case::unanswered::Awaiting;
use crate::scenario::case::{SendBinary, SendMessage, SendText, Text};
use crate::trace::Payload;

/// How long a connection that cannot be written to is read on, for what the server has sent before.
const READS_ON: Duration = Duration::from_millis(250);

/// How many frames a respelled message comes in.
const FRAGMENTS: usize = 3;

impl Interpreter<'_> {
    pub(crate) async fn send_message(&mut self, verb: &SendMessage, cx: &StepScope<'_>) -> Result<(), Abort> {
        self.think(cx).await?;
        for _ in 0..verb.count {
            let mut message = self.expand_message(&verb.message, None)?;
            self.add_further_members(&mut message, cx);
            self.leave_running(cx.client, verb.abandon);
            if self.is_pipelined(cx.client)? {
                self.send_behind_query(cx.client, message).await?;
            } else {
                self.send_json(cx.client, message, Purpose::Stimulus).await?;
            }
        }
        Ok(())
    }

    /// Adds members that the document does not know, where the case's preamble says so. Its own steps have found out whether the server
    /// takes such messages.
    fn add_further_members(&mut self, message: &mut Value, cx: &StepScope<'_>) {
        let loaded = self.cx.loaded;
        let Some(further) = &loaded.case.beginning.further else { return };
        if loaded.is_in_preamble(cx.at) {
            return;
        }
        let holds = |when| self.relation(when).is_ok_and(|(holds, ..)| holds);
        if further.when.as_ref().is_none_or(holds) {
            further.add_to(message);
        }
    }

    /// Whether what this client sends comes right behind a query, which it can read the answer to.
    fn is_pipelined(&mut self, client: &str) -> Result<bool, Abort> {
        let asks = self.cx.protocol.extension.barrier.as_ref().is_some_and(|barrier| barrier.per().is_none());
        Ok(self.cx.loaded.case.beginning.pipelined && asks && self.client(client)?.can_ask())
    }

    pub(crate) async fn raw(&mut self, verb: &SendText, cx: &StepScope<'_>) -> Result<(), Abort> {
        self.think(cx).await?;
        let text = self.expand(&json!(verb.text), None)?;
        let text = self.cx.protocol.enclose_text(text.as_str().unwrap_or_default());
        for _ in 0..verb.count {
            self.leave_running(cx.client, verb.abandon);
            let shown = self.pseudolocale().map(|locale| locale.apply(&text));
            self.send_text(cx.client, text.clone().into_owned(), shown, Purpose::Stimulus).await?;
        }
        Ok(())
    }

    /// What the next message asks for may be under way when the case ends.
    fn leave_running(&mut self, client: &str, abandon: bool) {
        if abandon {
            self.judges.abandon(self.log.next_index());
            self.settling.runs_on.insert(client.to_owned());
        }
    }

    /// Sends a message, or a batch of them, as the server spells them.
    pub(crate) async fn send_json(
        &mut self,
        client: &str,
        message: Value,
        purpose: Purpose,
    ) -> Result<(), Abort> {
        let (text, shown) = self.written(message);
        self.send_text(client, text, shown, purpose).await
    }

    /// A message, or a batch of them, as the server spells it, and what the server is shown in its place.
    pub(crate) fn written(&self, mut message: Value) -> (String, Option<String>) {
        self.cx.protocol.spell(&mut message);
        let write =
            |message: &Value| if self.is_respelled() { respelled(message) } else { message.to_string() };
        let shown = self.pseudolocale().map(|locale| write(&locale.apply_to_message(&message)));
        (write(&message), shown)
    }

    fn is_respelled(&self) -> bool {
        self.cx.loaded.case.beginning.respelled
    }

    /// How texts are shown to the server.
    pub(crate) fn pseudolocale(&self) -> Option<&Pseudolocale> {
        self.cx.loaded.case.beginning.pseudolocale.as_ref()
    }

    /// Sends a text. `shown`: what the server gets in its place.
    async fn send_text(
        &mut self,
        client: &str,
        text: String,
        shown: Option<String>,
        purpose: Purpose,
    ) -> Result<(), Abort> {
        // What a scenario writes out, several cases may say; a server may answer by it.
        if let Some(probe) = &self.cx.probe {
            probe.note_sent(client, &text);
        }
        let deadline = self.deadline(None);
        self.check_frame_boundary(client)?;
        let is_respelled = self.is_respelled();
        let state = self.client(client)?;
        state.begin_request();
        if purpose == Purpose::Stimulus {
            state.begin_exchange();
        }
        let Some(connection) = state.link() else {
            return Err(Abort::Error(format!("client `{client}` is not connected")));
        };
        if is_respelled {
            connection.fragment_next(FRAGMENTS);
        }
        let began = Instant::now();
        let sent = connection.text(shown.unwrap_or_else(|| text.clone()), deadline).await;
        self.record_since(began, client, Payload::Text(text.into()));
        if sent.is_err() {
            self.note_broken(client).await?;
        }
        self.make_room().await
    }

    /// Nothing can be written any more: what the server has sent before shows why. Whoever waits for the answer finds the connection
    /// ended and says so.
    async fn note_broken(&mut self, client: &str) -> Result<(), Abort> {
        self.wait_for_end(client, Instant::now() + READS_ON).await?;
        self.client(client)?.note_broken();
        Ok(())
    }

    pub(crate) async fn binary(&mut self, verb: &SendBinary, cx: &StepScope<'_>) -> Result<(), Abort> {
        let (client, bytes) = (cx.client, &verb.bytes);
        let deadline = self.deadline(None);
        self.check_frame_boundary(client)?;
        let began = Instant::now();
        let sent = match self.client(client)?.link() {
            Some(connection) => connection.binary(bytes.clone(), deadline).await,
            None => Ok(()),
        };
        self.record_since(began, client, Payload::Binary(bytes.as_slice().into()));
        if sent.is_err() {
            self.note_broken(client).await?;
        }
        Ok(())
    }

    pub(crate) async fn ping(&mut self, verb: &Text, cx: &StepScope<'_>) -> Result<(), Abort> {
        let client = cx.client;
        let text = self.expand(&json!(verb.text), None)?;
        let bytes: Vec<u8> = text.as_str().unwrap_or_default().into();
        let deadline = self.deadline(None);
        self.check_frame_boundary(client)?;
        let state = self.client(client)?;
        state.inbox.forget_pongs();
        let began = Instant::now();
        if let Some(connection) = state.link() {
            connection.ping(bytes.clone(), deadline).await.map_err(Abort::Error)?;
        }
        self.record_since(began, client, Payload::Ping(bytes.clone().into()));
        match self.wait_for_pong(client, &bytes, deadline).await? {
            Waited::Done(()) => Ok(()),
            Waited::Ended(ended) => {
                self.client(client)?.report_end();
                let message = self.ended_instead(client, &ended, " instead of repeating the ping's text");
                self.fail_on_end(Check::Step, client, cx.blame, message)
            }
            Waited::TimedOut => {
                let message =
                    self.nothing_came(client, "no pong repeated the ping's text", Awaiting::Anything);
                self.fail_step(cx.blame, message, None, None)
            }
        }
    }

    /// Waits for the pong that bears the ping's text.
    pub(crate) async fn wait_for_pong(
        &mut self,
        client: &str,
        text: &[u8],
        deadline: Duration,
    ) -> Result<Waited<()>, Abort> {
        let until = Instant::now() + deadline;
        self.wait_until(client, until, |state| state.inbox.has_pong(text).then_some(())).await
    }
}
