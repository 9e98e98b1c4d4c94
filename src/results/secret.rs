//! A secret, and the ways in which it may stand in a text.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::text;

/// From this length on the case of letters makes no difference: nothing else is spelt alike by chance.
const UNAMBIGUOUS: usize = 8;
/// The shortest beginning of a secret that is masked where a text was cut, in bytes.
const CUT: usize = 4;
/// A shorter text is not cut without a mark, in bytes: a word that it ends with may well begin like a secret.
const UNMARKED: usize = 64;

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

    /// How many bytes of it stand here.
    fn alike(&self, here: &[u8]) -> usize {
        let same =
            |one: &u8, other: &u8| one == other || (self.any_case && one.to_ascii_lowercase() == *other);
        here.iter().zip(&self.bytes).take_while(|(one, other)| same(one, other)).count()
    }

    /// Where it stands; and its beginning, where the text was cut behind that.
    fn find(&self, text: &[u8], cut: impl Fn(usize) -> bool, found: &mut Vec<Range<usize>>) {
        let first = self.bytes[0];
        let begins = |byte: &u8| *byte == first || (self.any_case && byte.to_ascii_lowercase() == first);
        for (at, _) in text.iter().enumerate().filter(|(_, byte)| begins(byte)) {
            let rest = &text[at..];
            let alike = self.alike(rest);
            if alike == self.bytes.len() {
                found.push(at..at + alike);
            } else if let Some(length) = (CUT..=alike).rev().find(|length| cut(at + length)) {
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

/// What an escape at the beginning of a text stands for, and how long it is.
struct Read {
    bytes: [u8; 4],
    count: usize,
    length: usize,
}

impl Read {
    fn of(c: char, length: usize) -> Self {
        let mut bytes = [0; 4];
        let count = c.encode_utf8(&mut bytes).len();
        Self { bytes, count, length }
    }
}

/// One way of writing a text, undone.
type Reader = fn(&[u8]) -> Option<Read>;

/// What is undone first, and then, in what that leaves, each of these: texts are quoted in texts.
const READERS: [(Reader, &[Reader]); 3] = [
    (json_escape, &[json_escape, percent_escape, line_end]),
    (percent_escape, &[percent_escape]),
    (line_end, &[]),
];

impl View {
    /// As it is written.
    fn plain(text: &[u8]) -> Self {
        Self { bytes: text.to_vec(), places: (0..text.len()).map(|at| at..at + 1).collect() }
    }

    /// With these escapes read. None: there are none.
    fn read(&self, read: Reader) -> Option<Self> {
        let mut next = Self { bytes: Vec::new(), places: Vec::new() };
        let mut at = 0;
        while at < self.bytes.len() {
            let found = read(&self.bytes[at..]);
            let length = found.as_ref().map_or(1, |found| found.length);
            let place = self.places[at].start..self.places[at + length - 1].end;
            let bytes = found.as_ref().map_or(&self.bytes[at..=at], |found| &found.bytes[..found.count]);
            next.bytes.extend_from_slice(bytes);
            next.places.extend(std::iter::repeat_n(place, bytes.len()));
            at += length;
        }
        (next.bytes != self.bytes).then_some(next)
    }
}

/// `\n`, `\"`, `\u0041`, and a pair of surrogates.
fn json_escape(text: &[u8]) -> Option<Read> {
    text::json_escape(text, b"\\").map(|(length, c)| Read::of(c, length))
}

/// `%41`; of what is not ASCII each byte is written apart.
fn percent_escape(text: &[u8]) -> Option<Read> {
    let digits = text.strip_prefix(b"%")?.get(..2)?;
    let byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    Some(Read { bytes: [byte, 0, 0, 0], count: 1, length: 3 })
}

/// The end of a line, where base64 and hex are broken into several.
fn line_end(text: &[u8]) -> Option<Read> {
    matches!(text.first()?, b'\n' | b'\r').then_some(Read { bytes: [0; 4], count: 0, length: 1 })
}

/// So much is looked at at a time, in bytes: a view takes many times as much.
const WINDOW: usize = 64 << 10;
/// Longest that one byte is when it is written in the orders of [`READERS`].
const WRITTEN: usize = 16;

/// The places of a text that show a secret, each once and in order.
pub(super) fn places(needles: &[Needle], written: &[u8]) -> Vec<Range<usize>> {
    // Behind what is cut stands a mark, or nothing.
    let cut = |at: usize| match &written[at..] {
        [] => at >= UNMARKED,
        rest => rest.starts_with("…".as_bytes()),
    };
    let mut found = Vec::new();
    needles.iter().for_each(|needle| needle.find(written, cut, &mut found));
    let longest = needles.iter().map(Needle::length).max().unwrap_or(0);
    for from in (0..written.len()).step_by(WINDOW) {
        let window = &written[from..written.len().min(from + WINDOW + longest.saturating_mul(WRITTEN))];
        if window.iter().any(|byte| matches!(byte, b'\\' | b'%' | b'\n' | b'\r')) {
            let in_window = escaped_places(needles, window, |at| cut(from + at));
            found.extend(in_window.into_iter().map(|at| from + at.start..from + at.end));
        }
    }
    joined(found)
}

/// The places at which a secret stands behind escapes.
fn escaped_places(needles: &[Needle], text: &[u8], cut: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let plain = View::plain(text);
    let mut found = Vec::new();
    let mut look = |view: &View| {
        // Behind what is cut, the beginning of an escape may stand.
        let ends = |at: usize| {
            let from = view.places.get(at).map_or(text.len(), |place| place.start);
            let until = text.len().min(from + WRITTEN);
            (from..=until).any(|at| cut(at) && (at == from || is_broken(&text[from..at])))
        };
        let mut read = Vec::new();
        needles.iter().for_each(|needle| needle.find(&view.bytes, ends, &mut read));
        found.extend(read.into_iter().map(|at| view.places[at.start].start..view.places[at.end - 1].end));
    };
    for (first, others) in READERS {
        let Some(view) = plain.read(first) else { continue };
        look(&view);
        others.iter().filter_map(|other| view.read(*other)).for_each(|view| look(&view));
    }
    found
}

/// Whether it is the beginning of an escape, and no more.
fn is_broken(text: &[u8]) -> bool {
    let escape = text.first().is_some_and(|byte| matches!(byte, b'\\' | b'%'));
    escape && text[1..].iter().all(|byte| matches!(byte, b'\\' | b'u' | b'%') || byte.is_ascii_hexdigit())
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
