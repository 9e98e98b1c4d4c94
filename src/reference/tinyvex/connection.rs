//! One connection: its requests, carried out in the order in which they come.

use std::cell::Cell;
use std::sync::{Arc, PoisonError};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::agent::Player;
use super::faults::Defect;
use super::rpc::{
    INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE, Params, Refusal, Request, invalid, prompt_text,
    read, refuse, response,
};
use super::styles::Style;
use super::{Behaviour, Core, Running, Service};
use crate::reference::engine::Canceller;
use crate::reference::engine::Happening;
use crate::reference::engine::clients::{self, Outbox};
use crate::reference::{ConnectionHandler, Socket};

/// What becomes of a request.
pub(super) enum Answer {
    Now(Value),
    /// It has been answered, is answered by somebody else, or not at all.
    Elsewhere,
}

impl ConnectionHandler for Service {
    fn serve<'d>(&'d self, socket: Socket, _path: String) -> BoxFuture<'d, ()> {
        Box::pin(self.connection(socket))
    }

    fn restarted(&self) -> Option<Arc<dyn ConnectionHandler>> {
        self.players.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        Some(Arc::new(Self::on(self.behaviour.clone(), self.spelling, self.data.clone())))
    }
}

impl Service {
    async fn connection(&self, socket: Socket) {
        let Some(core) = &self.core else { return };
        let (sink, mut stream) = socket.split();
        let (outbox, outgoing) = clients::channel();
        let client = {
            let mut state = core.lock();
            state.next_client += 1;
            let client = state.next_client;
            state.streams.clients.insert(client, outbox.clone());
            core.behaviour.note(Happening::Joined);
            client
        };
        let writer = tokio::spawn(outgoing.write_to(sink));
        // Also when this future is dropped: the server is stopped, or the client is gone.
        let _guard = Leaving { core, client, writer };
        let behaviour = core.behaviour.of_session();
        let peer = Peer {
            service: self,
            core,
            behaviour,
            client,
            outbox,
            pings: Cell::new(0),
            slow: Arc::default(),
        };
        while let Some(message) = stream.next().await {
            match message {
                Ok(Message::Text(text)) => peer.frame(text.as_bytes()),
                Ok(Message::Binary(bytes)) => peer.frame(&bytes),
                Ok(Message::Close(_)) | Err(_) => break,
                Ok(_) => {}
            }
        }
    }
}

/// Cleans up behind a connection.
struct Leaving<'s> {
    core: &'s Core,
    client: u64,
    writer: tokio::task::JoinHandle<()>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let mut state = self.core.lock();
        state.streams.leave(self.client);
        self.core.behaviour.note(Happening::Left);
        state.newest.remove(&self.client);
        self.writer.abort();
    }
}

pub(super) struct Peer<'s> {
    service: &'s Service,
    pub core: &'s Arc<Core>,
    pub behaviour: Behaviour,
    pub client: u64,
    pub outbox: Outbox,
    /// How many pings have been answered.
    pings: Cell<u32>,
    /// Taken by one slow mutation at a time.
    pub slow: Arc<tokio::sync::Mutex<()>>,
}

impl Peer<'_> {
    /// Tells of it the connection, and what all connections share.
    fn note(&self, happening: Happening) {
        self.behaviour.note(happening);
        self.core.behaviour.note(happening);
    }

    pub fn has(&self, defect: Defect) -> bool {
        self.behaviour.strikes(defect)
    }

    pub fn style(&self, style: Style) -> bool {
        self.behaviour.style(style)
    }

    fn send(&self, frame: &Value) {
        let text = frame.to_string();
        let message =
            if self.has(Defect::BinaryFrames) { Message::binary(text) } else { Message::text(text) };
        self.outbox.send(message);
    }

    /// Answers a request; a notification is not answered.
    pub fn answer(&self, id: Option<&Value>, answer: &Result<Value, Refusal>) {
        let Some(id) = id else { return };
        let code = answer.as_ref().err().map(|refusal| refusal.code);
        if code.is_some() {
            self.note(Happening::Error);
        }
        if code == Some(PARSE) && self.has(Defect::IgnoresBrokenJson) {
            return;
        }
        if code == Some(INVALID_REQUEST) && !id.is_null() && self.has(Defect::IgnoresBadRequests) {
            return;
        }
        let frame = response(id, answer, &self.behaviour);
        self.send(&frame);
        if self.has(Defect::AnswersTwice) {
            self.send(&frame);
        }
        self.pings.set(self.pings.get() + u32::from(frame["result"].get("t").is_some()));
        let mut closes = self.style(Style::BrokenJsonCloses) && code == Some(PARSE);
        self.behaviour.mutate(&mut closes, |defect, closes| {
            *closes |= defect == Defect::ClosesAfterTenPings && self.pings.get() == 10;
        });
        if closes {
            self.outbox.send(Message::Close(None));
        }
    }

    fn frame(&self, bytes: &[u8]) {
        self.behaviour.message(bytes);
        self.core.behaviour.message(bytes);
        let request = match read(bytes, &self.behaviour) {
            Ok(request) => request,
            Err(bad) => {
                let (id, refusal) = *bad;
                return self.answer(Some(&id), &Err(refusal));
            }
        };
        match self.perform(&request) {
            Ok(Answer::Now(result)) => self.answer(request.id.as_ref(), &Ok(result)),
            Ok(Answer::Elsewhere) => {}
            Err(refusal) => {
                if self.has(Defect::ErrorsEndSubscriptions) {
                    self.core.lock().streams.forget(self.client, false);
                }
                self.answer(request.id.as_ref(), &Err(refusal));
            }
        }
        if request.id.is_none() && self.has(Defect::AnswersNotifications) {
            self.send(&json!({ "jsonrpc": "2.0", "id": null, "result": {} }));
        }
    }

    fn perform(&self, request: &Request) -> Result<Answer, Refusal> {
        let none = Map::new();
        let params = match &request.params {
            None => &none,
            Some(Value::Object(params)) => params,
            Some(_) if self.has(Defect::PositionalParams) => &none,
            Some(_) => return Err(invalid(&[])),
        };
        let params = self.core.spelling.params(&request.method, params);
        let params = Params(&params);
        let id = request.id.as_ref();
        match request.method.as_str() {
            "initialize" => self.initialize(&params),
            "session/new" => self.new_session(id, &params),
            "session/prompt" => self.prompt(id.cloned(), &params),
            "session/cancel" => self.cancel(&params),
            "tinyvex/connect" => self.connect(&params),
            "tinyvex/subscribe" => self.subscribe(id, &params),
            "tinyvex/unsubscribe" => self.unsubscribe(&params),
            "tinyvex/mutation" => self.mutation(id, &params),
            "tinyvex/action" => self.action(&params),
            "tinyvex/auth.setToken" => self.set_token(&params),
            "tinyvex/ping" => self.ping(id.is_some(), &params),
            method if method.starts_with("tinyvex/") && self.has(Defect::UnknownMethodsAreFine) => {
                Ok(Answer::Now(Value::Null))
            }
            method => Err(refuse(METHOD_NOT_FOUND, format!("Method not found: {method}"))),
        }
    }

    // ---- ACP ----------------------------------------------------------------------------------------------------

    fn initialize(&self, params: &Params<'_>) -> Result<Answer, Refusal> {
        let wanted =
            params.get("protocolVersion").and_then(Value::as_u64).filter(|version| *version <= 65535);
        let wanted = match wanted {
            Some(wanted) => wanted,
            None if self.has(Defect::AnyInitialize) => 1,
            None => return Err(invalid(&["protocolVersion"])),
        };
        let version = if self.has(Defect::EchoesProtocolVersion) { wanted } else { 1 };
        let mut result = json!({
            "protocolVersion": version,
            "agentCapabilities": {
                "loadSession": false,
                "promptCapabilities": { "image": false, "audio": false, "embeddedContext": true },
                "mcpCapabilities": { "http": false, "sse": false },
            },
            "authMethods": [],
            "agentInfo": { "name": "frameproof", "title": "frameproof reference server", "version": env!("CARGO_PKG_VERSION") },
        });
        if self.behaviour.strikes(Defect::AuthMethodsAreNames) {
            result["authMethods"] = json!(["local"])
        } else if self.behaviour.strikes(Defect::ProtocolVersionAsText) {
            result["protocolVersion"] = json!("0.7.0")
        }
        Ok(Answer::Now(self.core.spelling.result(result)))
    }

    fn new_session(&self, id: Option<&Value>, params: &Params<'_>) -> Result<Answer, Refusal> {
        if self.has(Defect::PrefixedSessions) {
            return Err(refuse(METHOD_NOT_FOUND, "Method not found: use tinyvex/session.new"));
        }
        params.text("cwd")?;
        let servers = params.given("mcpServers")?.as_array().ok_or_else(|| invalid(&["mcpServers"]))?;
        if servers.is_empty() && self.has(Defect::NeedsMcpServers) {
            return Err(invalid(&["mcpServers"]));
        }
        let mut state = self.core.lock();
        let session = match state.newest.get(&self.client) {
            Some(newest) if self.has(Defect::SessionIdsRepeat) => newest.clone(),
            _ => format!("sess-{}", uuid::Uuid::new_v4()),
        };
        state.store.add_session(&session)?;
        state.newest.insert(self.client, session.clone());
        let mut result = json!({ "sessionId": session, "modes": { "currentModeId": "code", "availableModes": [{ "id": "code", "name": "Code" }] } });
        if self.has(Defect::WrapsSessions) {
            result = json!({ "data": result });
        }
        self.answer(id, &Ok(self.core.spelling.result(result)));
        let commands =
            json!([{ "name": "plan", "description": "Make a plan", "input": { "hint": "what for" } }]);
        let commands = json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
        let field = if self.has(Defect::ModeHasNoId) { "mode" } else { "currentModeId" };
        let mut mode = json!({ "sessionUpdate": "current_mode_update" });
        mode[field] = json!("code");
        if self.style(Style::NoPlans) {
            return Ok(Answer::Elsewhere);
        }
        for update in [commands, mode] {
            let params = json!({ "session_id": session, "update": self.core.spelling.update(update) });
            state.streams.notify(self.client, "session/update", params);
        }
        Ok(Answer::Elsewhere)
    }

    fn prompt(&self, id: Option<Value>, params: &Params<'_>) -> Result<Answer, Refusal> {
        let session = params.get("sessionId").or_else(|| params.get("session_id"));
        let mut state = self.core.lock();
        let session = match session.and_then(Value::as_str) {
            Some(session) => session.to_owned(),
            None if self.has(Defect::PromptsTheNewestSession) => {
                state.newest.get(&self.client).cloned().unwrap_or_default()
            }
            None => return Err(invalid(&["sessionId"])),
        };
        let text = prompt_text(params, &self.behaviour)?;
        if !state.store.has_session(&session) {
            if !self.has(Defect::PromptsUnknownSessions) {
                let code = if self.style(Style::NotFound) { -32002 } else { INVALID_PARAMS };
                return Err(refuse(code, format!("no session {session:?}")));
            }
            state.store.add_session(&session)?;
        }
        if state.running.contains_key(&session) {
            return Err(refuse(INVALID_REQUEST, "a prompt is running"));
        }
        let cancel = Canceller::default();
        let cancelled = cancel.listen();
        state.running.insert(session.clone(), Running { client: self.client, cancel });
        self.note(Happening::Turn);
        drop(state);
        let core = Arc::clone(self.core);
        let player = Player {
            core,
            behaviour: self.behaviour.clone(),
            session,
            client: self.client,
            id,
            cancelled,
            unsaved: Vec::new(),
        };
        self.service.play(player, text);
        Ok(Answer::Elsewhere)
    }

    fn cancel(&self, params: &Params<'_>) -> Result<Answer, Refusal> {
        let session = match params.get("session_id") {
            Some(printed) if !self.has(Defect::CancelIsSpeltAsInAcp) => Some(printed),
            _ => params.get("sessionId"),
        };
        let session = session.and_then(Value::as_str).ok_or_else(|| invalid(&["session_id"]))?;
        let mut state = self.core.lock();
        if state.running.contains_key(session) {
            self.note(Happening::Abort);
        }
        if self.behaviour.strikes(Defect::IgnoresCancel) {
        } else if self.behaviour.strikes(Defect::CancelsEverything) {
            let own = state.running.values().filter(|prompt| prompt.client == self.client);
            own.for_each(|prompt| prompt.cancel.cancel());
        } else if self.behaviour.strikes(Defect::CancelEndsSession) {
            if let Some(prompt) = state.running.get(session) {
                prompt.cancel.cancel();
                state.store.remove_session(session)?;
            }
        } else {
            if let Some(prompt) = state.running.get(session) {
                prompt.cancel.cancel();
            }
        }
        Ok(Answer::Now(json!({})))
    }
}
