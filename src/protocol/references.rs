//! `$ref`: what a document refers to within itself.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::path::Path;
use crate::source::{Diagnostic, Diagnostics, Document, Part, unescape_token};

/// Every `$ref` must point at something inside the document.
pub(super) fn check_references(
    node: &Value,
    root: &Value,
    api: &Document,
    at: Path<'_>,
    errors: &mut Diagnostics,
) {
    match node {
        Value::Object(map) => {
            if let Some(target) = map.get("$ref").and_then(Value::as_str) {
                let place = || Path::Key(&at, "$ref").to_string();
                match target.strip_prefix('#') {
                    None => errors.push(
                        Diagnostic::new(format!("`{target}` points outside the document"))
                            .at(api, &place(), Part::Value)
                            .hint("only references inside the document are followed: `#/components/…`"),
                    ),
                    Some(pointer) if root.pointer(pointer).is_none() => {
                        errors.push(Diagnostic::new(format!("`{target}` points to nothing")).at(
                            api,
                            &place(),
                            Part::Value,
                        ))
                    }
                    Some(_) => {}
                }
            }
            for (key, value) in map {
                check_references(value, root, api, Path::Key(&at, key), errors);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                check_references(value, root, api, Path::Index(&at, index), errors);
            }
        }
        _ => {}
    }
}

/// Follows local references (bounded, for they may go in circles).
pub(super) fn resolve<'d>(document: &'d Value, mut node: &'d Value) -> (&'d Value, Option<String>) {
    let mut last = None;
    for _ in 0..8 {
        let Some(target) = node.get("$ref").and_then(Value::as_str) else { break };
        let pointer = target.trim_start_matches('#');
        let Some(next) = document.pointer(pointer) else { break };
        last = Some(pointer.to_owned());
        node = next;
    }
    (node, last)
}

/// The schemas of the document's components that a schema refers to, directly or by others.
pub(super) fn components_of(schema: &Map<String, Value>, document: &Value) -> Map<String, Value> {
    let Some(known) = document["components"]["schemas"].as_object() else { return Map::new() };
    let mut names = Vec::new();
    referred_in(schema, &mut names);
    let mut wanted = BTreeSet::new();
    while let Some(name) = names.pop() {
        if let Some(component) = known.get(&name).filter(|_| wanted.insert(name)) {
            referred(component, &mut names);
        }
    }
    let wanted = known.iter().filter(|(name, _)| wanted.contains(*name));
    wanted.map(|(name, schema)| (name.clone(), schema.clone())).collect()
}

/// The names of the components that a schema refers to.
fn referred_in(schema: &Map<String, Value>, names: &mut Vec<String>) {
    let target = schema.get("$ref").and_then(Value::as_str);
    let name = target.and_then(|target| target.strip_prefix("#/components/schemas/"));
    let name = name.map(|rest| rest.split('/').next().unwrap_or(rest));
    names.extend(name.map(unescape_token));
    schema.values().for_each(|value| referred(value, names));
}

fn referred(node: &Value, names: &mut Vec<String>) {
    match node {
        Value::Object(map) => referred_in(map, names),
        Value::Array(items) => items.iter().for_each(|value| referred(value, names)),
        _ => {}
    }
}
