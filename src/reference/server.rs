//! Listening, accepting and stopping: what all reference servers share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::frail_frames::Relay;
use super::{Dialect, Socket, entry, names};
use crate::source::nearest;
use crate::wire::READ_BUFFER;

/// Send buffer of an accepted connection in bytes: small, so that a client that does not read is noticed soon.
const SEND_BUFFER: u32 = 16 * 1024;

/// How to start a reference server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The fault to have; none: the correct server.
    pub fault: Option<String>,
    /// How it spells the protocol's messages; none: as the document does.
    pub dialect: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 0)), fault: None, dialect: None }
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
    let frailties = super::frail::of(protocol);
    let frailty =
        options.fault.as_ref().and_then(|name| frailties.iter().find(|frailty| frailty.fault.name == name));
    let torn = options
        .fault
        .as_ref()
        .and_then(|name| super::frail_frames::of(protocol).iter().find(|torn| torn.fault.name == name));
    if let Some(name) = &options.fault
        && frailty.is_none()
        && torn.is_none()
        && !entry.faults.iter().any(|fault| fault.name == name)
    {
        let fuzzed = super::fuzz_faults(protocol);
        let near = nearest(name, entry.faults.iter().chain(&fuzzed).map(|fault| fault.name));
        return Err(StartError::UnknownFault { name: name.clone(), near });
    }
    let make = match &options.dialect {
        None => entry.make,
        Some(name) => {
            let spoken = entry.dialects.iter().find(|(known, _)| known == name);
            let near = nearest(name, entry.dialects.iter().map(|(known, _)| *known));
            spoken.ok_or_else(|| StartError::UnknownDialect { name: name.clone(), near })?.1
        }
    };
    let listener =
        listen(options.listen).map_err(|error| StartError::Listen { address: options.listen, error })?;
    let address =
        listener.local_addr().map_err(|error| StartError::Listen { address: options.listen, error })?;
    let (stop, stopped) = watch::channel(false);
    let fault = options.fault.clone().filter(|_| frailty.is_none() && torn.is_none());
    let relay = torn.map(|torn| Arc::new(Relay::new(*torn)));
    let death = Arc::new(Notify::new());
    let mortal = Arc::clone(&death);
    let make = move || {
        let correct = make(fault.as_deref());
        match frailty {
            Some(frailty) => {
                Arc::new(super::frail::Frail::new(correct, *frailty, Arc::clone(&mortal))) as Arc<dyn Dialect>
            }
            None => correct,
        }
    };
    let (restarter, restarts) = mpsc::channel(1);
    let task = tokio::spawn(accept(listener, make, entry.path, relay, death, restarts, stopped));
    let url = format!("ws://{address}{}", entry.path);
    Ok(Server { url, stop, restarter: Restarter(restarter), task })
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(1024)
}

async fn accept(
    listener: TcpListener,
    make: impl Fn() -> Arc<dyn Dialect>,
    address: &'static str,
    relay: Option<Arc<Relay>>,
    death: Arc<Notify>,
    mut restarts: mpsc::Receiver<oneshot::Sender<()>>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut dialect = make();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(stream, Arc::clone(&dialect), address, relay.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
            () = death.notified() => break,
            // Whoever connects meanwhile waits: the listener stays.
            Some(done) = restarts.recv() => {
                connections.shutdown().await;
                relay.iter().for_each(|relay| relay.restart());
                dialect = dialect.restarted().unwrap_or_else(&make);
                // An error: nobody waits for it any more.
                let _ = done.send(());
            }
            // An error means that the handle is gone, which stops the server too.
            _ = stopped.changed() => break,
        }
    }
    connections.shutdown().await;
}

async fn connection(stream: TcpStream, dialect: Arc<dyn Dialect>, address: &str, relay: Option<Arc<Relay>>) {
    let Some(relay) = relay else { return serve(stream, dialect, address).await };
    // A connection that cannot be relayed is cut.
    let Some((near, far)) = relay.between().await else { return };
    let _ = stream.set_nodelay(true);
    tokio::join!(serve(far, dialect, address), relay.pass(stream, near));
}

/// Whether a path is the address's: each `{…}` of that is one part. Whether it may be empty is the dialect's affair. A document
/// whose address is `/` leaves the path open.
fn is_served(address: &str, path: &str) -> bool {
    let fits = |(due, came): (&str, &str)| due.starts_with('{') || due == came;
    let same = address.split('/').count() == path.split('/').count();
    address == "/" || (same && address.split('/').zip(path.split('/')).all(fits))
}

async fn serve(stream: TcpStream, dialect: Arc<dyn Dialect>, address: &str) {
    let _ = stream.set_nodelay(true);
    let mut path = String::new();
    #[allow(clippy::result_large_err, reason = "the library's own callback type")]
    let note = |request: &Request, response: Response| {
        path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        if is_served(address, request.uri().path()) {
            return Ok(response);
        }
        let mut refused = ErrorResponse::new(Some(format!("nothing is served here, but at {address}\n")));
        *refused.status_mut() = StatusCode::NOT_FOUND;
        Err(refused)
    };
    let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER);
    let handshake = tokio_tungstenite::accept_hdr_async_with_config(stream, note, Some(config));
    // Ten seconds: a client that has not finished its upgrade by then never will.
    if let Ok(Ok(socket)) = tokio::time::timeout(Duration::from_secs(10), handshake).await {
        dialect.serve(Socket::new(socket), path).await;
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

    #[test]
    fn a_path_is_served_where_the_document_says_so() {
        for (address, path, served) in [
            ("/ws", "/ws", true),
            ("/ws", "/", false),
            ("/ws", "/ws/", false),
            ("/ws", "/ws/a", false),
            ("/ws/{id}", "/ws/a-1", true),
            ("/ws/{id}", "/ws/", true),
            ("/ws/{id}", "/ws", false),
            ("/ws/{id}", "/ws/a/b", false),
            ("/", "/anything", true),
        ] {
            assert_eq!(is_served(address, path), served, "{address} {path}");
        }
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
