//! One connection: its session, its commands.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::command::{Refusal, check, refuse};
use super::faults::Defect;
use super::session::{Session, text};
use super::styles::Style;
use super::turn;
use super::{Behaviour, Service};
use crate::reference::engine::Happening;
use crate::reference::engine::clients::{self, Outbox};
use crate::reference::{ConnectionHandler, Socket};

impl ConnectionHandler for Service {
    fn serve<'d>(&'d self, socket: Socket, path: String) -> BoxFuture<'d, ()> {
        Box::pin(self.connection(socket, path))
    }

    fn instead_of_upgrade(&self, path: &str, _origin: Option<&str>) -> Option<&'static str> {
        let id = path.strip_prefix("/ws/").unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let unknown = id.len() > 36 && self.has(Defect::LongSessionsNotFound)
            || !id.chars().all(is_plain) && self.has(Defect::OddSessionsNotFound)
            || id.chars().any(char::is_uppercase) && self.has(Defect::CapitalSessionsNotFound);
        unknown.then_some("404 Not Found")
    }
}

impl Service {
    async fn connection(&self, socket: Socket, path: String) {
        let (sink, mut stream) = socket.split();
        let (outbox, outgoing) = clients::channel();
        let mut peer = Peer {
            service: self,
            own: self.behaviour.of_session(),
            outbox: outbox.clone(),
            joined: None,
            gave_role: false,
        };
        peer.join(&path);
        let writer = tokio::spawn(outgoing.write_to(sink));
        while let Some(Ok(message)) = stream.next().await {
            match message {
                Message::Text(text) => peer.command(text.as_bytes()),
                Message::Binary(bytes) => peer.command(&bytes),
                Message::Close(_) => break,
                _ => {}
            }
        }
        peer.leave();
        drop(peer);
        drop(outbox);
        writer.abort();
    }
}

struct Peer<'s> {
    service: &'s Service,
    /// Asked before it is in a session.
    own: Behaviour,
    outbox: Outbox,
    joined: Option<(Arc<Session>, u64)>,
    /// A user_message had a role.
    gave_role: bool,
}

impl Peer<'_> {
    /// That of its session.
    fn behaviour(&self) -> &Behaviour {
        self.joined.as_ref().map_or(&self.own, |(session, _)| &session.behaviour)
    }

    fn has(&self, defect: Defect) -> bool {
        self.behaviour().strikes(defect)
    }

    #[allow(dead_code, reason = "a style is asked for where it matters, and that may be elsewhere")]
    fn style(&self, style: Style) -> bool {
        self.behaviour().style(style)
    }

    /// Enters the session that the path names. Two ids stand for sessions that nobody may enter.
    fn join(&mut self, path: &str) {
        let path = path.split('?').next().unwrap_or_default();
        let given = path.strip_prefix("/ws/").unwrap_or_default();
        let mut folded = given.to_owned();
        self.own.mutate(&mut folded, |defect, id| match (defect, id.rfind('.')) {
            (Defect::SessionIdsInAnyCase, _) => id.make_ascii_lowercase(),
            (Defect::SessionIdsLoseZeros, _) => *id = id.trim_start_matches('0').to_owned(),
            (Defect::SessionIdsEndAtADot, Some(dot)) => id.truncate(dot),
            _ => {}
        });
        let id = folded.as_str();
        let barred = match id {
            "expired" if !self.has(Defect::ExpiredIsFine) => Some("SESSION_EXPIRED"),
            "unauthorized" if !self.has(Defect::UnauthorizedIsFine) => Some("UNAUTHORIZED"),
            _ => None,
        };
        let nameless = id.is_empty() && !self.has(Defect::NamelessSession);
        if nameless && self.style(Style::NamelessTold) {
            self.outbox.send(text(&self.error(&refuse("UNAUTHORIZED", "no session id"))));
            return;
        }
        if let Some(code) = barred.filter(|_| !self.style(Style::ShutsQuietly)) {
            self.outbox.send(text(&self.error(&refuse(code, "no entry"))));
        }
        if barred.is_some() || nameless {
            self.outbox.send(Message::Close(None));
            return;
        }
        let session = self.service.session(id);
        let client = session.join(&self.outbox);
        self.joined = Some((session, client));
    }

    fn leave(&mut self) {
        let Some((session, client)) = self.joined.take() else { return };
        let mut inner = session.lock();
        inner.clients.remove(&client);
        inner.abandoned |= inner.busy && inner.clients.is_empty() && self.style(Style::TurnsEndWithClient);
        drop(inner);
        session.behaviour.note(Happening::Left);
        session.changed.notify_waiters();
    }

    fn error(&self, refusal: &Refusal) -> Value {
        let code = match refusal.code {
            "INVALID_CALL_ID" if self.has(Defect::WrongCode) => "TOOL_NOT_FOUND",
            code => code,
        };
        let content = format!("{code}: {}", refusal.message);
        if self.behaviour().strikes(Defect::ErrorUnderAnotherType) {
            json!({ "type": "failure", "content": content })
        } else if self.behaviour().strikes(Defect::ErrorWithoutContent) {
            json!({ "type": "error", "message": content })
        } else if self.behaviour().strikes(Defect::ErrorContentInAnObject) {
            json!({ "type": "error", "content": { "text": content } })
        } else if self.behaviour().strikes(Defect::UnlistedCode) {
            json!({ "type": "error", "content": content, "code": "E42" })
        } else {
            super::variants::error(self.behaviour(), code, &refusal.message)
        }
    }

    fn refuse(&self, refusal: &Refusal) {
        let error = text(&self.error(refusal));
        let session = self.joined.as_ref().map(|(session, _)| session.lock());
        match session.filter(|inner| inner.is_streaming() && self.has(Defect::ErrorsWaitForTheEnd)) {
            Some(mut inner) => inner.late_errors.push((self.outbox.clone(), error)),
            None => {
                self.outbox.send(error);
            }
        }
        self.behaviour().note(Happening::Error);
        if refusal.code == "INVALID_TYPE"
            && let Some((session, _)) = &self.joined
        {
            let mut inner = session.lock();
            if inner.busy && self.has(Defect::ErrorEndsTurn) {
                inner.abandoned = true;
                session.changed.notify_waiters();
            }
        }
    }

    fn command(&mut self, bytes: &[u8]) {
        let Some((session, _)) = self.joined.clone() else { return };
        session.behaviour.message(bytes);
        let (streams, has_results) = {
            let inner = session.lock();
            (inner.is_streaming(), !inner.calls.is_empty())
        };
        if streams
            && (self.has(Defect::DeafWhileStreaming) || has_results && self.has(Defect::DeafAfterResults))
        {
            return;
        }
        let body = match serde_json::from_slice::<Value>(bytes) {
            Ok(Value::Object(body)) => body,
            Ok(Value::Array(elements)) if self.has(Defect::ListsAreBatches) => {
                elements.iter().for_each(|element| self.command(element.to_string().as_bytes()));
                return;
            }
            Ok(other) => {
                let ignored = self.has(Defect::NonObjectsAreIgnored)
                    || other.is_null() && self.has(Defect::NullIsIgnored);
                if !ignored {
                    self.refuse(&refuse("INVALID_FORMAT", "not a JSON object"));
                }
                return;
            }
            Err(error) => {
                if let Some(first) = first_object(bytes)
                    && self.has(Defect::TrailingTextIsPassedOver)
                {
                    return self.command(first.to_string().as_bytes());
                }
                let ignored = self.has(Defect::BrokenJsonIsIgnored)
                    || error.is_eof() && self.has(Defect::CutJsonIsIgnored)
                    || bytes.is_empty() && self.has(Defect::EmptyTextIsIgnored);
                if !ignored {
                    self.refuse(&refuse("INVALID_FORMAT", error.to_string()));
                }
                if self.has(Defect::ClosesOnBrokenJson) {
                    self.outbox.send(Message::Close(None));
                }
                return;
            }
        };
        if body.get("type").is_some_and(|kind| !kind.is_string() && !kind.is_null())
            && self.has(Defect::ClosesOnOddType)
        {
            self.outbox.send(Message::Close(None));
            return;
        }
        if !body.contains_key("type")
            && let Some(said) = body.get("content").and_then(Value::as_str)
            && self.has(Defect::MissingTypeIsText)
        {
            turn::begin(&session, &mut session.lock(), said);
            return;
        }
        let ignored = match body.get("type").map(|kind| kind.as_str().unwrap_or_default()) {
            None => self.has(Defect::MissingTypeIsIgnored),
            Some("") => false,
            Some("assistant_message" | "tool_call" | "error" | "agent_switched") => {
                self.has(Defect::ServerTypesAreIgnored)
            }
            Some("user_message" | "tool_result" | "hitl_decision" | "switch_agent") => false,
            Some(_) => self.has(Defect::UnknownTypesAreIgnored),
        };
        if ignored {
            return;
        }
        if !body.contains_key("type") && body.contains_key("decision") && self.has(Defect::MissingTypeDecides)
        {
            if let Err(refusal) = session.decide(&body) {
                self.refuse(&refusal);
            }
            return;
        }
        let done = check(&body, self.behaviour()).and_then(|kind| self.perform(&session, kind, &body));
        if let Err(refusal) = done {
            self.refuse(&refusal);
            self.obey_refused(&session, &body);
        }
    }

    /// What defects make of a message that is refused.
    fn obey_refused(&self, session: &Arc<Session>, body: &Map<String, Value>) {
        match body.get("type").map(|kind| kind.as_str().unwrap_or_default()) {
            None => {
                if let Some(said) = body.get("content").and_then(Value::as_str)
                    && self.has(Defect::MissingTypeIsObeyed)
                {
                    turn::begin(session, &mut session.lock(), said);
                }
            }
            Some("tool_result") => session.obey_refused_result(body),
            Some(_) => {}
        }
    }

    fn perform(
        &mut self,
        session: &Arc<Session>,
        kind: &str,
        body: &Map<String, Value>,
    ) -> Result<(), Refusal> {
        let said = body.get("content").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "user_message" if self.style(Style::RefusesWhileBusy) && session.lock().busy => {
                Err(refuse("INVALID_FORMAT", "a response is under way"))
            }
            "user_message" => {
                let has_role = body.contains_key("role");
                let gave_role = self.gave_role;
                self.gave_role |= has_role;
                if gave_role && !has_role && self.has(Defect::RoleStaysRequired) {
                    return Err(refuse("MISSING_FIELD", "role is missing"));
                }
                let ignored = said.starts_with('/') && self.has(Defect::IgnoresSlashes)
                    || said.len() > 20_000 && self.has(Defect::IgnoresLongText)
                    || !has_role && self.has(Defect::RolelessIsContext);
                if !ignored {
                    turn::begin(session, &mut session.lock(), said);
                }
                Ok(())
            }
            "tool_result"
                if self.joined.as_ref().is_some_and(|(_, client)| *client > 1)
                    && session.opens(body)
                    && self.has(Defect::ResultsOfTheFirstClient) =>
            {
                Ok(())
            }
            "tool_result" => session.result(body),
            "hitl_decision" => session.decide(body),
            _ => {
                if self.has(Defect::SwitchingCloses) {
                    self.outbox.send(Message::Close(None));
                    return Ok(());
                }
                let agent = body.get("agent_type").and_then(Value::as_str).unwrap_or_default();
                let mut inner = session.lock();
                session.switched(&mut inner, agent, "asked for by the user");
                turn::begin(session, &mut inner, said);
                Ok(())
            }
        }
    }
}

/// The object with which a text begins that is no JSON as a whole.
fn first_object(bytes: &[u8]) -> Option<Value> {
    let first = serde_json::Deserializer::from_slice(bytes).into_iter().next()?.ok();
    first.filter(Value::is_object)
}
