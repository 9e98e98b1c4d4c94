//! A client's connection: on messages, or below them.

use std::time::Duration;

use tokio::sync::mpsc;

use super::frame::Frame;
use super::raw::Standing;
use super::{ConnectError, Connection, Endpoint, Incoming, RawConnection};
use crate::trace::Payload;

/// An open connection of either kind. Dropping it cuts the TCP connection (with a reset).
pub enum Link {
    /// It sends messages.
    Messages(Connection),
    /// It writes frames, right or wrong.
    Raw(RawConnection),
}

/// What a connection is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkMode {
    /// Messages alone.
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
        Ok(match mode {
            LinkMode::Raw => Self::Raw(RawConnection::open(endpoint, number, queue).await?),
            LinkMode::Messages => Self::Messages(Connection::open(endpoint, number, queue).await?),
        })
    }

    /// Sends a text message.
    ///
    /// # Errors
    /// The connection is gone, or takes nothing within the deadline.
    pub async fn text(&mut self, text: String, deadline: Duration) -> Result<(), String> {
        match self {
            Self::Messages(connection) => connection.text(text, deadline).await,
            Self::Raw(connection) => connection.frame(&Frame::new(1, text), deadline).await.map(drop),
        }
    }

    /// Sends a binary message.
    ///
    /// # Errors
    /// As [`Link::text`].
    pub async fn binary(&mut self, bytes: Vec<u8>, deadline: Duration) -> Result<(), String> {
        match self {
            Self::Messages(connection) => connection.binary(bytes, deadline).await,
            Self::Raw(connection) => connection.frame(&Frame::new(2, bytes), deadline).await.map(drop),
        }
    }

    /// Sends a ping; the pong comes through the queue.
    ///
    /// # Errors
    /// As [`Link::text`].
    pub async fn ping(&mut self, bytes: Vec<u8>, deadline: Duration) -> Result<(), String> {
        match self {
            Self::Messages(connection) => connection.ping(bytes, deadline).await,
            Self::Raw(connection) => connection.frame(&Frame::new(9, bytes), deadline).await.map(drop),
        }
    }

    /// Begins the closing handshake, with a code or none; the server's answer comes through the queue.
    ///
    /// # Errors
    /// As [`Link::text`].
    pub async fn close(&mut self, code: Option<u16>, deadline: Duration) -> Result<(), String> {
        match self {
            Self::Messages(connection) => connection.close(code, deadline).await,
            Self::Raw(connection) => {
                let code = code.map_or(Vec::new(), |code| code.to_be_bytes().to_vec());
                connection.frame(&Frame::new(8, code), deadline).await.map(drop)
            }
        }
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
        match self {
            Self::Messages(_) => Err("this connection takes whole messages only".to_owned()),
            Self::Raw(connection) => connection.write(bytes, piece, deadline).await,
        }
    }

    /// Ends this side's half of the TCP connection as [`RawConnection::finish`] does.
    ///
    /// # Errors
    /// As [`Link::write`].
    pub async fn finish(&mut self, deadline: Duration) -> Result<(), String> {
        match self {
            Self::Messages(_) => Err("this connection takes whole messages only".to_owned()),
            Self::Raw(connection) => connection.finish(deadline).await,
        }
    }

    /// How far what was written is understood.
    pub fn standing(&self) -> Standing {
        match self {
            Self::Messages(_) => Standing::Clear,
            Self::Raw(connection) => connection.standing(),
        }
    }

    /// Stops or resumes reading from the socket.
    pub fn stall(&self, stalled: bool) {
        match self {
            Self::Messages(connection) => connection.stall(stalled),
            Self::Raw(connection) => connection.stall(stalled),
        }
    }
}
