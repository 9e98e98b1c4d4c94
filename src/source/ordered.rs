//! Bounds in the order of an `enum`: JSON Schema has them for numbers only.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The keywords, whether the bound is the least value, and whether it is one itself.
const BOUNDS: [(&str, bool, bool); 4] = [
    ("minimum", true, true),
    ("exclusiveMinimum", true, false),
    ("maximum", false, true),
    ("exclusiveMaximum", false, false),
];
/// Keywords with values in them, and no schemas.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// A schema in which a text as the bound of an `enum`, whose values are in their order, is put in the words of JSON Schema: only the values within the
/// bound are left. A bound that is a template bounds nothing yet.
///
/// # Errors
/// A text as a bound without an `enum`, or one that is none of its values.
pub(crate) fn ordered(schema: &Value) -> Result<Cow<'_, Value>, String> {
    if !has_bounds(schema) {
        return Ok(Cow::Borrowed(schema));
    }
    let mut schema = schema.clone();
    put(&mut schema)?;
    Ok(Cow::Owned(schema))
}

/// A text that stands for a bound, if this is the schema of one.
fn bound<'v>(map: &'v Map<String, Value>, keyword: &str) -> Option<&'v Value> {
    map.get(keyword).filter(|bound| bound.is_string())
}

fn has_bounds(node: &Value) -> bool {
    match node {
        Value::Object(map) => {
            BOUNDS.iter().any(|(keyword, ..)| bound(map, keyword).is_some())
                || map.iter().any(|(key, value)| !DATA.contains(&key.as_str()) && has_bounds(value))
        }
        Value::Array(items) => items.iter().any(has_bounds),
        _ => false,
    }
}

fn put(node: &mut Value) -> Result<(), String> {
    match node {
        Value::Object(map) => {
            for (keyword, is_least, inclusive) in BOUNDS {
                let Some(wanted) = bound(map, keyword).cloned() else { continue };
                map.remove(keyword);
                if wanted.as_str().is_some_and(|text| text.contains("{{")) {
                    continue;
                }
                let Some(values) = map.get_mut("enum").and_then(Value::as_array_mut) else {
                    return Err(format!(
                        "`{keyword}: {wanted}` needs an `enum` beside it, which lists the values in their order"
                    ));
                };
                let Some(place) = values.iter().position(|value| *value == wanted) else {
                    return Err(format!(
                        "`{keyword}: {wanted}` is none of the values of the `enum` beside it"
                    ));
                };
                if is_least {
                    values.drain(..place + usize::from(!inclusive));
                } else {
                    values.truncate(place + usize::from(inclusive));
                }
                if values.is_empty() {
                    return Err(format!("`{keyword}: {wanted}` leaves no value of the `enum` beside it"));
                }
            }
            for (_, value) in map.iter_mut().filter(|(key, _)| !DATA.contains(&key.as_str())) {
                put(value)?;
            }
        }
        Value::Array(items) => items.iter_mut().try_for_each(put)?,
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bounds_are_places_in_the_list() {
        let levels = json!(["debug", "info", "warning", "error"]);
        for (bounds, left) in [
            (json!({ "minimum": "warning" }), json!(["warning", "error"])),
            (json!({ "exclusiveMinimum": "info" }), json!(["warning", "error"])),
            (json!({ "maximum": "info" }), json!(["debug", "info"])),
            (json!({ "exclusiveMaximum": "info" }), json!(["debug"])),
            (json!({ "minimum": "info", "maximum": "warning" }), json!(["info", "warning"])),
            (json!({ "minimum": "{{level}}" }), levels.clone()),
        ] {
            let mut schema = bounds.clone();
            schema["enum"] = levels.clone();
            let within = json!({ "properties": { "level": schema } });
            let put = ordered(&within).expect("an order");
            assert_eq!(*put, json!({ "properties": { "level": { "enum": left } } }), "{bounds}");
        }
        let same = json!({ "properties": { "minimum": { "type": "string" }, "n": { "minimum": 3, "enum": [3, 4] } }, "const": { "minimum": "x" } });
        assert!(matches!(ordered(&same), Ok(Cow::Borrowed(_))));
        for (schema, error) in [
            (json!({ "minimum": "info" }), "needs an `enum` beside it"),
            (json!({ "minimum": "fatal", "enum": ["info"] }), "is none of the values"),
            (json!({ "exclusiveMinimum": "info", "enum": ["info"] }), "leaves no value"),
        ] {
            assert!(ordered(&schema).expect_err("refused").contains(error), "{schema}");
        }
    }
}
