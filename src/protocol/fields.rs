//! The fields that a message can have, as far as its schema names them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Message;

/// How deep a schema is followed.
const MAX_DEPTH: usize = 6;

impl Message {
    /// JSON Pointers of every field that its schema names; of lists that of the first element.
    pub fn fields(&self) -> Vec<String> {
        let mut found = BTreeSet::new();
        walk(&self.payload, &self.payload, "", 0, &mut found);
        found.into_iter().collect()
    }
}

fn walk(schema: &Value, root: &Value, at: &str, depth: usize, found: &mut BTreeSet<String>) {
    if depth > MAX_DEPTH {
        return;
    }
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
        walk(field, root, &at, depth + 1, found);
        found.insert(at);
    }
    if schema["items"].is_object() {
        let at = format!("{at}/0");
        walk(&schema["items"], root, &at, depth + 1, found);
        found.insert(at);
    }
}
