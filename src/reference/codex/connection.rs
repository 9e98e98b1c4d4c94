//! One connection: its handshake and its requests, carried out in the order in which they come.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::faults::Defect;
use super::rpc::{
    INVALID_PARAMS, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, PARSE, Params, Refusal, invalid, read,
    refuse, response,
};
use super::state::{Agreed, Client, HOME};
use super::styles::Style;
use super::threads::overridden;
use super::{Behaviour, Core, Service};
use crate::reference::engine::Happening;
use crate::reference::engine::clients::{self, Outbox};
use crate::reference::faults::mutate::resembles;
use crate::reference::{ConnectionHandler, Socket};

/// Methods that need the opt-in.
const EXPERIMENTAL: [&str; 2] = ["thread/memoryMode/set", "thread/backgroundTerminals/clean"];
/// Fields that do.
const EXPERIMENTAL_FIELDS: [(&str, &str); 2] =
    [("thread/start", "dynamicTools"), ("thread/start", "experimentalRawEvents")];

/// Methods that are refused for a thread that is not known.
const OF_THREADS: [&str; 8] = [
    "thread/resume",
    "thread/read",
    "thread/fork",
    "thread/archive",
    "thread/name/set",
    "thread/shellCommand",
    "turn/start",
    "turn/steer",
];

/// What becomes of a request.
pub(super) enum Answer {
    Now(Value),
    /// It has been answered, or is answered later.
    Elsewhere,
}

pub(super) type Answered = Result<Answer, Refusal>;

impl ConnectionHandler for Service {
    fn serve<'d>(&'d self, socket: Socket, _path: String) -> BoxFuture<'d, ()> {
        Box::pin(connection(&self.core, socket))
    }

    fn instead_of_upgrade(&self, path: &str, origin: Option<&str>) -> Option<&'static str> {
        let has = |defect| self.core.behaviour.strikes(defect);
        let is_probe = matches!(path, "/readyz" | "/healthz");
        let welcome = origin.is_none_or(|origin| {
            has(Defect::OriginsAreWelcome)
                || origin.contains("127.0.0.1") && has(Defect::OwnOriginsAreWelcome)
                || is_probe && has(Defect::ProbesTakeOrigins)
        });
        match path {
            _ if !welcome => Some("403 Forbidden"),
            "/readyz" if has(Defect::NeverReady) => Some("503 Service Unavailable"),
            "/healthz" if has(Defect::NoHealthProbe) => Some("404 Not Found"),
            _ if is_probe => Some("200 OK"),
            _ => None,
        }
    }

    fn restarted(&self) -> Option<Arc<dyn ConnectionHandler>> {
        Some(Arc::new(self.successor()))
    }
}

async fn connection(core: &Arc<Core>, socket: Socket) {
    let (sink, mut stream) = socket.split();
    let (outbox, outgoing) = clients::channel();
    let behaviour = core.behaviour.of_session();
    behaviour.note(Happening::Joined);
    let client = {
        let mut state = core.lock();
        state.counts.clients += 1;
        let client = state.counts.clients;
        state.clients.insert(client, Client::new(outbox.clone(), behaviour.clone()));
        client
    };
    let writer = tokio::spawn(outgoing.write_to(sink));
    // Also when this future is dropped: the server is stopped, or the client is gone.
    let _guard = Leaving { core, behaviour: behaviour.clone(), client, writer };
    let peer = Peer { core, behaviour, client, outbox };
    while let Some(message) = stream.next().await {
        match message {
            Ok(Message::Text(text)) => peer.frame(text.as_bytes()),
            Ok(Message::Binary(_)) if peer.behaviour.style(Style::BinaryCloses) => {
                let frame = CloseFrame { code: CloseCode::Unsupported, reason: "".into() };
                peer.outbox.send(Message::Close(Some(frame)));
            }
            Ok(Message::Binary(bytes)) if peer.has(Defect::BinaryIsText) => peer.frame(&bytes),
            Ok(Message::Close(_)) | Err(_) => break,
            Ok(_) => {}
        }
    }
}

/// Cleans up behind a connection.
struct Leaving<'c> {
    core: &'c Core,
    behaviour: Behaviour,
    client: u64,
    writer: tokio::task::JoinHandle<()>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.core.lock().leave(self.client);
        self.behaviour.note(Happening::Left);
        self.writer.abort();
    }
}

pub(super) struct Peer<'c> {
    pub core: &'c Arc<Core>,
    pub behaviour: Behaviour,
    pub client: u64,
    pub outbox: Outbox,
}

impl Peer<'_> {
    pub fn has(&self, defect: Defect) -> bool {
        self.behaviour.strikes(defect)
    }

    pub fn answer(&self, id: &Value, answer: &Result<Value, Refusal>) {
        answer_to(self.core, self.client, id, answer);
    }

    fn frame(&self, bytes: &[u8]) {
        self.behaviour.message(bytes);
        let incoming = read(bytes);
        if let Ok(Incoming::Request { id, .. }) = &incoming
            && self.core.lock().pending.values().any(|pending| pending.told == *id)
            && self.has(Defect::IdsOfBothSidesMeet)
        {
            self.decided(id, None);
        }
        match incoming {
            Ok(Incoming::Request { id, method, params }) => match self.perform(&id, &method, &params) {
                Ok(Answer::Now(result)) => self.answer(&id, &Ok(result)),
                Ok(Answer::Elsewhere) => {}
                Err(refusal) => self.refuse(&id, &method, refusal),
            },
            Ok(Incoming::Notification { method }) => self.notified(&method),
            Ok(Incoming::Answer { id, result }) => self.decided(&id, result),
            Err((id, mut refusal)) => {
                let closes = self.has(Defect::BrokenJsonCloses);
                if closes {
                    self.outbox.send(Message::Close(None));
                }
                let ignored = match refusal.code {
                    PARSE => Defect::BrokenJsonIsIgnored,
                    _ => Defect::NoRequestIsIgnored,
                };
                let silent = closes || self.behaviour.style(Style::SilentAboutTheUnreadable);
                if !silent && !self.has(ignored) {
                    if refusal.code == PARSE && self.has(Defect::BrokenJsonIsInvalid) {
                        refusal.code = INVALID_REQUEST;
                    }
                    self.answer(&id, &Err(refusal));
                }
            }
        }
    }

    /// A notification has come. Only a defect answers it.
    fn notified(&self, method: &str) {
        if self.has(Defect::AnswersNotifications) {
            self.core.lock().send(self.client, json!({ "id": null, "result": {} }));
        }
        let refused = if method == "initialized" {
            let mut state = self.core.lock();
            let client = state.clients.get_mut(&self.client);
            let again = client.is_some_and(|client| std::mem::replace(&mut client.greeted, true));
            again && self.has(Defect::SecondInitializedIsRefused)
        } else {
            self.has(Defect::UnknownNotificationsAreRefused)
        };
        if refused {
            self.answer(&Value::Null, &Err(refuse("this notification was not expected")));
        }
    }

    /// Ends what the client is subscribed to, under a defect.
    fn unsubscribe_all(&self) {
        let mut state = self.core.lock();
        let follows = state.live.values().any(|live| live.subscribers.contains(&self.client));
        if follows && self.has(Defect::UnknownMethodsUnsubscribe) {
            for live in state.live.values_mut() {
                live.subscribers.remove(&self.client);
            }
        }
    }

    fn refuse(&self, id: &Value, method: &str, mut refusal: Refusal) {
        self.behaviour.note(Happening::Error);
        let deaf = self.core.lock().clients.get(&self.client).is_some_and(|client| {
            client.agreed.as_ref().is_some_and(|agreed| agreed.opted_out.contains("error"))
        });
        if deaf && self.has(Defect::OptOutOfErrors) {
            return;
        }
        if refusal.code == METHOD_NOT_FOUND {
            self.unsubscribe_all();
        }
        let missing = refusal.message.contains("missing field");
        self.behaviour.mutate(&mut refusal.code, |defect, code| match defect {
            Defect::BadParamsAreInvalidRequests if *code == INVALID_PARAMS && !missing => *code = -32600,
            Defect::MissingParamsAreInternal if missing => *code = -32603,
            Defect::UnknownMethodIsInvalid if *code == METHOD_NOT_FOUND => *code = -32600,
            Defect::SteerRefusedAsParams if method == "turn/steer" => *code = INVALID_PARAMS,
            _ => {}
        });
        if self.behaviour.style(Style::OwnWords) && !fixed(&refusal.message) {
            "так нельзя".clone_into(&mut refusal.message);
        }
        self.answer(id, &Err(refusal));
    }

    fn perform(&self, id: &Value, method: &str, params: &Value) -> Answered {
        let none = Map::new();
        if id.as_i64().is_some_and(|id| id < 0) && self.has(Defect::NegativeIdsAreRefused) {
            return Err(refuse("the id is negative"));
        }
        if method == "initialize" {
            return self.initialize(params);
        }
        let agreed = self.core.lock().clients.get(&self.client).and_then(|client| client.agreed.clone());
        let spared = || {
            method == "thread/loaded/list" && self.has(Defect::ListsBeforeInitialize)
                || method.starts_with("fs/") && self.has(Defect::FilesBeforeInitialize)
                || self.has(Defect::WorksBeforeInitialize)
        };
        let Some(agreed) = agreed.or_else(|| spared().then(Agreed::default)) else {
            let words =
                if self.has(Defect::OtherWordsBeforeInitialize) { "Not ready" } else { "Not initialized" };
            if method.starts_with("fs/") && self.has(Defect::DoesBeforeInitialize) {
                let params = params.as_object().unwrap_or(&none);
                let _ = self.method(id, method, &Params(params));
            }
            return Err(refuse(words));
        };
        let params = match params {
            Value::Null if self.has(Defect::ParamsAreNeeded) => {
                return Err(invalid("missing field `params`"));
            }
            Value::Null => &none,
            Value::Object(params) => params,
            _ => return Err(invalid("no object")),
        };
        if !agreed.experimental {
            let stable = self.stable(method, params);
            if stable.is_err() && !(self.has_fellow() && self.has(Defect::OptInsSpread)) {
                stable?;
            }
        } else if EXPERIMENTAL.contains(&method) && self.has(Defect::OptInIsIgnored)
            || experimental_field(method, params).is_some() && self.has(Defect::OptInIsForMethods)
        {
            return Err(refuse("this is for nobody"));
        }
        let meant = self.meant(method, params);
        self.method(id, method, &Params(meant.as_ref().unwrap_or(params)))
    }

    /// Whether a client of the same thread has opted in.
    fn has_fellow(&self) -> bool {
        let state = self.core.lock();
        let mut mine = state.live.values().filter(|live| live.subscribers.contains(&self.client));
        let agreed = |client: &u64| state.clients.get(client)?.agreed.as_ref();
        mine.any(|live| live.subscribers.iter().filter_map(agreed).any(|agreed| agreed.experimental))
    }

    /// The params with the thread that an unknown one is taken for, under a defect.
    fn meant(&self, method: &str, params: &Map<String, Value>) -> Option<Map<String, Value>> {
        let id = params.get("threadId").and_then(Value::as_str).filter(|_| OF_THREADS.contains(&method))?;
        let state = self.core.lock();
        if state.threads.contains_key(id) {
            return None;
        }
        let begun = state.threads.keys().find(|known| id.starts_with(known.as_str()));
        let newest = state.newest_of(self.client);
        let meant = match (begun, newest) {
            (Some(known), _) if self.has(Defect::ThreadIdsMayGoOn) => known,
            (_, Some(newest)) if self.has(Defect::UnknownThreadsAreTheNewest) => &newest.about.id,
            _ => return None,
        };
        let mut params = params.clone();
        params.insert("threadId".to_owned(), json!(meant));
        Some(params)
    }

    /// Refuses what needs the opt-in.
    fn stable(&self, method: &str, params: &Map<String, Value>) -> Result<(), Refusal> {
        let needs = |what: &str| Err(refuse(format!("{what} requires experimentalApi capability")));
        if EXPERIMENTAL.contains(&method) {
            return match method {
                _ if self.has(Defect::ExperimentalMethodsForAll) => Ok(()),
                _ if self.has(Defect::ExperimentalIsNotNamed) => needs("this"),
                _ => needs(method),
            };
        }
        if let Some(field) = experimental_field(method, params)
            && !self.has(Defect::ExperimentalFieldsForAll)
        {
            if self.has(Defect::RefusedStartsAThread) {
                let cwd = params.get("cwd").and_then(Value::as_str).unwrap_or(HOME);
                self.start_unasked(&mut self.core.lock(), cwd);
            }
            if self.has(Defect::ExperimentalFieldsAreNotNamed) {
                return needs(method);
            }
            return needs(&format!("{method}.{field}"));
        }
        let granular = params.get("approvalPolicy").is_some_and(|policy| policy.get("granular").is_some());
        if granular && !self.has(Defect::ExperimentalVariantsForAll) {
            self.keep_refused(params);
            if self.has(Defect::VariantsAreNamedAsFields) {
                return needs(&format!("{method}.approvalPolicy"));
            }
            return needs("askForApproval.granular");
        }
        Ok(())
    }

    /// Lets the overrides of a refused request stay, under a defect.
    fn keep_refused(&self, params: &Map<String, Value>) {
        let mut state = self.core.lock();
        let id = params.get("threadId").and_then(Value::as_str).unwrap_or_default();
        let Some(thread) = state.threads.get_mut(id) else { return };
        let mut settings = thread.settings.clone();
        let fit = overridden(&mut settings, &Params(params)).is_ok();
        if fit && settings != thread.settings && self.has(Defect::RefusedOverridesStay) {
            thread.settings = settings;
        }
    }

    fn initialize(&self, params: &Value) -> Answered {
        let agreed = self.core.lock().clients.get(&self.client).and_then(|client| client.agreed.clone());
        if let Some(agreed) = agreed
            && !self.has(Defect::InitializesTwice)
        {
            let second = agreement(params).unwrap_or_default();
            if second != agreed && self.has(Defect::SecondAgreementCounts) {
                self.agree(&second);
            }
            let other = self.has(Defect::OtherWordsForTheSecond);
            return Err(refuse(if other { "Initialized before" } else { "Already initialized" }));
        }
        let told = match agreement(params) {
            Err(_) if self.has(Defect::AnybodyMayInitialize) => Agreed::default(),
            Err(refusal) => {
                if self.has(Defect::RefusedInitializeCounts) {
                    self.agree(&Agreed::default());
                }
                return Err(refusal);
            }
            Ok(mut agreed) => {
                let refused = params.pointer("/capabilities/experimentalApi") == Some(&json!(false));
                if refused && self.has(Defect::OptInIsItsPresence) {
                    agreed.experimental = true;
                }
                agreed
            }
        };
        let known = |name: &String| {
            ["thread/", "turn/", "item/", "fs/", "error"].iter().any(|start| name.starts_with(start))
        };
        if !told.opted_out.iter().all(known) && self.has(Defect::UnknownNamesAreRefused) {
            return Err(invalid("optOutNotificationMethods has an unknown name"));
        }
        if params.get("capabilities") == Some(&Value::Null) && self.has(Defect::CapabilitiesAreNeeded) {
            return Err(invalid("capabilities are null"));
        }
        self.agree(&told);
        Ok(Answer::Now(json!({
            "userAgent": concat!("frameproof/", env!("CARGO_PKG_VERSION")), "codexHome": HOME,
            "platformFamily": "unix", "platformOs": "linux",
        })))
    }

    fn agree(&self, agreed: &Agreed) {
        let mut state = self.core.lock();
        if let Some(client) = state.clients.get_mut(&self.client) {
            client.agreed = Some(agreed.clone());
        }
    }

    fn method(&self, id: &Value, method: &str, params: &Params<'_>) -> Answered {
        match method {
            _ if resembles(method, "turn/interrupt") && self.has(Defect::InterruptInAnyCase) => {
                self.interrupt(id, params)
            }
            _ if method == "turn_start" && self.has(Defect::UnderlinesAreSlashes) => {
                self.start_turn(id, params)
            }
            "thread/start" => self.start_thread(id, params),
            "thread/resume" => self.resume(id, params),
            "thread/fork" => self.fork(id, params),
            "thread/list" => self.list(params),
            "thread/loaded/list" => self.loaded(id, params),
            "thread/read" => self.read_thread(params),
            "thread/name/set" => self.set_name(id, params),
            "thread/archive" => self.archive(id, params),
            "thread/unarchive" => self.unarchive(id, params),
            "thread/unsubscribe" => self.unsubscribe(params),
            "thread/metadata/update" => self.update_metadata(params),
            "thread/compact/start" => self.compact(id, params),
            "thread/shellCommand" => self.shell_command(id, params),
            "thread/rollback" => self.rollback(params),
            "thread/memoryMode/set" => self.memory_mode(params),
            "thread/backgroundTerminals/clean" => self.clean_terminals(params),
            "turn/start" => self.start_turn(id, params),
            "turn/steer" => self.steer(id, params),
            "turn/interrupt" => self.interrupt(id, params),
            "command/exec" => self.exec(id, params),
            "command/exec/write" => self.write_input(params),
            "command/exec/resize" => self.resize(params),
            "command/exec/terminate" => self.terminate(id, params),
            method if method.starts_with("fs/") => self.files(id, method, params),
            method => self.unknown(method),
        }
    }

    pub fn unknown(&self, method: &str) -> Answered {
        Err(Refusal { code: METHOD_NOT_FOUND, message: format!("Method not found: {method}") })
    }
}

/// Answers a request of a client.
pub(super) fn answer_to(core: &Core, client: u64, id: &Value, answer: &Result<Value, Refusal>) {
    core.lock().send(client, response(id, answer));
}

/// The field of these params that needs the opt-in.
fn experimental_field(method: &str, params: &Map<String, Value>) -> Option<&'static str> {
    let mut fields = EXPERIMENTAL_FIELDS.iter().filter(|(of, _)| *of == method).map(|(_, field)| *field);
    fields.find(|field| params.contains_key(*field))
}

/// Whether the document says these words.
fn fixed(message: &str) -> bool {
    message.starts_with("Not ")
        || message.starts_with("Already ")
        || message.ends_with("experimentalApi capability")
}

/// What a client asks for in initialize.
fn agreement(params: &Value) -> Result<Agreed, Refusal> {
    let params = Params(params.as_object().ok_or_else(|| invalid("no object"))?);
    let info = Params(params.object("clientInfo")?.ok_or_else(|| invalid("missing field `clientInfo`"))?);
    info.text("name")?;
    info.text("version")?;
    info.maybe_text("title")?;
    let Some(capabilities) = params.object("capabilities")? else { return Ok(Agreed::default()) };
    let capabilities = Params(capabilities);
    let opted_out = capabilities.texts("optOutNotificationMethods")?.unwrap_or_default();
    let experimental = capabilities.flag("experimentalApi")?.unwrap_or(false);
    Ok(Agreed { experimental, opted_out: opted_out.into_iter().collect() })
}
