//! Schemas that a server sends, loaded only if validation by them is bounded.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::schema::Schema;

/// Subschemas and other values that a schema may have, once its references are followed.
const MOST: usize = 10_000;
/// Keywords that refer to a schema other than by a pointer into the same schema, or change what pointers mean.
const UNSAFE: [&str; 5] = ["$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor", "$anchor"];

/// A schema that came in a message, if it can be validated by within bounds: it refers only to parts of itself, never to itself, and has no more than
/// 10,000 parts once its references are followed. What is no JSON Schema is none. With it comes its number of parts.
pub(crate) fn loadable(schema: &Value) -> Option<(Schema, usize)> {
    let size = Parts { root: schema, known: FxHashMap::default() }.of(schema, true)?;
    Schema::new(schema).ok().map(|compiled| (compiled, size))
}

/// Counts the parts of a schema.
struct Parts<'r> {
    root: &'r Value,
    /// What a reference adds; none: it is being followed.
    known: FxHashMap<&'r str, Option<usize>>,
}

impl<'r> Parts<'r> {
    fn of(&mut self, node: &'r Value, is_root: bool) -> Option<usize> {
        let mut sum = 1_usize;
        match node {
            Value::Object(map) => {
                if UNSAFE.iter().any(|key| map.contains_key(*key)) || (!is_root && map.contains_key("$id")) {
                    return None;
                }
                if let Some(to) = map.get("$ref") {
                    sum += self.referred(to.as_str()?.strip_prefix('#')?)?;
                }
                for value in map.values() {
                    sum += self.of(value, false)?;
                }
            }
            Value::Array(items) => {
                for value in items {
                    sum += self.of(value, false)?;
                }
            }
            _ => {}
        }
        (sum <= MOST).then_some(sum)
    }

    fn referred(&mut self, pointer: &'r str) -> Option<usize> {
        if let Some(known) = self.known.get(pointer) {
            return *known;
        }
        self.known.insert(pointer, None);
        let size = self.of(self.root.pointer(pointer)?, false);
        self.known.insert(pointer, size);
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_that_would_cost_too_much_is_none() {
        for (schema, taken) in [
            (json!({ "type": "object", "required": ["a"] }), true),
            (json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "string" } } }), true),
            (json!(true), true),
            (json!({ "$ref": "#" }), false),
            (
                json!({ "properties": { "a": { "$ref": "#/$defs/a" } }, "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/a" }] } } }),
                false,
            ),
            (json!({ "$ref": "http://localhost/x.json" }), false),
            (json!({ "$dynamicRef": "#x" }), false),
            (json!({ "$ref": "#/nothing" }), false),
            (json!({ "type": "no such type" }), false),
            (json!({ "pattern": "(" }), false),
            (json!("text"), false),
        ] {
            assert_eq!(loadable(&schema).is_some(), taken, "{schema}");
        }
        // Each part refers twice to the next: a few lines, and a thousand million parts.
        let mut parts = serde_json::Map::new();
        for n in 0..30 {
            let next = json!({ "$ref": format!("#/$defs/p{}", n + 1) });
            parts.insert(format!("p{n}"), json!({ "allOf": [next.clone(), next] }));
        }
        parts.insert("p30".to_owned(), json!({}));
        assert!(loadable(&json!({ "$ref": "#/$defs/p0", "$defs": parts })).is_none());
    }
}
