//! A user's overlay: a JSON Merge Patch on the document, of which every part must change something.

use serde_json::{Map, Value};

use crate::source::{Diagnostic, Diagnostics, Document, Part, escape_token};

/// Merges an overlay into a document.
///
/// # Errors
/// It is no map, or has keys that change nothing: they are mistyped.
pub(super) fn apply(overlay: &Document, document: &mut Value) -> Result<(), Diagnostics> {
    if !overlay.value.is_object() {
        let hint = "an overlay is a JSON Merge Patch on asyncapi.yaml: a map";
        return Err(Diagnostic::new("the overlay is not a map")
            .at(overlay, "", Part::Value)
            .hint(hint)
            .into());
    }
    changes_something(overlay, document)?;
    let before = document.get("components").cloned().unwrap_or_default();
    json_patch::merge(document, &overlay.value);
    is_referred_to(overlay, &before, document)
}

/// What an AsyncAPI 3 document has at its top.
const TOP: [&str; 8] =
    ["asyncapi", "id", "info", "servers", "defaultContentType", "channels", "operations", "components"];

/// A key of an overlay that changes nothing is mistyped: one at its top that no document has, and an invariant taken out that is
/// not there.
fn changes_something(overlay: &Document, document: &Value) -> Result<(), Diagnostics> {
    let mut errors = Diagnostics::default();
    for key in overlay.value.as_object().into_iter().flat_map(Map::keys) {
        if TOP.contains(&key.as_str()) || key.starts_with("x-") && document.get(key).is_some() {
            continue;
        }
        let error = Diagnostic::new(format!(
            "an overlay's `{key}` has no effect: it is not a key of AsyncAPI documents"
        ));
        let error = error.at(overlay, &format!("/{}", escape_token(key)), Part::Key);
        errors.push(error.suggest(key, TOP.into_iter().chain(["x-frameproof"])));
    }
    const INVARIANTS: &str = "/x-frameproof/invariants";
    let known = document.pointer(INVARIANTS).and_then(Value::as_object);
    let patched = overlay.value.pointer(INVARIANTS).and_then(Value::as_object);
    for (name, _) in patched.into_iter().flatten().filter(|(_, value)| value.is_null()) {
        if known.is_some_and(|known| known.contains_key(name)) {
            continue;
        }
        let error = Diagnostic::new(format!("there is no invariant `{name}` to remove"));
        let error = error.at(overlay, &format!("{INVARIANTS}/{}", escape_token(name)), Part::Key);
        errors.push(error.suggest(name, known.into_iter().flat_map(Map::keys).map(String::as_str)));
    }
    errors.or(())
}

/// Schemas and messages that an overlay adds are there for something.
fn is_referred_to(overlay: &Document, before: &Value, merged: &Value) -> Result<(), Diagnostics> {
    let mut errors = Diagnostics::default();
    for kind in ["schemas", "messages"] {
        let known = before[kind].as_object();
        let written = overlay.value["components"][kind].as_object().into_iter().flatten();
        for (name, _) in written.filter(|(name, _)| !known.is_some_and(|known| known.contains_key(*name))) {
            let at = format!("/components/{kind}/{}", escape_token(name));
            if !refers(merged, &format!("#{at}")) {
                let message = format!("the overlay's `{name}` changes nothing: nothing refers to it");
                let error = Diagnostic::new(message).at(overlay, &at, Part::Key);
                errors.push(error.suggest(name, known.into_iter().flat_map(Map::keys).map(String::as_str)));
            }
        }
    }
    errors.or(())
}

/// Whether a `$ref` points there, or to something within.
fn refers(value: &Value, to: &str) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| match value {
            Value::String(at) if key == "$ref" => {
                at.strip_prefix(to).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            value => refers(value, to),
        }),
        Value::Array(list) => list.iter().any(|value| refers(value, to)),
        _ => false,
    }
}
