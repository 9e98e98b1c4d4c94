//! Pointers to places that no message has. Such a pointer finds nothing, ever: what it is part of has no effect.

use serde_json::{Map, Value};

use super::extension::Extension;
use super::path::INVARIANTS;
use super::{Matcher, Message, OneOrMany, Pattern, Protocol};
use crate::source::{
    Diagnostic, Document, Part, escape_token, forms, forms_of_field, forms_of_items, nearest, read, shape_of,
    unescape_token,
};
use crate::trace::Direction;

/// Of a pointer's field in the schema of the format: what it says when the pointer is not one into a message.
const FREE: &str = "x-pointer";
/// How many schemas deep a place is followed; deeper ones are taken for places that exist.
const MAX_DEPTH: usize = 40;

/// Pointers of a protocol file to places that, by their schemas, none of the messages has that they are about.
pub(super) fn unknown_places(protocol: &Protocol, api: &Document, document: &Value) -> Vec<Diagnostic> {
    let Some(extension) = document.get("x-frameproof") else { return Vec::new() };
    let Ok(shape) = shape_of::<Extension>() else { return Vec::new() };
    let schema = &shape.text;
    let mut search = Search { protocol, api, schema, found: Vec::new() };
    let about = About { messages: (0..protocol.messages.len()).collect(), of_rule: false };
    search.value(extension, "/x-frameproof", &forms(schema, vec![schema]), &about);
    search.found
}

/// The messages that pointers are about, by their indices.
#[derive(Clone)]
struct About {
    messages: Vec<usize>,
    /// They are all of a monitor.
    of_rule: bool,
}

struct Search<'s> {
    protocol: &'s Protocol,
    api: &'s Document,
    schema: &'s Value,
    found: Vec<Diagnostic>,
}

impl<'s> Search<'s> {
    fn value(&mut self, value: &Value, at: &str, schemas: &[&'s Value], about: &About) {
        match value {
            Value::String(pointer) if refers_to(schemas, "Pointer") => self.pointer(pointer, at, about),
            Value::Object(map) => {
                let about = self.about(map, at, schemas).unwrap_or_else(|| about.clone());
                for (key, value) in map {
                    let at = format!("{at}/{}", escape_token(key));
                    let below = forms_of_field(self.schema, schemas, key);
                    // Patches are looked at where they are applied.
                    let is_patch =
                        ["/x-frameproof/readings", "/x-frameproof/dialects"].contains(&at.as_str());
                    if !is_patch && !below.iter().any(|schema| schema.get(FREE).is_some()) {
                        self.value(value, &at, &below, &about);
                    }
                }
            }
            Value::Array(items) => {
                let below = forms_of_items(self.schema, schemas);
                for (index, item) in items.iter().enumerate() {
                    self.value(item, &format!("{at}/{index}"), &below, about);
                }
            }
            _ => {}
        }
    }

    /// What the pointers in a map are about, if it says so: all messages of a monitor, or the map's own.
    fn about(&self, map: &Map<String, Value>, at: &str, schemas: &[&'s Value]) -> Option<About> {
        let mut messages = Vec::new();
        let rule = at.strip_prefix(INVARIANTS).is_some_and(|rest| rest.ends_with("/monitor"));
        // What pairs messages can stand in any of those that a monitor names.
        if at
            .rsplit_once('/')
            .is_some_and(|(above, _)| above.starts_with(INVARIANTS) && above.ends_with("/monitor"))
        {
            return None;
        }
        if rule {
            self.patterns(&Value::Object(map.clone()), schemas, &mut messages);
        } else if let Some(own) = map.get("message").or_else(|| map.get("of")) {
            let field = |schema: &&'s Value| {
                let fields = schema.get("properties")?;
                fields.get("message").or_else(|| fields.get("of"))
            };
            let field = forms(self.schema, schemas.iter().filter_map(field).collect());
            self.patterns(own, &field, &mut messages);
        }
        (!messages.is_empty()).then_some(About { messages, of_rule: rule })
    }

    /// The messages of all patterns in a value.
    fn patterns(&self, value: &Value, schemas: &[&'s Value], messages: &mut Vec<usize>) {
        if refers_to(schemas, "Pattern") {
            let matcher = read::<Pattern>(value)
                .ok()
                .and_then(|pattern| Matcher::of_connection(&pattern, self.protocol).ok());
            for one in matcher.iter().flat_map(|matcher| matcher.alternatives()) {
                let all = || (0..self.protocol.messages.len()).collect();
                messages.extend(one.messages().map_or_else(all, <[usize]>::to_vec));
            }
            return;
        }
        if refers_to(schemas, "OneOrMany")
            && let Ok(names) = read::<OneOrMany>(value)
        {
            let index = |name: &String| {
                let both = [Direction::Send, Direction::Recv];
                both.into_iter().find_map(|direction| self.protocol.index_of(name, direction))
            };
            messages.extend(names.as_slice().iter().filter_map(index));
            return;
        }
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    self.patterns(value, &forms_of_field(self.schema, schemas, key), messages);
                }
            }
            Value::Array(items) => {
                let below = forms_of_items(self.schema, schemas);
                items.iter().for_each(|item| self.patterns(item, &below, messages));
            }
            _ => {}
        }
    }

    fn pointer(&mut self, pointer: &str, at: &str, about: &About) {
        let tokens: Vec<String> = pointer.split('/').skip(1).map(unescape_token).collect();
        // Parts of messages, and events of connections, have no schema here.
        let known: Option<Vec<&Message>> =
            about.messages.iter().map(|index| self.protocol.messages.get(*index)).collect();
        let Some(known) = known else { return };
        if known.iter().any(|message| message.may_have(&tokens)) {
            return;
        }
        let fields: Vec<String> = known.iter().flat_map(|message| message.fields()).collect();
        let hint = match nearest(pointer, fields.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "correct the pointer, or declare the field in the schema of the message".to_owned(),
        };
        let of = match (&known[..], about.of_rule) {
            ([one], _) => format!("`{}` has", one.name),
            (_, true) => "no message of this monitor has".to_owned(),
            _ => "none of these messages has".to_owned(),
        };
        let message = match known.len() {
            1 => format!("by its schema, {of} nothing at {pointer}"),
            _ => format!("by their schemas, {of} anything at {pointer}"),
        };
        self.found.push(Diagnostic::note(message).hint(hint).at(self.api, at, Part::Value));
    }
}

impl Message {
    /// Whether the message may have something at a place, as far as its schema says what it has.
    pub(crate) fn may_have(&self, place: &[String]) -> bool {
        may_have(&self.payload, &self.payload, place, 0)
    }
}

/// Whether a definition of the format is among the forms of a value.
fn refers_to(schemas: &[&Value], name: &str) -> bool {
    schemas.iter().any(|schema| {
        let target = schema.get("$ref").and_then(Value::as_str);
        target.is_some_and(|target| target.rsplit('/').next() == Some(name))
    })
}

/// Whether values that satisfy a schema may have a place, as far as the schema says what they have. `*`: any element of a list.
fn may_have(schema: &Value, root: &Value, place: &[String], depth: usize) -> bool {
    let Some((name, rest)) = place.split_first() else { return true };
    if depth > MAX_DEPTH {
        return true;
    }
    let follow = |schema: &Value, place: &[String]| may_have(schema, root, place, depth + 1);
    let mut says = false;
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        says = true;
        if root.pointer(target.trim_start_matches('#')).is_none_or(|target| follow(target, place)) {
            return true;
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for branch in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            // A branch that only adds a condition says nothing of what there is.
            if is_about_shape(branch) {
                says = true;
                if follow(branch, place) {
                    return true;
                }
            }
        }
    }
    for key in ["then", "else"] {
        if let Some(branch) = schema.get(key).filter(|branch| is_about_shape(branch)) {
            says = true;
            if follow(branch, place) {
                return true;
            }
        }
    }
    if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
        says = true;
        let others = schema.get("additionalProperties").filter(|others| others.is_object());
        let below = fields.get(name).or(others.filter(|others| **others != Value::Object(Map::new())));
        if schema.get("patternProperties").is_some() || below.is_some_and(|below| follow(below, rest)) {
            return true;
        }
    }
    // Values of a map of any names.
    if schema.get("properties").is_none()
        && let Some(others) =
            schema.get("additionalProperties").filter(|others| **others != Value::Bool(false))
    {
        says = true;
        if follow(others, rest) {
            return true;
        }
    }
    if ["items", "prefixItems"].iter().any(|key| schema.get(*key).is_some()) {
        says = true;
        let is_element = name == "*" || name.bytes().all(|byte| byte.is_ascii_digit());
        if is_element && schema.get("items").is_none_or(|items| follow(items, rest)) {
            return true;
        }
    }
    if says {
        return false;
    }
    let kinds = schema.get("type");
    let is_scalar = |kind: &Value| !matches!(kind.as_str(), Some("object" | "array"));
    match kinds {
        Some(Value::Array(kinds)) => !kinds.iter().all(is_scalar),
        Some(kind) => !is_scalar(kind),
        None => {
            schema.get("const").is_none() && schema.get("enum").is_none() && schema != &Value::Bool(false)
        }
    }
}

/// Whether a schema says what a value has, and not only how a part of it must be.
fn is_about_shape(schema: &Value) -> bool {
    ["$ref", "properties", "items", "prefixItems", "type", "anyOf", "oneOf", "allOf", "then", "else"]
        .iter()
        .any(|key| schema.get(*key).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_is_unknown_only_where_a_schema_lists_others() {
        let root = json!({ "components": { "schemas": { "List": { "type": "array", "items": { "properties": { "id": {} } } } } } });
        for (schema, place, expected) in [
            (json!({ "type": "object" }), "/a/b", true),
            (json!({}), "/a", true),
            (json!({ "type": "object", "properties": { "a": { "type": "string" } } }), "/a", true),
            (json!({ "type": "object", "properties": { "a": { "type": "string" } } }), "/a/b", false),
            (json!({ "type": "object", "properties": { "a": { "type": "string" } } }), "/b", false),
            (
                json!({ "properties": { "a": {} }, "additionalProperties": { "type": "object" } }),
                "/b/c",
                true,
            ),
            (json!({ "properties": { "a": {} }, "patternProperties": { "^x": {} } }), "/b", true),
            (json!({ "properties": { "l": { "$ref": "#/components/schemas/List" } } }), "/l/0/id", true),
            (json!({ "properties": { "l": { "$ref": "#/components/schemas/List" } } }), "/l/*/id", true),
            (json!({ "properties": { "l": { "$ref": "#/components/schemas/List" } } }), "/l/id", false),
            (json!({ "properties": { "l": { "$ref": "#/components/schemas/List" } } }), "/l/0/ib", false),
            (
                json!({ "properties": { "k": {} }, "if": {}, "then": { "properties": { "a": {} } } }),
                "/a",
                true,
            ),
            (
                json!({ "properties": { "k": {} }, "if": {}, "then": { "properties": { "a": {} } } }),
                "/b",
                false,
            ),
            (
                json!({ "properties": { "k": {} }, "allOf": [{ "if": {}, "then": { "properties": { "a": {} } } }] }),
                "/a",
                true,
            ),
            (
                json!({ "properties": { "k": {} }, "allOf": [{ "if": {}, "then": { "properties": { "a": {} } } }] }),
                "/b",
                false,
            ),
            (json!({ "items": {}, "additionalProperties": { "type": "object" } }), "/a/b", true),
            (json!({ "additionalProperties": { "type": "string" } }), "/a/b", false),
            (json!({ "oneOf": [{ "properties": { "a": {} } }, { "properties": { "b": {} } }] }), "/b", true),
            (json!({ "oneOf": [{ "properties": { "a": {} } }, { "properties": { "b": {} } }] }), "/c", false),
            (json!({ "properties": { "a": {} }, "anyOf": [{ "required": ["a"] }] }), "/c", false),
            (json!({ "properties": { "a": { "type": ["object", "null"] } } }), "/a/x", true),
            (json!({ "properties": { "a": { "const": 7 } } }), "/a/x", false),
        ] {
            let tokens: Vec<String> = place.split('/').skip(1).map(ToOwned::to_owned).collect();
            assert_eq!(may_have(&schema, &root, &tokens, 0), expected, "{schema} {place}");
        }
    }

    #[test]
    fn nothing_that_ships_points_nowhere() {
        use crate::protocol::LoadOptions;
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let protocols =
            std::fs::read_dir(root.join("protocols")).expect("a folder").flatten().map(|one| one.path());
        let others =
            ["examples/mcp/protocol", "examples/graphql-transport-ws/protocol", "templates/init/protocol"];
        let likes =
            ["greeting", "rpc", "subscriptions"].map(|like| format!("templates/like/{like}/protocol"));
        let others =
            others.into_iter().map(|one| root.join(one)).chain(likes.iter().map(|one| root.join(one)));
        for folder in protocols.chain(others) {
            let protocol =
                Protocol::load(&folder, &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
            let told = crate::source::Diagnostics(protocol.unknown_places().to_vec());
            assert!(told.0.is_empty(), "{}\n{told}", folder.display());
        }
    }
}
