//! The fields that a message can have, as far as its schema names them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Message;

/// How deep a schema is followed.
const MAX_DEPTH: usize = 6;

/// What a schema says of one field, all its branches together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Field {
    /// The types that it names; none: it may be of any.
    pub types: BTreeSet<String>,
    /// The values that it lists, in their order.
    pub members: Vec<Value>,
}

impl Field {
    /// Whether its values may be of one of these types; an empty list means any.
    pub fn may_be(&self, types: &[&str]) -> bool {
        types.is_empty() || self.types.is_empty() || types.iter().any(|one| self.types.contains(*one))
    }

    fn add(&mut self, schema: &Value) {
        let named = schema["type"].as_array().into_iter().flatten().chain(Some(&schema["type"]));
        self.types.extend(named.filter_map(Value::as_str).map(str::to_owned));
        for value in schema["enum"].as_array().into_iter().flatten().chain(schema.get("const")) {
            self.types.insert(type_of(value).to_owned());
            if !self.members.contains(value) {
                self.members.push(value.clone());
            }
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Message {
    /// JSON Pointers of every field that its schema names; of lists that of the first element.
    pub fn fields(&self) -> Vec<String> {
        self.fields_with_types().into_keys().collect()
    }

    /// The same, with what the schema says of each.
    pub fn fields_with_types(&self) -> BTreeMap<String, Field> {
        let mut found = BTreeMap::new();
        walk(&self.payload, &self.payload, "", 0, &mut found);
        found.remove("");
        found
    }
}

fn walk(schema: &Value, root: &Value, at: &str, depth: usize, found: &mut BTreeMap<String, Field>) {
    if depth > MAX_DEPTH {
        return;
    }
    found.entry(at.to_owned()).or_default().add(schema);
    if let Some(target) =
        schema["$ref"].as_str().and_then(|target| root.pointer(target.trim_start_matches('#')))
    {
        walk(target, root, at, depth + 1, found);
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        for branch in schema[key].as_array().into_iter().flatten() {
            walk(branch, root, at, depth + 1, found);
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        // Named, however deep it is.
        found.entry(at.clone()).or_default();
        walk(field, root, &at, depth + 1, found);
    }
    if schema["items"].is_object() {
        let at = format!("{at}/0");
        found.entry(at.clone()).or_default();
        walk(&schema["items"], root, &at, depth + 1, found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_have_the_types_and_members_of_all_branches() {
        let schema = json!({
            "properties": {
                "state": { "oneOf": [{ "const": "on" }, { "enum": ["off", "on"] }, { "type": "null" }] },
                "count": { "$ref": "#/$defs/count" },
                "list": { "type": "array", "items": { "type": ["string", "integer"] } },
                "any": true,
            },
            "$defs": { "count": { "type": "integer" } },
        });
        let mut found = BTreeMap::new();
        walk(&schema, &schema, "", 0, &mut found);
        let of = |at: &str| &found[at];
        let types = |at: &str| of(at).types.iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(types("/state"), ["null", "string"]);
        assert_eq!(of("/state").members, [json!("on"), json!("off")]);
        assert_eq!(types("/count"), ["integer"]);
        assert_eq!(types("/list/0"), ["integer", "string"]);
        assert!(of("/any").may_be(&["boolean"]) && of("/count").may_be(&["number", "integer"]));
        assert!(!of("/count").may_be(&["string"]) && of("/count").may_be(&[]));
    }
}
