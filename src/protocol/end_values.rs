//! Which values the end of a connection, or an HTTP answer, can have, and what asks it for others: such a condition holds of no server, or
//! of any.

use serde_json::{Value, json};

use super::Protocol;
use super::lifecycle::END;
use crate::source::schema::Schema;
use crate::source::{escape_token, nearest, unescape_token};
use crate::trace::{Direction, may_be_sent};

/// What a step can ask of an HTTP answer, that of a refused connection among them.
pub(crate) const HTTP_ANSWER: [&str; 3] = ["status", "headers", "body"];

/// The status codes that a server may send in a close frame (RFC 6455, 7.4).
const CODES: &str =
    "codes are 1000 to 1003, 1007 to 1014 and 3000 to 4999, or null where there is no close frame";

/// The status codes of HTTP (RFC 9110, 15).
const STATUS: &str = "a status is 100 to 599, or null where there is no HTTP answer";
const HEADERS: &str = "`headers` maps names in lower case to texts";
const BODY: &str = "`body` is a text";

/// Something that is never there.
#[derive(Debug)]
pub(crate) struct ValueMistake {
    /// JSON Pointer, from the condition on.
    pub at: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// What a condition is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValuesOf {
    /// The end of a connection, with the close frame of this side.
    End(Direction),
    /// An HTTP answer.
    Answer,
}

impl ValueMistake {
    /// The field of the whole that a mistake in a condition is about.
    pub fn field(&self, condition: &Value) -> Option<String> {
        let mut tokens = self.at.split('/').skip(1).map(unescape_token);
        while let Some(token) = tokens.next() {
            match token.as_str() {
                "properties" => return tokens.next(),
                "required" => return condition.pointer(&self.at)?.as_str().map(str::to_owned),
                "not" | "if" | "then" | "else" => {}
                "allOf" | "anyOf" | "oneOf" => drop(tokens.next()),
                // A part names its fields itself.
                _ => return Some(token),
            }
        }
        None
    }
}

impl Protocol {
    /// Whether a message of the server may have a field, as far as its schema says what it has; `None`: it is no such message.
    pub(crate) fn may_have_field(&self, name: &str, field: &str) -> Option<bool> {
        let message = self.messages.get(self.index_of(name, Direction::Recv)?)?;
        Some(message.may_have(&[field.to_owned()]))
    }
}

/// A close code that the server cannot send, and what to do.
pub(crate) fn mistake_of_code(code: u16) -> Option<(String, &'static str)> {
    (!may_be_sent(code)).then(|| (format!("no server may send the close code {code} (RFC 6455, 7.4)"), CODES))
}

impl ValuesOf {
    /// Values of a part (`with`) that it cannot have. Names of its fields are not looked at.
    pub fn mistakes_of_part(self, part: &Value) -> Vec<ValueMistake> {
        let own = self.sent_by(&part["by"]);
        let mut found = Vec::new();
        for (field, value) in part.as_object().into_iter().flatten() {
            own.value(field, value, format!("/{}", escape_token(field)), &mut found);
        }
        found
    }

    /// What a JSON Schema asks for that it does not have.
    pub fn mistakes_of_schema(self, schema: &Value) -> Vec<ValueMistake> {
        let mut found = Vec::new();
        let by = schema.pointer("/properties/by/const").unwrap_or(&Value::Null);
        self.sent_by(by).whole(schema, "", &mut found);
        found
    }

    /// A client may send what a server may not: the condition says by whom it is.
    fn sent_by(self, by: &Value) -> Self {
        match self {
            Self::End(_) if by == "client" => Self::End(Direction::Send),
            other => other,
        }
    }

    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::End(_) => &END,
            Self::Answer => &HTTP_ANSWER,
        }
    }

    /// What it is called.
    fn title(self) -> &'static str {
        match self {
            Self::End(_) => "the end of a connection",
            Self::Answer => "an HTTP answer",
        }
    }

    fn value(self, field: &str, value: &Value, at: String, found: &mut Vec<ValueMistake>) {
        if value.as_str().is_some_and(|text| text.contains("{{")) {
            return;
        }
        let (message, hint) = match self {
            Self::End(dir) => match wrong_end(field, value, dir) {
                Some(mistake) => mistake,
                None => return,
            },
            Self::Answer => match (field, value) {
                ("status", Value::Null) => return,
                ("status", value) if !is_status(value) => (format!("{value} is no HTTP status"), STATUS),
                ("headers", Value::Object(map)) => {
                    for (name, value) in map.iter().filter(|(_, value)| !value.is_string()) {
                        let message = format!("a header is never {value}");
                        let at = format!("{at}/{}", escape_token(name));
                        found.push(ValueMistake { at, message, hint: HEADERS.to_owned() });
                    }
                    return;
                }
                ("headers", value) => (format!("`headers` is never {value}"), HEADERS),
                ("body", value) if !value.is_string() => (format!("a body is never {value}"), BODY),
                _ => return,
            },
        };
        found.push(ValueMistake { at, message, hint: hint.to_owned() });
    }

    /// A schema of the whole.
    fn whole(self, schema: &Value, at: &str, found: &mut Vec<ValueMistake>) {
        let unknown = |field: &str, at: String, found: &mut Vec<ValueMistake>| {
            let known = self.fields();
            let near = nearest(field, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            let hint = near.unwrap_or_else(|| format!("it has `{}`", known.join("`, `")));
            found.push(ValueMistake { at, message: format!("{} has no `{field}`", self.title()), hint });
        };
        for (field, below) in schema["properties"].as_object().into_iter().flatten() {
            let at = format!("{at}/properties/{}", escape_token(field));
            // `false`: the field must not be there.
            if !self.fields().contains(&field.as_str()) {
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
            if let Some(field) = field.as_str().filter(|field| !self.fields().contains(field)) {
                unknown(field, format!("{at}/required/{index}"), found);
            }
        }
        for (at, below) in parts(schema, at) {
            self.whole(below, &at, found);
        }
    }

    /// The constants of a schema of one field.
    fn field(self, field: &str, schema: &Value, at: &str, found: &mut Vec<ValueMistake>) {
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
    fn possible(self, field: &str, schema: &Value, at: String, found: &mut Vec<ValueMistake>) {
        if !crate::template::is_constant(schema) {
            return;
        }
        let Ok(compiled) = Schema::new(schema) else { return };
        let none_of = |values: &[Value]| !values.iter().any(|value| compiled.is_valid(value));
        let lacks_text = || schema.get("type").is_some_and(|kind| !names_text(kind));
        let hint = match (self, field) {
            (Self::End(dir), "code") => {
                let mut codes = (0..=u16::MAX).filter(|code| dir == Direction::Send || may_be_sent(*code));
                if codes.any(|code| compiled.is_valid(&json!(code))) {
                    return;
                }
                CODES
            }
            (_, "clean") if none_of(&[json!(true), json!(false)]) => "`clean` is true or false",
            (_, "by") if none_of(&[json!("server"), json!("client")]) => "`by` is `server` or `client`",
            (_, "reason") if lacks_text() => "`reason` is a text, or null where there is no close frame",
            (_, "status") if !(100..600_u16).any(|status| compiled.is_valid(&json!(status))) => STATUS,
            (_, "body") if lacks_text() => BODY,
            _ => return,
        };
        if compiled.is_valid(&Value::Null) && !["clean", "by", "body"].contains(&field) {
            return;
        }
        let message = format!("no `{field}` of {} satisfies this", self.title());
        found.push(ValueMistake { at, message, hint: hint.to_owned() });
    }
}

/// Whether a value is a status of HTTP.
fn is_status(value: &Value) -> bool {
    value.as_u64().is_some_and(|status| (100..600).contains(&status))
}

/// A value that the end of a connection does not have in a field, and what it has.
fn wrong_end(field: &str, value: &Value, dir: Direction) -> Option<(String, &'static str)> {
    match field {
        "code" => match value.as_u64().and_then(|code| u16::try_from(code).ok()) {
            Some(_) if dir == Direction::Send => None,
            Some(code) => mistake_of_code(code),
            None if value.is_null() => None,
            None => Some((format!("{value} is no close code"), CODES)),
        },
        "by" if !["client", "server"].map(Value::from).contains(value) => {
            Some((format!("no connection is ended by {value}"), "`by` is `server` or `client`"))
        }
        "clean" if !value.is_boolean() => {
            Some((format!("`clean` is never {value}"), "`clean` is true (there was a close frame) or false"))
        }
        "reason" if !value.is_string() && !value.is_null() => {
            let hint = "`reason` is a text, or null where there is no close frame";
            Some((format!("a reason is never {value}"), hint))
        }
        _ => None,
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
            assert_eq!(ValuesOf::End(Direction::Recv).mistakes_of_part(&part).len(), wrong, "{part}");
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
            let found = ValuesOf::End(Direction::Recv).mistakes_of_schema(&schema);
            assert_eq!(found.len(), wrong, "{schema}: {found:?}");
        }
    }

    #[test]
    fn only_what_an_http_answer_can_have_is_asked_for() {
        for (part, wrong) in [
            (
                json!({ "status": 401, "headers": { "www-authenticate": "Bearer", "x": "{{x}}" }, "body": "" }),
                0,
            ),
            (json!({ "status": null }), 0),
            (json!({ "status": "{{status}}", "headers": "{{headers}}" }), 0),
            (json!({ "status": 4401 }), 1),
            (json!({ "status": 99 }), 1),
            (json!({ "status": "401" }), 1),
            (json!({ "headers": { "retry-after": 5 } }), 1),
            (json!({ "headers": [], "body": null }), 2),
        ] {
            assert_eq!(ValuesOf::Answer.mistakes_of_part(&part).len(), wrong, "{part}");
        }
        for (schema, wrong) in [
            (json!({ "required": ["status"], "properties": { "status": { "enum": [401, 403, null] } } }), 0),
            (json!({ "properties": { "status": { "minimum": 400, "maximum": 499 }, "code": false } }), 0),
            (json!({ "properties": { "status": { "type": "null" }, "body": { "pattern": "x" } } }), 0),
            (json!({ "properties": { "status": { "const": 4401 } } }), 1),
            (json!({ "properties": { "status": { "minimum": 600, "type": "integer" } } }), 1),
            (json!({ "properties": { "status": { "type": "string" } } }), 1),
            (json!({ "properties": { "body": { "type": "object" } } }), 1),
            (json!({ "anyOf": [{ "required": ["code"] }, { "properties": { "statu": {} } }] }), 2),
        ] {
            let found = ValuesOf::Answer.mistakes_of_schema(&schema);
            assert_eq!(found.len(), wrong, "{schema}: {found:?}");
        }
    }

    #[test]
    fn a_mistake_names_its_field() {
        for (condition, field) in [
            (json!({ "properties": { "code": { "const": 1006 } } }), "code"),
            (json!({ "anyOf": [{ "not": { "required": ["kind"] } }] }), "kind"),
            (json!({ "if": { "properties": { "kind": {} } } }), "kind"),
        ] {
            let found = ValuesOf::End(Direction::Recv).mistakes_of_schema(&condition);
            assert_eq!(found[0].field(&condition).as_deref(), Some(field), "{condition}");
        }
        let part = json!({ "code": 1006 });
        let found = ValuesOf::End(Direction::Recv).mistakes_of_part(&part);
        assert_eq!(found[0].field(&part).as_deref(), Some("code"));
    }
}
