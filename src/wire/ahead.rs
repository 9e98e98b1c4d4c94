//! The stream under an upgrade that leaves alone what comes behind it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::text::is_token_byte;

const END: &[u8] = b"\r\n\r\n";
/// Most bytes of a head that are held back for its end.
const MAX_HEAD: usize = 64 << 10;
/// How many bytes of a head are read at once.
const PIECE: usize = 4096;

/// Hands out the HTTP head of an answer and keeps the bytes behind it: whoever reads the head reads in large pieces, and would take
/// the server's first frames with it. Behind a refusal comes no frame but its body, which is handed out.
///
/// The head is handed out whole, with one `Connection: Upgrade` where it says so among other options: the WebSocket library takes only
/// that for it.
pub(super) struct Ahead<S> {
    stream: S,
    /// What has come of the head, and is not handed out.
    head: Vec<u8>,
    /// The head has ended, or is none.
    over: bool,
    rest: Vec<u8>,
}

impl<S> Ahead<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, head: Vec::new(), over: false, rest: Vec::new() }
    }

    /// The stream, and what was read of it behind the head.
    pub fn into_parts(self) -> (S, Vec<u8>) {
        (self.stream, self.rest)
    }

    /// Takes in a piece of the head.
    fn take(&mut self, piece: &[u8]) {
        let from = self.head.len().saturating_sub(END.len() - 1);
        self.head.extend_from_slice(piece);
        let end = self.head[from..].windows(END.len()).position(|window| window == END);
        let Some(end) = end.map(|at| from + at + END.len()) else {
            self.over = piece.is_empty()
                || self.head.len() > MAX_HEAD
                || !may_be_http(&self.head)
                || !may_be_headers(&self.head, from);
            return;
        };
        self.over = true;
        if is_upgrade(&self.head) {
            self.rest = self.head.split_off(end);
            self.head = with_plain_option(std::mem::take(&mut self.head));
        }
    }
}

/// Whether bytes may be the beginning of an HTTP answer. What is none is handed out at once.
fn may_be_http(head: &[u8]) -> bool {
    head.iter().zip(b"HTTP/1.").all(|(byte, expected)| byte == expected)
}

/// Whether the lines that stand behind `from`, or go on there, may be headers. What is none is handed out at once: no end of a head
/// follows, perhaps for a long time.
fn may_be_headers(head: &[u8], from: usize) -> bool {
    let line_feed = head[..from].iter().rposition(|byte| *byte == b'\n');
    // Without one the first line is the status.
    let status = usize::from(line_feed.is_none());
    let lines = head[line_feed.map_or(0, |at| at + 1)..].split(|byte| *byte == b'\n').skip(status);
    let is_name = |byte: &u8| *byte == b'\r' || is_token_byte(*byte);
    lines
        .map(|line| line.split(|byte| *byte == b':').next().unwrap_or_default())
        .all(|name| name.iter().all(is_name))
}

/// Whether a head begins with `HTTP/1.1 101`.
fn is_upgrade(head: &[u8]) -> bool {
    head.get(..12).is_some_and(|start| start.ends_with(b" 101"))
}

/// The value of a Connection header.
fn connection_options(line: &str) -> Option<&str> {
    let (name, value) = line.split_once(':')?;
    name.eq_ignore_ascii_case("connection").then_some(value)
}

/// A head that says `Upgrade` among other options of its connection, or in one of several headers, with `Connection: Upgrade` alone
/// (RFC 6455, 4.1: the header contains the token).
fn with_plain_option(head: Vec<u8>) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(&head) else { return head };
    let (options, others): (Vec<&str>, Vec<&str>) =
        text.split("\r\n").partition(|line| connection_options(line).is_some());
    let mut tokens =
        options.iter().filter_map(|line| connection_options(line)).flat_map(|value| value.split(','));
    if !tokens.any(|token| token.trim().eq_ignore_ascii_case("upgrade")) {
        return head;
    }
    let (status, fields) = others.split_at(1);
    let plain = [status, &["Connection: Upgrade"], fields].concat();
    plain.join("\r\n").into_bytes()
}

/// Hands out as much as there is room for.
fn hand_out(bytes: &mut Vec<u8>, buffer: &mut ReadBuf<'_>) {
    let length = bytes.len().min(buffer.remaining());
    buffer.put_slice(&bytes[..length]);
    bytes.drain(..length);
}

impl<S: AsyncRead + Unpin> AsyncRead for Ahead<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        while !this.over {
            let mut piece = [0; PIECE];
            let mut read = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut read))?;
            this.take(read.filled());
        }
        let waiting = if this.head.is_empty() { &mut this.rest } else { &mut this.head };
        if waiting.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        hand_out(waiting, buffer);
        Poll::Ready(Ok(()))
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
            let parts = text.chunks(piece).map(<[u8]>::to_vec).collect::<Vec<_>>();
            let writing = tokio::spawn(async move {
                for part in parts {
                    server.write_all(&part).await.expect("written");
                    tokio::task::yield_now().await;
                }
            });
            let mut ahead = Ahead::new(client);
            let (mut head, mut chunk) = (Vec::new(), [0; 1024]);
            while !head.ends_with(END) {
                let read = ahead.read(&mut chunk).await.expect("read");
                assert!(read > 0, "in pieces of {piece}: {head:?}");
                head.extend_from_slice(&chunk[..read]);
            }
            writing.await.expect("written");
            let (mut stream, mut rest) = ahead.into_parts();
            stream.read_to_end(&mut rest).await.expect("read");
            assert_eq!(rest, b"\x81\x02hi", "in pieces of {piece}");
        }
    }

    #[tokio::test]
    async fn what_is_no_http_is_handed_out_at_once() {
        let (mut server, client) = tokio::io::duplex(1024);
        server.write_all(b"SSH-2.0-x\r\n").await.expect("written");
        let mut chunk = [0; 100];
        let read = Ahead::new(client).read(&mut chunk).await.expect("read");
        assert_eq!(&chunk[..read], b"SSH-2.0-x\r\n");
    }

    #[test]
    fn what_is_no_header_is_handed_out_at_once() {
        for (text, is_handed_out) in [
            ("HTTP/1.1 101 x\r\nHTTP/1.1", true),
            ("HTTP/1.1 101 x\r\nA: b\r\nno header\r\n", true),
            ("HTTP/1.1 101 a (b)\r\nX-Some_Name: a/b (c)\r\nA", false),
            ("HTTP/1.1 101 a/b\r", false),
        ] {
            for piece in [1, 2, 100] {
                let mut ahead = Ahead::new(tokio::io::empty());
                text.as_bytes().chunks(piece).for_each(|piece| Ahead::take(&mut ahead, piece));
                assert_eq!(ahead.over, is_handed_out, "{text:?} in pieces of {piece}");
            }
        }
    }

    #[tokio::test]
    async fn a_head_without_an_end_is_handed_out() {
        for length in [10, MAX_HEAD, 2 * MAX_HEAD] {
            let (mut server, client) = tokio::io::duplex(4 * MAX_HEAD);
            server
                .write_all(&[b"HTTP/1.1 101 ".as_slice(), vec![b'x'; length].as_slice()].concat())
                .await
                .expect("written");
            drop(server);
            let mut read = Vec::new();
            Ahead::new(client).read_to_end(&mut read).await.expect("read");
            assert_eq!(read.len(), 13 + length);
        }
    }

    #[test]
    fn the_option_upgrade_stands_alone() {
        let plain = |head: &str| String::from_utf8(with_plain_option(head.into())).expect("text");
        let alone = "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nA: b\r\n\r\n";
        for options in [
            "connection: keep-alive, upgrade\r\n",
            "Connection:Upgrade ,x\r\n",
            "Connection: keep-alive\r\nCONNECTION: Upgrade\r\n",
        ] {
            assert_eq!(plain(&format!("HTTP/1.1 101 x\r\n{options}A: b\r\n\r\n")), alone, "{options}");
        }
        for head in ["HTTP/1.1 101 x\r\nConnection: upgrades\r\n\r\n", "HTTP/1.1 101 x\r\nA: Upgrade\r\n\r\n"]
        {
            assert_eq!(plain(head), head, "it does not say so");
        }
    }
}
