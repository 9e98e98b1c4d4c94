//! Servers: listening, accepting, and the tasks of the connections.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::shortage;

/// Send buffer of an accepted connection in bytes: small, so that a client that does not read is noticed soon.
const SEND_BUFFER: u32 = 16 * 1024;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// How long nothing is accepted after an error.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// Accepts connections, and keeps the tasks that serve them.
pub struct Acceptor {
    listener: TcpListener,
    connections: JoinSet<()>,
    accepted: u64,
}

impl Acceptor {
    /// Listens; port 0 takes a free one.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn listen(address: SocketAddr) -> io::Result<Self> {
        let listener = shortage::note_result(listen(address))?;
        Ok(Self { listener, connections: JoinSet::new(), accepted: 0 })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next connection, and its number from 1. Nothing is lost when this is given up.
    pub async fn next(&mut self) -> (TcpStream, u64) {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        self.accepted += 1;
                        return (stream, self.accepted);
                    }
                    // The client is gone already; or this process has no more files, and must not turn round and round.
                    Err(error) => {
                        shortage::note(&error);
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                // Those that are done are taken away.
                Some(_) = self.connections.join_next() => {}
            }
        }
    }

    /// Connections that are being served.
    pub fn count(&self) -> usize {
        self.connections.len()
    }

    /// Serves a connection beside the others.
    pub fn spawn(&mut self, connection: impl Future<Output = ()> + Send + 'static) {
        self.connections.spawn(connection);
    }

    /// Cuts all connections. Whoever connects meanwhile waits: it goes on listening.
    pub async fn cut_all(&mut self) {
        self.connections.shutdown().await;
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A connection within this process: its client's end and its server's.
///
/// # Errors
/// The system has no more ports or files.
pub async fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let pair = async {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let (near, far) = tokio::join!(TcpStream::connect(listener.local_addr()?), listener.accept());
        Ok((near?, far?.0))
    };
    shortage::note_result(pair.await)
}
