//! The schemas that a value at a place is to satisfy, by a JSON Schema: what it refers to, and its alternatives.

use serde_json::Value;

/// These schemas, with all that they refer to and their alternatives.
pub(crate) fn forms<'s>(root: &'s Value, mut open: Vec<&'s Value>) -> Vec<&'s Value> {
    let mut found: Vec<&Value> = Vec::new();
    while let Some(schema) = open.pop() {
        if found.iter().any(|known| std::ptr::eq(*known, schema)) {
            continue;
        }
        found.push(schema);
        let referred = schema.get("$ref").and_then(Value::as_str);
        open.extend(referred.and_then(|target| root.pointer(target.trim_start_matches('#'))));
        let alternatives =
            ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array());
        open.extend(alternatives.flatten());
    }
    found
}

/// The forms of a field of a map that has these forms.
pub(crate) fn forms_of_field<'s>(root: &'s Value, map: &[&'s Value], name: &str) -> Vec<&'s Value> {
    let field = |schema: &&'s Value| {
        let own = schema.get("properties").and_then(|fields| fields.get(name));
        own.or_else(|| schema.get("additionalProperties"))
    };
    forms(root, map.iter().filter_map(field).collect())
}

/// The forms of the elements of a list that has these forms.
pub(crate) fn forms_of_items<'s>(root: &'s Value, list: &[&'s Value]) -> Vec<&'s Value> {
    forms(root, list.iter().filter_map(|schema| schema.get("items")).collect())
}
