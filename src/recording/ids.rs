//! Values that differ from run to run, matched: what the first recording calls `a` throughout may be `b` throughout in the second.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::places::Places;
use crate::text::{after_uuid, normalize};

/// Digits of the shortest number in hexadecimal that is taken for a random one by its looks.
const HEX: usize = 8;
/// Characters of the shortest mixture of letters and digits that is, and how often they change in it.
const MIXED: usize = 12;
const CHANGES: usize = 3;
/// Values that are remembered; what comes beyond is compared as it is.
const REMEMBERED: usize = 1 << 17;
/// Seconds since 1970 that a number is taken for: from 2001 to 2128.
const EPOCH: std::ops::Range<f64> = 1e9..5e9;

/// Which value of the first recording stands for which of the second: one for one.
#[derive(Debug, Default)]
pub struct Ids {
    there: HashMap<String, Value>,
    back: HashMap<String, Value>,
    /// Values that differ and were matched.
    pub matched: usize,
}

/// One connection's part in the comparison: numbers of different connections are different.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'p> {
    /// What the protocol says.
    pub places: &'p Places,
    /// Of the connection.
    pub connection: usize,
}

impl Ids {
    /// The second value in the words of the first recording: where it differs only in what differs each time, it is the first value.
    pub fn translate(&mut self, before: &Value, after: &Value, scope: Scope<'_>) -> Value {
        self.value(before, after, "", scope)
    }

    fn value(&mut self, before: &Value, after: &Value, at: &str, scope: Scope<'_>) -> Value {
        if scope.places.is_volatile(at) {
            return before.clone();
        }
        match (before, after) {
            (Value::Object(one), Value::Object(other)) => {
                let mut out = Map::new();
                for (key, value) in one {
                    if let Some(theirs) = other.get(key) {
                        out.insert(key.clone(), self.value(value, theirs, &member(at, key), scope));
                    }
                }
                let more = other.iter().filter(|(key, _)| !one.contains_key(*key));
                out.extend(more.map(|(key, value)| (key.clone(), value.clone())));
                Value::Object(out)
            }
            (Value::Array(one), Value::Array(other)) => {
                let at = format!("{at}/*");
                let mut out: Vec<Value> =
                    one.iter().zip(other).map(|(one, other)| self.value(one, other, &at, scope)).collect();
                out.extend(other.iter().skip(one.len()).cloned());
                Value::Array(out)
            }
            _ => match scope.places.counter(at) {
                Some(counter) => self.id(before, after, &format!("{} {counter}", scope.connection)),
                None => self.plain(before, after),
            },
        }
    }

    /// A value where the protocol has an id.
    fn id(&mut self, before: &Value, after: &Value, counter: &str) -> Value {
        match (before, after) {
            (Value::Number(_), Value::Number(_)) => self.pair(before, after, counter),
            (Value::String(one), Value::String(other)) if one == other || are_alike(one, other) => {
                self.pair(before, after, "")
            }
            _ => self.plain(before, after),
        }
    }

    /// A value where it has none: times, and what looks like an id, within longer texts, too.
    fn plain(&mut self, before: &Value, after: &Value) -> Value {
        match (before, after) {
            (Value::Number(one), Value::Number(other)) if is_time(one) && is_time(other) => before.clone(),
            (Value::String(one), Value::String(other)) if one != other => {
                Value::String(self.text(one, other).unwrap_or_else(|| other.clone()))
            }
            _ => after.clone(),
        }
    }

    /// The second text in the words of the first; none: they differ in more than ids.
    fn text(&mut self, before: &str, after: &str) -> Option<String> {
        if is_timestamp(before) && is_timestamp(after) {
            return Some(before.to_owned());
        }
        let (one, other) = (words(before), words(after));
        let mut out = String::with_capacity(before.len());
        if one.len() != other.len() {
            return None;
        }
        for (one, other) in one.into_iter().zip(other) {
            out.push_str(&self.word(one, other)?);
        }
        Some(out)
    }

    /// A word, as a whole or part by part.
    fn word(&mut self, before: &str, after: &str) -> Option<String> {
        if let Some(known) = self.known(after, before) {
            return Some(known);
        }
        let (one, other) = (parts(before), parts(after));
        if self.substituted(&other) == before {
            return Some(before.to_owned());
        }
        if one.len() != other.len() {
            return None;
        }
        let part = |(one, other): (&str, &str)| match self.known(other, one) {
            Some(known) => Some(known),
            None if are_random(one, other) => self.random(one, other),
            None => None,
        };
        one.into_iter().zip(other).map(part).collect()
    }

    /// A word of the second recording with the longest parts that are known put into the words of the first.
    fn substituted(&self, parts: &[&str]) -> String {
        let (mut out, mut at) = (String::new(), 0);
        while at < parts.len() {
            let known = (at + 1..=parts.len()).rev().find_map(|end| {
                let known = self.back.get(&key(&Value::from(parts[at..end].concat()), ""))?;
                Some((end, known.as_str()?))
            });
            let (end, word) = known.unwrap_or((at + 1, parts[at]));
            out.push_str(word);
            at = end;
        }
        out
    }

    /// What a word of the second recording is in the first: another one, or the same.
    fn known(&self, after: &str, before: &str) -> Option<String> {
        let known = self.back.get(&key(&Value::from(after), "")).and_then(Value::as_str);
        known.or((before == after).then_some(before)).map(str::to_owned)
    }

    fn random(&mut self, before: &str, after: &str) -> Option<String> {
        self.pair(&Value::from(before), &Value::from(after), "").as_str().map(str::to_owned)
    }

    /// What the second recording calls `after`, in the words of the first; a value that nobody knows yet is `before` from now on.
    fn pair(&mut self, before: &Value, after: &Value, counter: &str) -> Value {
        let (there, back) = (key(before, counter), key(after, counter));
        if let Some(known) = self.back.get(&back) {
            return known.clone();
        }
        if self.there.contains_key(&there) || self.there.len() >= REMEMBERED {
            return after.clone();
        }
        self.matched += usize::from(before != after);
        self.there.insert(there, after.clone());
        self.back.insert(back, before.clone());
        before.clone()
    }
}

/// A value without what differs from run to run: messages with the same one are the same message.
pub fn skeleton(value: &Value, places: &Places) -> String {
    let mut out = String::new();
    outline(value, "", places, &mut out);
    out
}

fn outline(value: &Value, at: &str, places: &Places, out: &mut String) {
    if places.is_volatile(at) {
        return out.push('~');
    }
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            for name in keys {
                out.push_str(name);
                out.push(':');
                outline(&map[name], &member(at, name), places, out);
                out.push(';');
            }
        }
        Value::Array(items) => {
            out.push('[');
            items.iter().for_each(|item| outline(item, &format!("{at}/*"), places, out));
            out.push(']');
        }
        Value::Number(number) if places.counter(at).is_some() || is_time(number) => out.push('#'),
        Value::String(text) if is_timestamp(text) => out.push('@'),
        Value::String(text) if places.counter(at).is_some() => out.push_str(&normalize(text)),
        Value::String(text) => {
            for word in words(text) {
                match after_uuid(word) {
                    Some("") => out.push('#'),
                    _ => parts(word)
                        .iter()
                        .for_each(|part| out.push_str(if is_random(part) { "#" } else { part })),
                }
            }
        }
        plain => out.push_str(&plain.to_string()),
    }
}

fn member(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Texts are one space of names, numbers one for each counter.
fn key(value: &Value, counter: &str) -> String {
    match value {
        Value::String(text) => format!("\"{text}"),
        value => format!("{counter} {value}"),
    }
}

/// A text in words and what is between them. A UUID is one word.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let length = match after_uuid(rest) {
            Some(after) => rest.len() - after.len(),
            None => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()).max(first.len_utf8()),
        };
        let (word, after) = rest.split_at(length);
        words.push(word);
        rest = after;
    }
    words
}

/// Two ids of the same make.
fn are_alike(one: &str, other: &str) -> bool {
    let has_digit = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
    normalize(one) == normalize(other) || (has_digit(one) && has_digit(other))
}

/// Parts of a word that are looked at.
const PARTS: usize = 32;

/// A word in parts, and the dashes between them; a UUID is one part. What comes after many is the last one.
fn parts(word: &str) -> Vec<&str> {
    let is_dash = |c: char| c == '-' || c == '_';
    let mut parts = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let uuid = after_uuid(rest).filter(|after| after.is_empty() || after.starts_with(is_dash));
        let length = match uuid {
            _ if parts.len() == PARTS => rest.len(),
            Some(after) => rest.len() - after.len(),
            None => rest.find(is_dash).unwrap_or(rest.len()).max(first.len_utf8()),
        };
        let (part, after) = rest.split_at(length);
        parts.push(part);
        rest = after;
    }
    parts
}

/// Two such parts, one of which may happen to have no digit.
fn are_random(one: &str, other: &str) -> bool {
    let hexadecimal = |part: &str| part.bytes().skip(1).all(|byte| byte.is_ascii_hexdigit());
    let alike =
        || one.len() == other.len() && one[..1] == other[..1] && hexadecimal(one) && hexadecimal(other);
    match (is_random(one), is_random(other)) {
        (true, true) => true,
        (false, false) => false,
        _ => one.is_ascii() && other.is_ascii() && !one.is_empty() && !other.is_empty() && alike(),
    }
}

/// A part of a word that nobody has thought up: a number in hexadecimal, perhaps with a letter before it; or letters and digits mixed.
fn is_random(part: &str) -> bool {
    if after_uuid(part) == Some("") {
        return true;
    }
    let has_digit = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
    let is_hex = |text: &str| {
        text.len() >= HEX && text.bytes().all(|byte| byte.is_ascii_hexdigit()) && has_digit(text)
    };
    let bytes = part.as_bytes();
    let changes =
        bytes.windows(2).filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit()).count();
    let lettered = part.strip_prefix(|c: char| c.is_ascii_alphabetic());
    lettered.is_some_and(is_hex)
        || (is_hex(part) && bytes.iter().any(u8::is_ascii_alphabetic))
        || (part.len() >= MIXED && changes >= CHANGES)
}

fn is_timestamp(text: &str) -> bool {
    text.len() >= 19 && text.as_bytes()[0].is_ascii_digit() && text.parse::<jiff::Timestamp>().is_ok()
}

/// A number that can be a time: seconds or milliseconds since 1970.
fn is_time(number: &serde_json::Number) -> bool {
    number.as_f64().is_some_and(|number| EPOCH.contains(&number) || EPOCH.contains(&(number / 1e3)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn translated(pairs: &[(Value, Value)]) -> Vec<bool> {
        let (places, mut ids) = (Places::default(), Ids::default());
        let scope = Scope { places: &places, connection: 0 };
        pairs.iter().map(|(one, other)| ids.translate(one, other, scope) == *one).collect()
    }

    #[test]
    fn what_differs_each_time_is_no_difference() {
        let (a, b) = ("6c9f073b-a54e-4331-9eaf-4ae746f66e5f", "42f306ee-b476-4886-85de-d983a7495aeb");
        for (one, other, same) in [
            (json!({ "id": a }), json!({ "id": b }), true),
            (json!({ "url": format!("/s/{a}?x=1") }), json!({ "url": format!("/s/{b}?x=1") }), true),
            (json!({ "url": format!("/s/{a}?x=1") }), json!({ "url": format!("/s/{b}?x=2") }), false),
            (json!({ "ts": 1_700_000_000_123_u64 }), json!({ "ts": 1_710_000_000_456_u64 }), true),
            (json!({ "ts": "2026-01-02T03:04:05Z" }), json!({ "ts": "2026-02-02T03:04:05.5Z" }), true),
            (json!({ "n": 5 }), json!({ "n": 6 }), false),
            (json!({ "text": "ready" }), json!({ "text": "busy" }), false),
            (json!({ "a": 1 }), json!({ "a": 1, "b": 2 }), false),
            (json!({ "a": 1, "b": 2 }), json!({ "a": 1 }), false),
            (json!([1, 2]), json!([1]), false),
            (json!("5"), json!(5), false),
        ] {
            assert_eq!(translated(&[(one.clone(), other.clone())]), [same], "{one} {other}");
        }
    }

    #[test]
    fn one_id_stands_for_one() {
        let (a, b) = ("6c9f073b-a54e-4331-9eaf-4ae746f66e5f", "42f306ee-b476-4886-85de-d983a7495aeb");
        let (c, d) = ("00000000-a54e-4331-9eaf-4ae746f66e5f", "11111111-b476-4886-85de-d983a7495aeb");
        let pair = |one: &str, other: &str| (json!({ "id": one }), json!({ "id": other }));
        assert_eq!(translated(&[pair(a, c), pair(b, d), pair(a, c)]), [true, true, true]);
        assert_eq!(
            translated(&[pair(a, c), pair(b, d), pair(a, d)]),
            [true, true, false],
            "another one is meant"
        );
        assert_eq!(translated(&[pair(a, c), pair(b, c)]), [true, false], "two have become one");
        assert_eq!(translated(&[pair(a, c), pair(a, d)]), [true, false], "one has become two");
    }

    #[test]
    fn words_that_are_no_ids_are_compared() {
        assert!(!are_alike("bash", "write") && are_alike("call-1", "call-12") && are_alike("r7fa", "q2bb"));
        assert_eq!(words("a-b c/d"), ["a-b", " ", "c", "/", "d"]);
        assert_eq!(parts("a_b--c-"), ["a", "_", "b", "-", "-", "c", "-"]);
        let mut ids = Ids::default();
        ids.random("call_6_1", "call_4_1");
        assert_eq!(ids.word("call_6_1-output", "call_4_1-output").as_deref(), Some("call_6_1-output"));
        assert_eq!(ids.word("call_6_2-output", "call_4_2-output"), None);
        for (one, other, same) in [
            ("u33aeed39-1", "u1b6333dc-1", true),
            ("u33aeed39-1", "u1b6333dc-2", false),
            ("wrote \"u33aeed39\"", "wrote \"u90123456\"", true),
            ("tok_a8f3k29dk2hfs", "tok_9a7s8d7f6a5s4", true),
            ("u85ecb5d8", "uaabbcabc", true),
            ("w-6c9f073b-a54e-4331-9eaf-4ae746f66e5f", "w-42f306ee-b476-4886-85de-d983a7495aeb", true),
            ("sha256sum", "sha512sum", false),
            ("20240806", "20250101", false),
            ("gpt-4o-2024-08-06", "gpt-5-2025-01-01", false),
        ] {
            assert_eq!(translated(&[(json!(one), json!(other))]), [same], "{one} {other}");
        }
        let places = Places::default();
        assert_eq!(
            skeleton(&json!({ "b": 1, "a": "x" }), &places),
            skeleton(&json!({ "a": "x", "b": 1 }), &places)
        );
    }
}
