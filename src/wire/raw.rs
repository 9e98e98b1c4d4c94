//! A connection below the messages: it writes any bytes, and judges what comes back by the letter of RFC 6455.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::connect::{Answer, Stream, Upgraded};
use super::frame::Frame;
use super::messages::{Breach, Messages, Writer};
use super::room::{LONG_AT_LEAST, Lane, Reading, Room};
use super::{ConnectError, Endpoint, Incoming};
use crate::text::beginning;
use crate::trace::{End, Payload};

/// Bytes read at a time.
const CHUNK: usize = 16 * 1024;
/// Answers (pongs, mostly) that wait for the end of a half-written frame. A server that pings more than that often
/// goes without the oldest.
const MAX_OWED: usize = 64;
/// How long an answer may take to be written before it is given up: the server does not read.
const ANSWER: Duration = Duration::from_secs(1);
/// How much is kept of the bytes that broke the RFC.
const MAX_SHOWN: usize = 64;

/// How far the frames that this side has written are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Standing {
    /// Between two messages.
    Clear,
    /// Between two fragments of a message.
    MidMessage,
    /// In the middle of a frame: whatever is written next belongs to it.
    MidFrame,
    /// Behind a close frame.
    Closed,
    /// Behind bytes that RFC 6455 forbids.
    Broken,
}

/// An open connection on which anything can be written. Pings are answered and a close is returned, as the RFC wants
/// it, but never within a frame that is half written. Dropping it cuts the TCP connection (with a reset).
pub struct RawConnection {
    shared: Arc<Shared>,
    reader: JoinHandle<()>,
    stall: watch::Sender<bool>,
    selected: Option<String>,
}

struct Shared {
    half: tokio::sync::Mutex<Half>,
    owed: Mutex<VecDeque<Frame>>,
    standing: AtomicU8,
}

struct Half {
    stream: WriteHalf<Stream>,
    /// What the server makes of what was written.
    mirror: Messages,
    closed: bool,
}

impl RawConnection {
    /// Connects and upgrades as any client does. From then on everything received goes to `queue`, whose bound keeps a
    /// flooding server waiting. Bytes that break the RFC come as [`Payload::Raw`], and end the connection.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn open(
        endpoint: &Endpoint,
        number: u64,
        queue: mpsc::Sender<Incoming>,
    ) -> Result<Self, ConnectError> {
        let Upgraded { stream, ahead, answer: Answer { selected, extensions } } = endpoint.connect().await?;
        let (read, write) = tokio::io::split(stream);
        // What is written may be as long as the case wants it.
        let mirror = Messages::new(Writer::Client, usize::MAX);
        let shared = Arc::new(Shared {
            half: tokio::sync::Mutex::new(Half { stream: write, mirror, closed: false }),
            owed: Mutex::default(),
            standing: AtomicU8::new(Standing::Clear as u8),
        });
        let (stall, stalled) = watch::channel(false);
        let mut messages = Messages::new(Writer::Server, endpoint.max_message);
        messages.feed(&ahead);
        let shared_too = Arc::clone(&shared);
        let reader = Reader {
            stream: read,
            messages,
            number,
            queue,
            stalled,
            shared: shared_too,
            lane: Lane::default(),
        };
        let reading = Reading::begin();
        let reader = tokio::spawn(async move {
            match extensions {
                // Nobody knows what an extension makes of the frames.
                Some(agreed) => reader.refuse(&agreed).await,
                None => reader.run().await,
            }
            drop(reading);
        });
        Ok(Self { shared, reader, stall, selected })
    }

    /// The sub-protocol that the server selected.
    pub fn selected(&self) -> Option<&str> {
        self.selected.as_deref()
    }

    /// Writes bytes, at most `piece` of them (at least 1) at a time, each flushed. Returns the messages that they
    /// complete for a server that goes by the RFC.
    ///
    /// # Errors
    /// The connection is gone, or takes nothing within the deadline.
    pub async fn write(
        &mut self,
        bytes: &[u8],
        piece: usize,
        deadline: Duration,
    ) -> Result<Vec<Payload>, String> {
        let mut half = self.shared.half.lock().await;
        let completed = half.mirrored(bytes);
        let written = tokio::time::timeout(deadline, half.pieces(bytes, piece)).await;
        half.pay(&self.shared.owed).await;
        self.shared.standing.store(half.standing() as u8, Ordering::Release);
        match written {
            Ok(Ok(())) => Ok(completed),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("the server read nothing for {deadline:?}")),
        }
    }

    /// Ends this side's half of the TCP connection: the server reads that it is over behind all that was written. What it
    /// still sends is received.
    ///
    /// # Errors
    /// As [`RawConnection::write`].
    pub async fn finish(&mut self, deadline: Duration) -> Result<(), String> {
        let mut half = self.shared.half.lock().await;
        match tokio::time::timeout(deadline, half.stream.shutdown()).await {
            Ok(ended) => ended.map_err(|error| error.to_string()),
            Err(_) => Err(format!("the server read nothing for {deadline:?}")),
        }
    }

    /// How far what was written is understood.
    pub fn standing(&self) -> Standing {
        let standing = self.shared.standing.load(Ordering::Acquire);
        [Standing::Clear, Standing::MidMessage, Standing::MidFrame, Standing::Closed]
            .into_iter()
            .find(|known| *known as u8 == standing)
            .unwrap_or(Standing::Broken)
    }

    /// Stops or resumes reading from the socket.
    pub fn stall(&self, stalled: bool) {
        // An error means that the reader is gone, and there is nothing to stall.
        let _ = self.stall.send(stalled);
    }
}

impl Drop for RawConnection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Half {
    async fn pieces(&mut self, bytes: &[u8], piece: usize) -> std::io::Result<()> {
        for part in bytes.chunks(piece.max(1)) {
            self.stream.write_all(part).await?;
            self.stream.flush().await?;
        }
        Ok(())
    }

    fn mirrored(&mut self, bytes: &[u8]) -> Vec<Payload> {
        self.mirror.feed(bytes);
        let mut completed = Vec::new();
        while let Ok(Some(payload)) = self.mirror.take() {
            self.closed |= matches!(payload, Payload::Close { .. });
            completed.push(payload);
        }
        completed
    }

    fn standing(&self) -> Standing {
        if self.closed {
            Standing::Closed
        } else if self.mirror.is_broken() {
            Standing::Broken
        } else if self.mirror.is_between_messages() {
            Standing::Clear
        } else if self.mirror.at_boundary() {
            Standing::MidMessage
        } else {
            Standing::MidFrame
        }
    }

    /// Writes the answers that are owed, if what stands on the wire lets the server understand them.
    async fn pay(&mut self, owed: &Mutex<VecDeque<Frame>>) {
        while matches!(self.standing(), Standing::Clear | Standing::MidMessage) {
            let next = owed.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(frame) = next else { return };
            let bytes = frame.encode();
            self.mirrored(&bytes);
            // A server that takes no answer is noticed by whoever waits for something of it.
            let _ = tokio::time::timeout(ANSWER, self.pieces(&bytes, usize::MAX)).await;
        }
    }
}

struct Reader {
    stream: ReadHalf<Stream>,
    messages: Messages,
    number: u64,
    queue: mpsc::Sender<Incoming>,
    stalled: watch::Receiver<bool>,
    shared: Arc<Shared>,
    /// While a large message comes.
    lane: Lane,
}

impl Reader {
    /// The server agrees to what was not asked for: nothing behind its answer is read, as RFC 6455 wants it.
    async fn refuse(self, agreed: &str) {
        let header = format!("Sec-WebSocket-Extensions: {agreed}");
        let shown = Payload::Raw(beginning(&header, MAX_SHOWN).as_bytes().into());
        let agreed = beginning(agreed, MAX_SHOWN);
        let detail = format!("it agrees to an extension that was not asked for: {agreed} (RFC 6455, 4.1)");
        let _ = self.enqueue(shown).await && self.end(End::Protocol, Some(detail)).await;
    }

    async fn run(mut self) {
        let mut chunk = vec![0; CHUNK];
        let mut closing = false;
        loop {
            loop {
                match self.messages.take() {
                    Ok(None) => break,
                    Ok(Some(payload)) => {
                        let is_close = matches!(payload, Payload::Close { .. });
                        closing |= is_close;
                        self.answer(&payload).await;
                        // What has come with a close frame is reported with it: nobody needs to wait for more.
                        let behind = if is_close { self.messages.take() } else { Ok(None) };
                        match behind {
                            Err(breach) => return self.report_breach(Some(payload), breach).await,
                            Ok(behind) => {
                                for payload in [Some(payload), behind].into_iter().flatten() {
                                    if !self.enqueue(payload).await {
                                        return;
                                    }
                                }
                            }
                        }
                    }
                    Err(breach) => return self.report_breach(None, breach).await,
                }
            }
            if self.messages.unfinished() <= LONG_AT_LEAST {
                self.lane = Lane::default();
            }
            if self.stalled.wait_for(|stalled| !stalled).await.is_err() {
                return;
            }
            let read = tokio::select! {
                read = self.stream.read(&mut chunk) => read,
                changed = self.stalled.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
            };
            let end = match read {
                Ok(length) if length > 0 => {
                    self.messages.feed(&chunk[..length]);
                    self.lane.grow(self.messages.unfinished()).await;
                    continue;
                }
                _ if closing => End::Closed,
                Ok(_) => End::Eof,
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => End::Eof,
                Err(_) => End::Reset,
            };
            self.end(end, None).await;
            return;
        }
    }

    /// `false`: nobody listens any more.
    async fn enqueue(&self, payload: Payload) -> bool {
        let at = Instant::now();
        let room = Room::of(&payload).await;
        let incoming = Incoming { connection: self.number, at, payload, detail: None, room, more: false };
        self.queue.send(incoming).await.is_ok()
    }

    /// Tells what broke the RFC, together with what came before it.
    async fn report_breach(&self, before: Option<Payload>, breach: Breach) {
        let end = if breach == Breach::TooLong { End::TooLong } else { End::Protocol };
        let bytes = self.messages.pending();
        let shown = Payload::Raw(bytes[..bytes.len().min(MAX_SHOWN)].into());
        let all = [before, Some(shown), Some(Payload::End(end))].into_iter().flatten();
        let (connection, at) = (self.number, Instant::now());
        let all = all.map(|payload| {
            let detail = matches!(payload, Payload::End(_)).then(|| breach.to_string());
            let more = !matches!(payload, Payload::End(_));
            Incoming { connection, at, payload, detail, room: None, more }
        });
        for incoming in all {
            // An error: nobody listens any more.
            _ = self.queue.send(incoming).await;
        }
    }

    async fn end(&self, end: End, detail: Option<String>) -> bool {
        let payload = Payload::End(end);
        let at = Instant::now();
        let incoming = Incoming { connection: self.number, at, payload, detail, room: None, more: false };
        self.queue.send(incoming).await.is_ok()
    }

    /// Answers a ping and returns a close.
    async fn answer(&self, payload: &Payload) {
        let frame = match payload {
            Payload::Ping(bytes) => Frame::new(10, &bytes[..]),
            Payload::Close { code, .. } => {
                Frame::new(8, code.map_or_else(Vec::new, |code| code.to_be_bytes().to_vec()))
            }
            _ => return,
        };
        {
            let mut owed = self.shared.owed.lock().unwrap_or_else(PoisonError::into_inner);
            owed.push_back(frame);
            while owed.len() > MAX_OWED {
                owed.pop_front();
            }
        }
        // Whoever holds the lock for longer pays when it is done.
        if let Ok(mut half) = tokio::time::timeout(ANSWER, self.shared.half.lock()).await {
            half.pay(&self.shared.owed).await;
            self.shared.standing.store(half.standing() as u8, Ordering::Release);
        }
    }
}
