//! Values in files of events: of one that takes much memory only a note is kept. What `run` writes is far smaller.

use std::cell::Cell;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// What a value may take in memory, about, in bytes.
const MOST: usize = 2 << 20;
/// What stands for one that takes more.
const NOTE: &str = "(not shown: this value takes more than 2 MiB of memory)";

/// Reads a value, or nothing.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let left = Cell::new(MOST);
    let value = Bounded { left: &left }.deserialize(deserializer)?;
    Ok(match left.get() {
        0 => Some(NOTE.into()),
        _ => (!value.is_null()).then_some(value),
    })
}

#[derive(Clone, Copy)]
struct Bounded<'l> {
    /// Bytes that it may still take; none: it takes too many, and what follows is not kept.
    left: &'l Cell<usize>,
}

impl Bounded<'_> {
    /// Whether there is room for so much more.
    fn takes(self, bytes: usize) -> bool {
        self.left.set(self.left.get().saturating_sub(bytes));
        self.left.get() > 0
    }

    fn text(self, text: &str) -> Value {
        if self.takes(text.len()) { text.into() } else { Value::Null }
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(self.text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while self.takes(size_of::<Value>())
            && let Some(item) = access.next_element_seed(self)?
        {
            items.push(item);
        }
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while self.takes(2 * size_of::<Value>())
            && let Some(key) = access.next_key::<String>()?
        {
            self.takes(key.len());
            map.insert(key, access.next_value_seed(self)?);
        }
        while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Option<Value> {
        super::read(&mut serde_json::Deserializer::from_str(text)).expect("it is read")
    }

    #[test]
    fn values_are_what_they_were() {
        for value in
            [json!({ "a": [1, -2, 2.5, true, null, "x", [], {}], "b": { "c": [[["d"]]] } }), json!("x")]
        {
            assert_eq!(read(&value.to_string()), Some(value));
        }
        assert_eq!(read("null"), None);
    }

    #[test]
    fn of_a_large_value_only_a_note_is_kept() {
        let many = |item: &str| format!("[{}]", vec![item; 1 << 20].join(","));
        let deep = format!("{{\"a\":{{\"b\":{}}},\"c\":1}}", many("{}"));
        for text in [many("0"), many("{\"a\":0}"), many("[[]]"), deep, json!("x".repeat(MOST)).to_string()] {
            assert_eq!(read(&text), Some(NOTE.into()), "{}…", &text[..20]);
        }
    }
}
