//! RFC 6455 bytes to messages, strictly: what a peer sent is judged by the letter of the RFC. No I/O.

use std::sync::Arc;

use super::frame::{Frame, LengthForm, MAX_CONTROL, apply};
use crate::trace::{Payload, may_be_sent};

/// Who wrote the bytes: a client masks, a server does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// What RFC 6455 forbids, by its section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// A reserved bit without an extension.
    #[error("a reserved bit is set (RFC 6455, 5.2)")]
    Reserved,
    /// An opcode that means nothing.
    #[error("the opcode {0} is reserved (RFC 6455, 5.2)")]
    Opcode(u8),
    /// A server's frame with a mask.
    #[error("a server's frame is masked (RFC 6455, 5.1)")]
    Masked,
    /// A client's frame without one.
    #[error("a client's frame is not masked (RFC 6455, 5.1)")]
    Unmasked,
    /// A length in a longer form than it needs, or with its top bit set.
    #[error("the length is not in its shortest form (RFC 6455, 5.2)")]
    Length,
    /// A control frame in fragments.
    #[error("a control frame is fragmented (RFC 6455, 5.5)")]
    FragmentedControl,
    /// A control frame of more than 125 bytes.
    #[error("a control frame is longer than 125 bytes (RFC 6455, 5.5)")]
    LongControl,
    /// A continuation of nothing.
    #[error("a continuation frame continues nothing (RFC 6455, 5.4)")]
    Continuation,
    /// A new message within the fragments of another.
    #[error("a message begins within the fragments of another (RFC 6455, 5.4)")]
    Interleaved,
    /// Text that is not UTF-8.
    #[error("a text is not UTF-8 (RFC 6455, 8.1)")]
    Utf8,
    /// A close frame with a code that may not be sent.
    #[error("a close frame has the code {0}, which may not be sent (RFC 6455, 7.4)")]
    CloseCode(u16),
    /// A close frame with half a code.
    #[error("a close frame has one byte, which is no code (RFC 6455, 5.5.1)")]
    HalfCode,
    /// A data frame behind a close frame, or another one of those.
    #[error("a frame follows a close frame (RFC 6455, 5.5.1)")]
    BehindClose,
    /// Longer than is taken here.
    #[error("a message is beyond the length limit")]
    TooLong,
}

/// Puts messages together from bytes as they come, in memory bounded by the length limit.
#[derive(Debug)]
pub struct Messages {
    writer: Writer,
    max: usize,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are done with.
    done: usize,
    /// A message of which fragments have come: text or not, and its payload so far.
    partial: Option<(bool, Vec<u8>)>,
    closed: bool,
    breach: Option<Breach>,
}

/// Bytes that the buffer keeps room for.
const ROOM: usize = 64 << 10;

impl Messages {
    /// For what `writer` writes; a message longer than `max` bytes is a breach.
    pub fn new(writer: Writer, max: usize) -> Self {
        let (buffer, partial) = (Vec::new(), None);
        Self { writer, max, buffer, done: 0, partial, closed: false, breach: None }
    }

    /// Takes in bytes as they came from the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.breach.is_some() {
            return;
        }
        if self.done > 0 {
            self.buffer.drain(..self.done);
            self.done = 0;
            // A large message is not kept room for.
            self.buffer.shrink_to(ROOM);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message or control frame; `None`: more bytes are needed.
    ///
    /// # Errors
    /// The first breach; nothing more comes behind it.
    pub fn take(&mut self) -> Result<Option<Payload>, Breach> {
        if let Some(breach) = self.breach {
            return Err(breach);
        }
        let taken = self.advance();
        self.breach = taken.as_ref().err().copied();
        taken
    }

    /// Bytes of a message that has begun and is not complete.
    pub fn unfinished(&self) -> usize {
        self.pending().len() + self.partial.as_ref().map_or(0, |(_, payload)| payload.len())
    }

    /// Whether the bytes so far end with a whole frame.
    pub fn at_boundary(&self) -> bool {
        self.breach.is_none() && self.done == self.buffer.len()
    }

    /// Whether a frame can follow that will be understood: no breach, no half frame, no half message, no close.
    pub fn is_between_messages(&self) -> bool {
        self.at_boundary() && self.partial.is_none() && !self.closed
    }

    /// Whether something forbidden has come.
    pub fn is_broken(&self) -> bool {
        self.breach.is_some()
    }

    /// What has come and is not done with: half a frame, or the bytes of a breach and those behind them.
    pub fn pending(&self) -> &[u8] {
        &self.buffer[self.done..]
    }

    fn advance(&mut self) -> Result<Option<Payload>, Breach> {
        loop {
            let begin = self.done;
            let Some(frame) = self.frame()? else { return Ok(None) };
            // A ping is answered until a close frame has come (5.5.2), one's own notwithstanding.
            let behind = self.closed && !matches!(frame.opcode, 9 | 10);
            let message = if behind { Err(Breach::BehindClose) } else { self.message(frame) };
            if message.is_err() {
                // It is shown what breaks the RFC. A large frame has left the buffer.
                self.done = self.done.min(begin);
            }
            if let Some(payload) = message? {
                return Ok(Some(payload));
            }
        }
    }

    /// The next frame. What its header alone makes wrong is found before its payload has come.
    fn frame(&mut self) -> Result<Option<Frame>, Breach> {
        let bytes = &self.buffer[self.done..];
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        let (fin, rsv, opcode) = (first & 0x80 != 0, first >> 4 & 7, first & 15);
        if rsv != 0 {
            return Err(Breach::Reserved);
        }
        if matches!(opcode, 3..=7 | 11..) {
            return Err(Breach::Opcode(opcode));
        }
        let masked = second & 0x80 != 0;
        match self.writer {
            Writer::Client if !masked => return Err(Breach::Unmasked),
            Writer::Server if masked => return Err(Breach::Masked),
            _ => {}
        }
        let short = second & 0x7f;
        if opcode >= 8 && !fin {
            return Err(Breach::FragmentedControl);
        }
        if opcode >= 8 && usize::from(short) > MAX_CONTROL {
            return Err(Breach::LongControl);
        }
        let (form, width) = match short {
            126 => (LengthForm::Sixteen, 2),
            127 => (LengthForm::SixtyFour, 8),
            _ => (LengthForm::Seven, 0),
        };
        let Some(extended) = rest.get(..width) else { return Ok(None) };
        let length = extended.iter().fold(0, |length: u64, byte| length << 8 | u64::from(*byte));
        let length = if width == 0 { u64::from(short) } else { length };
        if form != LengthForm::shortest(length) || length >> 63 != 0 {
            return Err(Breach::Length);
        }
        let before = self.partial.as_ref().map_or(0, |(_, payload)| payload.len());
        let fits = usize::try_from(length).ok().filter(|length| *length <= self.max.saturating_sub(before));
        let length = fits.ok_or(Breach::TooLong)?;
        let key = 2 + width;
        let header = if masked { key + 4 } else { key };
        if bytes.get(header..).is_none_or(|rest| rest.len() < length) {
            return Ok(None);
        }
        let mask: Option<[u8; 4]> = bytes.get(key..header).and_then(|key| key.try_into().ok());
        let mut payload = self.cut(header, length);
        if let Some(mask) = mask {
            apply(mask, &mut payload);
        }
        Ok(Some(Frame { fin, rsv, opcode, mask, payload, length: None, form: Some(form) }))
    }

    /// The payload of a frame that has come whole. A large one is not copied: it goes with the buffer that it lies in.
    fn cut(&mut self, header: usize, length: usize) -> Vec<u8> {
        let begin = self.done + header;
        let end = begin + length;
        if length <= ROOM {
            self.done = end;
            return self.buffer[begin..end].to_vec();
        }
        let rest = self.buffer.split_off(end);
        let mut payload = std::mem::replace(&mut self.buffer, rest);
        self.done = 0;
        payload.drain(..begin);
        payload
    }

    fn message(&mut self, frame: Frame) -> Result<Option<Payload>, Breach> {
        let Frame { fin, opcode, payload, .. } = frame;
        match opcode {
            8 => {
                self.closed = true;
                return close(&payload).map(Some);
            }
            9 => return Ok(Some(Payload::Ping(payload.into()))),
            10 => return Ok(Some(Payload::Pong(payload.into()))),
            0 => {
                let (_, whole) = self.partial.as_mut().ok_or(Breach::Continuation)?;
                whole.extend_from_slice(&payload);
            }
            _ if self.partial.is_some() => return Err(Breach::Interleaved),
            _ => self.partial = Some((opcode == 1, payload)),
        }
        if !fin {
            return Ok(None);
        }
        match self.partial.take() {
            Some((true, payload)) => {
                let text = String::from_utf8(payload).map_err(|_| Breach::Utf8)?;
                Ok(Some(Payload::Text(text.into())))
            }
            Some((false, payload)) => Ok(Some(Payload::Binary(payload.into()))),
            None => Ok(None),
        }
    }
}

fn close(payload: &[u8]) -> Result<Payload, Breach> {
    let [high, low, reason @ ..] = payload else {
        let reason: Arc<str> = "".into();
        return if payload.is_empty() {
            Ok(Payload::Close { code: None, reason })
        } else {
            Err(Breach::HalfCode)
        };
    };
    let code = u16::from_be_bytes([*high, *low]);
    if !may_be_sent(code) {
        return Err(Breach::CloseCode(code));
    }
    let reason = std::str::from_utf8(reason).map_err(|_| Breach::Utf8)?;
    Ok(Payload::Close { code: Some(code), reason: reason.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What bytes of a client make, in pieces of every size.
    fn read(bytes: &[u8]) -> Result<Vec<Payload>, (Vec<Payload>, Breach)> {
        let mut results = [1, 2, 7, bytes.len().max(1)].map(|piece| {
            let mut messages = Messages::new(Writer::Client, 1 << 20);
            let mut found = Vec::new();
            for part in bytes.chunks(piece) {
                messages.feed(part);
                loop {
                    match messages.take() {
                        Ok(Some(payload)) => found.push(payload),
                        Ok(None) => break,
                        Err(breach) => return Err((found, breach)),
                    }
                }
            }
            Ok(found)
        });
        let first = std::mem::replace(&mut results[0], Ok(Vec::new()));
        results[1..].iter().for_each(|other| assert_eq!(*other, first, "pieces make no difference"));
        first
    }

    fn text(text: &str) -> Payload {
        Payload::Text(text.into())
    }

    #[test]
    fn messages_come_out_whole_however_they_are_cut() {
        let ping = Frame::new(9, "p");
        let whole = Frame::new(1, "Grüße an 日本");
        for size in 1..20 {
            let mut bytes = Vec::new();
            let fragments = whole.fragments(size);
            let pings = fragments.len() - 1;
            for (index, fragment) in fragments.iter().enumerate() {
                bytes.extend(fragment.encode());
                if index < pings {
                    bytes.extend(ping.encode());
                }
            }
            let mut expected = vec![Payload::Ping(b"p".as_slice().into()); pings];
            expected.push(text("Grüße an 日本"));
            assert_eq!(read(&bytes), Ok(expected), "fragments of {size}");
        }
        for length in [0, 125, 126, 65535, 65536] {
            let long = "x".repeat(length);
            assert_eq!(read(&Frame::new(1, long.clone()).encode()), Ok(vec![text(&long)]), "{length}");
        }
    }

    #[test]
    fn large_messages_leave_what_is_around_them_alone() {
        let long = "é".repeat(ROOM);
        let bytes =
            [Frame::new(1, "a"), Frame::new(1, long.as_str()), Frame::new(9, "p"), Frame::new(1, "z")];
        let bytes = bytes.iter().flat_map(Frame::encode).collect::<Vec<u8>>();
        for piece in [16 << 10, bytes.len() - 3, bytes.len()] {
            let mut messages = Messages::new(Writer::Client, 1 << 20);
            let mut found = Vec::new();
            for part in bytes.chunks(piece) {
                messages.feed(part);
                while let Ok(Some(payload)) = messages.take() {
                    found.push(payload);
                }
            }
            let ping = Payload::Ping(b"p".as_slice().into());
            assert_eq!(found, [text("a"), text(&long), ping, text("z")], "in pieces of {piece}");
            assert!(messages.is_between_messages());
        }
    }

    #[test]
    fn each_breach_has_its_name() {
        let ok = Frame::new(1, "a");
        let with = |change: fn(&mut Frame)| {
            let mut frame = ok.clone();
            change(&mut frame);
            frame.encode()
        };
        let close = |payload: &[u8]| Frame::new(8, payload).encode();
        let table = [
            (with(|frame| frame.rsv = 4), Breach::Reserved),
            (with(|frame| frame.rsv = 1), Breach::Reserved),
            (with(|frame| frame.opcode = 3), Breach::Opcode(3)),
            (with(|frame| frame.opcode = 15), Breach::Opcode(15)),
            (with(|frame| frame.mask = None), Breach::Unmasked),
            (with(|frame| frame.form = Some(LengthForm::Sixteen)), Breach::Length),
            (with(|frame| frame.form = Some(LengthForm::SixtyFour)), Breach::Length),
            (with(|frame| frame.length = Some(1 << 63)), Breach::Length),
            (with(|frame| frame.length = Some((1 << 20) + 1)), Breach::TooLong),
            (with(|frame| (frame.opcode, frame.fin) = (9, false)), Breach::FragmentedControl),
            (Frame::new(9, vec![b'x'; 126]).encode(), Breach::LongControl),
            (with(|frame| frame.opcode = 0), Breach::Continuation),
            ([with(|frame| frame.fin = false), ok.encode()].concat(), Breach::Interleaved),
            (Frame::new(1, [0xc3, 0x28]).encode(), Breach::Utf8),
            (Frame::new(1, [0xed, 0xa0, 0x80]).encode(), Breach::Utf8),
            (close(&[3]), Breach::HalfCode),
            (close(&[0x03, 0xe7]), Breach::CloseCode(999)),
            (close(&[0x03, 0xed]), Breach::CloseCode(1005)),
            (close(&[0x07, 0xd0]), Breach::CloseCode(2000)),
            (close(&[0x03, 0xe8, 0xff]), Breach::Utf8),
            ([close(&[0x03, 0xe8]), ok.encode()].concat(), Breach::BehindClose),
            ([close(&[0x03, 0xe8]), close(&[0x03, 0xe8])].concat(), Breach::BehindClose),
        ];
        for (bytes, expected) in table {
            let (found, breach) = read(&bytes).expect_err("a breach");
            assert_eq!(breach, expected, "{bytes:02x?}");
            assert!(found.iter().all(|payload| matches!(payload, Payload::Close { .. })), "{found:?}");
        }
        let mut server = Messages::new(Writer::Server, 10);
        server.feed(&ok.encode());
        assert_eq!(server.take(), Err(Breach::Masked));
        assert_eq!(server.take(), Err(Breach::Masked), "it stays broken");
    }

    #[test]
    fn pings_and_pongs_may_follow_a_close_frame() {
        let bytes =
            [Frame::new(8, "").encode(), Frame::new(10, "a").encode(), Frame::new(9, "b").encode()].concat();
        let found = read(&bytes).expect("RFC 6455, 5.5.2, demands pongs");
        assert!(
            matches!(&found[..], [Payload::Close { .. }, Payload::Pong(_), Payload::Ping(_)]),
            "{found:?}"
        );
    }

    #[test]
    fn where_a_stream_stands_is_known() {
        let mut messages = Messages::new(Writer::Client, 100);
        let mut feed = |bytes: &[u8]| {
            messages.feed(bytes);
            while let Ok(Some(_)) = messages.take() {}
            (messages.at_boundary(), messages.is_between_messages())
        };
        assert_eq!(feed(b""), (true, true));
        let begin = Frame { fin: false, ..Frame::new(1, "ab") }.encode();
        assert_eq!(feed(&begin[..3]), (false, false));
        assert_eq!(feed(&begin[3..]), (true, false));
        assert_eq!(feed(&Frame::new(0, "c").encode()), (true, true));
        assert_eq!(feed(&Frame::new(8, "").encode()), (true, false));
    }

    #[test]
    fn random_bytes_never_panic_and_never_hold_more_than_the_limit() {
        use rand_chacha::ChaCha8Rng;
        use rand_chacha::rand_core::{Rng, SeedableRng};
        let mut random = ChaCha8Rng::seed_from_u64(7);
        for _ in 0..20_000 {
            let mut messages = Messages::new(Writer::Server, 64);
            let mut bytes = vec![0; 1 + random.next_u32() as usize % 40];
            random.fill_bytes(&mut bytes);
            bytes[0] &= 0x8f;
            if let Some(byte) = bytes.get_mut(1) {
                *byte &= 0x7f;
            }
            for part in bytes.chunks(3) {
                messages.feed(part);
                while let Ok(Some(payload)) = messages.take() {
                    if let Payload::Text(text) = payload {
                        assert!(text.len() <= 64);
                    }
                }
            }
        }
    }
}
