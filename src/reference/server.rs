//! Listening, accepting and stopping: what all reference servers share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::engine::{Setup, Trigger};
use super::faults::frames::{self, FaultyFrames};
use super::faults::triggered::{self, TriggeredServer};
use super::styles::wire::WireStyles;
use super::upgrade::upgrade;
use super::variant::{Variant, chosen, fault_and_trigger};
use super::{ConnectionHandler, Entry, Make, Socket, entry, names};
use crate::source::nearest;
use crate::wire::accept::{Acceptor, pair};
use crate::wire::guard::{Guard, TURNED_AWAY, no_room, reject};
use crate::wire::relay::{Interceptor, Mutation, relay};

/// How to start a reference server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Its fault and styles.
    pub variant: Variant,
    /// How it spells the protocol's messages; none: as the document does.
    pub dialect: Option<String>,
    /// Who may connect; none: everybody.
    pub guard: Option<Guard>,
    /// Most connections at a time.
    pub most: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            variant: Variant::default(),
            dialect: None,
            guard: None,
            most: usize::MAX,
        }
    }
}

/// Why a reference server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is none for this protocol.
    #[error("there is no reference server for `{0}`; there are {known}", known = names().join(", "))]
    UnknownProtocol(String),
    /// It has no such fault.
    #[error("unknown fault `{name}`")]
    UnknownFault {
        /// What was asked for.
        name: String,
        /// The nearest that there is.
        near: Option<&'static str>,
    },
    /// There is no such trigger.
    #[error("unknown trigger `{name}`")]
    UnknownTrigger {
        /// What was asked for.
        name: String,
        /// The nearest that there is.
        near: Option<&'static str>,
    },
    /// The fault waits for an input of its own.
    #[error("the fault `{0}` has a trigger of its own")]
    FixedTrigger(String),
    /// It has no such style.
    #[error("unknown style `{name}`")]
    UnknownStyle {
        /// What was asked for.
        name: String,
        /// The nearest that there is.
        near: Option<&'static str>,
    },
    /// It cannot have both styles.
    #[error("the styles `{0}` and `{1}` contradict each other")]
    ClashingStyles(&'static str, &'static str),
    /// It does not speak such a dialect.
    #[error("the reference server speaks no dialect `{name}`")]
    UnknownDialect {
        /// What was asked for.
        name: String,
        /// The nearest that there is.
        near: Option<&'static str>,
    },
    /// The address cannot be had.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        error: std::io::Error,
    },
}

/// A running reference server. Dropping it stops it too, without waiting.
pub struct Server {
    url: String,
    stop: watch::Sender<bool>,
    restarter: Restarter,
    task: tokio::task::JoinHandle<()>,
}

/// Restarts a running reference server.
#[derive(Clone)]
pub struct Restarter(mpsc::Sender<oneshot::Sender<()>>);

impl Restarter {
    /// Stops the server hard, as by a kill: connections are cut, work in progress is lost. Then starts it again, at its
    /// address and on what it had stored. `false`: the server is gone.
    pub async fn restart(&self) -> bool {
        let (done, wait) = oneshot::channel();
        self.0.send(done).await.is_ok() && wait.await.is_ok()
    }
}

impl Server {
    /// Where clients connect to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What restarts it.
    pub fn restarter(&self) -> Restarter {
        self.restarter.clone()
    }

    /// Waits for it to end by itself, which only a fault brings about.
    pub async fn ended(&mut self) {
        let _ = (&mut self.task).await;
    }

    /// Ends all connections and waits for the server to be gone.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }
}

/// Starts the reference server of a protocol.
///
/// # Errors
/// See [`StartError`].
pub async fn start(protocol: &str, options: &Options) -> Result<Server, StartError> {
    let entry = entry(protocol).ok_or_else(|| StartError::UnknownProtocol(protocol.to_owned()))?;
    let make = spoken(entry, options.dialect.as_deref())?;
    let guard = options.guard.clone().map(Arc::new);
    let served =
        Served { guard, most: options.most, ..Served::new(protocol, entry, make, &options.variant)? };
    let failed = |error| StartError::Listen { address: options.listen, error };
    let acceptor = Acceptor::listen(options.listen).map_err(failed)?;
    let address = acceptor.address().map_err(failed)?;
    let (stop, stopped) = watch::channel(false);
    let (restarter, restarts) = mpsc::channel(1);
    let task = tokio::spawn(accept(acceptor, served, restarts, stopped));
    let url = format!("ws://{address}{}", entry.path);
    Ok(Server { url, stop, restarter: Restarter(restarter), task })
}

/// What makes a server that spells as this dialect does.
fn spoken(entry: &Entry, dialect: Option<&str>) -> Result<Make, StartError> {
    let Some(name) = dialect else { return Ok(entry.make) };
    let spoken = entry.dialects.iter().find(|(known, _)| *known == name);
    let near = nearest(name, entry.dialects.iter().map(|(known, _)| *known));
    Ok(spoken.ok_or_else(|| StartError::UnknownDialect { name: name.to_owned(), near })?.1)
}

/// How many servers this process has started.
static SERVERS: AtomicU64 = AtomicU64::new(0);

/// What is served, and what stands before it.
struct Served {
    path: &'static str,
    make: Box<dyn Fn() -> Arc<dyn ConnectionHandler> + Send + Sync>,
    frames: Option<Arc<FaultyFrames>>,
    styles: Option<WireStyles>,
    mutation: Option<Arc<Mutation>>,
    /// What tells it from other servers of this process.
    name: String,
    guard: Option<Arc<Guard>>,
    /// Most connections at a time.
    most: usize,
    /// Ends the server.
    death: Arc<Notify>,
}

impl Served {
    fn new(protocol: &str, entry: &Entry, make: Make, variant: &Variant) -> Result<Self, StartError> {
        chosen(protocol, &variant.styles)?;
        let (fault, trigger) = match &variant.fault {
            Some(text) => {
                let (fault, trigger) = fault_and_trigger(text)?;
                (Some(fault), trigger)
            }
            None => (None, Trigger::Always),
        };
        let named = |name: &str| fault == Some(name);
        let triggered = triggered::of(protocol).iter().find(|it| named(it.fault.name)).copied();
        let frames = frames::of(protocol).iter().find(|it| named(it.fault.name));
        let own = entry.faults.iter().any(|known| named(known.name));
        if let Some(name) = fault
            && triggered.is_none()
            && frames.is_none()
            && !own
        {
            let fuzzed = super::fuzz_faults(protocol);
            let near = nearest(name, entry.faults.iter().chain(&fuzzed).map(|fault| fault.name));
            return Err(StartError::UnknownFault { name: name.to_owned(), near });
        }
        if let Some(name) = fault.filter(|_| trigger != Trigger::Always && !own) {
            return Err(StartError::FixedTrigger(name.to_owned()));
        }
        let own = fault.filter(|_| own).map(str::to_owned);
        let (met, styles) = (Arc::clone(&variant.met), variant.styles.clone());
        let setup = Setup { fault: own, trigger, met, styles };
        let death = Arc::new(Notify::new());
        let mortal = Arc::clone(&death);
        let make = Box::new(move || match triggered {
            Some(fault) => {
                let server = TriggeredServer::new(make(&setup), fault, Arc::clone(&mortal));
                Arc::new(server) as Arc<dyn ConnectionHandler>
            }
            None => make(&setup),
        });
        let frames = frames.map(|fault| Arc::new(FaultyFrames::new(*fault)));
        let styles = WireStyles::new(&variant.styles, variant.seed);
        let mutation = variant.mutation.clone();
        let name = format!("#{}", SERVERS.fetch_add(1, Ordering::Relaxed));
        let (path, guard, most) = (entry.path, None, usize::MAX);
        Ok(Self { path, make, frames, styles, mutation, name, guard, most, death })
    }

    /// What stands before the connection with this number, from the client on. `None`: it is not served.
    fn interceptors(&self, number: u64) -> Option<Vec<Box<dyn Interceptor>>> {
        if self.frames.as_ref().is_some_and(|frames| frames.refuses()) {
            return None;
        }
        let styles = self.styles.iter().map(|styles| styles.interceptor(number));
        let mutation = self.mutation.iter().map(|mutation| mutation.interceptor(&self.name));
        let frames = self.frames.iter().map(FaultyFrames::interceptor);
        Some(styles.chain(mutation).chain(frames).collect())
    }
}

async fn accept(
    mut acceptor: Acceptor,
    served: Served,
    mut restarts: mpsc::Receiver<oneshot::Sender<()>>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut handler = (served.make)();
    loop {
        tokio::select! {
            (stream, number) = acceptor.next() => {
                let others = acceptor.count();
                if others < served.most {
                    // A connection that is not served is cut.
                    if let Some(interceptors) = served.interceptors(number) {
                        let (handler, guard) = (Arc::clone(&handler), served.guard.clone());
                        acceptor.spawn(connection(stream, handler, served.path, guard, interceptors));
                    }
                } else if others < served.most.saturating_add(TURNED_AWAY) {
                    acceptor.spawn(async move { reject(stream, &no_room()).await });
                }
            }
            () = served.death.notified() => break,
            Some(done) = restarts.recv() => {
                acceptor.cut_all().await;
                served.frames.iter().for_each(|frames| frames.restart());
                handler = handler.restarted().unwrap_or_else(&served.make);
                // An error: nobody waits for it any more.
                let _ = done.send(());
            }
            // An error means that the handle is gone, which stops the server too.
            _ = stopped.changed() => break,
        }
    }
    acceptor.cut_all().await;
}

/// Serves a connection behind relays, the first of which is the client's.
async fn connection(
    mut stream: TcpStream,
    handler: Arc<dyn ConnectionHandler>,
    address: &str,
    guard: Option<Arc<Guard>>,
    interceptors: Vec<Box<dyn Interceptor>>,
) {
    let mut relays = Vec::new();
    for interceptor in interceptors {
        // A connection that cannot be relayed is cut.
        let Ok((near, far)) = pair().await else { return };
        relays.push(relay(std::mem::replace(&mut stream, far), near, interceptor));
    }
    tokio::join!(serve(stream, handler, address, guard.as_deref()), join_all(relays));
}

async fn serve(stream: TcpStream, handler: Arc<dyn ConnectionHandler>, address: &str, guard: Option<&Guard>) {
    let _ = stream.set_nodelay(true);
    if let Some((socket, path)) = upgrade(stream, address, guard, handler.as_ref()).await {
        handler.serve(Socket::new(socket), path).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{SinkExt, StreamExt};
    use serde_json::{Value, json};
    use tokio_tungstenite::tungstenite::Message;

    /// Sends requests on a connection of their own and returns the last answer.
    async fn ask(url: &str, requests: &[Value]) -> Value {
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.expect("a connection");
        let mut answer = Value::Null;
        for request in requests {
            socket.send(Message::text(request.to_string())).await.expect("sent");
            while answer["id"] != request["id"] {
                let message = socket.next().await.expect("open").expect("a message");
                answer = serde_json::from_str(message.to_text().expect("text")).expect("JSON");
            }
        }
        answer
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_restart_cuts_connections_and_keeps_address_and_data() {
        let server = start("tinyvex", &Options::default()).await.expect("a server");
        let increment = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tinyvex/mutation",
            "params": { "requestId": "r", "name": "increment", "args": { "name": "n" } },
        });
        assert_eq!(ask(server.url(), std::slice::from_ref(&increment)).await["result"]["value"], 1);
        let (mut old, _) = tokio_tungstenite::connect_async(server.url()).await.expect("a connection");
        assert!(server.restarter().restart().await);
        assert!(!matches!(old.next().await, Some(Ok(Message::Text(_)))), "the connection is cut");
        assert_eq!(ask(server.url(), &[increment]).await["result"]["value"], 2);
        let restarter = server.restarter();
        server.stop().await;
        assert!(!restarter.restart().await, "it is gone");
    }

    #[tokio::test]
    async fn a_server_without_data_begins_anew() {
        let server = start("minicodex", &Options::default()).await.expect("a server");
        assert!(server.restarter().restart().await);
        assert!(tokio_tungstenite::connect_async(server.url()).await.is_ok());
    }
}
