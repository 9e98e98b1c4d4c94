//! Opening a client's connection, in the session that it belongs to.

use serde_json::Value;

use crate::protocol::OFFER;
use crate::protocol::extension::Join;
use crate::run::address::session_endpoint;
use crate::run::case::interpreter::{Abort, Interpreter};
use crate::run::case::variables::Scope;
use crate::scenario::case::Upgrade;
use crate::trace::Payload;
use crate::wire::{ConnectError, Endpoint, LinkMode};

impl Interpreter<'_> {
    /// Connects a client. The opening exchange is another matter. After a refusal the client is there all the
    /// same, with its connection ended. Returns the sub-protocols that were offered, as the header has them.
    pub async fn connect(
        &mut self,
        name: &str,
        session: Option<&str>,
        with: Option<&Value>,
        defaults: &[(String, String)],
        upgrade: &Upgrade,
    ) -> Result<Option<String>, ConnectError> {
        let known = self.conns.get(name).map(|client| client.session().to_owned());
        let session = session.map(str::to_owned).or(known).unwrap_or_else(|| "main".to_owned());
        let mut endpoint = self.endpoint_of(&session).await?;
        if let Join::Parameter(parameter) = &self.cx.protocol.extension.session.join {
            let named = with.and_then(|with| with.get(parameter)).and_then(Value::as_str).map(str::to_owned);
            let known = self.conns.sessions.id(&session);
            let id = named.or(known).unwrap_or_else(|| self.session_id());
            endpoint.url = endpoint.url.replace(&format!("{{{parameter}}}"), &id);
            self.conns.sessions.set_id(&session, id);
        }
        let endpoint = altered(endpoint.with_defaults(defaults), upgrade);
        let is_raw = self.cx.loaded.case.steps.iter().any(|step| step.is_raw());
        let mode = if is_raw { LinkMode::Raw } else { LinkMode::Messages };
        let connected = self.conns.connect(name, session, &endpoint, mode).await;
        let is_unanswered = matches!(connected, Err(ConnectError::Unanswered(_)));
        if connected.is_ok() || is_unanswered {
            self.cx.run.activity.note_upgrade(!is_unanswered);
        }
        connected?;
        let url = crate::wire::shown(&endpoint.url).into();
        self.record(name, Payload::Open { url });
        Ok(endpoint.header(OFFER).map(str::to_owned))
    }

    /// Where a session's clients connect to. A new session is set up first, where the target says how.
    async fn endpoint_of(&mut self, session: &str) -> Result<Endpoint, ConnectError> {
        let Some(instance) = self.cx.server.instance.clone() else {
            return Ok(self.cx.server.endpoint.clone());
        };
        let cannot = |reason: String| ConnectError::BadUrl { url: instance.shown_url(), reason };
        let join = self.cx.protocol.extension.session.join.clone();
        if matches!(join, Join::Connection) || self.conns.sessions.vars(session).is_none() {
            let found = instance.new_session().await.map_err(|error| cannot(error.to_string()))?;
            if let Join::Parameter(parameter) = &join
                && let Some(id) = found.get(parameter)
            {
                self.conns.sessions.set_id(session, id.clone());
            }
            self.conns.sessions.set_vars(session, found);
        }
        let vars = self.conns.sessions.vars(session).cloned().unwrap_or_default();
        session_endpoint(&self.cx.protocol, &self.cx.server.endpoint, &instance, &vars)
            .map_err(|error| cannot(error.to_string()))
    }

    fn session_id(&mut self) -> String {
        let scope = Scope { cx: self.cx, conns: &self.conns, client: &self.step.client };
        self.vars.uuid(&scope)
    }

    /// Whether the server offers what the case needs. Judged once, by the messages of the first opening.
    pub(crate) fn check_capabilities(&mut self, client: &str) -> Result<(), Abort> {
        if self.conns.first() != Some(client) {
            return Ok(());
        }
        self.capabilities.missing(self.cx).map_or(Ok(()), |reason| Err(Abort::NotApplicable(reason)))
    }
}

/// An endpoint with what an `open` says of the upgrade.
pub(crate) fn altered(endpoint: Endpoint, upgrade: &Upgrade) -> Endpoint {
    let offer = upgrade.protocols.as_ref().map(|names| {
        let names = (!names.is_empty()).then(|| names.join(", "));
        (OFFER, names)
    });
    let headers = upgrade.headers.iter().map(|(name, value)| (name.as_str(), value.clone()));
    headers.chain(offer).fold(endpoint, |endpoint, (name, value)| endpoint.with_header(name, value))
}
