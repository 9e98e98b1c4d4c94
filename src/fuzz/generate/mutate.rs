//! Near-valid and broken messages: a valid one, mutated in one way that has a name.

use serde_json::{Value, json};

use crate::synthesis::rng::SeededRng;

/// Stands in a value for a piece of JSON text that no value can hold.
const MARK: char = '\u{f8ff}';

/// The mutation that nests a value deep.
pub const DEEP: &str = "deep";

/// A mutated message: its text, and the mutation.
pub type Mutated = (String, &'static str);

/// JSON text of a value in which marked strings are taken as they stand.
fn written(value: &Value) -> String {
    let text = value.to_string();
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let open = format!("\"{MARK}");
    let close = format!("{MARK}\"");
    while let Some((before, after)) = rest.split_once(open.as_str()) {
        out.push_str(before);
        let Some((raw, after)) = after.split_once(close.as_str()) else { break };
        let raw: Value = serde_json::from_str(&format!("\"{raw}\"")).unwrap_or_default();
        out.push_str(raw.as_str().unwrap_or_default());
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A value that is written as this text, whatever it is.
fn raw(text: &str) -> Value {
    json!(format!("{MARK}{text}{MARK}"))
}

/// The places of a value, as JSON Pointers: all but the root.
pub fn places(value: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, found: &mut Vec<String>) {
        let mut below = |key: &str, value: &Value| {
            let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
            found.push(at.clone());
            walk(value, &at, found);
        };
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| below(key, value)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, value)| below(&index.to_string(), value));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(value, "", &mut found);
    found
}

/// Takes a place out of a value.
pub fn remove(value: &mut Value, at: &str) -> Option<Value> {
    let (parent, key) = at.rsplit_once('/')?;
    let key = crate::source::unescape_token(key);
    match value.pointer_mut(parent)? {
        Value::Object(map) => map.shift_remove(&key),
        Value::Array(items) => {
            key.parse().ok().filter(|index| *index < items.len()).map(|index: usize| items.remove(index))
        }
        _ => None,
    }
}

/// Spoils an object, but leaves it JSON. `types`: names of messages that clients may not send, or that nobody knows.
pub fn near_valid(body: &Value, kind: &str, types: &[String], rng: &mut SeededRng) -> Mutated {
    let mut body = body.clone();
    let all = places(&body);
    let at = rng.pick(&all).cloned().unwrap_or_default();
    let mut set = |value: Value| {
        if let Some(place) = body.pointer_mut(&at) {
            *place = value;
        }
    };
    let how = match rng.below(20) {
        0 | 1 => {
            remove(&mut body, &at);
            "missing-field"
        }
        2 | 3 => {
            set(Value::Null);
            "null"
        }
        4 | 5 => {
            let (value, how) = rng.pick(&WRONG).map(|(text, how)| (parsed(text), *how)).unwrap_or_default();
            set(value);
            how
        }
        6 => return (duplicated(&body, rng), "duplicate-key"),
        7 => {
            let value = remove(&mut body, &at).unwrap_or_default();
            let name = at.rsplit('/').next().unwrap_or_default();
            let name = if rng.chance(50) { name.to_uppercase() } else { format!("{name} ") };
            if let Some(map) = body.as_object_mut() {
                map.insert(name, value);
            }
            "renamed-field"
        }
        8 | 9 => {
            set(rng.pick(NUMBERS).map(|text| raw(text)).unwrap_or_default());
            "boundary-number"
        }
        10 | 11 => {
            let (value, how) = text(rng);
            set(value);
            how
        }
        12 | 13 => {
            let value = rng.pick(&WRONG).map(|(text, _)| parsed(text)).unwrap_or_default();
            if let Some(map) = body.as_object_mut() {
                let name = *rng.pick(&["bogus", "__proto__", "constructor", "", "TYPE"]).unwrap_or(&"bogus");
                map.insert(name.to_owned(), value);
            }
            "undeclared-field"
        }
        14 | 15 => {
            if let Some(place) = body.pointer_mut(kind) {
                *place = rng.pick(types).map(|name| json!(name)).unwrap_or_default();
            }
            "other-type"
        }
        16 => {
            remove(&mut body, kind);
            "no-type"
        }
        17 => {
            let depth = *rng.pick(&[20, 90, 500]).unwrap_or(&20);
            let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            match rng.chance(50) {
                true => set(raw(&nested)),
                false => {
                    body.as_object_mut().map(|map| map.insert("deep".into(), raw(&nested)));
                }
            }
            DEEP
        }
        18 => {
            set(json!({}));
            "empty-object"
        }
        _ => {
            let old = body.pointer(&at).cloned().unwrap_or_default();
            if let Some(place) = body.pointer_mut(&at) {
                *place = json!([old]);
            }
            "in-a-list"
        }
    };
    (written(&body), how)
}

const WRONG: [(&str, &str); 8] = [
    ("42", "number"),
    ("-1.5", "number"),
    ("true", "boolean"),
    ("\"5\"", "text"),
    ("\"yes\"", "text"),
    ("[]", "list"),
    ("[null]", "list"),
    ("{\"a\":{\"b\":1}}", "object"),
];

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "-0",
    "1e2",
    "5.0",
    "9007199254740991",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "1e400",
    "1e-400",
    "0.1",
];

/// A text that is often handled badly.
fn text(rng: &mut SeededRng) -> (Value, &'static str) {
    match rng.below(8) {
        0 => (json!(""), "empty-text"),
        1 => (json!("a\u{0}b"), "nul"),
        2 => (
            raw(rng.pick(&["\"\\ud800\"", "\"a\\udc00b\"", "\"\\ud800\\ud800\""]).unwrap_or(&"\"\\ud800\"")),
            "lone-surrogate",
        ),
        3 => (json!("\u{202e}txt.exe\u{202c}\u{200b}"), "bidi"),
        4 => (json!("\u{1b}[2J\u{1b}]0;x\u{7}%s%n../../etc/passwd"), "ansi"),
        5 => (json!("x".repeat(*rng.pick(&[1_000, 10_000, 70_000]).unwrap_or(&1_000))), "long-text"),
        6 => (json!("\u{1f468}\u{200d}\u{1f469}\u{0301}\u{fffd}\u{10ffff}"), "astral"),
        _ => (json!("'\"; DROP TABLE x; --<script>\\"), "quotes"),
    }
}

/// The object's text with one of its keys twice.
fn duplicated(body: &Value, rng: &mut SeededRng) -> String {
    let text = body.to_string();
    let keys: Vec<(&String, &Value)> = body.as_object().into_iter().flatten().collect();
    let Some((key, value)) = rng.pick(&keys) else { return text };
    let twice = if rng.chance(50) { (*value).clone() } else { json!(7) };
    format!("{{{}:{twice},{}", json!(key), &text[1..])
}

/// Text that is no JSON object, from the text of one.
pub fn broken(text: &str, rng: &mut SeededRng) -> Mutated {
    let some = |text: &str| text.to_owned();
    match rng.below(24) {
        0..=2 => {
            let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).collect();
            (some(&text[..rng.pick(&ends).copied().unwrap_or(0)]), "truncated")
        }
        3 => (format!("{text}x"), "trailing-data"),
        4 => (format!("{text}{text}"), "two-objects"),
        5 => (text.replacen(':', ":NaN,\"x\":", 1), "nan"),
        6 => (text.replacen(':', ":-Infinity,\"x\":", 1), "infinity"),
        7 => (text.replacen('{', "{/* hi */", 1), "comment"),
        8 => (format!("\u{feff}{text}"), "bom"),
        9 => (text.replace('"', "'"), "single-quotes"),
        10 => (text.replacen('"', "", 2), "bare-key"),
        11 => (text.trim_end_matches('}').to_owned() + ",}", "trailing-comma"),
        12 => (text.replacen(':', " ", 1), "no-colon"),
        13 => (text.replacen("\":", "\u{1}\":", 1), "raw-control"),
        14 => (text.replacen(":\"", ":\"\\x41", 1), "bad-escape"),
        15 => (text.replacen(':', ":012,\"x\":", 1), "leading-zero"),
        16 => (text.replacen(':', ":+1,\"x\":", 1), "plus-sign"),
        17 => (text.replacen(':', ":0x10,\"x\":", 1), "hexadecimal"),
        18 => (text.trim_end_matches('}').to_owned(), "no-brace"),
        19 => (
            some(
                rng.pick(&["", " ", "\n", "{", "}", "\"", "{\"a\"", "nul", "tru", "-", "[1,]"])
                    .unwrap_or(&""),
            ),
            "scrap",
        ),
        20 => (format!("[{text}]"), "list"),
        21 => (some(rng.pick(&["[]", "[[]]", "[1,2]", "[\"ping\",null]"]).unwrap_or(&"[]")), "list"),
        22 => (some(rng.pick(&["null", "true", "0", "1e3", "\"x\"", "\"\""]).unwrap_or(&"null")), "scalar"),
        _ => (format!("{}1", "[".repeat(*rng.pick(&[10, 3000, 30_000]).unwrap_or(&10))), "deep-scrap"),
    }
}

/// Mutations after which a tolerant reader may still see JSON.
pub fn is_tolerable(how: &str) -> bool {
    matches!(
        how,
        "nan"
            | "infinity"
            | "bom"
            | "comment"
            | "raw-control"
            | "lone-surrogate"
            | DEEP
            | "deep-scrap"
            | "duplicate-key"
            | "boundary-number"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_texts_stand_as_they_are() {
        assert_eq!(
            written(&json!({ "a": raw("1e400"), "b": raw("\"\\ud800\"") })),
            r#"{"a":1e400,"b":"\ud800"}"#
        );
    }

    #[test]
    fn places_and_removal() {
        let mut value = json!({ "a": [1, { "b/c": 2 }] });
        assert_eq!(places(&value), ["/a", "/a/0", "/a/1", "/a/1/b~1c"]);
        assert_eq!(remove(&mut value, "/a/1/b~1c"), Some(json!(2)));
        assert_eq!(remove(&mut value, "/a/7"), None);
        assert_eq!(value, json!({ "a": [1, {}] }));
    }

    #[test]
    fn near_valid_messages_are_json_where_json_can_say_it() {
        let body = json!({ "type": "send", "text": "hi", "n": [1, { "k": null }] });
        let mut seen = std::collections::BTreeSet::new();
        for index in 0..600 {
            let mut rng = SeededRng::new(3, index);
            let (text, how) = near_valid(&body, "/type", &["error".into(), "frob".into()], &mut rng);
            seen.insert(how);
            assert!(!text.contains(MARK), "{text}");
            if !is_tolerable(how) {
                assert!(serde_json::from_str::<Value>(&text).is_ok(), "{how}: {text}");
            }
        }
        assert!(seen.len() > 20, "{seen:?}");
    }

    #[test]
    fn broken_texts_are_no_objects() {
        for index in 0..600 {
            let (text, how) = broken(r#"{"type":"send","text":"hi"}"#, &mut SeededRng::new(5, index));
            let object = serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_object());
            assert!(!object, "{how}: {text}");
        }
    }
}
