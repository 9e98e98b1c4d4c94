//! Frames built by a walk over a message's JSON Schema, steered by the fuzzer's bytes.

use std::sync::Arc;

use arbitrary::{Arbitrary, Result, Unstructured};
use serde_json::{Map, Value, json};

use super::{message, shipped};
use crate::frame::{Limits, parse};
use crate::protocol::{Message, Protocol};

/// Deepest nesting that is built, references counted; schemas may refer to themselves.
const MAX_DEPTH: usize = 12;
/// Longest list that is built.
const MAX_ITEMS: usize = 4;

/// A message of a shipped protocol, mostly by its schema: at any place, now and then, there is something else.
#[derive(Debug)]
pub struct SchemaFrame {
    /// The protocol.
    pub protocol: Arc<Protocol>,
    /// Index of the message in it.
    pub message: usize,
    /// The body.
    pub body: Value,
}

impl<'a> Arbitrary<'a> for SchemaFrame {
    fn arbitrary(source: &mut Unstructured<'a>) -> Result<Self> {
        let protocol = Arc::clone(&shipped()[source.choose_index(shipped().len())?]);
        let message = source.choose_index(protocol.messages.len())?;
        let body = SchemaWalk::new(&protocol.messages[message], true).body(source)?;
        Ok(Self { protocol, message, body })
    }
}

/// A frame from a schema is parsed to what it was written from, and validated as what it is.
pub fn frame_structured(bytes: &[u8]) {
    let Ok(frame) = SchemaFrame::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    let parsed = parse(frame.body.to_string().as_bytes(), &Limits::default());
    assert_eq!(parsed.as_ref(), Ok(&frame.body), "a round trip changes nothing");
    let pretty = serde_json::to_string_pretty(&frame.body).unwrap_or_default();
    assert_eq!(parse(pretty.as_bytes(), &Limits::default()), parsed, "white space changes nothing");
    message::holds(&frame.protocol, &frame.protocol.messages[frame.message], &frame.body);
}

/// A walk over the schema of a message.
pub(super) struct SchemaWalk<'s> {
    root: &'s Value,
    /// Whether a place may hold what its schema does not allow.
    deviates: bool,
}

impl<'s> SchemaWalk<'s> {
    pub fn new(message: &'s Message, deviates: bool) -> Self {
        Self { root: message.payload(), deviates }
    }

    /// A body of the message.
    pub fn body(&self, source: &mut Unstructured<'_>) -> Result<Value> {
        match self.value(self.root, source, 0)? {
            body @ Value::Object(_) => Ok(body),
            other => Ok(json!({ "": other })),
        }
    }

    fn value(&self, schema: &Value, source: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
        if depth > MAX_DEPTH {
            return Ok(Value::Null);
        }
        if self.deviates && source.ratio(1, 32)? {
            return anything(source, depth);
        }
        let Value::Object(schema) = schema else { return anything(source, depth) };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = self.root.pointer(target.trim_start_matches('#')).unwrap_or(&Value::Null);
            return self.value(target, source, depth + 1);
        }
        if let Some(value) = schema.get("const") {
            return Ok(value.clone());
        }
        if let Some(options) =
            schema.get("enum").and_then(Value::as_array).filter(|options| !options.is_empty())
        {
            return source.choose(options).cloned();
        }
        let mut value = self.typed(schema, source, depth)?;
        for key in ["anyOf", "oneOf"] {
            if let Some(branches) = schema.get(key).and_then(Value::as_array).filter(|all| !all.is_empty()) {
                let branch = source.choose(branches)?;
                merge(&mut value, self.value(branch, source, depth + 1)?, schema.contains_key("type"));
            }
        }
        for branch in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            merge(&mut value, self.value(branch, source, depth + 1)?, schema.contains_key("type"));
        }
        if let Some(condition) = schema.get("if") {
            let (holds, fails) = (schema.get("then"), schema.get("else"));
            if source.arbitrary()? {
                merge(&mut value, self.value(condition, source, depth + 1)?, true);
                holds.map(|then| {
                    self.value(then, source, depth + 1).map(|then| merge(&mut value, then, true))
                });
            } else if let Some(fails) = fails {
                merge(&mut value, self.value(fails, source, depth + 1)?, true);
            }
        }
        Ok(value)
    }

    fn typed(
        &self,
        schema: &Map<String, Value>,
        source: &mut Unstructured<'_>,
        depth: usize,
    ) -> Result<Value> {
        let kind = match schema.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(Value::Array(kinds)) if !kinds.is_empty() => {
                source.choose(kinds)?.as_str().unwrap_or_default()
            }
            _ if schema.contains_key("properties") || schema.contains_key("required") => "object",
            _ if schema.contains_key("items") => "array",
            _ if schema.contains_key("pattern") || schema.contains_key("minLength") => "string",
            _ if schema.contains_key("minimum") || schema.contains_key("maximum") => "integer",
            _ => "any",
        };
        Ok(match kind {
            "object" => self.object(schema, source, depth)?,
            "array" => self.array(schema, source, depth)?,
            "string" => string(schema, source)?.into(),
            "integer" => integer(schema, source)?,
            "number" => number(schema, source)?,
            "boolean" => source.arbitrary::<bool>()?.into(),
            "null" => Value::Null,
            // What combines other schemas gets its value from them.
            _ if ["anyOf", "oneOf", "allOf"].iter().any(|key| schema.contains_key(*key)) => Value::Null,
            _ => anything(source, depth)?,
        })
    }

    /// Whether nothing is valid there: the property has to be absent.
    fn is_forbidden(&self, schema: &Value) -> bool {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(target) => {
                self.root.pointer(target.trim_start_matches('#')).is_some_and(|to| self.is_forbidden(to))
            }
            None => {
                *schema == Value::Bool(false)
                    || schema.get("not").is_some_and(|not| *not == json!({}) || *not == true)
            }
        }
    }

    fn object(
        &self,
        schema: &Map<String, Value>,
        source: &mut Unstructured<'_>,
        depth: usize,
    ) -> Result<Value> {
        let mut map = Map::new();
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let wanted = if required.contains(&name.as_str()) {
                !(self.deviates && source.ratio(1, 48)?)
            } else {
                source.arbitrary()?
            };
            if wanted && (self.deviates || !self.is_forbidden(property)) {
                map.insert(name.clone(), self.value(property, source, depth + 1)?);
            }
        }
        for name in required {
            if !map.contains_key(name) && !self.deviates {
                map.insert(name.to_owned(), anything(source, depth + 1)?);
            }
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) if !(self.deviates && source.ratio(1, 32)?) => {}
            Some(more @ Value::Object(_)) if depth < MAX_DEPTH => {
                for _ in 0..source.int_in_range(0..=2)? {
                    let name = word(source)?;
                    map.insert(name, self.value(more, source, depth + 1)?);
                }
            }
            _ if source.ratio(1, 8)? => {
                map.insert(word(source)?, anything(source, depth + 1)?);
            }
            _ => {}
        }
        Ok(Value::Object(map))
    }

    fn array(
        &self,
        schema: &Map<String, Value>,
        source: &mut Unstructured<'_>,
        depth: usize,
    ) -> Result<Value> {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let least = bound("minItems").unwrap_or(0).min(MAX_ITEMS);
        let most = bound("maxItems").unwrap_or(MAX_ITEMS).clamp(least, MAX_ITEMS.max(least));
        let prefix =
            schema.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let items = schema.get("items").unwrap_or(&Value::Bool(true));
        let length = source.int_in_range(least..=most)?;
        (0..length).map(|at| self.value(prefix.get(at).unwrap_or(items), source, depth + 1)).collect()
    }
}

/// Adds what another schema of the same value asks for. `typed`: there is a value already, of the right type.
fn merge(value: &mut Value, more: Value, typed: bool) {
    match (value, more) {
        (Value::Object(map), Value::Object(more)) => map.extend(more),
        (value, more) if !typed => *value = more,
        _ => {}
    }
}

/// Words that ids are made of: few, so that messages refer to each other.
pub(super) fn word(source: &mut Unstructured<'_>) -> Result<String> {
    const WORDS: [&str; 14] = [
        "a",
        "b",
        "c",
        "r1",
        "",
        "1",
        "ab",
        "abc",
        "\u{1b}[31m",
        "\u{0}",
        "é\u{202e}",
        "~1/",
        "😀",
        "__proto__",
    ];
    Ok(match source.int_in_range(0..=23u8)? {
        at if usize::from(at) < WORDS.len() => WORDS[usize::from(at)].to_owned(),
        14..=20 => WORDS[source.choose_index(4)?].to_owned(),
        21 => "long ".repeat(source.int_in_range(1..=200)?),
        _ => source.arbitrary::<String>()?,
    })
}

fn string(schema: &Map<String, Value>, source: &mut Unstructured<'_>) -> Result<String> {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    let id = || -> String { format!("{:08x}-0000-4000-8000-{:012x}", 1, 2) };
    let formatted = match (text("format"), text("pattern")) {
        ("uuid", _) => Some(id()),
        ("date-time", _) => Some("2026-01-02T03:04:05.678Z".to_owned()),
        ("date", _) => Some("2026-01-02".to_owned()),
        ("uri", _) => Some("https://example.invalid/x".to_owned()),
        (_, "") => None,
        (_, pattern) => Some(matching(pattern, source)?),
    };
    let mut text = match formatted {
        Some(text) => text,
        None => word(source)?,
    };
    let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0).min(64) as usize;
    while text.chars().count() < least {
        text.push('x');
    }
    Ok(text)
}

/// A text that may match a pattern: the first of a few usual ones that does, from a place that the bytes choose.
fn matching(pattern: &str, source: &mut Unstructured<'_>) -> Result<String> {
    const USUAL: [&str; 14] = [
        "a",
        "1",
        "v1",
        "1.0.0",
        "/a",
        "/tmp/a.txt",
        "a/b",
        "00000001-0000-4000-8000-000000000002",
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.678Z",
        "call_1",
        "user",
        "0123456789abcdef0123456789abcdef",
        "A",
    ];
    let Ok(schema) = crate::source::schema::Schema::new(&json!({ "pattern": pattern })) else {
        return word(source);
    };
    let from = source.choose_index(USUAL.len())?;
    let all = (0..USUAL.len()).map(|at| USUAL[(from + at) % USUAL.len()]);
    match all.into_iter().find(|text| schema.is_valid(&json!(text))) {
        Some(text) => Ok(text.to_owned()),
        None => word(source),
    }
}

/// Numbers at the edges of what computers can count.
const EDGES: [i64; 10] = [0, 1, -1, 2, 1 << 53, (1 << 53) + 1, i64::MAX, i64::MIN, 1_000, 65_536];

fn integer(schema: &Map<String, Value>, source: &mut Unstructured<'_>) -> Result<Value> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let least = bound("minimum").or(bound("exclusiveMinimum").map(|n| n + 1.0));
    let most = bound("maximum").or(bound("exclusiveMaximum").map(|n| n - 1.0));
    let fits =
        |n: i64| least.is_none_or(|least| n as f64 >= least) && most.is_none_or(|most| n as f64 <= most);
    let wanted = match source.int_in_range(0..=3u8)? {
        0 => *source.choose(&EDGES)?,
        1 => source.arbitrary::<i64>()?,
        _ => source.int_in_range(0..=5)?,
    };
    let bounded = least.or(most).map_or(wanted, |near| near as i64);
    Ok(if fits(wanted) { wanted } else { bounded }.into())
}

fn number(schema: &Map<String, Value>, source: &mut Unstructured<'_>) -> Result<Value> {
    if source.arbitrary()? {
        return integer(schema, source);
    }
    let wanted = source.arbitrary::<f64>()?;
    let least = schema.get("minimum").and_then(Value::as_f64).unwrap_or(f64::MIN);
    let most = schema.get("maximum").and_then(Value::as_f64).unwrap_or(f64::MAX).max(least);
    Ok(serde_json::Number::from_f64(wanted.clamp(least, most)).map_or(Value::Null, Value::Number))
}

/// Any JSON value, small.
pub(super) fn anything(source: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let most = if depth >= MAX_DEPTH { 5u8 } else { 7 };
    Ok(match source.int_in_range(0..=most)? {
        0 => Value::Null,
        1 => source.arbitrary::<bool>()?.into(),
        2 => (*source.choose(&EDGES)?).into(),
        3 => source.arbitrary::<u64>()?.into(),
        4 => serde_json::Number::from_f64(source.arbitrary()?).map_or(Value::Null, Value::Number),
        5 => word(source)?.into(),
        6 => {
            let length = source.int_in_range(0..=3)?;
            (0..length).map(|_| anything(source, depth + 2)).collect::<Result<Vec<_>>>()?.into()
        }
        _ => {
            let mut map = Map::new();
            for _ in 0..source.int_in_range(0..=3)? {
                map.insert(word(source)?, anything(source, depth + 2)?);
            }
            Value::Object(map)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    #[test]
    fn a_walk_that_does_not_deviate_is_mostly_valid_for_every_message() {
        let mut random = ChaCha8Rng::seed_from_u64(4);
        let (mut all, mut all_valid) = (0, 0);
        for protocol in shipped() {
            for message in &protocol.messages {
                let mut valid = 0;
                for _ in 0..40 {
                    let mut bytes = [0; 600];
                    random.fill_bytes(&mut bytes);
                    let mut source = Unstructured::new(&bytes);
                    let body = SchemaWalk::new(message, false).body(&mut source).expect("a body");
                    valid += u32::from(message.validate(&body).is_empty());
                }
                assert!(valid > 0, "{} {}: none of 40 is valid", protocol.name, message.name);
                (all, all_valid) = (all + 40, all_valid + valid);
            }
        }
        assert!(all_valid * 2 > all, "only {all_valid} of {all} are valid");
    }
}
