//! The connection as the dialects see it: it answers a close, and closes with the proper code when a client breaks RFC 6455.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

/// How long a client may take to hang up after it has been refused.
const LINGER: Duration = Duration::from_secs(1);

/// A connection after its upgrade. The library gives an error where a client breaks the RFC, and says nothing on the
/// wire; this sends the close frame that belongs to it first.
pub(super) struct Socket {
    inner: WebSocketStream<TcpStream>,
    refusal: Refusal,
}

enum Refusal {
    None,
    /// The client has closed; the library has queued the answer.
    Closed(Message),
    /// The close frame is to be sent.
    Due(Error, CloseCode),
    /// It has been queued.
    Sent(Error),
    /// It is out. Unread bytes would turn the end into a reset, and the close frame might be lost to it.
    Draining(Error, Pin<Box<Sleep>>),
}

impl Socket {
    pub fn new(inner: WebSocketStream<TcpStream>) -> Self {
        Self { inner, refusal: Refusal::None }
    }

    fn refuse(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Message, Error>>> {
        loop {
            self.refusal = match std::mem::replace(&mut self.refusal, Refusal::None) {
                Refusal::None => return Poll::Ready(None),
                Refusal::Closed(message) => match Pin::new(&mut self.inner).poll_flush(context) {
                    Poll::Pending => {
                        self.refusal = Refusal::Closed(message);
                        return Poll::Pending;
                    }
                    Poll::Ready(_) => return Poll::Ready(Some(Ok(message))),
                },
                Refusal::Due(error, code) => {
                    let mut sink = Pin::new(&mut self.inner);
                    match sink.as_mut().poll_ready(context) {
                        Poll::Pending => {
                            self.refusal = Refusal::Due(error, code);
                            return Poll::Pending;
                        }
                        Poll::Ready(Ok(())) => {
                            let frame = CloseFrame { code, reason: "".into() };
                            let _ = sink.start_send(Message::Close(Some(frame)));
                            Refusal::Sent(error)
                        }
                        Poll::Ready(Err(_)) => return Poll::Ready(Some(Err(error))),
                    }
                }
                Refusal::Sent(error) => match Pin::new(&mut self.inner).poll_flush(context) {
                    Poll::Pending => {
                        self.refusal = Refusal::Sent(error);
                        return Poll::Pending;
                    }
                    Poll::Ready(_) => Refusal::Draining(error, Box::pin(tokio::time::sleep(LINGER))),
                },
                Refusal::Draining(error, mut timer) => {
                    let mut scratch = [0; 4096];
                    let mut scratch = ReadBuf::new(&mut scratch);
                    let polled = Pin::new(self.inner.get_mut()).poll_read(context, &mut scratch);
                    let over = match polled {
                        Poll::Ready(Ok(())) => scratch.filled().is_empty(),
                        Poll::Ready(Err(_)) => true,
                        Poll::Pending if timer.as_mut().poll(context).is_ready() => true,
                        Poll::Pending => {
                            self.refusal = Refusal::Draining(error, timer);
                            return Poll::Pending;
                        }
                    };
                    if over {
                        return Poll::Ready(Some(Err(error)));
                    }
                    Refusal::Draining(error, timer)
                }
            };
        }
    }
}

/// The close code of RFC 6455, 7.4.1, for what a client has broken.
fn code_for(error: &Error) -> Option<CloseCode> {
    use tokio_tungstenite::tungstenite::error::ProtocolError;
    match error {
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        Error::Protocol(_) => Some(CloseCode::Protocol),
        Error::Utf8(_) => Some(CloseCode::Invalid),
        Error::Capacity(_) => Some(CloseCode::Size),
        _ => None,
    }
}

impl Stream for Socket {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !matches!(self.refusal, Refusal::None) {
            return self.refuse(context);
        }
        let next = ready!(Pin::new(&mut self.inner).poll_next(context));
        let error = match next {
            Some(Ok(message @ Message::Close(_))) => {
                self.refusal = Refusal::Closed(message);
                return self.refuse(context);
            }
            Some(Err(error)) => error,
            other => return Poll::Ready(other),
        };
        match code_for(&error) {
            Some(code) => {
                self.refusal = Refusal::Due(error, code);
                self.refuse(context)
            }
            None => Poll::Ready(Some(Err(error))),
        }
    }
}

impl Sink<Message> for Socket {
    type Error = Error;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.inner).poll_ready(context)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<(), Error> {
        Pin::new(&mut self.inner).start_send(message)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.inner).poll_close(context)
    }
}
