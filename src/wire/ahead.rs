//! The stream under an upgrade that leaves alone what comes behind it.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const END: &[u8] = b"\r\n\r\n";
/// `HTTP/1.1 101`.
const STATUS: usize = 12;

/// Hands out bytes up to the end of an HTTP head and keeps those behind it: whoever reads the head reads in large
/// pieces, and would take the server's first frames with it. Behind a refusal comes no frame but its body, which is handed out.
pub(super) struct Ahead<S> {
    stream: S,
    /// The last bytes of what was handed out, as far as the end may have begun in them.
    seen: Vec<u8>,
    over: bool,
    /// The first bytes, up to the status.
    start: Vec<u8>,
    rest: Vec<u8>,
}

impl<S> Ahead<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, seen: Vec::new(), over: false, start: Vec::new(), rest: Vec::new() }
    }

    /// The stream, and what was read of it behind the head.
    pub fn into_parts(self) -> (S, Vec<u8>) {
        (self.stream, self.rest)
    }

    /// Splits what was just read at the end of the head.
    fn split(&mut self, read: &[u8]) -> usize {
        let before = self.seen.len();
        self.start.extend(read.iter().take(STATUS.saturating_sub(self.start.len())));
        self.seen.extend_from_slice(read);
        match self.seen.windows(END.len()).position(|window| window == END) {
            Some(at) => {
                self.over = true;
                if !self.start.ends_with(b" 101") {
                    return read.len();
                }
                let taken = at + END.len() - before;
                self.rest.extend_from_slice(&read[taken..]);
                taken
            }
            None => {
                self.seen.drain(..self.seen.len().saturating_sub(END.len() - 1));
                read.len()
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Ahead<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        if !this.rest.is_empty() {
            let length = this.rest.len().min(buffer.remaining());
            buffer.put_slice(&this.rest[..length]);
            this.rest.drain(..length);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(context, buffer);
        if !this.over && matches!(polled, Poll::Ready(Ok(()))) {
            let taken = this.split(&buffer.filled()[before..]);
            buffer.set_filled(before + taken);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Ahead<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn the_body_of_a_refusal_is_handed_out() {
        let (mut server, client) = tokio::io::duplex(1024);
        server.write_all(b"HTTP/1.1 404 x\r\nA: b\r\n\r\nno").await.expect("written");
        drop(server);
        let mut read = String::new();
        Ahead::new(client).read_to_string(&mut read).await.expect("read");
        assert!(read.ends_with("\r\n\r\nno"), "{read}");
    }

    #[tokio::test]
    async fn what_comes_behind_the_head_is_kept_wherever_the_pieces_end() {
        let text = b"HTTP/1.1 101 x\r\nA: b\r\n\r\n\x81\x02hi";
        for piece in [1, 2, 3, 5, 26, 27, 28, 100] {
            let (mut server, client) = tokio::io::duplex(1024);
            let mut ahead = Ahead::new(client);
            let (mut head, mut chunk) = (Vec::new(), [0; 1024]);
            for part in text.chunks(piece) {
                server.write_all(part).await.expect("written");
                if !head.ends_with(END) {
                    let read = ahead.read(&mut chunk).await.expect("read");
                    head.extend_from_slice(&chunk[..read]);
                }
            }
            drop(server);
            assert!(head.ends_with(END), "in pieces of {piece}: {head:?}");
            let (mut stream, mut rest) = ahead.into_parts();
            stream.read_to_end(&mut rest).await.expect("read");
            assert_eq!(rest, b"\x81\x02hi", "in pieces of {piece}");
        }
    }
}
