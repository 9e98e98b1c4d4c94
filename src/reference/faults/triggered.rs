//! Faults that only fuzzing finds: they wait for an input that no suite of ours sends.
//!
//! Such a server is the correct one behind a relay of messages that goes wrong on a trigger. The relay is a connection of
//! its own over loopback, so that the dialects know nothing of it.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::reference::{ConnectionHandler, Fault, Socket};
use crate::wire::accept::pair;

/// A fault and what sets it off.
#[derive(Clone, Copy)]
pub(in crate::reference) struct TriggeredFault {
    /// Its name, and the requirements of which a campaign must hold at least one broken.
    pub fault: Fault,
    /// Whether a client's message sets it off: its text, and what it is as JSON (null if it is none).
    pub trigger: fn(&str, &Value) -> bool,
    /// What goes wrong then.
    pub effect: Effect,
}

/// What goes wrong.
#[derive(Clone, Copy)]
pub(in crate::reference) enum Effect {
    /// The connection is cut, as by a task that panicked.
    Cut,
    /// The message is passed over.
    Ignore,
    /// Nothing is read on this connection any more.
    Hang,
    /// Every other connection is cut.
    CutOthers,
    /// Connections that come later are cut at once.
    RefuseLater,
    /// The message is taken for another one.
    Instead(fn(&Value) -> Value),
    /// The message is refused, and this one obeyed besides.
    Besides(&'static str),
    /// It is answered by this text; `$id` and `$text` in it are the message's id (as JSON) and its text.
    Answer(&'static str),
    /// The next answer quotes what another connection has said last.
    Quote,
    /// The server ends, as a process that died with these last words; `$id` in them is new each time.
    Die(fn(&Value) -> &'static str),
    /// The server ends so with the message that has this number, whatever it is.
    Wear(u64),
    /// A megabyte is kept for ever.
    Leak,
}

/// The triggered faults of a protocol.
pub(in crate::reference) fn of(protocol: &str) -> &'static [TriggeredFault] {
    super::triggered_table::ALL.iter().find(|(name, _)| *name == protocol).map_or(&[], |(_, all)| all)
}

/// A server with a fault.
pub(in crate::reference) struct TriggeredServer {
    inner: Arc<dyn ConnectionHandler>,
    fault: TriggeredFault,
    state: Mutex<State>,
    /// The number of the connection that cuts the others.
    cutter: watch::Sender<u64>,
    /// Ends the server.
    death: Arc<Notify>,
}

#[derive(Default)]
struct State {
    connections: u64,
    refuses: bool,
    /// What each connection has said last.
    said: HashMap<u64, String>,
    leaked: Vec<Vec<u8>>,
    messages: u64,
}

/// Most megabytes that are kept: enough to be noticed, and no effect to the machine.
const MAX_LEAK: usize = 512;

impl TriggeredServer {
    pub fn new(inner: Arc<dyn ConnectionHandler>, fault: TriggeredFault, death: Arc<Notify>) -> Self {
        Self { inner, fault, state: Mutex::default(), cutter: watch::Sender::new(0), death }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the server. `true`: this connection is done.
    fn die(&self, words: &str) -> bool {
        let words = words.replace("$id", &uuid::Uuid::new_v4().to_string());
        // Nobody may be left to read it.
        let _ = writeln!(std::io::stderr(), "{words}");
        self.death.notify_one();
        true
    }

    /// How many messages have come.
    fn count_message(&self) -> u64 {
        let mut state = self.state();
        state.messages += 1;
        state.messages
    }

    fn leak(&self) {
        let mut state = self.state();
        if state.leaked.len() < MAX_LEAK {
            // Written to, so that it is resident.
            state.leaked.push(vec![1; 1 << 20]);
        }
    }

    async fn relay(&self, client: Socket, path: String) -> std::io::Result<()> {
        let number = {
            let mut state = self.state();
            state.connections += 1;
            if state.refuses {
                return Ok(());
            }
            state.connections
        };
        let (near, far) = pair().await?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let near = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        let far = WebSocketStream::from_raw_socket(far, Role::Server, None).await;
        tokio::select! {
            () = self.inner.serve(Socket::new(far), path) => {}
            () = self.pass(client, Socket::new(near), number) => {}
        }
        self.state().said.remove(&number);
        Ok(())
    }

    async fn pass(&self, client: Socket, server: Socket, number: u64) {
        let (mut to_client, mut from_client) = client.split();
        let (mut to_server, mut from_server) = server.split();
        let mut cutter = self.cutter.subscribe();
        let (mut quotes, mut hangs) = (false, false);
        loop {
            let done = tokio::select! {
                message = from_client.next(), if !hangs => match message {
                    Some(Ok(Message::Text(text))) => {
                        let body: Value = serde_json::from_str(&text).unwrap_or_default();
                        if !(self.fault.trigger)(&text, &body) {
                            self.state().said.insert(number, text.to_string());
                            to_server.send(Message::Text(text)).await.is_err()
                        } else {
                            match self.fault.effect {
                                Effect::Cut => true,
                                Effect::Ignore => false,
                                Effect::Die(words) => self.die(words(&body)),
                                Effect::Wear(most) => {
                                    if self.count_message() >= most {
                                        self.die("fatal: the table of messages is full")
                                    } else {
                                        to_server.send(Message::Text(text)).await.is_err()
                                    }
                                }
                                Effect::Leak => {
                                    self.leak();
                                    to_server.send(Message::Text(text)).await.is_err()
                                }
                                Effect::Hang => { hangs = true; false }
                                Effect::CutOthers => {
                                    let _ = self.cutter.send(number);
                                    to_server.send(Message::Text(text)).await.is_err()
                                }
                                Effect::RefuseLater => {
                                    self.state().refuses = true;
                                    to_server.send(Message::Text(text)).await.is_err()
                                }
                                Effect::Instead(other) => {
                                    to_server.send(Message::text(other(&body).to_string())).await.is_err()
                                }
                                Effect::Besides(other) => {
                                    to_server.send(Message::Text(text)).await.is_err()
                                        || to_server.send(Message::text(other)).await.is_err()
                                }
                                Effect::Answer(answer) => {
                                    let answer = answer.replace("$id", &body["id"].to_string()).replace("$text", &text);
                                    to_client.send(Message::text(answer)).await.is_err()
                                }
                                Effect::Quote => {
                                    quotes = true;
                                    to_server.send(Message::Text(text)).await.is_err()
                                }
                            }
                        }
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => false,
                    Some(Ok(message)) => {
                        let over = matches!(message, Message::Close(_));
                        to_server.send(message).await.is_err() && !over
                    }
                    Some(Err(_)) | None => true,
                },
                message = from_server.next() => match message {
                    Some(Ok(Message::Text(text))) if std::mem::take(&mut quotes) => {
                        to_client.send(Message::text(self.quoting(&text, number))).await.is_err()
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => false,
                    Some(Ok(message)) => to_client.send(message).await.is_err(),
                    Some(Err(_)) | None => true,
                },
                _ = cutter.changed() => *cutter.borrow_and_update() != number,
            };
            if done {
                return;
            }
        }
    }

    /// A server's message with what another connection has said in its first text that is no type.
    fn quoting(&self, text: &str, number: u64) -> String {
        let other = self.state().said.iter().find(|(who, _)| **who != number).map(|(_, said)| said.clone());
        let (Some(other), Ok(mut body)) = (other, serde_json::from_str::<Value>(text)) else {
            return text.to_owned();
        };
        let fields = body.as_object_mut().into_iter().flatten();
        let message = fields.filter(|(name, _)| matches!(name.as_str(), "message" | "content"));
        for (_, value) in message {
            *value = format!("{} (after {other})", value.as_str().unwrap_or_default()).into();
        }
        body.to_string()
    }
}

impl ConnectionHandler for TriggeredServer {
    fn serve<'d>(&'d self, socket: Socket, path: String) -> BoxFuture<'d, ()> {
        Box::pin(async move {
            // Without a relay there is no connection: the client sees it cut.
            let _ = self.relay(socket, path).await;
        })
    }

    fn instead_of_upgrade(&self, path: &str, origin: Option<&str>) -> Option<&'static str> {
        self.inner.instead_of_upgrade(path, origin)
    }

    fn restarted(&self) -> Option<Arc<dyn ConnectionHandler>> {
        let inner = self.inner.restarted()?;
        Some(Arc::new(Self::new(inner, self.fault, Arc::clone(&self.death))))
    }
}
