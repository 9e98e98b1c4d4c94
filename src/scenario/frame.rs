//! Frames below the messages, as scenarios write them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::wire::frame::{Frame, LengthForm, MASK};

/// Longest payload that a scenario may ask for, in bytes.
const MAX_PAYLOAD: u64 = 64 << 20;
/// Longest payload of a frame whose length stands in its second byte.
const MAX_SEVEN: u64 = 125;

/// A frame of RFC 6455, valid or not. A key that is absent has the value that a conforming client uses.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawFrame {
    /// What the frame is: a name, or a number from 0 to 15 (3 to 7 and 11 to 15 are reserved).
    pub opcode: Opcode,
    /// `false`: fragments follow.
    #[serde(default = "yes")]
    pub fin: bool,
    /// The three reserved bits, 0 to 7.
    #[serde(default)]
    #[schemars(range(max = 7))]
    pub rsv: u8,
    /// `false`: not masked, which a client must not do.
    #[serde(default = "yes")]
    pub masked: bool,
    /// The payload: a text with templates, or a message, which is written as JSON.
    pub payload: Option<Value>,
    /// The payload as hexadecimal digits, blanks between them allowed.
    pub hex: Option<String>,
    /// A close code, before the payload.
    pub code: Option<u16>,
    /// Fills the payload with blanks (as JSON allows them) to this many bytes.
    pub pad: Option<u64>,
    /// The length that the header claims, whatever the payload.
    pub length: Option<u64>,
    /// How the length is written: in 7, 16 or 64 bits. Default: in the shortest form, as RFC 6455 demands.
    pub length_bits: Option<u8>,
    /// Cuts the message into frames of this many payload bytes.
    pub fragment: Option<u32>,
    /// A frame that is written between the fragments.
    pub between: Option<Box<RawFrame>>,
    /// Writes only this many bytes in total, and stops.
    pub cut: Option<u64>,
    /// Writes this many bytes at a time, each in a TCP segment of its own if the system permits it.
    pub piece: Option<u32>,
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Opcode {
    /// By name.
    Name(OpcodeName),
    /// By number.
    Number(#[schemars(range(max = 15))] u8),
}

/// The frames that RFC 6455 defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OpcodeName {
    /// 0: a further fragment of a message.
    Continuation = 0,
    /// 1.
    Text = 1,
    /// 2.
    Binary = 2,
    /// 8.
    Close = 8,
    /// 9.
    Ping = 9,
    /// 10.
    Pong = 10,
}

fn yes() -> bool {
    true
}

impl Opcode {
    /// 0 to 15, in a checked scenario.
    pub fn number(self) -> u8 {
        match self {
            Self::Name(name) => name as u8,
            Self::Number(number) => number,
        }
    }
}

/// The bytes that hexadecimal digits stand for; blanks are passed over.
///
/// # Errors
/// What is wrong with them.
pub fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let values: Option<Vec<u8>> =
        digits.iter().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let values = values.ok_or("it must be hexadecimal digits, such as `81 05 68 65`")?;
    if values.len() % 2 != 0 {
        return Err("it has an odd number of hexadecimal digits".to_owned());
    }
    Ok(values.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

impl RawFrame {
    /// The bytes of it all (but for `cut`), fragments and what stands between them included. `expand` fills in templates.
    ///
    /// # Errors
    /// Those of `expand`, and digits that are none.
    pub fn encode(&self, expand: &mut dyn FnMut(&Value) -> Result<Value, String>) -> Result<Vec<u8>, String> {
        let mut payload = self.code.map_or_else(Vec::new, |code| code.to_be_bytes().to_vec());
        match &self.payload {
            Some(value) => match expand(value)? {
                Value::String(text) => payload.extend(text.into_bytes()),
                other => payload.extend(other.to_string().into_bytes()),
            },
            None => payload.extend(unhex(self.hex.as_deref().unwrap_or_default())?),
        }
        let pad = self.pad.map_or(0, |pad| usize::try_from(pad.min(MAX_PAYLOAD)).unwrap_or(usize::MAX));
        if payload.len() < pad {
            payload.resize(pad, b' ');
        }
        let frame = Frame {
            fin: self.fin,
            rsv: self.rsv,
            opcode: self.opcode.number(),
            mask: self.masked.then_some(MASK),
            payload,
            length: self.length,
            form: self.length_bits.map(|bits| match bits {
                7 => LengthForm::Seven,
                16 => LengthForm::Sixteen,
                _ => LengthForm::SixtyFour,
            }),
        };
        let Some(size) = self.fragment else { return Ok(frame.encode()) };
        let between = match &self.between {
            Some(between) => between.encode(expand)?,
            None => Vec::new(),
        };
        let fragments: Vec<Vec<u8>> = frame.fragments(size as usize).iter().map(Frame::encode).collect();
        Ok(fragments.join(&between[..]))
    }

    /// The payload, where it is not subject to templates.
    fn fixed(&self) -> Option<u64> {
        let own = match (&self.payload, &self.hex) {
            (Some(Value::String(text)), None) if !text.contains("{{") => text.len() as u64,
            (Some(_), _) => return None,
            (None, Some(hex)) => unhex(hex).ok()?.len() as u64,
            (None, None) => 0,
        };
        let own = own + if self.code.is_some() { 2 } else { 0 };
        Some(own.max(self.pad.unwrap_or(0)))
    }

    /// What a schema cannot say: the field, what is wrong with it, and what would be right.
    pub(super) fn mistakes(&self) -> Vec<(&'static str, String, &'static str)> {
        let mut wrong: Vec<(&'static str, String, &'static str)> = Vec::new();
        if self.opcode.number() > 15 {
            let hint = "opcodes are 0 to 15, or continuation, text, binary, close, ping, pong";
            wrong.push(("opcode", format!("there is no opcode {}", self.opcode.number()), hint));
        }
        if self.rsv > 7 {
            wrong.push(("rsv", format!("{} is more than three bits", self.rsv), "0 to 7"));
        }
        if let Some(Err(message)) = self.hex.as_deref().map(unhex) {
            wrong.push(("hex", message, ""));
        }
        if self.payload.is_some() && self.hex.is_some() {
            let message = "a payload is given as text or as digits, not both".to_owned();
            wrong.push(("hex", message, "leave `payload` or `hex` out"));
        }
        if self.pad.is_some_and(|pad| pad > MAX_PAYLOAD) {
            wrong.push(("pad", format!("a payload has at most {MAX_PAYLOAD} bytes"), ""));
        }
        let greatest = match self.length_bits {
            None | Some(64) => u64::MAX,
            Some(16) => 0xffff,
            Some(7) => MAX_SEVEN,
            Some(other) => {
                let hint = "7, 16 or 64";
                wrong.push(("length-bits", format!("a length has 7, 16 or 64 bits, not {other}"), hint));
                u64::MAX
            }
        };
        if let Some(length) = self.length.or_else(|| self.fixed()).filter(|length| *length > greatest) {
            let message = format!("a length of {length} does not fit");
            wrong.push(("length-bits", message, "leave it out, or take more bits"));
        }
        if self.fragment == Some(0) {
            wrong.push(("fragment", "a fragment has at least one byte".to_owned(), ""));
        }
        if self.between.is_some() && self.fragment.is_none() {
            let message = "`between` needs fragments to stand between".to_owned();
            wrong.push(("between", message, "add `fragment: N`"));
        }
        if self.piece == Some(0) {
            wrong.push(("piece", "a piece has at least one byte".to_owned(), ""));
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mistakes(frame: Value) -> Vec<&'static str> {
        let frame: RawFrame = serde_json::from_value(frame).expect("a frame");
        frame.mistakes().into_iter().map(|(field, ..)| field).collect()
    }

    #[test]
    fn digits_are_read() {
        assert_eq!(unhex("81 05\n68fF"), Ok(vec![0x81, 5, 0x68, 0xff]));
        assert_eq!(unhex(""), Ok(vec![]));
        assert!(unhex("8").is_err_and(|message| message.contains("odd")));
        assert!(unhex("8é").is_err_and(|message| message.contains("hexadecimal")));
        assert!(unhex("0x81").is_err());
    }

    #[test]
    fn mistakes_are_found() {
        for (frame, expected) in [
            (json!({ "opcode": "text" }), &[][..]),
            (json!({ "opcode": 15, "rsv": 7, "hex": "ff", "length-bits": 64 }), &[]),
            (json!({ "opcode": 16 }), &["opcode"]),
            (json!({ "opcode": "ping", "rsv": 8 }), &["rsv"]),
            (json!({ "opcode": "text", "hex": "f" }), &["hex"]),
            (json!({ "opcode": "text", "hex": "ff", "payload": "x" }), &["hex"]),
            (json!({ "opcode": "text", "pad": 1_000_000_000 }), &["pad"]),
            (json!({ "opcode": "text", "length-bits": 8 }), &["length-bits"]),
            (json!({ "opcode": "text", "length-bits": 7, "length": 126 }), &["length-bits"]),
            (json!({ "opcode": "ping", "length-bits": 7, "pad": 126 }), &["length-bits"]),
            (json!({ "opcode": "close", "length-bits": 7, "code": 1000, "payload": "{{uid}}" }), &[]),
            (json!({ "opcode": "text", "fragment": 0 }), &["fragment"]),
            (json!({ "opcode": "text", "between": { "opcode": "ping" } }), &["between"]),
            (json!({ "opcode": "text", "piece": 0 }), &["piece"]),
        ] {
            assert_eq!(mistakes(frame.clone()), expected, "{frame}");
        }
    }
}
