//! One schema of a file on its own: with what it refers to in that file, and the alternatives that a union has.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The pointer that a schema refers to in its own file.
fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix('#')
}

/// A schema, or the one in the same file that it refers to.
pub(super) fn resolved<'r>(root: &'r Value, schema: &'r Value) -> &'r Value {
    reference(schema).and_then(|to| root.pointer(to)).unwrap_or(schema)
}

/// The texts that a schema takes.
pub(super) fn constants(schema: &Value) -> Vec<String> {
    let one = schema.get("const").into_iter();
    let many = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    one.chain(many).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Deepest nesting of unions.
const DEEPEST: usize = 16;

/// Visits the schemas of a union, and of the unions in it, each with its pointer.
pub(super) fn branches<'r>(
    root: &'r Value,
    node: &'r Value,
    pointer: &str,
    depth: usize,
    visit: &mut impl FnMut(&str, &'r Value),
) {
    if depth > DEEPEST {
        return;
    }
    if let Some(to) = reference(node) {
        if let Some(other) = root.pointer(to) {
            branches(root, other, to, depth + 1, visit);
        }
        return;
    }
    let mut is_union = false;
    for key in ["oneOf", "anyOf"] {
        for (index, one) in node.get(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
            is_union = true;
            branches(root, one, &format!("{pointer}/{key}/{index}"), depth + 1, visit);
        }
    }
    if !is_union {
        visit(pointer, node);
    }
}

/// Where a file keeps what its schemas refer to.
const DEFINITIONS: [&str; 2] = ["definitions", "$defs"];

/// The schema at a pointer, standing alone: with the definitions that it needs.
pub(super) fn standalone(root: &Value, pointer: &str) -> Value {
    let node = root.pointer(pointer).cloned().unwrap_or(Value::Bool(true));
    let mut needed = BTreeSet::new();
    collect(root, &node, &mut needed);
    let mut alone = Map::new();
    if let Some(dialect) = root.get("$schema") {
        alone.insert("$schema".to_owned(), dialect.clone());
    }
    for to in &needed {
        let mut parts = to.splitn(3, '/').skip(1);
        let (Some(kind), Some(name)) = (parts.next(), parts.next()) else { continue };
        let own = alone.entry(kind).or_insert_with(|| json!({}));
        if let (Some(own), Some(definition)) = (own.as_object_mut(), root.pointer(to)) {
            own.insert(crate::source::unescape_token(name), definition.clone());
        }
    }
    let mut node = node;
    if let (true, Some(map)) = (pointer.is_empty(), node.as_object_mut()) {
        DEFINITIONS.iter().for_each(|key| drop(map.remove(*key)));
    }
    alone.insert("allOf".to_owned(), json!([node]));
    Value::Object(alone)
}

/// Collects the pointers of definitions that a schema refers to, directly and by others.
fn collect(root: &Value, node: &Value, needed: &mut BTreeSet<String>) {
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        match node {
            Value::Object(map) => {
                if let Some(to) = reference(node) {
                    let mut parts = to.split('/').skip(1);
                    let kind = parts.next().filter(|kind| DEFINITIONS.contains(kind));
                    if let (Some(kind), Some(name)) = (kind, parts.next()) {
                        let definition = format!("/{kind}/{name}");
                        let target = root.pointer(&definition);
                        if needed.insert(definition) {
                            waiting.extend(target);
                        }
                    }
                }
                // The whole file's definitions are looked at only where they are referred to.
                let is_store = |key: &str| DEFINITIONS.contains(&key);
                waiting.extend(map.iter().filter(|(key, _)| !is_store(key)).map(|(_, value)| value));
            }
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::schema::Schema;

    #[test]
    fn a_schema_stands_alone_with_what_it_needs() {
        let root = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {
                "A": { "properties": { "b": { "$ref": "#/definitions/B" } } },
                "B": { "type": "integer" },
                "C": { "type": "string" },
            },
            "oneOf": [{ "properties": { "method": { "enum": ["a"] }, "params": { "$ref": "#/definitions/A" } } }],
        });
        let alone = standalone(&root, "/oneOf/0");
        let names: Vec<&String> = alone["definitions"].as_object().expect("definitions").keys().collect();
        assert_eq!(names, ["A", "B"]);
        let schema = Schema::new(&alone).expect("it compiles");
        assert!(schema.is_valid(&json!({ "method": "a", "params": { "b": 1 } })));
        assert!(!schema.is_valid(&json!({ "method": "a", "params": { "b": "x" } })));
        let mut seen = Vec::new();
        branches(&root, &root, "", 0, &mut |pointer, branch| {
            seen.push((pointer.to_owned(), constants(&branch["properties"]["method"])));
        });
        assert_eq!(seen, [("/oneOf/0".to_owned(), vec!["a".to_owned()])]);
    }
}
