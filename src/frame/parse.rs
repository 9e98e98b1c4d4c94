//! One pass over the text: `serde_json` reads, a visitor of ours refuses duplicate keys and depth.

use std::cell::Cell;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::cost::{self, Budget, allowed};
use super::memory_estimate::MemoryEstimate;
use super::{FrameError, Place};

/// Bounds on one frame. A frame beyond them is a [`FrameError`], never a panic or a hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest message, in bytes. Default 16 MiB: what tungstenite takes for one frame.
    pub max_bytes: usize,
    /// Deepest nesting of arrays and objects; 1 is a flat object. Default 64; above 127 the JSON
    /// reader's own recursion guard answers first, with the same error.
    pub max_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 16 << 20, max_depth: 64 }
    }
}

/// Parses the bytes of one WebSocket message as one JSON object.
///
/// # Errors
/// See [`FrameError`]: each kind of defect is its own variant.
///
/// ```
/// use frameproof::frame::{FrameError, Limits, parse};
/// let frame = parse(br#"{"type":"ping","nonce":"n1"}"#, &Limits::default())?;
/// assert_eq!(frame["type"], "ping");
/// let twice = parse(br#"{"type":"ping","type":"hello"}"#, &Limits::default());
/// assert!(matches!(twice, Err(FrameError::DuplicateKey { .. })));
/// # Ok::<(), FrameError>(())
/// ```
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Value, FrameError> {
    if bytes.len() > limits.max_bytes {
        return Err(FrameError::TooLarge { bytes: bytes.len(), limit: limits.max_bytes });
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| FrameError::InvalidUtf8 { offset: error.valid_up_to() })?;
    parse_text(text, limits)
}

/// Parses the text of one WebSocket message as one JSON object: [`parse`] for what is known to be UTF-8.
///
/// # Errors
/// See [`FrameError`].
pub fn parse_text(text: &str, limits: &Limits) -> Result<Value, FrameError> {
    match parse_any(text, limits)? {
        value @ Value::Object(_) => Ok(value),
        other => Err(FrameError::NotAnObject { found: name_of(&other) }),
    }
}

/// Most messages of one batch.
pub const MAX_BATCH: usize = 1024;

/// Parses the text of one WebSocket message as a JSON array of messages, at least one and at most [`MAX_BATCH`]. What its members are is not looked
/// at.
///
/// # Errors
/// See [`FrameError`].
pub fn parse_batch(text: &str, limits: &Limits) -> Result<Vec<Value>, FrameError> {
    match parse_any(text, limits)? {
        Value::Array(members) if members.is_empty() => {
            Err(FrameError::NotAnObject { found: "an empty array" })
        }
        Value::Array(members) if members.len() > MAX_BATCH => {
            Err(FrameError::BatchTooLong { count: members.len(), limit: MAX_BATCH })
        }
        Value::Array(members) => Ok(members),
        other => Err(FrameError::NotAnObject { found: name_of(&other) }),
    }
}

/// Parses a JSON text that stands in a frame: a short one as any JSON reader does, a long one as a frame is, within its bounds.
///
/// # Errors
/// It is no JSON: why.
pub(crate) fn parse_within(text: &str) -> Result<Value, String> {
    if cost::is_small(text.len()) {
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    parse_any(text, &Limits::default()).map_err(|error| error.to_string())
}

fn parse_any(text: &str, limits: &Limits) -> Result<Value, FrameError> {
    if text.len() > limits.max_bytes {
        return Err(FrameError::TooLarge { bytes: text.len(), limit: limits.max_bytes });
    }
    let broken = Broken::default();
    if cost::is_large(text.len()) {
        // What is refused in the end takes no memory before.
        let budget = Budget::of(text.len());
        let seed = MemoryEstimate(Node { depth_left: limits.max_depth, broken: &broken, budget: &budget });
        let mut reader = serde_json::Deserializer::from_str(text);
        seed.deserialize(&mut reader).map_err(|error| broken.explain(&error, limits, text.len()))?;
    }
    let budget = Budget::of(text.len());
    let mut reader = serde_json::Deserializer::from_str(text);
    let seed = Node { depth_left: limits.max_depth, broken: &broken, budget: &budget };
    seed.deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| broken.explain(&error, limits, text.len()))
}

/// Room for the fields of most objects, as many as a small hash table holds.
const TYPICAL: usize = 7;

/// A key as far as an error names it.
fn beginning(key: &str) -> String {
    const LONGEST: usize = 200;
    match key.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &key[..end]),
        None => key.to_owned(),
    }
}

/// What a JSON value is, for a message.
pub(crate) fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The visitor's own reason, carried past `serde_json`'s error, which can hold only text.
#[derive(Default)]
pub(super) struct Broken(Cell<Option<Reason>>);

enum Reason {
    Depth,
    Cost,
    Duplicate(String),
}

/// The reason stands where the reader cannot carry it.
fn stopped<E: serde::de::Error>(broken: &Broken, reason: Reason) -> E {
    broken.0.set(Some(reason));
    E::custom("stopped")
}

impl Broken {
    fn explain(&self, error: &serde_json::Error, limits: &Limits, text: usize) -> FrameError {
        let place = Place { line: error.line(), column: error.column() };
        match self.0.take() {
            Some(Reason::Depth) => FrameError::TooDeep { limit: limits.max_depth, place },
            Some(Reason::Cost) => FrameError::TooCostly { limit: allowed(text), place },
            Some(Reason::Duplicate(key)) => FrameError::DuplicateKey { key, place },
            None => {
                let full = error.to_string();
                let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
                if message == "recursion limit exceeded" {
                    return FrameError::TooDeep { limit: limits.max_depth.min(127), place };
                }
                // The parser has no other way to say which kind of error it is.
                if message == "number out of range" {
                    return FrameError::Number { message, place };
                }
                if message == "unexpected end of hex escape"
                    || message == "lone leading surrogate in hex escape"
                {
                    let message = "a lone surrogate, which is no Unicode text".to_owned();
                    return FrameError::Syntax { message, place };
                }
                FrameError::Syntax { message, place }
            }
        }
    }
}

/// Reads a value.
#[derive(Clone, Copy)]
pub(super) struct Node<'b> {
    depth_left: usize,
    broken: &'b Broken,
    pub(super) budget: &'b Budget,
}

impl Node<'_> {
    pub(super) fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.depth_left.checked_sub(1) {
            Some(depth_left) => Ok(Self { depth_left, ..self }),
            None => Err(stopped(self.broken, Reason::Depth)),
        }
    }

    /// Goes on where there was enough left.
    pub(super) fn paid<E: serde::de::Error>(&self, paid: bool) -> Result<(), E> {
        if paid { Ok(()) } else { Err(stopped(self.broken, Reason::Cost)) }
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.paid(self.budget.text(value.len()))?;
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        self.paid(self.budget.text(value.len()))?;
        Ok(Value::String(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let seed = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(seed)? {
            self.paid(self.budget.item())?;
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let seed = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.paid(self.budget.field(key.len()))?;
            if map.is_empty() {
                self.paid(self.budget.object())?;
                // What most objects need, at once and not in three steps; in a large frame, no more than they need.
                map = Map::with_capacity(if self.budget.is_small() { TYPICAL } else { 1 });
            }
            match map.entry(key) {
                serde_json::map::Entry::Vacant(slot) => {
                    slot.insert(access.next_value_seed(seed)?);
                }
                serde_json::map::Entry::Occupied(slot) => {
                    return Err(stopped(self.broken, Reason::Duplicate(beginning(slot.key()))));
                }
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &[u8]) -> &'static str {
        parse(text, &Limits { max_bytes: 64, max_depth: 3 }).map_or_else(|error| error.kind(), |_| "ok")
    }

    #[test]
    fn tells_every_defect_apart() {
        for (text, expected) in [
            (&br#"{"type":"a","n":[1,{"x":null}]}"#[..], "ok"),
            (br#"{"type":"a","n":[1,{"x":[]}]}"#, "too-deep"),
            (br#"{"a":1,"\u0061":2}"#, "duplicate-key"),
            (br#"{"a":{"b":1,"b":2}}"#, "duplicate-key"),
            (b"{\"a\":\"\xff\"}", "invalid-utf8"),
            (b"{oops", "syntax"),
            (b"", "syntax"),
            (b"{} {}", "syntax"),
            (b"{\"a\":NaN}", "syntax"),
            (b"\xef\xbb\xbf{}", "syntax"),
            (b"[]", "not-an-object"),
            (b"null", "not-an-object"),
            (
                b"{\"a\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}",
                "too-large",
            ),
        ] {
            assert_eq!(kind(text), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn names_the_place() {
        let error = parse(b"{\"a\":1,\n \"a\":2}", &Limits::default()).expect_err("duplicate");
        let FrameError::DuplicateKey { key, place } = error else { panic!("{error}") };
        assert_eq!((key.as_str(), place.line), ("a", 2));
    }

    #[test]
    fn what_would_take_many_times_its_length_is_refused_before_it_is_taken() {
        for (item, times) in
            [("0", 4_000_000), ("{}", 2_000_000), ("{\"a\":0}", 1_000_000), ("[]", 2_000_000)]
        {
            let text = format!("{{\"l\":[{}]}}", vec![item; times].join(","));
            let error = parse_text(&text, &Limits::default()).expect_err(item);
            assert_eq!(error.kind(), "too-costly", "{item}");
        }
        // What is sent in earnest is far from it.
        let snapshot = format!("{{\"type\":\"assistant.delta\",\"text\":\"{}\",\"id\":17}}", "x".repeat(60));
        let text = format!("{{\"l\":[{}]}}", vec![snapshot.as_str(); 140_000].join(","));
        assert!(text.len() < 16 << 20, "{}", text.len());
        let parsed = parse_text(&text, &Limits::default()).map(|value| value["l"][0]["id"].clone());
        assert_eq!(parsed, Ok(17.into()), "{} MiB", text.len() >> 20);
        let long = format!("{{\"t\":\"{}\"}}", "x".repeat(15 << 20));
        assert!(parse_text(&long, &Limits::default()).is_ok());
        assert!(
            parse_text(&format!("[{}]", vec!["0"; 200_000].join(",")), &Limits::default())
                .is_err_and(|error| error.kind() == "not-an-object")
        );
    }

    #[test]
    fn survives_hostile_nesting() {
        let deep = "[".repeat(200_000);
        assert_eq!(parse(deep.as_bytes(), &Limits::default()).expect_err("deep").kind(), "too-deep");
        let loose = Limits { max_depth: usize::MAX, ..Limits::default() };
        assert_eq!(parse(deep.as_bytes(), &loose).expect_err("deep").kind(), "too-deep");
    }
}
