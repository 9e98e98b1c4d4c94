//! The closing handshake with which a connection ends that nobody needs any more. Nothing of it is judged.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::run::case::connections::{Awaited, wait_for_end};
use crate::run::case::interpreter::Interpreter;
use crate::run::case::outcome::CloseHandshake;
use crate::wire::{Incoming, Link};

/// How long a server may take to return the close frame before the connection is cut: it has no reason to wait.
const PATIENCE: Duration = Duration::from_millis(100);
/// This side has what it wanted (RFC 6455, 7.4.1).
const NORMAL: u16 = 1000;

impl Interpreter<'_> {
    /// Closes what is open still, with code 1000.
    pub(crate) async fn close_all(&mut self) -> CloseHandshake {
        let run = self.cx.run;
        // Where cases run one after the other, somebody says so for a reason.
        let awaited = match run.options.jobs {
            1 if !run.is_reference => Awaited::TcpEnd(&run.activity),
            _ => Awaited::Frame,
        };
        self.conns.close_all(NORMAL, Instant::now() + PATIENCE, awaited).await
    }
}

/// Closes a connection that was opened only to see whether it can be.
pub(crate) async fn close_probe(mut link: Link, number: u64, mut receiver: mpsc::Receiver<Incoming>) {
    let until = Instant::now() + PATIENCE;
    if link.close(Some(NORMAL), PATIENCE).await.is_ok() {
        wait_for_end(&mut receiver, number, until).await;
    }
}
