//! RFC 6455 frames as bytes: any frame there can be, right or wrong. No I/O.

/// The key that masks frames unless another is asked for (the RFC's own example). A constant, so that the same
/// case writes the same bytes: no proxy is to be protected from this client.
pub const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// Longest payload of a control frame, in bytes.
pub(super) const MAX_CONTROL: usize = 125;

/// How a frame writes its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthForm {
    /// In the second byte; up to 125.
    Seven,
    /// In two bytes behind it; up to 65535.
    Sixteen,
    /// In eight bytes behind it.
    SixtyFour,
}

impl LengthForm {
    /// The shortest form that can hold a length: the only one that RFC 6455 allows.
    pub fn shortest(length: u64) -> Self {
        match length {
            0..=125 => Self::Seven,
            126..=0xffff => Self::Sixteen,
            _ => Self::SixtyFour,
        }
    }
}

/// One frame, with everything that a header can say, whether RFC 6455 allows it or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The last fragment of its message, or the whole of it.
    pub fin: bool,
    /// The three reserved bits, 0 to 7.
    pub rsv: u8,
    /// 0 to 15.
    pub opcode: u8,
    /// The masking key; none: not masked.
    pub mask: Option<[u8; 4]>,
    /// The payload before masking.
    pub payload: Vec<u8>,
    /// The length that the header claims; none: that of the payload.
    pub length: Option<u64>,
    /// How the length is written; none: in the shortest form.
    pub form: Option<LengthForm>,
}

impl Frame {
    /// A whole message or control frame, as a well-behaved client writes it.
    pub fn new(opcode: u8, payload: impl Into<Vec<u8>>) -> Self {
        let payload = payload.into();
        Self { fin: true, rsv: 0, opcode, mask: Some(MASK), payload, length: None, form: None }
    }

    /// The bytes of the frame. A length that its form cannot hold loses its upper bits.
    pub fn encode(&self) -> Vec<u8> {
        let length = self.length.unwrap_or(self.payload.len() as u64);
        let form = self.form.unwrap_or_else(|| LengthForm::shortest(length));
        let masked = if self.mask.is_some() { 0x80 } else { 0 };
        let mut bytes = Vec::with_capacity(self.payload.len() + 14);
        bytes.push(u8::from(self.fin) << 7 | (self.rsv & 7) << 4 | self.opcode & 15);
        match form {
            LengthForm::Seven => bytes.push(masked | (length & 0x7f) as u8),
            LengthForm::Sixteen => {
                bytes.push(masked | 126);
                bytes.extend_from_slice(&(length as u16).to_be_bytes());
            }
            LengthForm::SixtyFour => {
                bytes.push(masked | 127);
                bytes.extend_from_slice(&length.to_be_bytes());
            }
        }
        bytes.extend(self.mask.into_iter().flatten());
        let start = bytes.len();
        bytes.extend_from_slice(&self.payload);
        if let Some(mask) = self.mask {
            apply(mask, &mut bytes[start..]);
        }
        bytes
    }

    /// The frame's message in fragments of at most `size` payload bytes (at least 1): the first has the opcode, the last
    /// this frame's `fin`.
    pub fn fragments(&self, size: usize) -> Vec<Self> {
        let mut pieces: Vec<&[u8]> = self.payload.chunks(size.max(1)).collect();
        if pieces.is_empty() {
            pieces.push(&[]);
        }
        let last = pieces.len() - 1;
        let fragment = |(index, piece): (usize, &[u8])| Self {
            fin: self.fin && index == last,
            opcode: if index == 0 { self.opcode } else { 0 },
            payload: piece.to_vec(),
            ..self.clone()
        };
        pieces.into_iter().enumerate().map(fragment).collect()
    }
}

/// Masks or unmasks.
pub fn apply(mask: [u8; 4], bytes: &mut [u8]) {
    bytes.iter_mut().zip(mask.into_iter().cycle()).for_each(|(byte, key)| *byte ^= key);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        // Section 5.7.
        let hello = Frame { mask: None, ..Frame::new(1, "Hello") };
        assert_eq!(hello.encode(), [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]);
        let masked = Frame::new(1, "Hello").encode();
        assert_eq!(masked, [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
        let parts: Vec<_> = hello.fragments(3).iter().map(Frame::encode).collect();
        assert_eq!(parts, [vec![0x01, 0x03, 0x48, 0x65, 0x6c], vec![0x80, 0x02, 0x6c, 0x6f]]);
        assert_eq!(Frame::new(9, "Hello").encode()[..2], [0x89, 0x85]);
        let binary = |length| Frame { mask: None, ..Frame::new(2, vec![0; length]) }.encode();
        assert_eq!(binary(256)[..4], [0x82, 0x7e, 0x01, 0x00]);
        assert_eq!(binary(65536)[..10], [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_header_says_what_it_is_told_to() {
        let frame = Frame {
            fin: false,
            rsv: 5,
            opcode: 0xb,
            mask: None,
            payload: b"xy".to_vec(),
            length: Some(1 << 40),
            form: None,
        };
        assert_eq!(frame.encode(), [0x5b, 127, 0, 0, 1, 0, 0, 0, 0, 0, b'x', b'y']);
        let long_form = Frame { form: Some(LengthForm::Sixteen), mask: None, ..Frame::new(1, "a") };
        assert_eq!(long_form.encode(), [0x81, 126, 0, 1, b'a']);
        assert_eq!(Frame::new(1, "").fragments(1).len(), 1);
        let cut = Frame { fin: false, ..Frame::new(1, "abc") }.fragments(1);
        assert!(cut.iter().all(|fragment| !fragment.fin), "the last keeps the frame's own `fin`");
    }
}
