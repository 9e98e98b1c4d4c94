//! What is said of a wait in vain: what did not come, and what the server did meanwhile.

use std::time::Duration;

use crate::results::cause::{LastRequest, Statement};
use crate::run::case::client::Client;
use crate::run::case::diagnose::{Awaited, asks, kind, silence};
use crate::run::case::interpreter::Interpreter;
use crate::run::case::log::LogEntry;
use crate::run::case::wait::Expectation;

/// What was waited for that was no message, or no certain one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaiting {
    TurnEnd,
    Anything,
}

impl Interpreter<'_> {
    /// The sentence about what `client` waited for in vain, `waited` long, with what the server did meanwhile.
    pub(crate) fn explain_wait(&self, client: &str, wanted: &Expectation, waited: Duration) -> Statement {
        let sentence = if wanted.names.len() > 1 {
            format!("neither {} came within {waited:.1?}", wanted.names.join(" nor "))
        } else {
            format!("{} did not come within {waited:.1?}", wanted.label)
        };
        let awaited = Awaited {
            close: wanted.is_only_close(),
            turn_end: wanted.is_for_turn_end(),
            messages: wanted.messages(),
            waited: waited.as_secs_f64() * 1e3,
            ..Awaited::default()
        };
        self.in_silence(client, sentence, awaited)
    }

    /// A sentence about what a client waited for in vain that was no message, or no certain one.
    pub(crate) fn nothing_came(
        &self,
        client: &str,
        sentence: impl Into<String>,
        awaiting: Awaiting,
    ) -> Statement {
        let turn_end = awaiting == Awaiting::TurnEnd;
        self.in_silence(client, sentence.into(), Awaited { turn_end, ..Awaited::default() })
    }

    /// What a client has sent last on its connection that belongs to no opening.
    pub(crate) fn last_request(&self, client: &str) -> LastRequest {
        let mut own = self.log.of_client(client).rev().take_while(|entry| !entry.connected);
        match own.find(|entry| asks(entry, self.cx.protocol.roles())) {
            None => LastRequest::Nothing,
            Some(entry) => kind(&self.cx.protocol, entry).map_or(LastRequest::Unnamed, LastRequest::Of),
        }
    }

    fn in_silence(&self, client: &str, sentence: String, awaited: Awaited<'_>) -> Statement {
        let opened = self.conns.get(client).is_some_and(Client::is_opened);
        let awaited = Awaited { opened, now: self.log.elapsed().as_secs_f64() * 1e3, ..awaited };
        let own: Vec<&LogEntry> = self.log.of_client(client).collect();
        let kind = |entry: &LogEntry| kind(&self.cx.protocol, entry);
        Statement::in_silence(sentence, silence(&own, self.cx.protocol.roles(), awaited, &kind))
    }
}
