//! The styles of the wire, which every server may have: what it does with time, with TCP, with frames of RFC 6455 and with the
//! spelling of JSON. A relay does it, so that the dialects know nothing of it.

mod json;

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::styles;
use crate::wire::frame::Frame;
use crate::wire::relay::{Interceptor, Plan, Way};

styles! {
    Slow "slow" "All messages of the server come 5 to 50 ms late, in order." ["RFC 6455"];
    Jitter "jitter" "Some messages come up to 20 ms late, in order." ["RFC 6455"];
    SlowToRead "slow-to-read" "Messages of the client are read 5 to 50 ms late." ["RFC 6455"];
    SlowUpgrade "slow-upgrade" "The upgrade takes 50 to 150 ms." ["RFC 6455 4.2"];
    Fragments "fragments" "Messages come in three fragments or more." ["RFC 6455 5.4"];
    PingsWithin "pings-within" "A ping comes between the fragments of a message." ["RFC 6455 5.4"];
    EachAlone "each-alone" "Each frame is written separately." ["RFC 6455"] excludes ["coalesced"];
    Coalesced "coalesced" "Messages that are sent within 20 ms are written together." ["RFC 6455"];
    InPieces "in-pieces" "Output is written in pieces of up to 7 bytes, 256 in all." ["RFC 6455"];
    LateHangUp "late-hang-up" "A client that disconnects without a close frame is noticed 300 ms late." ["RFC 6455 7.1.4"];
    LateClose "late-close" "A close is answered 100 ms late." ["RFC 6455 5.5.1"];
    PongAfterClose "pong-after-close" "A pong follows a close frame that the client has not answered yet." ["RFC 6455 5.5.2", "RFC 6455 5.5.3"];
    CloseReason "close-reason" "A close frame with a code has a reason." ["RFC 6455 7.1.6"];
    Pings "pings" "The server sends a ping before some of its messages." ["RFC 6455 5.5.2"];
    OneMebibyte "one-mebibyte" "A frame of more than 1 MiB is refused with close code 1009." ["RFC 6455 7.4.1"];
    UnaskedPongs "unasked-pongs" "The server sends unsolicited pongs." ["RFC 6455 5.5.3"];
    LongFormHeaders "other-headers" "The upgrade's response has its headers in lower case, additional ones, and another option of the connection." ["RFC 9110 5.1", "RFC 6455 4.1", "RFC 6455 4.2.2"];
    LargeBuffers "large-buffers" "All output is buffered, so that the server does not notice a client that does not read." ["RFC 9293"];
    Spaced "spaced-json" "JSON is written with white space." ["RFC 8259 2"] excludes ["escaped-json"];
    Escaped "escaped-json" "JSON has escapes for all characters beyond ASCII, and for the solidus." ["RFC 8259 7"];
    Reordered "reordered-json" "The fields of JSON objects come in reverse order." ["RFC 8259 4"];
}

/// Pieces into which one write is cut; the rest follows in one.
const PIECES: usize = 256;
/// Plans kept for a client that does not read, under [`Style::LargeBuffers`].
const LARGE: usize = 100_000;

/// The styles of the wire that a server has.
#[derive(Debug, Clone)]
pub(in crate::reference) struct WireStyles {
    styles: Vec<Style>,
    seed: u64,
}

impl WireStyles {
    /// `None`: none of these styles is of the wire.
    pub fn new(names: &[String], seed: u64) -> Option<Self> {
        use crate::reference::engine::Named;
        let styles: Vec<Style> = names.iter().filter_map(|name| Style::named(name)).collect();
        (!styles.is_empty()).then_some(Self { styles, seed })
    }

    /// What becomes of the connection with this number.
    pub fn interceptor(&self, connection: u64) -> Box<dyn Interceptor> {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&connection.to_le_bytes());
        Box::new(Styled {
            styles: self.styles.clone(),
            chance: ChaCha8Rng::from_seed(key),
            upgraded: false,
            closed: false,
            client_closed: false,
            within: false,
        })
    }
}

struct Styled {
    styles: Vec<Style>,
    chance: ChaCha8Rng,
    /// The upgrade's response has passed.
    upgraded: bool,
    /// The server's close frame has passed.
    closed: bool,
    /// The client's has passed.
    client_closed: bool,
    /// The server is within a message of several frames of its own.
    within: bool,
}

impl Styled {
    fn has(&self, style: Style) -> bool {
        self.styles.contains(&style)
    }

    fn between(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.chance.next_u64() % (most - least + 1))
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.chance.next_u64().is_multiple_of(count)
    }

    /// A text message, spelt otherwise.
    fn respelt(&self, frame: &mut Frame) {
        if frame.opcode != 1 || !frame.fin {
            return;
        }
        let Ok(mut body) = serde_json::from_slice::<serde_json::Value>(&frame.payload) else { return };
        if self.has(Style::Reordered) {
            json::reverse(&mut body);
        }
        let text = if self.has(Style::Spaced) {
            json::spaced(&body)
        } else if self.has(Style::Escaped) {
            json::escaped(&body)
        } else if self.has(Style::Reordered) {
            body.to_string()
        } else {
            return;
        };
        frame.payload = text.into_bytes();
        frame.form = None;
    }

    /// A message of the server, as the frames that are sent of it.
    fn frames(&mut self, mut frame: Frame) -> Vec<Frame> {
        self.respelt(&mut frame);
        if frame.opcode == 8 && self.has(Style::CloseReason) && frame.payload.len() == 2 {
            frame.payload.extend_from_slice(b"that was all");
            frame.form = None;
        }
        let is_message = matches!(frame.opcode, 1 | 2) && frame.fin;
        let cut = is_message && (self.has(Style::Fragments) || self.has(Style::PingsWithin));
        if !cut {
            return vec![frame];
        }
        frame.form = None;
        let size = (frame.payload.len() / 3).max(1);
        let mut frames = frame.fragments(size);
        if self.has(Style::PingsWithin) && frames.len() > 1 {
            frames.insert(1, control(9, b"within"));
        }
        frames
    }

    fn write(&mut self, bytes: Vec<u8>, plan: &mut Plan) {
        let way = Way::ToClient;
        if self.has(Style::InPieces) {
            let mut rest = bytes.as_slice();
            for _ in 0..PIECES {
                let size = rest.len().min(self.between(1, 7).as_millis() as usize);
                let (piece, later) = rest.split_at(size);
                if !piece.is_empty() {
                    plan.write_alone(way, piece.to_vec());
                }
                rest = later;
            }
            if !rest.is_empty() {
                plan.write_alone(way, rest.to_vec());
            }
        } else if self.has(Style::EachAlone) {
            plan.write_alone(way, bytes);
        } else {
            plan.write(way, bytes);
        }
    }
}

fn control(opcode: u8, payload: &[u8]) -> Frame {
    Frame { mask: None, ..Frame::new(opcode, payload) }
}

impl Interceptor for Styled {
    fn gathers(&self, way: Way) -> Option<Duration> {
        let gathers = way == Way::ToClient && self.has(Style::Coalesced);
        gathers.then_some(Duration::from_millis(20))
    }

    fn ahead(&self, way: Way) -> Option<usize> {
        (way == Way::ToClient && self.has(Style::LargeBuffers)).then_some(LARGE)
    }

    fn batch(&mut self, way: Way, plan: &mut Plan) {
        let late = match way {
            Way::ToServer => self.has(Style::SlowToRead),
            Way::ToClient => self.has(Style::Slow),
        };
        if late {
            let time = self.between(5, 50);
            plan.wait(way, time);
        }
    }

    fn bytes(&mut self, way: Way, bytes: Vec<u8>, plan: &mut Plan) {
        // Bytes behind the upgrade are of a frame of more than 1 MiB.
        if way == Way::ToServer && self.upgraded && self.has(Style::OneMebibyte) {
            if !std::mem::replace(&mut self.client_closed, true) {
                // The server answers this close with the same code, and the client sees only that.
                plan.write(way, Frame::new(8, 1009_u16.to_be_bytes()).encode());
            }
            return;
        }
        if way == Way::ToServer {
            return plan.write(way, bytes);
        }
        let first = !std::mem::replace(&mut self.upgraded, true);
        if first && self.has(Style::SlowUpgrade) {
            let time = self.between(50, 150);
            plan.wait(way, time);
        }
        if first && self.has(Style::LongFormHeaders) {
            return plan.write(way, respelt_head(&bytes));
        }
        self.write(bytes, plan);
    }

    fn frame(&mut self, way: Way, frame: Frame, bytes: Vec<u8>, plan: &mut Plan) {
        let is_close = frame.opcode == 8;
        if way == Way::ToServer {
            self.client_closed |= is_close;
            if is_close && self.has(Style::LateClose) {
                plan.wait(way, Duration::from_millis(100));
            }
            return plan.write(way, bytes);
        }
        if self.has(Style::Jitter) && self.one_in(4) {
            let time = self.between(1, 20);
            plan.wait(way, time);
        }
        let may_ask = !self.within && !self.closed;
        if frame.opcode < 8 {
            self.within = !frame.fin;
        }
        if may_ask && self.has(Style::Pings) && self.one_in(8) {
            self.write(control(9, b"there?").encode(), plan);
        }
        if may_ask && self.has(Style::UnaskedPongs) && self.one_in(8) {
            self.write(control(10, b"here").encode(), plan);
        }
        for frame in self.frames(frame) {
            self.write(frame.encode(), plan);
        }
        if is_close && !self.client_closed && self.has(Style::PongAfterClose) {
            self.write(control(10, b"").encode(), plan);
        }
        self.closed |= is_close;
    }

    fn ended(&mut self, way: Way, _half: bool, plan: &mut Plan) {
        if way == Way::ToServer && self.has(Style::LateHangUp) {
            plan.wait(way, Duration::from_millis(300));
        }
        plan.end(way);
    }
}

/// The head of a response with its headers in lower case, two more, and one more option of the connection.
fn respelt_head(head: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let mut out = lines.next().unwrap_or_default().to_owned();
    let mut lines = lines.peekable();
    if lines.peek().is_some() {
        out.push_str("\r\nserver: styled/1.0\r\nx-request-id: 7");
    }
    for line in lines {
        out.push_str("\r\n");
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("connection") => {
                out.push_str(&format!("connection: keep-alive,{value}"));
            }
            Some((name, value)) => out.push_str(&format!("{}:{value}", name.to_ascii_lowercase())),
            None => out.push_str(line),
        }
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_the_same_in_lower_case() {
        let head =
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: aB=\r\n\r\n";
        let respelt = "HTTP/1.1 101 Switching Protocols\r\nserver: styled/1.0\r\nx-request-id: 7\r\n\
                       connection: keep-alive, Upgrade\r\nsec-websocket-accept: aB=\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&respelt_head(head)), respelt);
    }

    #[test]
    fn fragments_make_the_same_message() {
        let names = ["pings-within".to_owned(), "in-pieces".to_owned()];
        let styles = WireStyles::new(&names, 1).expect("styles of the wire");
        let mut styled = styles.interceptor(1);
        let (mut plan, frame) = (Plan::default(), control(1, b"{\"a\":\"b\"}"));
        styled.frame(Way::ToClient, frame.clone(), frame.encode(), &mut plan);
        let mut frames = crate::wire::relay::Frames::default();
        frames.take_head(b"\r\n\r\n");
        frames.take_head(&plan.written(Way::ToClient));
        let (mut text, mut pings) = (Vec::new(), 0);
        while let Some((frame, _)) = frames.next_frame() {
            match frame.opcode {
                9 => pings += 1,
                _ => text.extend(frame.payload),
            }
        }
        assert_eq!((text, pings), (frame.payload, 1));
    }
}
