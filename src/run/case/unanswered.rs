//! What is said of a wait in vain: what did not come, and what the server did meanwhile.

use std::time::Duration;

use crate::results::cause::{LastRequest, Statement};
use crate::results::event::WireLine;
use crate::run::case::diagnose::{Awaited, Mark, asks, kind, silence};
use crate::run::case::interpreter::Interpreter;
use crate::run::case::wait::Expectation;

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
        turn_end: bool,
    ) -> Statement {
        self.in_silence(client, sentence.into(), Awaited { turn_end, ..Awaited::default() })
    }

    /// What a client has sent last on its connection that belongs to no opening.
    pub(crate) fn last_request(&self, client: &str) -> LastRequest {
        let own = self.log.wire.iter().zip(&self.log.marks).rev().filter(|(line, _)| line.client == client);
        let mut own = own.take_while(|(_, mark)| !mark.connected);
        match own.find(|(line, mark)| asks(line, **mark, &self.cx.roles.manners)) {
            None => LastRequest::Nothing,
            Some((line, mark)) => {
                kind(&self.cx.protocol, line, *mark).map_or(LastRequest::Unnamed, LastRequest::Of)
            }
        }
    }

    fn in_silence(&self, client: &str, sentence: String, awaited: Awaited<'_>) -> Statement {
        let opened = self.conns.clients.get(client).is_some_and(|client| client.opened);
        let awaited = Awaited { opened, now: self.log.start.elapsed().as_secs_f64() * 1e3, ..awaited };
        let lines = self.log.wire.iter().zip(&self.log.marks).filter(|(line, _)| line.client == client);
        let lines: Vec<(&WireLine, Mark)> = lines.map(|(line, mark)| (line, *mark)).collect();
        let kind = |line: &WireLine, mark: Mark| kind(&self.cx.protocol, line, mark);
        Statement::in_silence(sentence, silence(&lines, &self.cx.roles.manners, awaited, &kind))
    }
}
