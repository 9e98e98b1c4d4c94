//! Words of a JSON Schema that say nothing because nobody knows them: a schema is silent about those, a person mistyped them.

use serde_json::Value;

use super::{Diagnostic, Diagnostics, Document, Part, escape_token};

/// What stands below a keyword.
#[derive(Clone, Copy, PartialEq)]
enum Below {
    /// No schema.
    Plain,
    /// A schema.
    One,
    /// A list of schemas.
    Many,
    /// A map of schemas.
    Named,
}

/// The keywords of JSON Schema 2020-12, `definitions` of before, and what AsyncAPI adds.
const KEYWORDS: &[(&str, Below)] = &[
    ("$anchor", Below::Plain),
    ("$comment", Below::Plain),
    ("$defs", Below::Named),
    ("$dynamicAnchor", Below::Plain),
    ("$dynamicRef", Below::Plain),
    ("$id", Below::Plain),
    ("$ref", Below::Plain),
    ("$schema", Below::Plain),
    ("$vocabulary", Below::Plain),
    ("additionalProperties", Below::One),
    ("allOf", Below::Many),
    ("anyOf", Below::Many),
    ("const", Below::Plain),
    ("contains", Below::One),
    ("contentEncoding", Below::Plain),
    ("contentMediaType", Below::Plain),
    ("contentSchema", Below::One),
    ("default", Below::Plain),
    ("definitions", Below::Named),
    ("dependentRequired", Below::Plain),
    ("dependentSchemas", Below::Named),
    ("deprecated", Below::Plain),
    ("description", Below::Plain),
    ("discriminator", Below::Plain),
    ("else", Below::One),
    ("enum", Below::Plain),
    ("examples", Below::Plain),
    ("exclusiveMaximum", Below::Plain),
    ("exclusiveMinimum", Below::Plain),
    ("externalDocs", Below::Plain),
    ("format", Below::Plain),
    ("if", Below::One),
    ("items", Below::One),
    ("maxContains", Below::Plain),
    ("maxItems", Below::Plain),
    ("maxLength", Below::Plain),
    ("maxProperties", Below::Plain),
    ("maximum", Below::Plain),
    ("minContains", Below::Plain),
    ("minItems", Below::Plain),
    ("minLength", Below::Plain),
    ("minProperties", Below::Plain),
    ("minimum", Below::Plain),
    ("multipleOf", Below::Plain),
    ("not", Below::One),
    ("oneOf", Below::Many),
    ("pattern", Below::Plain),
    ("patternProperties", Below::Named),
    ("prefixItems", Below::Many),
    ("properties", Below::Named),
    ("propertyNames", Below::One),
    ("readOnly", Below::Plain),
    ("required", Below::Plain),
    ("then", Below::One),
    ("title", Below::Plain),
    ("type", Below::Plain),
    ("unevaluatedItems", Below::One),
    ("unevaluatedProperties", Below::One),
    ("uniqueItems", Below::Plain),
    ("writeOnly", Below::Plain),
];

/// The formats that are asserted, and those of OpenAPI that say how large a number is.
const FORMATS: &[&str] = &[
    "binary",
    "byte",
    "date",
    "date-time",
    "double",
    "duration",
    "email",
    "float",
    "hostname",
    "idn-email",
    "idn-hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "password",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// The key below which the extensions of this program stand in documents of other formats.
pub(crate) const EXTENSION: &str = "x-frameproof";

/// Most edits between a key and [`EXTENSION`], of which it is then a misspelling: words that others may use are further away.
const MISSPELT: usize = 2;

/// What is wrong with a key that is nearly that of the extension of this program: all others that begin with `x-` are everybody's own.
pub(crate) fn misspelt_extension(key: &str) -> Option<Diagnostic> {
    let is_near =
        key.starts_with("x-") && key.len().abs_diff(EXTENSION.len()) <= MISSPELT && key != EXTENSION;
    (is_near && strsim::damerau_levenshtein(&key.to_ascii_lowercase(), EXTENSION) <= MISSPELT)
        .then(|| Diagnostic::new(format!("unknown extension `{key}`")).suggest(key, [EXTENSION]))
}

/// Nesting of a schema that is looked at.
const DEEPEST: usize = 128;

/// Adds an error for every keyword and format of the schema, which stands at `at` of the document, that is none. Keys that begin with
/// `x-` are everybody's own.
pub fn check_keywords(schema: &Value, document: &Document, at: &str, errors: &mut Diagnostics) {
    check(schema, document, at, DEEPEST, errors);
}

fn check(schema: &Value, document: &Document, at: &str, depth: usize, errors: &mut Diagnostics) {
    let Value::Object(map) = schema else { return };
    if depth == 0 {
        return;
    }
    for key in map.keys() {
        let place = || format!("{at}/{}", escape_token(key));
        errors.0.extend(misspelt_extension(key).map(|unknown| unknown.at(document, &place(), Part::Key)));
    }
    for (key, value) in map.iter().filter(|(key, _)| !key.starts_with("x-")) {
        let place = format!("{at}/{}", escape_token(key));
        let Some((_, below)) = KEYWORDS.iter().find(|(known, _)| known == key) else {
            let unknown = Diagnostic::new(format!("JSON Schema has no keyword `{key}`"));
            let unknown =
                unknown.label("says nothing").suggest(key, KEYWORDS.iter().map(|(known, _)| *known));
            errors.push(unknown.at(document, &place, Part::Key));
            continue;
        };
        let format = value.as_str().filter(|name| key == "format" && !name.contains("{{"));
        if let Some(name) = format.filter(|name| !FORMATS.contains(name)) {
            let unknown = Diagnostic::new(format!("JSON Schema has no format `{name}`"));
            let unknown = unknown.suggest(name, FORMATS.iter().copied());
            errors.push(unknown.at(document, &place, Part::Value));
        }
        match (below, value) {
            (Below::One, one) => check(one, document, &place, depth - 1, errors),
            (Below::Many, Value::Array(many)) => {
                for (index, one) in many.iter().enumerate() {
                    check(one, document, &format!("{place}/{index}"), depth - 1, errors);
                }
            }
            (Below::Named, Value::Object(named)) => {
                for (name, one) in named {
                    check(one, document, &format!("{place}/{}", escape_token(name)), depth - 1, errors);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors_of(text: &str) -> String {
        let document = Document::parse("s.yaml", text).expect("YAML");
        let mut errors = Diagnostics::default();
        check_keywords(&document.value, &document, "", &mut errors);
        errors.to_string()
    }

    #[test]
    fn a_misspelt_keyword_is_found_wherever_a_schema_stands() {
        for (text, word, near, place) in [
            ("propertys: { a: {} }\n", "propertys", "properties", "s.yaml:1:1"),
            ("properties: { a: { tipe: string } }\n", "tipe", "type", "s.yaml:1:20"),
            ("anyOf: [{}, { minimun: 3 }]\n", "minimun", "minimum", "s.yaml:1:15"),
            ("items: { not: { requird: [a] } }\n", "requird", "required", "s.yaml:1:17"),
            ("$defs: { a: { patern: x } }\n", "patern", "pattern", "s.yaml:1:15"),
            ("format: data-time\n", "data-time", "date-time", "s.yaml:1:9"),
            ("items: { x-framepoof: {} }\n", "x-framepoof", "x-frameproof", "s.yaml:1:10"),
        ] {
            let shown = errors_of(text);
            for part in [&format!("`{word}`"), &format!("did you mean `{near}`?"), place] {
                assert!(shown.contains(part), "{part} is not in\n{shown}");
            }
        }
    }

    #[test]
    fn names_that_are_no_keywords_are_let_alone() {
        for text in [
            "properties: { propertys: { type: string }, format: { const: { minimun: 3 } } }\n",
            "x-own: { tipe: 1 }\nx-framework: 1\nx-frameproof: {}\nenum: [{ tipe: 1 }]\nrequired: [tipe]\ndefault: { tipe: 1 }\n",
            "additionalProperties: false\nitems: true\nformat: '{{format}}'\n",
            "patternProperties: { '^tipe': {} }\ndependentRequired: { tipe: [a] }\n",
        ] {
            assert_eq!(errors_of(text), "", "{text}");
        }
    }
}
