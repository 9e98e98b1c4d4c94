//! Other names of keys. A YAML 1.1 reader takes the key `on` for the truth value, so the keys of our files have names that it does not;
//! files that were written with `on` are read as if they had the new name.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::forms::{forms, forms_of_field, forms_of_items};
use super::{Diagnostic, Diagnostics, Document, Part, escape_token};

/// Where the schema of a field says what else it may be called.
pub const SYNONYM: &str = "x-synonym";

/// Gives keys their own names, as a JSON Schema says.
pub(crate) struct Renamer<'s> {
    schema: &'s Value,
    /// By the JSON Pointer of a value: the key as it is written.
    written: HashMap<String, String>,
    /// Pointers of maps that have a key and its synonym.
    doubled: Vec<(String, String, String)>,
}

impl<'s> Renamer<'s> {
    pub fn new(schema: &'s Value) -> Self {
        Self { schema, written: HashMap::new(), doubled: Vec::new() }
    }

    /// Renames the keys in a value that the schema is about. `at`: where it stands in its document.
    pub fn rename(&mut self, value: &mut Value, at: &str) {
        self.value(value, at, &forms(self.schema, vec![self.schema]));
    }

    fn value(&mut self, value: &mut Value, at: &str, schemas: &[&'s Value]) {
        match value {
            Value::Object(map) => {
                self.keys(map, at, schemas);
                for (key, value) in map {
                    let at = format!("{at}/{}", escape_token(key));
                    let below = forms_of_field(self.schema, schemas, key);
                    self.value(value, &at, &below);
                }
            }
            Value::Array(items) => {
                let below = forms_of_items(self.schema, schemas);
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(item, &format!("{at}/{index}"), &below);
                }
            }
            _ => {}
        }
    }

    fn keys(&mut self, map: &mut Map<String, Value>, at: &str, schemas: &[&'s Value]) {
        let fields = || schemas.iter().filter_map(|schema| schema.get("properties")?.as_object()).flatten();
        for (name, field) in fields() {
            let Some(synonym) = field.get(SYNONYM).and_then(Value::as_str) else { continue };
            // A map can be of several kinds, of which one may have such a field of its own.
            if !map.contains_key(synonym) || fields().any(|(name, _)| name == synonym) {
                continue;
            }
            if map.contains_key(name) {
                self.doubled.push((at.to_owned(), name.clone(), synonym.to_owned()));
                continue;
            }
            let own = std::mem::take(map).into_iter();
            map.extend(own.map(|(key, value)| (if key == synonym { name.clone() } else { key }, value)));
            self.written.insert(format!("{at}/{}", escape_token(name)), escape_token(synonym));
        }
    }

    /// The document with this value in place of its own, in which places are found although keys are called otherwise.
    ///
    /// # Errors
    /// A map with a key and its synonym.
    pub fn finish(self, document: &Document, value: Value) -> Result<Document, Diagnostics> {
        let mut errors = Diagnostics::default();
        for (at, name, synonym) in &self.doubled {
            let message = format!("`{synonym}` is another name of `{name}`, which is given, too");
            let at = format!("{at}/{}", escape_token(synonym));
            errors.push(Diagnostic::new(message).hint("remove one of them").at(document, &at, Part::Key));
        }
        errors.or(document.renamed(value, self.written))
    }
}

/// A JSON Schema by which synonyms are valid, too: what editors are given.
pub fn with_synonyms(mut schema: Value) -> Value {
    add(&mut schema);
    schema
}

fn add(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(add);
            let fields = map.get("properties").and_then(Value::as_object).into_iter().flatten();
            let named = fields.filter_map(|(name, field)| {
                Some((name.clone(), field.get(SYNONYM)?.as_str()?.to_owned(), field.clone()))
            });
            for (name, synonym, mut field) in named.collect::<Vec<_>>() {
                if let Some(field) = field.as_object_mut() {
                    field.remove(SYNONYM);
                    field.insert("deprecated".to_owned(), true.into());
                    field.insert("description".to_owned(), format!("Another name of `{name}`.").into());
                }
                if let Some(fields) = map.get_mut("properties").and_then(Value::as_object_mut) {
                    fields.insert(synonym.clone(), field);
                }
                let required = map.get_mut("required").and_then(Value::as_array_mut);
                let is_required = required.is_some_and(|required| {
                    let before = required.len();
                    required.retain(|one| *one != name.as_str());
                    required.len() < before
                });
                let key = if is_required { "oneOf" } else { "not" };
                let either = serde_json::json!([{ "required": [name] }, { "required": [synonym] }]);
                let both = serde_json::json!({ "required": [name, synonym] });
                map.entry(key).or_insert(if is_required { either } else { both });
            }
        }
        Value::Array(items) => items.iter_mut().for_each(add),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::source::schema::Schema;

    fn schema() -> Value {
        json!({
            "$ref": "#/$defs/Rules",
            "$defs": {
                "Rules": {
                    "type": "object",
                    "additionalProperties": false,
                    "properties": {
                        "first": { "anyOf": [{ "$ref": "#/$defs/At" }, { "type": "array", "items": { "$ref": "#/$defs/At" } }] },
                        "named": { "type": "object", "additionalProperties": { "$ref": "#/$defs/At" } },
                        "free": {},
                    },
                },
                "At": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["message"],
                    "properties": { "message": { "type": "string", "x-synonym": "on" }, "at": { "type": "string" } },
                },
            },
        })
    }

    #[test]
    fn only_keys_that_are_fields_are_renamed_and_found_where_they_are_written() {
        let text = "x:\n  first:\n    - { on: a, at: b }\n  named:\n    on: { on: c }\n  free: { on: d }\n";
        let document = Document::parse("d.yaml", text).expect("YAML");
        let schema = schema();
        let mut renamer = Renamer::new(&schema);
        let mut value = (*document.value).clone();
        renamer.rename(&mut value["x"], "/x");
        let read = renamer.finish(&document, value).expect("no doubled key");
        let expected = json!({ "x": {
            "first": [{ "message": "a", "at": "b" }], "named": { "on": { "message": "c" } }, "free": { "on": "d" },
        } });
        assert_eq!(*read.value, expected);
        for (at, word) in [("/x/first/0/message", "on"), ("/x/named/on/message", "on"), ("/x/free/on", "on")]
        {
            let span = read.span(at, Part::Key);
            assert_eq!(&text[span.start..span.end], word, "{at}");
        }
        assert_eq!(read.span("/x/named/on/message", Part::Value).start, text.find("c }").expect("it"));
    }

    #[test]
    fn both_names_at_once_are_refused() {
        let document = Document::parse("d.yaml", "first: { on: a, message: b }\n").expect("YAML");
        let schema = schema();
        let mut renamer = Renamer::new(&schema);
        let mut value = (*document.value).clone();
        renamer.rename(&mut value, "");
        let shown = renamer.finish(&document, value).expect_err("both").to_string();
        assert!(shown.contains("`on` is another name of `message`, which is given, too"), "{shown}");
        assert!(shown.contains("d.yaml:1:10"), "{shown}");
    }

    #[test]
    fn the_published_schema_takes_either_name() {
        let schema = Schema::new(&with_synonyms(schema())).expect("a schema");
        for (value, is_valid) in [
            (json!({ "first": { "message": "a" } }), true),
            (json!({ "first": { "on": "a" } }), true),
            (json!({ "first": { "on": "a", "message": "a" } }), false),
            (json!({ "first": { "at": "a" } }), false),
        ] {
            assert_eq!(schema.is_valid(&value), is_valid, "{value}");
        }
    }
}
