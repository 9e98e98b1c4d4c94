//! Listening, accepting and stopping.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::hangs::Hangs;
use super::record::Observer;
use super::service::Service;
use crate::shortage;
use crate::wire::guard::{Guard, TURNED_AWAY, no_room, reject};

/// Connections at once, if nothing else is said.
const CONNECTIONS: usize = 1024;
/// How long a connection may take for the head of its next request, its idle time included.
const HEAD: Duration = Duration::from_secs(300);
/// How long nothing is accepted after an error.
const PAUSE: Duration = Duration::from_millis(20);
/// Bytes of a request's head, or of an unread part of its body, that are kept.
const BUFFER: usize = 64 * 1024;

/// How to start the model.
#[derive(Clone)]
pub struct Options {
    /// The address to listen on; port 0 uses a free port.
    pub listen: SocketAddr,
    /// Who is told of each request.
    pub observer: Option<Observer>,
    /// Who may connect; none: everybody.
    pub guard: Option<Guard>,
    /// Most connections at a time.
    pub most: usize,
    /// The cases whose hangs end with them; none: a hang lasts until it is cancelled.
    pub hangs: Option<Hangs>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            observer: None,
            guard: None,
            most: CONNECTIONS,
            hangs: None,
        }
    }
}

/// Why the model does not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {error}")]
pub struct StartError {
    /// The address.
    pub address: SocketAddr,
    /// The reason.
    pub error: std::io::Error,
}

/// A running model. Dropping it stops it too, without waiting.
pub struct Model {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Model {
    /// `http://ADDRESS:PORT`, without `/v1`: what Anthropic's clients take; OpenAI's and Ollama's take it with `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Cuts all connections and waits for the model to be gone.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }
}

/// Starts the model.
///
/// # Errors
/// The address cannot be listened on.
pub async fn start(options: Options) -> Result<Model, StartError> {
    let fail = |error| {
        shortage::note(&error);
        StartError { address: options.listen, error }
    };
    let listener = TcpListener::bind(options.listen).await.map_err(fail)?;
    let address = listener.local_addr().map_err(fail)?;
    let (stop, stopped) = watch::channel(false);
    let service = Arc::new(Service::new(options.observer, options.guard, options.hangs));
    let task = tokio::spawn(accept(listener, service, options.most, stopped));
    Ok(Model { address, stop, task })
}

async fn accept(
    listener: TcpListener,
    service: Arc<Service>,
    most: usize,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < most => {
                    connections.spawn(connection(stream, Arc::clone(&service)));
                }
                Ok((stream, _)) if connections.len() < most.saturating_add(TURNED_AWAY) => {
                    connections.spawn(async move { reject(stream, &no_room()).await });
                }
                // It is cut.
                Ok(_) => {}
                Err(error) => {
                    shortage::note(&error);
                    // Where this process has no more files, it must not turn round and round.
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
            // An error means that the handle is gone, which stops the model too.
            _ = stopped.changed() => break,
        }
    }
    connections.shutdown().await;
}

async fn connection(stream: TcpStream, service: Arc<Service>) {
    let _ = stream.set_nodelay(true);
    let answer = service_fn(move |request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, std::convert::Infallible>(service.answer(request).await) }
    });
    // An error is the client's: it went away, or does not speak HTTP.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}
