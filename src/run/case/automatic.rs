//! What clients do by themselves, as the protocol's `client` says.

use std::collections::VecDeque;
use std::time::Instant;

use serde_json::{Value, json};

use crate::protocol::ClientAct;
use crate::run::case::client::Received;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::trace::{Direction, Payload};

/// Messages that have come and that a client answers by itself, in their order.
#[derive(Default)]
pub(crate) struct Automatic {
    due: VecDeque<Due>,
}

#[derive(Clone)]
struct Due {
    client: String,
    /// The connection on which the message came.
    number: u64,
    /// Index of the rule.
    rule: usize,
    received: Received,
}

impl Due {
    /// Whether both came in one frame.
    fn is_beside(&self, other: &Self) -> bool {
        self.client == other.client
            && self.number == other.number
            && self.received.event == other.received.event
    }
}

impl Interpreter<'_> {
    /// Notes that a message is to be answered by a rule, if there is one that the case has not suspended.
    pub(crate) fn note_automatic(&mut self, name: &str, received: &Received) {
        let suspended = &self.cx.loaded.case.suspend;
        let rule = self.cx.protocol.client_rules().iter().position(|rule| {
            !suspended.contains(&rule.name)
                && rule.matcher.matches(received.message, Direction::Recv, &received.body)
        });
        let number = self.conns.get(name).and_then(|client| client.number());
        if let (Some(rule), Some(number)) = (rule, number) {
            let received = received.clone();
            self.automatic.due.push_back(Due { client: name.to_owned(), number, rule, received });
        }
    }

    /// Clients do by themselves what is due.
    pub(crate) async fn act_by_rules(&mut self) -> Result<(), Abort> {
        while let Some(due) = self.automatic.due.pop_front() {
            let mut answers = Vec::new();
            let mut next = Some(due.clone());
            while let Some(one) = next {
                let outer = std::mem::replace(&mut self.step.client, one.client.clone());
                let message = self.message_of(&one);
                self.step.client = outer;
                match message? {
                    Some(message) if self.is_answer_in_batch(&one) => answers.push(message),
                    Some(message) => self.send_aside(&one, message).await?,
                    None => {}
                }
                let is_beside = self.automatic.due.front().is_some_and(|next| due.is_beside(next));
                next = if is_beside { self.automatic.due.pop_front() } else { None };
            }
            // The requests of a batch are answered by one batch.
            if !answers.is_empty() {
                self.send_aside(&due, Value::Array(answers)).await?;
            }
        }
        Ok(())
    }

    /// Whether what has come is a request that a rule answers.
    fn is_request(&self, due: &Due) -> bool {
        let rule = self.cx.protocol.client_rules().get(due.rule);
        rule.is_some_and(|rule| matches!(rule.act, ClientAct::Answer(_)))
    }

    /// Whether a rule answers a request that came in a batch, in a protocol whose clients send batches, too.
    fn is_answer_in_batch(&self, due: &Due) -> bool {
        self.is_request(due)
            && self.cx.protocol.may_batch(Direction::Send)
            && self.log.get(due.received.event).is_some_and(|entry| !entry.batch.is_empty())
    }

    /// What a rule sends. `None`: the message is no request that can be answered.
    fn message_of(&mut self, due: &Due) -> Result<Option<Value>, Abort> {
        let protocol = self.cx.protocol.clone();
        let body = &due.received.body;
        let with = json!({ "message": body });
        let Some(rule) = protocol.client_rules().get(due.rule) else { return Ok(None) };
        let message = match &rule.act {
            ClientAct::Send(message) => self.expand(message, Some(&with)).map(Some),
            ClientAct::Answer(answer) => self.answer_to(answer, &due.received, Some(&with)),
        };
        message.map_err(|abort| match abort {
            Abort::Error(error) => Abort::Error(format!("`x-frameproof.client.{}`: {error}", rule.name)),
            other => other,
        })
    }

    /// Sends a message that belongs to no step. A connection that is gone, or on which half a frame was written, has none.
    async fn send_aside(&mut self, due: &Due, message: Value) -> Result<(), Abort> {
        let (name, number) = (due.client.as_str(), due.number);
        let deadline = self.deadline(None);
        let (text, shown) = self.written(message);
        let client = self.client(name)?;
        if client.number() != Some(number) || client.has_ended() || !client.is_understood() {
            return Ok(());
        }
        let Some(link) = client.link() else { return Ok(()) };
        let began = Instant::now();
        let sent = link.text(shown.unwrap_or_else(|| text.clone()), deadline).await;
        let index = self.log.next_index();
        self.record_since(began, name, Payload::Text(text.into()));
        self.log.note_automatic(index);
        // A request of the server's tells something in any case.
        if !self.is_request(due) {
            self.log.note_automatic(due.received.event);
        }
        if sent.is_err() {
            self.client(name)?.note_broken();
        }
        Ok(())
    }
}
