//! From a document to typed data, with every structural error at its place.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::schema::{Problem, Schema, Violation};
use super::{Diagnostic, Diagnostics, Document, Part, escape_token};

/// The JSON Schema of a type, as `frameproof schema` publishes it.
pub fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = schema_for!(T).to_value();
    bound(&mut schema);
    schema
}

/// Says of every integer how large it may be: the generator only names its type.
fn bound(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let most = match map.get("format").and_then(Value::as_str) {
                Some("uint8") => Some(u64::from(u8::MAX)),
                Some("uint16") => Some(u64::from(u16::MAX)),
                Some("uint32") => Some(u64::from(u32::MAX)),
                Some("uint" | "uint64") => Some(u64::MAX),
                Some("int32") => i32::MAX.try_into().ok(),
                Some("int" | "int64") => i64::MAX.try_into().ok(),
                _ => None,
            };
            if let Some(most) = most {
                map.entry("maximum").or_insert(most.into());
            }
            map.values_mut().for_each(bound);
        }
        Value::Array(items) => items.iter_mut().for_each(bound),
        _ => {}
    }
}

/// What a value of a type is checked against.
struct Shape {
    text: Value,
    schema: Schema,
}

/// The shape of a type, compiled once.
fn shape_of<T: JsonSchema + 'static>() -> Result<Arc<Shape>, Diagnostics> {
    static KNOWN: OnceLock<Mutex<HashMap<TypeId, Arc<Shape>>>> = OnceLock::new();
    let known = || KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(shape) = known().get(&TypeId::of::<T>()) {
        return Ok(Arc::clone(shape));
    }
    let text = schema_of::<T>();
    // Generated from a type of ours; a test compiles each.
    let schema = Schema::new(&text).map_err(|error| Diagnostic::new(format!("internal schema: {error}")))?;
    Ok(Arc::clone(known().entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(Shape { text, schema }))))
}

/// Checks the value at `pointer` (empty: the whole document) against the JSON Schema of `T` and reads it.
///
/// # Errors
/// Every violation of the schema as a diagnostic of its own: unknown field (with the nearest known one),
/// missing field, wrong type, unknown variant.
pub fn decode<T: JsonSchema + DeserializeOwned + 'static>(
    document: &Document,
    pointer: &str,
) -> Result<T, Diagnostics> {
    let value = document.value.pointer(pointer).unwrap_or(&Value::Null);
    if let Some(read) = known_good(value, document) {
        return Ok(read);
    }
    let value = value.clone();
    decode_value(value, document, pointer)
}

/// As [`decode`], for a value that was derived from the document (by a merge patch, say) and stands at
/// `pointer` in it as far as it stands there at all.
///
/// # Errors
/// As [`decode`].
pub fn decode_value<T: JsonSchema + DeserializeOwned + 'static>(
    value: Value,
    document: &Document,
    pointer: &str,
) -> Result<T, Diagnostics> {
    if let Some(read) = known_good(&value, document) {
        return Ok(read);
    }
    let shape = shape_of::<T>()?;
    let violations = shape.schema.violations(&value);
    if violations.is_empty() {
        return read(&value).map_err(|mistake| {
            let at = format!("{pointer}{}", mistake.at);
            Diagnostic::new(mistake.message).at(document, &at, Part::Value).into()
        });
    }
    let known = field_names(&shape.text);
    let describe = |one: &Violation| {
        let diagnostic = describe(one, &value, document, pointer, &known);
        match advice(&shape.text, &one.at).filter(|_| diagnostic.hint.is_none()) {
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic,
        }
    };
    let kinds = |one: &Violation| kinds_at(&shape.text, one, &violations, &value);
    let told = violations.iter().filter_map(|one| match (&one.problem, kinds(one)) {
        // That it is none of the kinds says all.
        (Problem::Missing(_), Some(_)) => None,
        (Problem::Undeclared(name), Some(kinds)) => {
            let hint = match super::nearest(name, kinds.iter().copied()) {
                Some(near) => format!("did you mean `{near}`? known are {}", kinds.join(", ")),
                None => format!("known are {}", kinds.join(", ")),
            };
            Some(describe(one).hint(hint))
        }
        _ => Some(describe(one)),
    });
    Err(Diagnostics(told.collect()))
}

/// The kinds that a map with one key can be of, where a violation is about a map whose key is none of them.
fn kinds_at<'s>(
    schema: &'s Value,
    violation: &Violation,
    all: &[Violation],
    value: &Value,
) -> Option<Vec<&'s str>> {
    let map = value.pointer(&violation.at)?.as_object().filter(|map| map.len() == 1)?;
    let here = || all.iter().filter(|other| other.at == violation.at);
    let unknown =
        here().any(|other| matches!(&other.problem, Problem::Undeclared(name) if map.contains_key(name)));
    let missing = here().find_map(|other| match &other.problem {
        Problem::Missing(name) => Some(name),
        _ => None,
    })?;
    let mut open = vec![schema];
    while let Some(node) = open.pop().filter(|_| unknown) {
        let kinds = node.get("oneOf").and_then(Value::as_array).and_then(|kinds| {
            let kind = |kind: &'s Value| match kind.get("required")?.as_array()?.as_slice() {
                [one] => one.as_str(),
                _ => None,
            };
            kinds.iter().map(kind).collect::<Option<Vec<_>>>()
        });
        if let Some(kinds) = kinds.filter(|kinds| kinds.len() > 1 && kinds.contains(&missing.as_str())) {
            return Some(kinds);
        }
        match node {
            Value::Object(map) => open.extend(map.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    None
}

/// What ships with the binary has been checked.
fn known_good<T: DeserializeOwned>(value: &Value, document: &Document) -> Option<T> {
    if document.is_shipped() { read(value).ok() } else { None }
}

/// Why a value is not one of a type.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Unreadable {
    /// JSON Pointer of what is wrong in the value.
    pub at: String,
    /// What is wrong there.
    pub message: String,
}

/// Reads a value that needs no check against a schema. All that is read as JSON values is read here: each further kind of
/// deserializer would compile the code of all types once more.
///
/// # Errors
/// The first mistake.
pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Unreadable> {
    serde_path_to_error::deserialize(value).map_err(|error| Unreadable {
        at: error.path().iter().map(token).collect(),
        message: error.inner().to_string(),
    })
}

/// A step of a path as a JSON Pointer's.
fn token(segment: &serde_path_to_error::Segment) -> String {
    use serde_path_to_error::Segment;
    match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => format!("/{}", escape_token(key)),
        // Neither stands in the text.
        Segment::Enum { .. } | Segment::Unknown => String::new(),
    }
}

/// What the schema says, under `x-hint`, about a field that is wrong.
fn advice(schema: &Value, at: &str) -> Option<String> {
    let field = at.rsplit('/').next().filter(|field| !field.is_empty())?;
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                let hint = map.get("properties").and_then(|known| known.get(field)?.get("x-hint")?.as_str());
                if let Some(hint) = hint {
                    return Some(hint.to_owned());
                }
                open.extend(map.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    None
}

/// The end of what is said of a text that is no pointer: the pattern of `frame::Pointer`.
const POINTER: &str = r#"does not match "^(/.*)?$""#;

fn describe(
    violation: &Violation,
    value: &Value,
    document: &Document,
    base: &str,
    known: &[String],
) -> Diagnostic {
    let subject = format!("{base}{}", violation.subject());
    let place = if violation.at.is_empty() { base.to_owned() } else { format!("{base}{}", violation.at) };
    let shown = value.pointer(&violation.at).map(short).unwrap_or_default();
    match &violation.problem {
        Problem::Undeclared(name) => Diagnostic::new(format!("unknown field `{name}`"))
            .at(document, &subject, Part::Key)
            .label("not a field here")
            .suggest(name, known.iter().map(String::as_str).filter(|known| known != name)),
        Problem::Missing(name) => Diagnostic::new(format!("missing field `{name}`"))
            .at(document, &place, Part::Key)
            .label(format!("`{name}` is required here")),
        Problem::NotOneOf(options) => {
            let words: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
            Diagnostic::new(format!("{shown} is not one of the allowed values"))
                .at(document, &place, Part::Value)
                .suggest(value.pointer(&violation.at).and_then(Value::as_str).unwrap_or(""), words)
        }
        // That a field may be null is what it means to leave it out.
        Problem::Type(expected) => {
            let types: Vec<&str> = expected.split(" or ").filter(|one| *one != "null").collect();
            let message = match &types[..] {
                [] => format!("{shown} is not allowed here"),
                types => format!("{shown} must be of type {}", types.join(" or ")),
            };
            Diagnostic::new(message).at(document, &place, Part::Value)
        }
        Problem::Other(message) if message.ends_with(POINTER) => {
            Diagnostic::new(format!("{shown} is not a JSON Pointer: a pointer begins with `/`"))
                .at(document, &place, Part::Value)
                .hint(format!("`/{}`?", shown.trim_matches('"')))
        }
        Problem::Other(message) => {
            Diagnostic::new(format!("{shown} {message}")).at(document, &place, Part::Value)
        }
    }
}

fn short(value: &Value) -> String {
    match value {
        Value::Object(_) => "a map".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        scalar => {
            let text = scalar.to_string();
            if text.chars().count() > 40 { text.chars().take(40).chain(['…']).collect() } else { text }
        }
    }
}

/// Every property name that the schema declares anywhere.
fn field_names(schema: &Value) -> Vec<String> {
    let mut names = Vec::new();
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                if let Some(Value::Object(properties)) = map.get("properties") {
                    names.extend(properties.keys().cloned());
                }
                open.extend(map.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Either {
        #[expect(dead_code, reason = "only its shape matters")]
        Word(String),
        #[expect(dead_code, reason = "only its shape matters")]
        Number { n: u8 },
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Optional {
        #[expect(dead_code, reason = "only its shape matters")]
        a: Option<Either>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        #[expect(dead_code, reason = "only its shape matters")]
        Absence(u8),
        #[expect(dead_code, reason = "only its shape matters")]
        Response(u8),
        #[expect(dead_code, reason = "only its shape matters")]
        Unique(u8),
    }

    #[test]
    fn an_unknown_kind_lists_all() {
        for (text, hint) in [
            ("absense: 1\n", "did you mean `absence`? known are absence, response, unique"),
            ("zzz: 1\n", "known are absence, response, unique"),
        ] {
            let document = Document::parse("d.yaml", text).expect("YAML");
            let shown = decode::<Kind>(&document, "").expect_err(text);
            assert_eq!(shown.0.len(), 1, "{shown}");
            assert_eq!(shown.0[0].hint.as_deref(), Some(hint), "{shown}");
        }
    }

    #[test]
    fn no_message_has_a_hole() {
        for text in ["a: []\n", "a: {}\n", "a: 5\n", "a: { n: {} }\n", "a: { n: null }\n"] {
            let document = Document::parse("d.yaml", text).expect("YAML");
            let shown = decode::<Optional>(&document, "").expect_err(text).to_string();
            let first = shown.lines().next().unwrap_or_default();
            assert!(
                !first.trim_end().ends_with("of type") && first.len() > "error: a list".len(),
                "{text}{shown}"
            );
        }
    }
}
