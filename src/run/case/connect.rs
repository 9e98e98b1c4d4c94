//! Opening a client's connection, in the session that it belongs to.

use serde_json::Value;

use crate::protocol::extension::Join;
use crate::run::address::session_endpoint;
use crate::run::case::client::{Client, ObservedEnd};
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::variables::Scope;
use crate::scenario::case::Step;
use crate::trace::{Direction, Payload};
use crate::wire::{ConnectError, Endpoint, Link};

impl Interpreter<'_> {
    /// Connects a client. The opening exchange is another matter. After a refusal the client is there all the
    /// same, with its connection ended.
    pub async fn connect(
        &mut self,
        name: &str,
        session: Option<&str>,
        with: Option<&Value>,
    ) -> Result<(), ConnectError> {
        let known = self.conns.clients.get(name).map(|client| client.session.clone());
        let session = session.map(str::to_owned).or(known).unwrap_or_else(|| "main".to_owned());
        let mut endpoint = self.endpoint_of(&session).await?;
        if let Join::Parameter(parameter) = self.cx.protocol.extension.session.join.clone() {
            let named = with.and_then(|with| with.get(&parameter)).and_then(Value::as_str).map(str::to_owned);
            let known = self.conns.sessions.ids.get(&session).cloned().flatten();
            let id = named.or(known).unwrap_or_else(|| self.session_id());
            endpoint.url = endpoint.url.replace(&format!("{{{parameter}}}"), &id);
            self.conns.sessions.ids.insert(session.clone(), Some(id));
        }
        self.conns.sessions.ids.entry(session.clone()).or_insert(None);
        self.conns.next_number += 1;
        let number = self.conns.next_number;
        // Only a case that writes frames of its own pays for a connection that lets it.
        let raw = self.cx.loaded.case.steps.iter().any(Step::is_raw);
        let opened = Link::open(&endpoint, number, self.conns.sender.clone(), raw).await;
        let client = self.conns.clients.entry(name.to_owned()).or_insert_with(|| Client::new(&session));
        client.disconnect();
        client.session = session;
        client.ended = opened.is_err().then(ObservedEnd::default);
        (client.may_end, client.told, client.mute) = (false, false, false);
        client.since_send.clear();
        self.conns.first_client.get_or_insert_with(|| name.to_owned());
        client.connection = Some(opened?);
        client.number = number;
        self.conns.numbers.insert(number, name.to_owned());
        let url = crate::wire::shown(&endpoint.url).into();
        self.record(name, Direction::Send, Payload::Open { url });
        Ok(())
    }

    /// Where a session's clients connect to. A new session is set up first, where the target says how.
    async fn endpoint_of(&mut self, session: &str) -> Result<Endpoint, ConnectError> {
        let Some(instance) = self.cx.server.instance.clone() else {
            return Ok(self.cx.server.endpoint.clone());
        };
        let cannot = |reason: String| ConnectError::BadUrl { url: instance.shown_url(), reason };
        let join = self.cx.protocol.extension.session.join.clone();
        if matches!(join, Join::Connection) || !self.conns.sessions.vars.contains_key(session) {
            let found = instance.new_session().await.map_err(|error| cannot(error.to_string()))?;
            if let Join::Parameter(parameter) = &join
                && let Some(id) = found.get(parameter)
            {
                self.conns.sessions.ids.insert(session.to_owned(), Some(id.clone()));
            }
            self.conns.sessions.vars.insert(session.to_owned(), found);
        }
        let vars = self.conns.sessions.vars.get(session).cloned().unwrap_or_default();
        session_endpoint(&self.cx.protocol, &self.cx.server.endpoint, &instance, &vars)
            .map_err(|error| cannot(error.to_string()))
    }

    fn session_id(&mut self) -> String {
        let scope = Scope { cx: self.cx, conns: &self.conns, client: &self.step.client };
        self.vars.session_id(&scope)
    }

    /// Whether the server offers what the case needs. Judged once, by the messages of the first opening.
    pub(crate) fn check_capabilities(&mut self, client: &str) -> Result<(), Abort> {
        if self.conns.first_client.as_deref() != Some(client) {
            return Ok(());
        }
        self.capabilities.missing(self.cx).map_or(Ok(()), |reason| Err(Abort::NotApplicable(reason)))
    }
}
