//! Faults below the messages: what a server makes of frames of RFC 6455 that no suite of ours writes.
//!
//! The bytes of a connection pass through a relay that takes them apart into frames, and goes wrong on one of them. Behind
//! it is the correct server.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::Fault;
use crate::wire::frame::{Frame, LengthForm, MASK, apply};

/// Longest frame that is looked at, in bytes; longer ones, and whatever follows, pass as they come.
const LONGEST: u64 = 1 << 20;
/// Bytes read at a time.
const CHUNK: usize = 16 * 1024;

/// A fault and what sets it off.
#[derive(Clone, Copy)]
pub(super) struct Torn {
    /// Its name, and the requirements of which a campaign must hold at least one broken; none: it breaks RFC 6455, of which
    /// no catalogue speaks.
    pub fault: Fault,
    trigger: fn(&Seen<'_>) -> bool,
    harm: Harm,
}

/// What the relay has seen of a client.
struct Seen<'s> {
    /// Its newest frame; none: it has hung up.
    frame: Option<&'s Frame>,
    /// A message of which fragments have come is not complete.
    within: bool,
    /// Half a frame has come.
    half: bool,
}

#[derive(Clone, Copy)]
enum Harm {
    /// The connection is cut.
    Cut,
    /// Nothing is read on this connection any more.
    Hang,
    /// The frame is passed over.
    Ignore,
    /// The frame is taken for another one.
    Taken(fn(&Frame) -> Frame),
    /// Connections that come later are cut at once.
    RefuseLater,
    /// The server's next close frame has this code.
    Code(u16),
}

/// Protocol and faults.
const ALL: &[(&str, &[Torn])] = &[
    (
        "agentloop",
        &[
            torn(
                "fuzz-close-answered-wrong",
                "A close is answered with code 1005",
                &[],
                is_close,
                Harm::Code(1005),
            ),
            torn(
                "fuzz-takes-reserved-bits",
                "A message with a reserved bit is taken",
                &[],
                |seen| seen.frame.is_some_and(|frame| frame.rsv != 0 && frame.opcode == 1),
                Harm::Taken(|frame| Frame { rsv: 0, ..frame.clone() }),
            ),
        ],
    ),
    (
        "codelab",
        &[
            torn(
                "fuzz-cut-on-ping-within",
                "A ping between two fragments ends the connection without a close frame",
                &["CL-ER-6"],
                |seen| seen.within && seen.frame.is_some_and(|frame| frame.opcode == 9),
                Harm::Cut,
            ),
            torn(
                "fuzz-takes-bad-utf8",
                "Text that is not UTF-8 is taken",
                &[],
                |seen| seen.frame.is_some_and(|frame| frame.opcode == 1 && frame.fin && !is_utf8(frame)),
                Harm::Taken(|frame| Frame {
                    payload: String::from_utf8_lossy(&frame.payload).into_owned().into_bytes(),
                    ..frame.clone()
                }),
            ),
        ],
    ),
    (
        "codey",
        &[
            torn(
                "fuzz-hang-on-empty-fragment",
                "A fragment without a byte stops the connection",
                &["CO-ER-5"],
                |seen| seen.frame.is_some_and(|frame| frame.payload.is_empty() && !frame.fin),
                Harm::Hang,
            ),
            torn("fuzz-ignores-close", "A close is not answered", &[], is_close, Harm::Ignore),
        ],
    ),
    (
        "minicodex",
        &[
            torn(
                "fuzz-hang-on-fragments",
                "A message in fragments stops the connection",
                &["MC-ERR-7"],
                |seen| seen.frame.is_some_and(|frame| frame.opcode == 1 && !frame.fin),
                Harm::Hang,
            ),
            torn(
                "fuzz-takes-unmasked",
                "A frame that is not masked is taken",
                &[],
                |seen| seen.frame.is_some_and(|frame| frame.mask.is_none()),
                Harm::Taken(|frame| Frame { mask: Some(MASK), ..frame.clone() }),
            ),
        ],
    ),
    (
        "tinyvex",
        &[
            torn(
                "fuzz-closed-door-behind-half-a-frame",
                "After a client that hung up in the middle of a frame no further connection is served",
                &["TV-ERR-9"],
                |seen| seen.frame.is_none() && seen.half,
                Harm::RefuseLater,
            ),
            torn(
                "fuzz-takes-long-ping",
                "A ping of more than 125 bytes is taken",
                &[],
                |seen| seen.frame.is_some_and(|frame| frame.opcode == 9 && frame.payload.len() > 125),
                Harm::Taken(|frame| Frame {
                    payload: frame.payload[..125].to_vec(),
                    form: None,
                    ..frame.clone()
                }),
            ),
        ],
    ),
];

const fn torn(
    name: &'static str,
    title: &'static str,
    violates: &'static [&'static str],
    trigger: fn(&Seen<'_>) -> bool,
    harm: Harm,
) -> Torn {
    Torn { fault: Fault { name, title, violates }, trigger, harm }
}

fn is_close(seen: &Seen<'_>) -> bool {
    seen.frame.is_some_and(|frame| frame.opcode == 8)
}

fn is_utf8(frame: &Frame) -> bool {
    std::str::from_utf8(&frame.payload).is_ok()
}

/// The faults of a protocol below the messages.
pub(super) fn of(protocol: &str) -> &'static [Torn] {
    ALL.iter().find(|(name, _)| *name == protocol).map_or(&[], |(_, all)| all)
}

/// What stands before a server with such a fault.
pub(super) struct Relay {
    torn: Torn,
    refuses: AtomicBool,
}

impl Relay {
    pub fn new(torn: Torn) -> Self {
        Self { torn, refuses: AtomicBool::new(false) }
    }

    /// The correct server, started again, remembers nothing of the harm.
    pub fn restart(&self) {
        self.refuses.store(false, Ordering::Release);
    }

    /// A connection to stand in for the client's, and the relay's end of it. None: it is refused.
    pub async fn between(&self) -> Option<(TcpStream, TcpStream)> {
        if self.refuses.load(Ordering::Acquire) {
            return None;
        }
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.ok()?;
        let address = listener.local_addr().ok()?;
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (near, (far, _)) = (near.ok()?, far.ok()?);
        (near.set_nodelay(true).is_ok() && far.set_nodelay(true).is_ok()).then_some((near, far))
    }

    /// Passes bytes between a client and the server until one of them has had enough.
    pub async fn pass(&self, client: TcpStream, server: TcpStream) {
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let (mut asked, mut answered) = (Frames::default(), Frames::default());
        let (mut hangs, mut code, mut within) = (false, None, false);
        let (mut up, mut down) = (vec![0; CHUNK], vec![0; CHUNK]);
        loop {
            tokio::select! {
                read = from_client.read(&mut up), if !hangs => {
                    let length = read.unwrap_or(0);
                    if length == 0 {
                        let seen = Seen { frame: None, within, half: asked.is_half() };
                        if (self.torn.trigger)(&seen) && matches!(self.torn.harm, Harm::RefuseLater) {
                            self.refuses.store(true, Ordering::Release);
                        }
                        return;
                    }
                    let mut out = asked.take_head(&up[..length]);
                    while let Some((frame, bytes)) = asked.next() {
                        let seen = Seen { frame: Some(&frame), within, half: false };
                        let hit = (self.torn.trigger)(&seen);
                        if frame.opcode < 8 {
                            within = !frame.fin;
                        }
                        match self.torn.harm {
                            Harm::Cut if hit => return,
                            Harm::Hang if hit => { hangs = true; break }
                            Harm::Ignore if hit => {}
                            Harm::Taken(other) if hit => out.extend(other(&frame).encode()),
                            Harm::Code(wrong) if hit => { code = Some(wrong); out.extend(bytes) }
                            _ => out.extend(bytes),
                        }
                    }
                    out.extend(asked.take_endless());
                    if to_server.write_all(&out).await.is_err() {
                        return;
                    }
                }
                read = from_server.read(&mut down) => {
                    let length = read.unwrap_or(0);
                    if length == 0 {
                        let _ = to_client.shutdown().await;
                        return;
                    }
                    let mut out = answered.take_head(&down[..length]);
                    while let Some((mut frame, bytes)) = answered.next() {
                        match code.filter(|_| frame.opcode == 8) {
                            Some(code) => {
                                frame.payload = u16::to_be_bytes(code).to_vec();
                                frame.form = None;
                                out.extend(frame.encode());
                            }
                            None => out.extend(bytes),
                        }
                    }
                    out.extend(answered.take_endless());
                    if to_client.write_all(&out).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

/// One direction of a connection, taken apart.
#[derive(Default)]
struct Frames {
    /// The head of the upgrade is over.
    upgraded: bool,
    /// A frame too long to be looked at has come.
    endless: bool,
    buffer: Vec<u8>,
}

impl Frames {
    /// Takes bytes in; what of them belongs to the upgrade is given back.
    fn take_head(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.buffer.extend_from_slice(bytes);
        if self.upgraded {
            return Vec::new();
        }
        let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
        self.upgraded = end.is_some();
        let rest = end.map_or(self.buffer.len().saturating_sub(3), |end| end + 4);
        self.buffer.drain(..rest).collect()
    }

    fn is_half(&self) -> bool {
        self.upgraded && !self.buffer.is_empty()
    }

    /// Everything that has come, once a frame was too long.
    fn take_endless(&mut self) -> Vec<u8> {
        if self.endless { std::mem::take(&mut self.buffer) } else { Vec::new() }
    }

    /// The next whole frame, whatever it is, and its bytes.
    fn next(&mut self) -> Option<(Frame, Vec<u8>)> {
        let [first, second, rest @ ..] = self.buffer.as_slice() else { return None };
        if !self.upgraded || self.endless {
            return None;
        }
        let (form, width) = match second & 0x7f {
            126 => (LengthForm::Sixteen, 2),
            127 => (LengthForm::SixtyFour, 8),
            _ => (LengthForm::Seven, 0),
        };
        let extended = rest.get(..width)?;
        let length = extended.iter().fold(0, |length: u64, byte| length << 8 | u64::from(*byte));
        let length = if width == 0 { u64::from(second & 0x7f) } else { length };
        if length > LONGEST {
            self.endless = true;
            return None;
        }
        let key = 2 + width;
        let masked = second & 0x80 != 0;
        let header = if masked { key + 4 } else { key };
        let end = header + usize::try_from(length).ok()?;
        let mask: Option<[u8; 4]> = if masked { self.buffer.get(key..header)?.try_into().ok() } else { None };
        let mut payload = self.buffer.get(header..end)?.to_vec();
        mask.into_iter().for_each(|mask| apply(mask, &mut payload));
        let (fin, rsv, opcode) = (first & 0x80 != 0, first >> 4 & 7, first & 15);
        let frame = Frame { fin, rsv, opcode, mask, payload, length: None, form: Some(form) };
        Some((frame, self.buffer.drain(..end).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_taken_apart_wherever_it_is_cut() {
        let wrong = Frame { rsv: 3, mask: None, fin: false, ..Frame::new(11, vec![7; 300]) };
        let frames = [Frame::new(1, "Hello"), wrong, Frame::new(0, "")];
        let mut stream = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
        let head = stream.len();
        frames.iter().for_each(|frame| stream.extend(frame.encode()));
        for cut in 1..stream.len() {
            let (mut found, mut passed, mut through) = (Vec::new(), Vec::new(), Frames::default());
            for part in [&stream[..cut], &stream[cut..]] {
                passed.extend(through.take_head(part));
                while let Some((frame, bytes)) = through.next() {
                    found.push(Frame { form: None, ..frame });
                    passed.extend(bytes);
                }
            }
            assert_eq!(found, frames, "cut at {cut}");
            assert_eq!(passed, stream);
            assert!(!through.is_half() && head < stream.len());
        }
        let mut half = Frames { upgraded: true, ..Frames::default() };
        half.take_head(&stream[head..head + 4]);
        assert!(half.next().is_none() && half.is_half());
        let endless = Frame { length: Some(1 << 62), ..Frame::new(1, "x") }.encode();
        let mut long = Frames { upgraded: true, ..Frames::default() };
        long.take_head(&endless);
        assert!(long.next().is_none());
        assert_eq!(long.take_endless(), endless);
    }
}
