//! The clients of a session, and what is queued for each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use crate::reference::Socket;

/// Messages queued for a client above which it is told to drain.
pub(in crate::reference) const HIGH: usize = 48;
/// Messages queued above which a client that does not read is cut off: memory is bounded.
const MAX_QUEUED: usize = 100_000;

/// The sending side of one connection.
#[derive(Clone)]
pub(in crate::reference) struct Outbox {
    queue: mpsc::UnboundedSender<Message>,
    queued: Arc<AtomicUsize>,
}

/// The receiving side: what the connection's writer takes from.
pub(in crate::reference) struct Outgoing {
    queue: mpsc::UnboundedReceiver<Message>,
    queued: Arc<AtomicUsize>,
}

pub(in crate::reference) fn channel() -> (Outbox, Outgoing) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let queued = Arc::new(AtomicUsize::new(0));
    (Outbox { queue: sender, queued: Arc::clone(&queued) }, Outgoing { queue: receiver, queued })
}

impl Outbox {
    /// Queues a message; returns how many are queued now.
    pub(in crate::reference) fn send(&self, message: Message) -> usize {
        let queued = self.queued.fetch_add(1, Ordering::Relaxed) + 1;
        if queued <= MAX_QUEUED {
            // A closed queue is a connection that is gone.
            let _ = self.queue.send(message);
        }
        queued
    }

    /// Messages that are queued.
    pub(in crate::reference) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }
}

impl Outgoing {
    /// The next message; `None` once the connection has been given up.
    pub(in crate::reference) async fn next(&mut self) -> Option<Message> {
        self.queue.recv().await
    }

    /// Writes everything to a socket until it breaks, the connection is given up, or a close has been written.
    pub(in crate::reference) async fn write_to(mut self, mut sink: SplitSink<Socket, Message>) {
        while let Some(message) = self.next().await {
            let last = message.is_close();
            if sink.send(message).await.is_err() || last {
                return;
            }
            self.written();
        }
    }

    /// One message has been written; returns how many are left.
    pub(in crate::reference) fn written(&self) -> usize {
        self.queued.fetch_sub(1, Ordering::Relaxed).saturating_sub(1)
    }
}

/// The clients of a session by number, in the order of joining.
pub(in crate::reference) type Clients = BTreeMap<u64, Outbox>;
