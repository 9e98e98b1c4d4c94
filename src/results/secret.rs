//! A secret, and the ways in which it may stand in a text.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// From this length on the case of letters makes no difference: nothing else is spelt alike by chance.
const UNAMBIGUOUS: usize = 8;
/// The shortest beginning of a secret that is masked where a text was cut, in bytes.
const CUT: usize = 4;

/// Bytes that are looked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Needle {
    /// In small letters, where their case makes no difference.
    bytes: Vec<u8>,
    any_case: bool,
    /// It is the text itself, which may be written with escapes: `\u0041`, `%41`.
    plain: bool,
}

impl Needle {
    /// The secret itself, and what base64 and hex make of it wherever it begins.
    pub fn all(secret: &str) -> Vec<Self> {
        let bytes = secret.as_bytes();
        let mut all = vec![Self::new(bytes, true)];
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            for before in 0..3 {
                let whole = engine.encode([&[0; 2][..before], bytes].concat());
                // Characters that hold bits of the secret alone.
                let (from, to) = ((before * 8).div_ceil(6), (before + bytes.len()) * 8 / 6);
                all.push(Self::new(&whole.as_bytes()[from..to], false));
            }
        }
        let hex =
            |between: &str| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(between);
        all.extend([hex(""), hex(" "), hex(":")].map(|text| Self::new(text.as_bytes(), false)));
        all.retain(|needle| needle.plain || needle.bytes.len() >= UNAMBIGUOUS);
        all
    }

    fn new(bytes: &[u8], plain: bool) -> Self {
        let any_case = bytes.len() >= UNAMBIGUOUS;
        let bytes = if any_case { bytes.to_ascii_lowercase() } else { bytes.to_vec() };
        Self { bytes, any_case, plain }
    }

    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    fn is_at(&self, at: &[u8]) -> bool {
        at.iter()
            .zip(&self.bytes)
            .all(|(one, other)| one == other || (self.any_case && one.to_ascii_lowercase() == *other))
    }

    /// Where it stands; and its beginning, where the text was cut behind that.
    fn find(&self, text: &[u8], cut: impl Fn(usize) -> bool, found: &mut Vec<Range<usize>>) {
        let first = self.bytes[0];
        let begins = |byte: &u8| *byte == first || (self.any_case && byte.to_ascii_lowercase() == first);
        for (at, _) in text.iter().enumerate().filter(|(_, byte)| begins(byte)) {
            let rest = &text[at..];
            if rest.len() >= self.bytes.len() && self.is_at(rest) {
                found.push(at..at + self.bytes.len());
            } else if let Some(length) = (CUT..self.bytes.len().min(rest.len() + 1))
                .rev()
                .find(|length| cut(at + length) && self.is_at(&rest[..*length]))
            {
                found.push(at..at + length);
            }
        }
    }
}

/// A text as it reads without its escapes, and where each of its bytes stands in the text as written.
struct View {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl View {
    /// With the escapes of JSON or of URLs read, whichever these are.
    fn of(text: &str, escape: u8, read: fn(&[u8]) -> Option<(char, usize)>) -> Option<Self> {
        let written = text.as_bytes();
        if !written.contains(&escape) {
            return None;
        }
        let (mut bytes, mut places, mut at) = (Vec::new(), Vec::new(), 0);
        while at < written.len() {
            match read(&written[at..]).filter(|_| written[at] == escape) {
                Some((c, length)) => {
                    let mut buffer = [0; 4];
                    for byte in c.encode_utf8(&mut buffer).bytes() {
                        bytes.push(byte);
                        places.push(at..at + length);
                    }
                    at += length;
                }
                None => {
                    bytes.push(written[at]);
                    places.push(at..at + 1);
                    at += 1;
                }
            }
        }
        Some(Self { bytes, places })
    }
}

/// `\n`, `\"`, `\u0041`.
fn json_escape(text: &[u8]) -> Option<(char, usize)> {
    let known = match text.get(1)? {
        b'u' => {
            let digits = std::str::from_utf8(text.get(2..6)?).ok()?;
            return Some((char::from_u32(u32::from_str_radix(digits, 16).ok()?)?, 6));
        }
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        other @ (b'"' | b'\\' | b'/') => char::from(*other),
        _ => return None,
    };
    Some((known, 2))
}

/// `%41`. Of what is not ASCII each byte is written apart, and is left as it is.
fn percent_escape(text: &[u8]) -> Option<(char, usize)> {
    let digits = std::str::from_utf8(text.get(1..3)?).ok()?;
    let byte = u8::from_str_radix(digits, 16).ok()?;
    byte.is_ascii().then(|| (char::from(byte), 3))
}

/// The places of a text that show a secret, each once and in order.
pub(super) fn places(needles: &[Needle], text: &str) -> Vec<Range<usize>> {
    let written = text.as_bytes();
    // Behind what is cut stands a mark, or nothing.
    let cut = |at: usize| at == written.len() || text.get(at..).is_some_and(|rest| rest.starts_with('…'));
    let mut found = Vec::new();
    needles.iter().for_each(|needle| needle.find(written, cut, &mut found));
    let views = [View::of(text, b'\\', json_escape), View::of(text, b'%', percent_escape)];
    for view in views.into_iter().flatten() {
        let mut read = Vec::new();
        let end = view.bytes.len();
        let plain = needles.iter().filter(|needle| needle.plain);
        plain.for_each(|needle| needle.find(&view.bytes, |at| at == end, &mut read));
        found.extend(read.into_iter().map(|at| view.places[at.start].start..view.places[at.end - 1].end));
    }
    joined(found)
}

/// The places of bytes that show a secret.
pub(super) fn places_in_bytes(needles: &[Needle], bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    needles.iter().for_each(|needle| needle.find(bytes, |at| at == bytes.len(), &mut found));
    joined(found)
}

fn joined(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    found.sort_by_key(|place| (place.start, std::cmp::Reverse(place.end)));
    let mut apart: Vec<Range<usize>> = Vec::new();
    for place in found {
        match apart.last_mut().filter(|last| place.start < last.end) {
            Some(last) => last.end = last.end.max(place.end),
            None => apart.push(place),
        }
    }
    apart
}
