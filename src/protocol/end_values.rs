//! Which values the end of a connection can have, and what asks it for others: such a condition holds of no server, or of any.

use serde_json::{Value, json};

use super::lifecycle::END;
use crate::source::schema::Schema;
use crate::source::{escape_token, nearest};
use crate::trace::{Direction, may_be_sent};

/// The status codes that a server may send in a close frame (RFC 6455, 7.4).
const CODES: &str =
    "codes are 1000 to 1003, 1007 to 1014 and 3000 to 4999, or null where there is no close frame";

/// Something that no end of a connection has.
#[derive(Debug)]
pub(crate) struct EndMistake {
    /// JSON Pointer, from the condition on.
    pub at: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// Whose close frame a condition is about.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sender(Direction);

/// Values of a part of an end (`with`) that it cannot have. Names of its fields are not looked at.
pub(crate) fn mistakes_of_part(part: &Value, dir: Direction) -> Vec<EndMistake> {
    let sender = Sender(if part["by"] == json!("client") { Direction::Send } else { dir });
    let mut found = Vec::new();
    for (field, value) in part.as_object().into_iter().flatten() {
        sender.value(field, value, format!("/{}", escape_token(field)), &mut found);
    }
    found
}

/// What a JSON Schema of an end asks for that it does not have.
pub(crate) fn mistakes_of_schema(schema: &Value, dir: Direction) -> Vec<EndMistake> {
    let mut found = Vec::new();
    let by = schema.pointer("/properties/by/const");
    let sender = Sender(if by == Some(&json!("client")) { Direction::Send } else { dir });
    sender.whole(schema, "", &mut found);
    found
}

/// A close code that the server cannot send, and what to do.
pub(crate) fn mistake_of_code(code: u16) -> Option<(String, &'static str)> {
    (!may_be_sent(code)).then(|| (format!("no server may send the close code {code} (RFC 6455, 7.4)"), CODES))
}

impl Sender {
    fn value(self, field: &str, value: &Value, at: String, found: &mut Vec<EndMistake>) {
        if value.as_str().is_some_and(|text| text.contains("{{")) {
            return;
        }
        let (message, hint) = match field {
            "code" => match value.as_u64().and_then(|code| u16::try_from(code).ok()) {
                Some(_) if self.0 == Direction::Send => return,
                Some(code) => match mistake_of_code(code) {
                    Some(mistake) => mistake,
                    None => return,
                },
                None if value.is_null() => return,
                None => (format!("{value} is no close code"), CODES),
            },
            "by" if !["client", "server"].map(Value::from).contains(value) => {
                (format!("no connection is ended by {value}"), "`by` is `server` or `client`")
            }
            "clean" if !value.is_boolean() => {
                (format!("`clean` is never {value}"), "`clean` is true (there was a close frame) or false")
            }
            "reason" if !value.is_string() && !value.is_null() => (
                format!("a reason is never {value}"),
                "`reason` is a text, or null where there is no close frame",
            ),
            _ => return,
        };
        found.push(EndMistake { at, message, hint: hint.to_owned() });
    }

    /// A schema of the whole end.
    fn whole(self, schema: &Value, at: &str, found: &mut Vec<EndMistake>) {
        let unknown = |field: &str, at: String, found: &mut Vec<EndMistake>| {
            let near = nearest(field, END).map(|near| format!("did you mean `{near}`?"));
            let hint = near.unwrap_or_else(|| format!("it has `{}`", END.join("`, `")));
            found.push(EndMistake { at, message: format!("the end of a connection has no `{field}`"), hint });
        };
        for (field, below) in schema["properties"].as_object().into_iter().flatten() {
            let at = format!("{at}/properties/{}", escape_token(field));
            // `false`: the field must not be there.
            if !END.contains(&field.as_str()) {
                if below != &Value::Bool(false) {
                    unknown(field, at, found);
                }
                continue;
            }
            let before = found.len();
            self.field(field, below, &at, found);
            if found.len() == before {
                self.possible(field, below, at, found);
            }
        }
        for (index, field) in schema["required"].as_array().into_iter().flatten().enumerate() {
            if let Some(field) = field.as_str().filter(|field| !END.contains(field)) {
                unknown(field, format!("{at}/required/{index}"), found);
            }
        }
        for (at, below) in parts(schema, at) {
            self.whole(below, &at, found);
        }
    }

    /// The constants of a schema of one field.
    fn field(self, field: &str, schema: &Value, at: &str, found: &mut Vec<EndMistake>) {
        if let Some(value) = schema.get("const") {
            self.value(field, value, format!("{at}/const"), found);
        }
        for (index, value) in schema["enum"].as_array().into_iter().flatten().enumerate() {
            self.value(field, value, format!("{at}/enum/{index}"), found);
        }
        for (at, below) in parts(schema, at) {
            self.field(field, below, &at, found);
        }
    }

    /// Some value that the field can have must satisfy its schema.
    fn possible(self, field: &str, schema: &Value, at: String, found: &mut Vec<EndMistake>) {
        if !crate::template::is_constant(schema) {
            return;
        }
        let Ok(compiled) = Schema::new(schema) else { return };
        let mut codes = (0..=u16::MAX).filter(|code| self.0 == Direction::Send || may_be_sent(*code));
        let hint = match field {
            "code" if !codes.any(|code| compiled.is_valid(&json!(code))) => CODES,
            "clean" if ![true, false].iter().any(|clean| compiled.is_valid(&json!(clean))) => {
                "`clean` is true or false"
            }
            "by" if !["server", "client"].iter().any(|by| compiled.is_valid(&json!(by))) => {
                "`by` is `server` or `client`"
            }
            "reason" if schema.get("type").is_some_and(|kind| !names_text(kind)) => {
                "`reason` is a text, or null where there is no close frame"
            }
            _ => return,
        };
        if compiled.is_valid(&Value::Null) && field != "clean" && field != "by" {
            return;
        }
        let message = format!("no `{field}` of the end of a connection satisfies this");
        found.push(EndMistake { at, message, hint: hint.to_owned() });
    }
}

fn names_text(kind: &Value) -> bool {
    let is_text = |kind: &Value| matches!(kind.as_str(), Some("string"));
    kind.as_array().map_or_else(|| is_text(kind), |kinds| kinds.iter().any(is_text))
}

/// The schemas of the same value within a schema, each with its place.
fn parts<'s>(schema: &'s Value, at: &str) -> Vec<(String, &'s Value)> {
    let mut found = Vec::new();
    for key in ["not", "if", "then", "else"] {
        found.extend(schema.get(key).map(|below| (format!("{at}/{key}"), below)));
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let list = schema.get(key).and_then(Value::as_array).into_iter().flatten().enumerate();
        found.extend(list.map(|(index, below)| (format!("{at}/{key}/{index}"), below)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_end_can_have_is_asked_for() {
        for (part, wrong) in [
            (json!({ "code": 1000, "reason": "", "clean": true, "by": "server" }), 0),
            (json!({ "code": null, "reason": null, "clean": false, "by": "client" }), 0),
            (json!({ "code": "{{code}}", "by": "{{by}}" }), 0),
            (json!({ "code": 1006, "by": "client" }), 0),
            (json!({ "code": 1006 }), 1),
            (json!({ "code": 2000 }), 1),
            (json!({ "code": 99999 }), 1),
            (json!({ "code": "4400" }), 1),
            (json!({ "code": 4400.5 }), 1),
            (json!({ "by": "sever", "clean": "yes", "reason": 7 }), 3),
        ] {
            assert_eq!(mistakes_of_part(&part, Direction::Recv).len(), wrong, "{part}");
        }
        for (schema, wrong) in [
            (json!({ "properties": { "code": { "enum": [1000, 4400] }, "reason": { "minLength": 1 } } }), 0),
            (
                json!({ "required": ["code"], "properties": { "code": { "minimum": 4000, "maximum": 4999 } } }),
                0,
            ),
            (json!({ "properties": { "code": { "type": "null" }, "cause": false } }), 0),
            (json!({ "properties": { "cod": { "const": 1000 } } }), 1),
            (json!({ "anyOf": [{ "required": ["cod"] }, { "properties": { "by": { "const": "me" } } }] }), 2),
            (json!({ "properties": { "code": { "type": "integer", "minimum": 5000 } } }), 1),
            (json!({ "properties": { "code": { "type": "string" } } }), 1),
            (json!({ "properties": { "code": { "not": { "const": 1006 } } } }), 1),
            (json!({ "properties": { "code": { "enum": [1000, 2000] } } }), 1),
            (json!({ "properties": { "reason": { "type": "integer" } } }), 1),
            (json!({ "properties": { "by": { "const": "client" }, "code": { "const": 1005 } } }), 0),
        ] {
            let found = mistakes_of_schema(&schema, Direction::Recv);
            assert_eq!(found.len(), wrong, "{schema}: {found:?}");
        }
    }
}
