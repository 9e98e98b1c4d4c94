//! Values from JSON Schemas: valid ones, as far as a simple walk can tell; the schema itself has the last word.

use serde_json::{Map, Value, json};

use super::dice::Dice;

/// How deep a schema is followed.
const MAX_DEPTH: usize = 8;

/// A value that probably satisfies `schema`, whose references point into `root`.
pub fn generate(schema: &Value, root: &Value, dice: &mut Dice) -> Value {
    at_depth(schema, root, dice, 0)
}

fn at_depth(schema: &Value, root: &Value, dice: &mut Dice, depth: usize) -> Value {
    let Value::Object(map) = schema else { return json!("any") };
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    if let Some(target) = map.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(target.trim_start_matches('#')).unwrap_or(&Value::Null);
        return at_depth(target, root, dice, depth + 1);
    }
    if let Some(value) = map.get("const") {
        return value.clone();
    }
    if let Some(values) = map.get("enum").and_then(Value::as_array) {
        return dice.pick(values).cloned().unwrap_or_default();
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(branches) = map.get(key).and_then(Value::as_array)
            && !map.contains_key("properties")
            && let Some(branch) = dice.pick(branches)
        {
            return at_depth(branch, root, dice, depth + 1);
        }
    }
    let kind = match map.get("type") {
        Some(Value::String(one)) => one.as_str(),
        Some(Value::Array(many)) => dice.pick(many).and_then(Value::as_str).unwrap_or("null"),
        _ if map.contains_key("properties") => "object",
        _ => *dice.pick(&["string", "integer", "boolean", "object", "null"]).unwrap_or(&"null"),
    };
    match kind {
        "object" => object(map, root, dice, depth),
        "array" => {
            let count = dice.below(4);
            let items = map.get("items").cloned().unwrap_or(json!({}));
            (0..count).map(|_| at_depth(&items, root, dice, depth + 1)).collect()
        }
        "string" => text(map, dice),
        "integer" => integer(map, dice),
        "number" => match dice.chance(70) {
            true => integer(map, dice),
            false => json!(dice.below(1000) as f64 / 8.0),
        },
        "boolean" => json!(dice.chance(50)),
        _ => Value::Null,
    }
}

fn object(map: &Map<String, Value>, root: &Value, dice: &mut Dice, depth: usize) -> Value {
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
            .and_then(|all| dice.pick(all))
            .and_then(|one| one.get("required"))
            .and_then(Value::as_array)
        {
            required.extend(names.iter().filter_map(Value::as_str));
        }
    }
    let mut out = Map::new();
    for (name, schema) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if required.contains(&name.as_str()) || dice.chance(35) {
            out.insert(name.clone(), at_depth(schema, root, dice, depth + 1));
        }
    }
    Value::Object(out)
}

fn text(map: &Map<String, Value>, dice: &mut Dice) -> Value {
    const WORDS: &[&str] = &["a", "hello", "plan", "x-1", "Привет", "0", "true", "null", "", "two words"];
    match map.get("format").and_then(Value::as_str) {
        Some("date-time") => json!("2026-01-02T03:04:05Z"),
        Some("uuid") => json!("7f0c2f5e-1f0b-4a4e-9a63-0f5a0f5f2b11"),
        Some("uri") => json!("file:///tmp/x"),
        _ => json!(dice.pick(WORDS)),
    }
}

fn integer(map: &Map<String, Value>, dice: &mut Dice) -> Value {
    let bound = |key: &str| map.get(key).and_then(Value::as_i64);
    let (low, high) = (bound("minimum").unwrap_or(-1), bound("maximum").unwrap_or(1000));
    match dice.below(4) {
        0 => json!(low),
        1 => json!(high),
        _ => json!(low.saturating_add(dice.below(100) as i64).min(high)),
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
            let value = generate(&schema, &schema, &mut Dice::new(1, index));
            assert!(compiled.is_valid(&value), "{value}: {:?}", compiled.violations(&value));
        }
    }
}
