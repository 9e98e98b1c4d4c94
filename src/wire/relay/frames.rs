//! A stream of bytes, taken apart into frames.

use crate::wire::frame::{Frame, LengthForm, apply};

/// Longest frame that is looked at, in bytes; longer ones, and whatever follows, pass as they come.
const LONGEST: u64 = 1 << 20;

/// One direction of a connection, taken apart.
#[derive(Debug, Default)]
pub struct Frames {
    /// The head of the upgrade is over.
    upgraded: bool,
    /// A frame too long to be looked at has come.
    endless: bool,
    buffer: Vec<u8>,
}

impl Frames {
    /// Takes bytes in; what of them belongs to the upgrade is given back.
    pub fn take_head(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.buffer.extend_from_slice(bytes);
        if self.upgraded {
            return Vec::new();
        }
        let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
        self.upgraded = end.is_some();
        let rest = end.map_or(self.buffer.len().saturating_sub(3), |end| end + 4);
        self.buffer.drain(..rest).collect()
    }

    /// Half a frame has come.
    pub fn is_half(&self) -> bool {
        self.upgraded && !self.buffer.is_empty()
    }

    /// Everything that has come, once a frame was too long.
    pub fn take_endless(&mut self) -> Vec<u8> {
        if self.endless { std::mem::take(&mut self.buffer) } else { Vec::new() }
    }

    /// The next whole frame, whatever it is, and its bytes.
    pub fn next_frame(&mut self) -> Option<(Frame, Vec<u8>)> {
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
                while let Some((frame, bytes)) = through.next_frame() {
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
        assert!(half.next_frame().is_none() && half.is_half());
        let endless = Frame { length: Some(1 << 62), ..Frame::new(1, "x") }.encode();
        let mut long = Frames { upgraded: true, ..Frames::default() };
        long.take_head(&endless);
        assert!(long.next_frame().is_none());
        assert_eq!(long.take_endless(), endless);
    }
}
