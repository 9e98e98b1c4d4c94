//! A client's connection: on messages, or below them.

use std::time::Duration;

use tokio::sync::mpsc;

use super::frame::Frame;
use super::raw::Standing;
use super::{ConnectError, Endpoint, Incoming, RawConnection};
use crate::trace::Payload;

/// An open connection. What the server writes is read by the letter of RFC 6455, whatever this side may write. Dropping it cuts
/// the TCP connection (with a reset).
pub struct Link {
    connection: RawConnection,
    mode: LinkMode,
    /// The next frame waits for the one behind it.
    holds_next: bool,
    /// The frame that waits.
    held: Vec<u8>,
    /// How many frames the next text message comes in.
    fragments: usize,
}

/// What a connection is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkMode {
    /// Messages alone, and none behind a close frame.
    Messages,
    /// Frames as well, right or wrong.
    Raw,
}

impl Link {
    /// Connects.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn open(
        endpoint: &Endpoint,
        number: u64,
        queue: mpsc::Sender<Incoming>,
        mode: LinkMode,
    ) -> Result<Self, ConnectError> {
        let connection = RawConnection::open(endpoint, number, queue).await?;
        Ok(Self { connection, mode, holds_next: false, held: Vec::new(), fragments: 1 })
    }

    /// The sub-protocol that the server selected.
    pub fn selected(&self) -> Option<&str> {
        self.connection.selected()
    }

    async fn frame(&mut self, frame: Frame, deadline: Duration) -> Result<(), String> {
        self.frames(frame.encode(), deadline).await
    }

    async fn frames(&mut self, encoded: Vec<u8>, deadline: Duration) -> Result<(), String> {
        if self.mode == LinkMode::Messages && self.connection.standing() == Standing::Closed {
            return Err("nothing can be sent after a close frame".to_owned());
        }
        let held = std::mem::take(&mut self.held);
        let bytes = if held.is_empty() { encoded } else { [held, encoded].concat() };
        if std::mem::take(&mut self.holds_next) {
            self.held = bytes;
            return Ok(());
        }
        self.connection.write(&bytes, usize::MAX, deadline).await.map(drop)
    }

    /// Has the next message, ping or close wait for the one behind it. Both are written at once, so that the server can
    /// read them at once.
    pub fn hold_next(&mut self) {
        self.holds_next = true;
    }

    /// Cuts the next text message into so many frames (at least 1), wherever that is, also within a character.
    pub fn fragment_next(&mut self, fragments: usize) {
        self.fragments = fragments;
    }

    fn takes_bytes(&self) -> Result<(), String> {
        match self.mode {
            LinkMode::Messages => Err("this connection takes whole messages only".to_owned()),
            LinkMode::Raw => Ok(()),
        }
    }

    /// Sends a text message.
    ///
    /// # Errors
    /// The connection is gone, or takes nothing within the deadline.
    pub async fn text(&mut self, text: String, deadline: Duration) -> Result<(), String> {
        let fragments = std::mem::replace(&mut self.fragments, 1);
        let size = text.len().div_ceil(fragments);
        let whole = Frame::new(1, text);
        // A copy of a large message is not made for nothing.
        if fragments == 1 {
            return self.frame(whole, deadline).await;
        }
        let frames = whole.fragments(size);
        self.frames(frames.iter().flat_map(Frame::encode).collect(), deadline).await
    }

    /// Sends a binary message.
    ///
    /// # Errors
    /// As [`Link::text`].
    pub async fn binary(&mut self, bytes: Vec<u8>, deadline: Duration) -> Result<(), String> {
        self.frame(Frame::new(2, bytes), deadline).await
    }

    /// Sends a ping; the pong comes through the queue.
    ///
    /// # Errors
    /// As [`Link::text`].
    pub async fn ping(&mut self, bytes: Vec<u8>, deadline: Duration) -> Result<(), String> {
        self.frame(Frame::new(9, bytes), deadline).await
    }

    /// Begins the closing handshake, with a code or none; the server's answer comes through the queue.
    ///
    /// # Errors
    /// As [`Link::text`].
    pub async fn close(&mut self, code: Option<u16>, deadline: Duration) -> Result<(), String> {
        let code = code.map_or(Vec::new(), |code| code.to_be_bytes().to_vec());
        self.frame(Frame::new(8, code), deadline).await
    }

    /// Writes bytes as [`RawConnection::write`] does.
    ///
    /// # Errors
    /// As [`Link::text`], and where the connection is none for raw bytes.
    pub async fn write(
        &mut self,
        bytes: &[u8],
        piece: usize,
        deadline: Duration,
    ) -> Result<Vec<Payload>, String> {
        self.takes_bytes()?;
        self.connection.write(bytes, piece, deadline).await
    }

    /// Ends this side's half of the TCP connection as [`RawConnection::finish`] does.
    ///
    /// # Errors
    /// As [`Link::write`].
    pub async fn finish(&mut self, deadline: Duration) -> Result<(), String> {
        self.takes_bytes()?;
        self.connection.finish(deadline).await
    }

    /// How far what was written is understood.
    pub fn standing(&self) -> Standing {
        match self.mode {
            LinkMode::Messages => Standing::Clear,
            LinkMode::Raw => self.connection.standing(),
        }
    }

    /// Stops or resumes reading from the socket.
    pub fn stall(&self, stalled: bool) {
        self.connection.stall(stalled);
    }
}
