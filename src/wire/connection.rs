//! An open connection: its reader feeds a shared queue, its writer is used directly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::connect::Socket;
use super::room::Room;
use super::{ConnectError, Endpoint};
use crate::trace::{End, Payload};

/// Something that a connection received, or its end.
#[derive(Debug)]
pub struct Incoming {
    /// The connection's number, as given to [`Connection::open`].
    pub connection: u64,
    /// When it was received.
    pub at: Instant,
    /// What.
    pub payload: Payload,
    /// Of an end, why, in the words of the WebSocket layer.
    pub detail: Option<String>,
    /// Of a large message: its share of what may wait to be looked at.
    #[expect(dead_code, reason = "it is held, and no more")]
    pub(crate) room: Option<Room>,
}

/// An open connection. Dropping it cuts the TCP connection (with a reset).
pub struct Connection {
    sink: SplitSink<Socket, Message>,
    reader: JoinHandle<()>,
    stall: watch::Sender<bool>,
    /// Pings of this side without a pong.
    unanswered: Arc<AtomicUsize>,
}

impl Connection {
    /// Connects. From then on everything received goes to `queue`, whose bound keeps a flooding server waiting.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn open(
        endpoint: &Endpoint,
        number: u64,
        queue: mpsc::Sender<Incoming>,
    ) -> Result<Self, ConnectError> {
        let (sink, stream) = endpoint.connect().await?.split();
        let (stall, stalled) = watch::channel(false);
        let unanswered: Arc<AtomicUsize> = Arc::default();
        let reader = tokio::spawn(read(stream, number, queue, stalled, Arc::clone(&unanswered)));
        Ok(Self { sink, reader, stall, unanswered })
    }

    /// Sends a text message.
    ///
    /// # Errors
    /// The connection is gone, or takes nothing within the deadline.
    pub async fn text(&mut self, text: String, deadline: Duration) -> Result<(), String> {
        self.send(Message::text(text), deadline).await
    }

    /// Sends a binary message.
    ///
    /// # Errors
    /// As [`Connection::text`].
    pub async fn binary(&mut self, bytes: Vec<u8>, deadline: Duration) -> Result<(), String> {
        self.send(Message::binary(bytes), deadline).await
    }

    /// Sends a ping; the pong comes through the queue.
    ///
    /// # Errors
    /// As [`Connection::text`].
    pub async fn ping(&mut self, bytes: Vec<u8>, deadline: Duration) -> Result<(), String> {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        self.send(Message::Ping(bytes.into()), deadline).await
    }

    /// Begins the closing handshake, with a code or none; the server's answer comes through the queue.
    ///
    /// # Errors
    /// As [`Connection::text`].
    pub async fn close(&mut self, code: Option<u16>, deadline: Duration) -> Result<(), String> {
        let frame = code.map(|code| CloseFrame { code: code.into(), reason: "".into() });
        self.send(Message::Close(frame), deadline).await
    }

    async fn send(&mut self, message: Message, deadline: Duration) -> Result<(), String> {
        match tokio::time::timeout(deadline, self.sink.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("the server read nothing for {deadline:?}")),
        }
    }

    /// Stops or resumes reading from the socket.
    pub fn stall(&self, stalled: bool) {
        // An error means that the reader is gone, and there is nothing to stall.
        let _ = self.stall.send(stalled);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn read(
    mut stream: SplitStream<Socket>,
    connection: u64,
    queue: mpsc::Sender<Incoming>,
    mut stalled: watch::Receiver<bool>,
    unanswered: Arc<AtomicUsize>,
) {
    let mut closing = false;
    loop {
        // A change is looked for before each frame, which costs less than a look at the value.
        let unchanged = stalled.has_changed().is_ok_and(|changed| !changed);
        if !unchanged && stalled.wait_for(|stalled| !stalled).await.is_err() {
            return;
        }
        // What has come already is taken at once: most frames of a stream come several a read.
        let next = match stream.next().now_or_never() {
            Some(next) => next,
            None => tokio::select! {
                next = stream.next() => next,
                changed = stalled.changed() => {
                    if changed.is_err() || stalled.wait_for(|stalled| !stalled).await.is_err() {
                        return;
                    }
                    continue;
                }
            },
        };
        let mut detail = None;
        let payload = match next {
            Some(Ok(message)) => payload(message),
            Some(Err(error)) => {
                let end = match error {
                    // The server answers a ping until it has the client's close frame (RFC 6455, 5.5.2). The library does not say
                    // what came: it was the pong, if one is still due.
                    Error::Protocol(ProtocolError::ReceivedAfterClosing)
                        if unanswered.load(Ordering::Relaxed) > 0 =>
                    {
                        End::Closed
                    }
                    _ => end_of(&error, closing),
                };
                detail = matches!(end, End::Protocol | End::TooLong).then(|| error.to_string());
                Payload::End(end)
            }
            None => Payload::End(if closing { End::Closed } else { End::Eof }),
        };
        closing |= matches!(payload, Payload::Close { .. });
        if matches!(payload, Payload::Pong(_)) {
            let one_less = |pings: usize| pings.checked_sub(1);
            // An error means that none was due: a pong may come unasked.
            let _ = unanswered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        }
        let over = matches!(payload, Payload::End(_));
        let at = Instant::now();
        let room = Room::of(&payload).await;
        let incoming = Incoming { connection, at, payload, detail, room };
        let taken = match queue.try_send(incoming) {
            Err(TrySendError::Full(incoming)) => queue.send(incoming).await.is_ok(),
            taken => taken.is_ok(),
        };
        if !taken || over {
            return;
        }
    }
}

fn payload(message: Message) -> Payload {
    match message {
        Message::Text(text) => Payload::Text(Arc::from(text.as_str())),
        Message::Binary(bytes) => Payload::Binary(Arc::from(&bytes[..])),
        Message::Ping(bytes) => Payload::Ping(Arc::from(&bytes[..])),
        Message::Pong(bytes) => Payload::Pong(Arc::from(&bytes[..])),
        Message::Close(frame) => Payload::Close {
            code: frame.as_ref().map(|frame| frame.code.into()),
            reason: frame.map(|frame| frame.reason.as_str().into()).unwrap_or_default(),
        },
        // Never produced by a reader.
        Message::Frame(frame) => Payload::Binary(Arc::from(frame.payload())),
    }
}

fn end_of(error: &Error, closing: bool) -> End {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => End::Closed,
        Error::Io(_) if closing => End::Closed,
        Error::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => End::Eof,
        Error::Io(_) => End::Reset,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => End::Eof,
        Error::Capacity(_) => End::TooLong,
        _ => End::Protocol,
    }
}
