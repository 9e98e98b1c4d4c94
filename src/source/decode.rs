//! From a document to typed data, with every structural error at its place.

use std::any::TypeId;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::forms::{forms, forms_of_field, forms_of_items};
use super::schema::{Problem, Schema, Violation};
use super::{Diagnostic, Diagnostics, Document, Part, escape_token, unescape_token};

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
pub(crate) struct Shape {
    /// The JSON Schema.
    pub text: Value,
    schema: Schema,
}

/// The shape of a type, compiled once.
///
/// # Errors
/// None: a test compiles the schema of each type.
pub(crate) fn shape_of<T: JsonSchema + 'static>() -> Result<Arc<Shape>, Diagnostics> {
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
    let describe = |one: &Violation| {
        let known = fields_at(&shape.text, &one.at);
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
                Some(near) => format!("did you mean `{near}`? {}", super::all_known(kinds)),
                None => super::all_known(kinds),
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
    known: &BTreeSet<&str>,
) -> Diagnostic {
    let subject = format!("{base}{}", violation.subject());
    let place = if violation.at.is_empty() { base.to_owned() } else { format!("{base}{}", violation.at) };
    let shown = value.pointer(&violation.at).map(short).unwrap_or_default();
    match &violation.problem {
        Problem::Undeclared(name) => Diagnostic::new(format!("unknown field `{name}`"))
            .at(document, &subject, Part::Key)
            .label("not a field here")
            .suggest(name, free(known, value.pointer(&violation.at))),
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

/// The fields that a map does not have yet.
fn free<'s>(known: &BTreeSet<&'s str>, map: Option<&Value>) -> impl Iterator<Item = &'s str> {
    known.iter().copied().filter(move |name| map.is_none_or(|map| map.get(name).is_none()))
}

/// The fields that a map at a place may have, in whichever of its forms.
fn fields_at<'s>(root: &'s Value, at: &str) -> BTreeSet<&'s str> {
    let mut here = forms(root, vec![root]);
    for token in at.split('/').skip(1) {
        let mut below = forms_of_field(root, &here, &unescape_token(token));
        below.extend(forms_of_items(root, &here));
        here = below;
    }
    let fields = here.iter().filter_map(|schema| schema.get("properties")?.as_object());
    fields.flat_map(|fields| fields.keys().map(String::as_str)).collect()
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
            ("absense: 1\n", "did you mean `absence`? known are `absence`, `response`, `unique`"),
            ("zzz: 1\n", "known are `absence`, `response`, `unique`"),
        ] {
            let document = Document::parse("d.yaml", text).expect("YAML");
            let shown = decode::<Kind>(&document, "").expect_err(text);
            assert_eq!(shown.0.len(), 1, "{shown}");
            assert_eq!(shown.0[0].hint.as_deref(), Some(hint), "{shown}");
        }
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[expect(dead_code, reason = "only its shape matters")]
        inner: Option<Inner>,
        #[expect(dead_code, reason = "only its shape matters")]
        named: Option<HashMap<String, Vec<Inner>>>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[expect(dead_code, reason = "only its shape matters")]
        title: Option<String>,
    }

    #[test]
    fn suggestions_are_fields_of_the_place() {
        for (text, hint) in [
            ("inner: { titel: x }\n", Some("did you mean `title`?")),
            ("named: { a: [{ titel: x }] }\n", Some("did you mean `title`?")),
            ("innr: {}\n", Some("did you mean `inner`?")),
            // Fields of other places.
            ("titel: x\n", Some("known are `inner`, `named`")),
            ("inner: { iner: x }\n", Some("known are `title`")),
            // The map has it already.
            ("inner: { title: y, titel: x }\n", None),
        ] {
            let document = Document::parse("d.yaml", text).expect("YAML");
            let shown = decode::<Outer>(&document, "").expect_err(text);
            assert_eq!(shown.0[0].hint.as_deref(), hint, "{text}{shown}");
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
