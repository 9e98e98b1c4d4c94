//! Values from JSON Schemas: valid ones, as far as a simple walk can tell; the schema itself has the last word.

use serde_json::{Map, Value, json};

use crate::synthesis::rng::SeededRng;

/// How deep a schema is followed.
const MAX_DEPTH: usize = 8;

/// A value that probably satisfies `schema`, whose references point into `root`.
pub fn generate(schema: &Value, root: &Value, rng: &mut SeededRng) -> Value {
    at_depth(schema, root, rng, 0)
}

fn at_depth(schema: &Value, root: &Value, rng: &mut SeededRng, depth: usize) -> Value {
    let Value::Object(map) = schema else { return json!("any") };
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    if let Some(target) = map.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(target.trim_start_matches('#')).unwrap_or(&Value::Null);
        return at_depth(target, root, rng, depth + 1);
    }
    if let Some(value) = map.get("const") {
        return value.clone();
    }
    if let Some(values) = map.get("enum").and_then(Value::as_array) {
        return rng.pick(values).cloned().unwrap_or_default();
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(branches) = map.get(key).and_then(Value::as_array)
            && !map.contains_key("properties")
            && let Some(branch) = rng.pick(branches)
        {
            return at_depth(branch, root, rng, depth + 1);
        }
    }
    let kind = match map.get("type") {
        Some(Value::String(one)) => one.as_str(),
        Some(Value::Array(many)) => rng.pick(many).and_then(Value::as_str).unwrap_or("null"),
        _ if map.contains_key("properties") => "object",
        _ => *rng.pick(&["string", "integer", "boolean", "object", "null"]).unwrap_or(&"null"),
    };
    match kind {
        "object" => object(map, root, rng, depth),
        "array" => {
            let count = rng.below(4);
            let items = map.get("items").cloned().unwrap_or(json!({}));
            (0..count).map(|_| at_depth(&items, root, rng, depth + 1)).collect()
        }
        "string" => text(map, rng),
        "integer" => integer(map, rng),
        "number" => match rng.chance(70) {
            true => integer(map, rng),
            false => json!(rng.below(1000) as f64 / 8.0),
        },
        "boolean" => json!(rng.chance(50)),
        _ => Value::Null,
    }
}

fn object(map: &Map<String, Value>, root: &Value, rng: &mut SeededRng, depth: usize) -> Value {
    let mut required: Vec<&str> = map
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    // Of alternatives that only say what must be there, one is taken.
    for key in ["oneOf", "anyOf"] {
        let branches = map.get(key).and_then(Value::as_array);
        if let Some(names) = branches
            .and_then(|all| rng.pick(all))
            .and_then(|one| one.get("required"))
            .and_then(Value::as_array)
        {
            required.extend(names.iter().filter_map(Value::as_str));
        }
    }
    let mut out = Map::new();
    for (name, schema) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if required.contains(&name.as_str()) || rng.chance(35) {
            out.insert(name.clone(), at_depth(schema, root, rng, depth + 1));
        }
    }
    Value::Object(out)
}

fn text(map: &Map<String, Value>, rng: &mut SeededRng) -> Value {
    const WORDS: &[&str] = &["a", "hello", "plan", "x-1", "Привет", "0", "true", "null", "", "two words"];
    match map.get("format").and_then(Value::as_str) {
        Some("date-time") => json!("2026-01-02T03:04:05Z"),
        Some("uuid") => json!("7f0c2f5e-1f0b-4a4e-9a63-0f5a0f5f2b11"),
        Some("uri") => json!("file:///tmp/x"),
        _ => json!(rng.pick(WORDS)),
    }
}

fn integer(map: &Map<String, Value>, rng: &mut SeededRng) -> Value {
    let bound = |key: &str| map.get(key).and_then(Value::as_i64);
    let (low, high) = (bound("minimum").unwrap_or(-1), bound("maximum").unwrap_or(1000));
    match rng.below(4) {
        0 => json!(low),
        1 => json!(high),
        _ => json!(low.saturating_add(rng.below(100) as i64).min(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::schema::Schema;

    #[test]
    fn values_satisfy_their_schema() {
        let schema = json!({
            "type": "object", "required": ["type", "n", "list"], "additionalProperties": false,
            "properties": {
                "type": { "const": "t" }, "n": { "type": "integer", "minimum": 3, "maximum": 9 },
                "list": { "type": "array", "items": { "$ref": "#/components/schemas/S" } },
                "when": { "type": ["string", "null"], "format": "date-time" }, "kind": { "enum": ["a", "b"] },
                "one": { "anyOf": [{ "type": "string" }, { "type": "boolean" }] },
            },
            "components": { "schemas": { "S": { "type": "string" } } },
        });
        let compiled = Schema::new(&schema).expect("a schema");
        for index in 0..200 {
            let value = generate(&schema, &schema, &mut SeededRng::new(1, index));
            assert!(compiled.is_valid(&value), "{value}: {:?}", compiled.violations(&value));
        }
    }
}
