//! One connection: its requests, carried out in the order in which they come.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::agent::Player;
use super::faults::Defect;
use super::past::{Past, another};
use super::rpc::{
    INTERNAL, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE, Params, Refusal, Request, invalid,
    prompt_text, read, refuse, response,
};
use super::styles::Style;
use super::{Behaviour, Core, Running, Service, State};
use crate::reference::engine::Canceller;
use crate::reference::engine::Happening;
use crate::reference::engine::clients::{self, Outbox};
use crate::reference::faults::mutate::resembles;
use crate::reference::{ConnectionHandler, Socket};

/// How often the values of subscriptions come again, under a style.
const AGAIN: Duration = Duration::from_millis(100);

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
        if self.core.as_ref().is_some_and(|core| core.lock().store.has_held()) {
            self.behaviour.took_effect();
        }
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
            past: Past::default(),
            slow: Arc::default(),
        };
        let mut clock = tokio::time::interval(AGAIN);
        loop {
            let message = tokio::select! {
                message = stream.next() => message,
                _ = clock.tick(), if core.behaviour.style(Style::ValuesAgain) => {
                    let mut state = core.lock();
                    let State { store, streams, .. } = &mut *state;
                    let _ = streams.repeat_values(store, client);
                    continue;
                }
            };
            let Some(message) = message else { break };
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
        let made = state.newest.remove(&self.client);
        let prompt = made.and_then(|session| state.running.get(&session));
        if let Some(prompt) = prompt.filter(|prompt| prompt.client != self.client)
            && self.core.behaviour.style(Style::LeavingCancels)
        {
            prompt.cancel.cancel();
        }
        self.writer.abort();
    }
}

pub(super) struct Peer<'s> {
    service: &'s Service,
    pub core: &'s Arc<Core>,
    pub behaviour: Behaviour,
    pub client: u64,
    pub outbox: Outbox,
    pub past: Past,
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

    /// Sends a message some time later.
    pub fn send_later(&self, frame: &Value, time: Duration) {
        let (outbox, message) = (self.outbox.clone(), Message::text(frame.to_string()));
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            outbox.send(message);
        });
    }

    pub fn send(&self, frame: &Value) {
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
        if code == Some(PARSE) {
            let is_first = another(&self.past.counts.rubbish) == 0;
            if self.has(Defect::IgnoresBrokenJson) || (!is_first && self.has(Defect::ParseErrorsComeOnce)) {
                return;
            }
        }
        if code == Some(INVALID_REQUEST) && !id.is_null() && self.has(Defect::IgnoresBadRequests) {
            return;
        }
        let frame = response(id, answer, &self.behaviour);
        self.send(&frame);
        if self.has(Defect::AnswersTwice) {
            self.send(&frame);
        }
        if frame["result"].get("t").is_some() {
            another(&self.past.counts.pings);
        }
        let mut closes = self.style(Style::BrokenJsonCloses) && code == Some(PARSE);
        self.behaviour.mutate(&mut closes, |defect, closes| {
            *closes |= defect == Defect::ClosesAfterTenPings && self.past.counts.pings.get() == 10;
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
                if bytes == b"null" && self.has(Defect::NullIsIgnored) {
                    return;
                }
                let streams = &mut self.core.lock().streams;
                if refusal.code == PARSE
                    && streams.has_client(self.client)
                    && self.has(Defect::ParseErrorsEndSubscriptions)
                {
                    streams.forget(self.client, false);
                }
                return self.answer(Some(&id), &Err(refusal));
            }
        };
        if request.id.is_some() {
            self.past.newest_id.set(request.id.clone());
        }
        if request.method != "tinyvex/ping" {
            self.past.counts.pings.set(0);
        }
        match self.perform(&request) {
            Ok(Answer::Now(result)) => self.answer(request.id.as_ref(), &Ok(result)),
            Ok(Answer::Elsewhere) => {}
            Err(refusal) => {
                if self.has(Defect::ErrorsEndSubscriptions) {
                    self.core.lock().streams.forget(self.client, false);
                }
                for prompt in self.core.lock().running.values().filter(|prompt| prompt.client == self.client)
                {
                    if self.has(Defect::ErrorsEndPrompts) {
                        prompt.cancel.cancel();
                    }
                }
                if request.id.is_none() && self.has(Defect::FailuresAreAnswered) {
                    return self.answer(Some(&Value::Null), &Err(refusal));
                }
                self.answer(request.id.as_ref(), &Err(refusal));
            }
        }
        if request.id.is_none()
            && request.method == "tinyvex/unsubscribe"
            && self.has(Defect::UnsubscribeIsAnsweredLate)
        {
            let answer = json!({ "jsonrpc": "2.0", "id": null, "result": { "ok": true } });
            self.send_later(&answer, Duration::from_millis(150));
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
            Some(Value::Array(list)) if list.is_empty() && self.has(Defect::EmptyListsAreObjects) => &none,
            Some(Value::Number(_) | Value::Bool(_)) if self.has(Defect::ScalarParamsAreAbsent) => &none,
            Some(_) => return Err(invalid(&[])),
        };
        let params = self.core.spelling.params(&request.method, params);
        let params = Params(&params);
        let id = request.id.as_ref();
        let method = request.method.as_str();
        match method {
            _ if resembles(method, "session/cancel") && self.has(Defect::CancelInAnyCase) => {
                self.cancel(&params)
            }
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
            "tinyvex/ping" => self.ping(id, &params),
            method if method.starts_with("tinyvex/") && self.has(Defect::UnknownMethodsAreFine) => {
                Ok(Answer::Now(Value::Null))
            }
            method if method.starts_with("session/") && self.has(Defect::UnknownSessionMethodsAreFine) => {
                Ok(Answer::Now(json!({ "ok": true })))
            }
            method if !method.contains('/') && self.has(Defect::BareMethodsAreInvalid) => {
                Err(refuse(INVALID_REQUEST, "Invalid Request"))
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
        let is_first = another(&self.past.counts.initializes) == 0;
        let echoes = self.has(Defect::EchoesProtocolVersion)
            || (!is_first && wanted != 1 && self.has(Defect::EchoesLater));
        let version = if echoes { wanted } else { 1 };
        let version = if wanted != 1 && self.has(Defect::OtherVersionsAreZero) { 0 } else { version };
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
        } else if self.behaviour.strikes(Defect::AuthMethodsHaveNoId) {
            result["authMethods"] = json!([{ "name": "Local" }])
        } else if self.behaviour.strikes(Defect::ProtocolVersionAsText) {
            result["protocolVersion"] = json!("0.7.0")
        }
        if !is_first && self.has(Defect::WrapsLaterInitializes) {
            result = json!({ "response": result });
        }
        Ok(Answer::Now(self.core.spelling.result(result)))
    }

    fn new_session(&self, id: Option<&Value>, params: &Params<'_>) -> Result<Answer, Refusal> {
        if self.has(Defect::PrefixedSessions) {
            return Err(refuse(METHOD_NOT_FOUND, "Method not found: use tinyvex/session.new"));
        }
        let is_first = another(&self.past.counts.sessions) == 0;
        let is_late = self.past.counts.prompts.get() > 0;
        if (!is_first && self.has(Defect::LaterSessionsArePrefixed))
            || (is_late && self.has(Defect::PromptsPrefixSessions))
        {
            return Err(refuse(METHOD_NOT_FOUND, "Method not found: use tinyvex/session.new"));
        }
        match params.text("cwd") {
            Err(_) if params.get("cwd").is_some() && self.has(Defect::AnyFolder) => {}
            folder => drop(folder?),
        }
        let servers = params.given("mcpServers")?;
        match servers.as_array() {
            Some(servers) if servers.is_empty() && self.has(Defect::NeedsMcpServers) => {
                return Err(invalid(&["mcpServers"]));
            }
            None if !self.has(Defect::AnyServers) => return Err(invalid(&["mcpServers"])),
            _ => {}
        }
        let mut state = self.core.lock();
        if state.streams.has_client(self.client) && self.has(Defect::StreamsExcludeSessions) {
            return Err(refuse(METHOD_NOT_FOUND, "Method not found: this connection has streams"));
        }
        let unused = self.past.unused.borrow().clone();
        let cancelled = self.past.cancelled.take();
        let session = match (state.newest.get(&self.client), unused, cancelled) {
            (Some(newest), _, _) if self.has(Defect::SessionIdsRepeat) => newest.clone(),
            (_, Some(unused), _) if self.has(Defect::UnusedSessionsAreReused) => unused,
            (_, _, Some(cancelled)) if self.has(Defect::CancelledSessionsAreReused) => cancelled,
            _ => format!("sess-{}", uuid::Uuid::new_v4()),
        };
        self.past.unused.replace(Some(session.clone()));
        state.store.add_session(&session)?;
        state.newest.insert(self.client, session.clone());
        let mut result = json!({ "sessionId": session, "modes": { "currentModeId": "code", "availableModes": [{ "id": "code", "name": "Code" }] } });
        if self.has(Defect::WrapsSessions) {
            result = json!({ "data": result });
        } else if !is_first && self.has(Defect::WrapsLaterSessions) {
            result = json!({ "response": result });
        } else if !is_first && self.has(Defect::LaterSessionsHaveId) {
            result = json!({ "id": session });
        }
        let result = Ok(self.core.spelling.result(result));
        if id.is_some() && self.behaviour.prepares(Defect::SessionsTakeTheNewestId) {
            self.answer_as_the_newest(id, result);
        } else {
            self.answer(id, &result);
        }
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

    /// Answers some time later, with the id that the newest request has then.
    fn answer_as_the_newest(&self, own: Option<&Value>, result: Result<Value, Refusal>) {
        let own = own.cloned().unwrap_or_default();
        let (newest, outbox, behaviour) =
            (self.past.newest_id.clone(), self.outbox.clone(), self.behaviour.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let id = newest.get().unwrap_or_default();
            if own != id {
                behaviour.took_effect();
            }
            outbox.send(Message::text(response(&id, &result, &behaviour).to_string()));
        });
    }

    fn prompt(&self, id: Option<Value>, params: &Params<'_>) -> Result<Answer, Refusal> {
        if params.0.is_empty() && self.has(Defect::EmptyPromptsAreFine) {
            return Ok(Answer::Now(json!({ "ok": true })));
        }
        let session = params.get("sessionId").or_else(|| params.get("session_id"));
        let mut state = self.core.lock();
        if state.streams.has_client(self.client) && self.has(Defect::StreamsExcludePrompts) {
            return Err(refuse(METHOD_NOT_FOUND, "Method not found: this connection has streams"));
        }
        let session = match session.and_then(Value::as_str) {
            Some(session) => session.to_owned(),
            None if self.has(Defect::PromptsTheNewestSession)
                || (session.is_some_and(Value::is_null) && self.has(Defect::NullIsTheNewestSession))
                || (session.is_some_and(Value::is_number) && self.has(Defect::NumbersAreSessions)) =>
            {
                state.newest.get(&self.client).cloned().unwrap_or_default()
            }
            None => return Err(invalid(&["sessionId"])),
        };
        let text = prompt_text(params, &self.behaviour)?;
        let trimmed = session.trim();
        let trims = trimmed != session && self.has(Defect::SessionsAreTrimmed);
        let session = if trims { trimmed.to_owned() } else { session };
        if !state.store.has_session(&session) {
            let again = !self.past.refused.borrow_mut().insert(session.clone());
            if !self.has(Defect::PromptsUnknownSessions)
                && (!again || !self.has(Defect::RefusedSessionsExistLater))
            {
                let code = if self.style(Style::NotFound) { -32002 } else { INVALID_PARAMS };
                return Err(refuse(code, format!("no session {session:?}")));
            }
            state.store.add_session(&session)?;
        }
        if state.running.contains_key(&session) {
            return Err(refuse(INVALID_REQUEST, "a prompt is running"));
        }
        let refuses_the_third = self.behaviour.prepares(Defect::ThirdPromptIsRefused);
        if refuses_the_third && state.store.prompts(&session) > 1 {
            self.behaviour.took_effect();
            return Err(refuse(INTERNAL, "the context is full"));
        }
        let mut unused = self.past.unused.borrow_mut();
        unused.take_if(|unused| *unused == session);
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
            number: another(&self.past.counts.prompts) + 1,
            has_failed: false,
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
        let runs = state.running.contains_key(session);
        if runs {
            self.note(Happening::Abort);
            self.past.cancelled.replace(Some(session.to_owned()));
        }
        let is_first = !runs || another(&self.past.counts.cancels) == 0;
        if runs && self.has(Defect::CancelIsAnswered) {
            self.send(&json!({ "jsonrpc": "2.0", "id": null, "result": {} }));
        } else if !runs && self.has(Defect::CancelOfNothingIsAnswered) {
            let answer = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": INVALID_PARAMS, "message": "no prompt" } });
            self.send_later(&answer, Duration::from_millis(100));
        }
        let is_ignored = self.behaviour.strikes(Defect::IgnoresCancel)
            || !is_first && self.behaviour.strikes(Defect::CancelsOnce);
        if is_ignored {
            return Ok(Answer::Now(json!({})));
        }
        if self.behaviour.strikes(Defect::CancelsEverything) {
            let own = state.running.values().filter(|prompt| prompt.client == self.client);
            own.for_each(|prompt| prompt.cancel.cancel());
        } else if self.behaviour.strikes(Defect::CancelEndsSession) {
            if let Some(prompt) = state.running.get(session) {
                prompt.cancel.cancel();
                state.store.remove_session(session)?;
            }
        } else if let Some(prompt) = state.running.get(session) {
            prompt.cancel.cancel();
        }
        Ok(Answer::Now(json!({})))
    }
}
