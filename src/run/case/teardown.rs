//! The closing handshake with which a connection ends that nobody needs any more. Nothing of it is judged.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::run::case::interpreter::Interpreter;
use crate::trace::Payload;
use crate::wire::{Connection, Incoming};

/// How long a server may take to return the close frame before the connection is cut: it has no reason to wait.
const PATIENCE: Duration = Duration::from_millis(100);
/// This side has what it wanted (RFC 6455, 7.4.1).
const NORMAL: Option<u16> = Some(1000);

impl Interpreter<'_> {
    /// Closes what is open still, with code 1000.
    pub(crate) async fn close_all(&mut self) {
        let until = Instant::now() + PATIENCE;
        let mut open = HashSet::new();
        for client in self.conns.clients.values_mut() {
            let polite = client.ended.is_none() && !client.stalled && client.is_understood();
            if let Some(connection) = client.connection.as_mut().filter(|_| polite)
                && connection.close(NORMAL, until.saturating_duration_since(Instant::now())).await.is_ok()
            {
                open.insert(client.number);
            }
        }
        ended(&mut self.conns.receiver, &mut open, until).await;
    }
}

/// Closes a connection that was opened only to see whether it can be.
pub(crate) async fn close_probe(
    mut connection: Connection,
    number: u64,
    mut receiver: mpsc::Receiver<Incoming>,
) {
    let until = Instant::now() + PATIENCE;
    if connection.close(NORMAL, PATIENCE).await.is_ok() {
        ended(&mut receiver, &mut HashSet::from([number]), until).await;
    }
}

/// Waits until these connections have ended. What else comes is thrown away.
async fn ended(receiver: &mut mpsc::Receiver<Incoming>, open: &mut HashSet<u64>, until: Instant) {
    while !open.is_empty()
        && let Ok(Some(incoming)) = tokio::time::timeout_at(until.into(), receiver.recv()).await
    {
        if matches!(incoming.payload, Payload::Close { .. } | Payload::End(_)) {
            open.remove(&incoming.connection);
        }
    }
}
