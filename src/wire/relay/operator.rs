//! What a mutant of the wire does to a message, or to one field of it.

use serde_json::{Value, json};

/// What is done to a message, or to one field of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// The message is not sent.
    Drop,
    /// It is sent twice.
    Duplicate,
    /// It is sent after the next one.
    Swap,
    /// It, and everything behind it, comes 300 ms late.
    Delay,
    /// It is sent after the message that ends its turn.
    PastTurn,
    /// The one before of its kind is sent in its place.
    Earlier,
    /// The other clients of its session get it, too.
    ToOtherClient,
    /// A client of another session gets it, too.
    ToOtherSession,
    /// The field is left out.
    Absent,
    /// It is null.
    Null,
    /// It is of another type.
    WrongType,
    /// It has the value that it had in the message before of this kind.
    EarlierValue,
    /// It has the value that a field of its name had last in a message of another kind.
    OtherMessageValue,
    /// It has the value that it had last in another session.
    OtherSessionValue,
    /// It is another of the values that its schema lists.
    OtherMember,
    /// A number is one more.
    OneMore,
    /// A number is one less.
    OneLess,
    /// An integer is no integer.
    Fraction,
    /// An integer is written with a fraction of zero.
    Float,
    /// A truth is the other one.
    Negated,
    /// A text is another one.
    OtherText,
    /// A text lacks its last character.
    Cut,
    /// A text lacks the white space at its ends.
    Trimmed,
    /// A text is empty.
    Empty,
    /// A text is in the other letter case.
    OtherCase,
    /// A text has the escapes of a JSON string, as if it had been written twice.
    JsonEscaped,
    /// A text has the entities of HTML.
    HtmlEscaped,
    /// A list or an object lacks its last element.
    Shorter,
}

/// The types of JSON Schema that an operator needs; none: any.
type Types = &'static [&'static str];

const ANY: Types = &[];
const INTEGER: Types = &["integer", "number"];
const TEXT: Types = &["string"];

/// Values that may stand in place of a field's.
#[derive(Debug, Default)]
pub(super) struct Others<'v> {
    /// What it was in the message before of its kind.
    pub earlier: Option<&'v Value>,
    /// What a field of its name was in a message of another kind.
    pub other_message: Option<Value>,
    /// What it was in another session.
    pub other_session: Option<Value>,
    /// What its schema lists.
    pub members: &'v [Value],
}

impl Operator {
    /// Those for whole messages, by name.
    pub const OF_MESSAGES: [(Self, &'static str); 8] = [
        (Self::Drop, "drop"),
        (Self::Duplicate, "duplicate"),
        (Self::Swap, "swap"),
        (Self::Delay, "delay"),
        (Self::PastTurn, "past-turn"),
        (Self::Earlier, "earlier"),
        (Self::ToOtherClient, "to-other-client"),
        (Self::ToOtherSession, "to-other-session"),
    ];

    /// Those for fields, by name, with the types of values that they change.
    pub const OF_FIELDS: [(Self, &'static str, Types); 20] = [
        (Self::Absent, "absent", ANY),
        (Self::Null, "null", ANY),
        (Self::WrongType, "wrong-type", ANY),
        (Self::EarlierValue, "earlier-value", ANY),
        (Self::OtherMessageValue, "other-message-value", &["string", "integer", "number", "boolean"]),
        (Self::OtherSessionValue, "other-session-value", ANY),
        (Self::OtherMember, "other-member", ANY),
        (Self::OneMore, "one-more", INTEGER),
        (Self::OneLess, "one-less", INTEGER),
        (Self::Fraction, "fraction", INTEGER),
        (Self::Float, "float", INTEGER),
        (Self::Negated, "negated", &["boolean"]),
        (Self::OtherText, "other-text", TEXT),
        (Self::Cut, "cut", TEXT),
        (Self::Trimmed, "trimmed", TEXT),
        (Self::Empty, "empty", TEXT),
        (Self::OtherCase, "other-case", TEXT),
        (Self::JsonEscaped, "json-escaped", TEXT),
        (Self::HtmlEscaped, "html-escaped", TEXT),
        (Self::Shorter, "shorter", &["array", "object"]),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let fields = Self::OF_FIELDS.iter().map(|(operator, name, _)| (operator, name));
        let mut all = Self::OF_MESSAGES.iter().map(|(operator, name)| (operator, name)).chain(fields);
        all.find(|(operator, _)| **operator == self).map_or("", |(_, name)| name)
    }

    /// The value in place of another; `None`: it has no such one.
    pub(super) fn changed(self, value: &Value, others: &Others<'_>) -> Option<Value> {
        let number = |by: i64| value.as_i64().and_then(|number| number.checked_add(by)).map(Value::from);
        let text = |other: fn(&str) -> String| value.as_str().map(|text| Value::from(other(text)));
        let changed = match self {
            Self::Null => Some(Value::Null),
            Self::WrongType => Some(if value.is_string() { json!(7) } else { json!("7") }),
            Self::EarlierValue => others.earlier.cloned(),
            Self::OtherMessageValue => others.other_message.clone(),
            Self::OtherSessionValue => others.other_session.clone(),
            Self::OtherMember => next_member(value, others.members),
            Self::OneMore => number(1),
            Self::OneLess => number(-1),
            Self::Fraction => value.as_i64().map(|number| json!(number as f64 + 0.5)),
            Self::Float => value.as_i64().map(|number| json!(number as f64)),
            Self::Negated => value.as_bool().map(|truth| json!(!truth)),
            Self::OtherText => text(|text| format!("{text}x")),
            Self::Cut => text(|text| text.chars().take(text.chars().count().saturating_sub(1)).collect()),
            Self::Trimmed => text(|text| text.trim().to_owned()),
            Self::Empty => text(|_| String::new()),
            Self::OtherCase => text(|text| match text.to_uppercase() {
                upper if upper == text => text.to_lowercase(),
                upper => upper,
            }),
            Self::JsonEscaped => text(json_escaped),
            Self::HtmlEscaped => text(html_escaped),
            Self::Shorter => shorter(value),
            _ => None,
        };
        changed.filter(|changed| changed != value)
    }
}

/// The member behind this one, in the order of the schema.
fn next_member(value: &Value, members: &[Value]) -> Option<Value> {
    let at = members.iter().position(|member| member == value).map_or(0, |at| at + 1);
    let mut round = members.iter().cycle().skip(at).take(members.len());
    round.find(|member| *member != value).cloned()
}

fn json_escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in Value::from(text).to_string().trim_matches('"').chars() {
        match c {
            c if c.is_ascii() => escaped.push(c),
            c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escaped += &format!("\\u{unit:04x}")),
        }
    }
    escaped
}

fn html_escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

fn shorter(value: &Value) -> Option<Value> {
    let mut value = value.clone();
    match &mut value {
        Value::Array(items) => drop(items.pop()?),
        Value::Object(fields) => {
            let last = fields.keys().next_back().cloned()?;
            fields.remove(&last);
        }
        _ => return None,
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_changed_as_the_operator_says() {
        let members = [json!("a"), json!("b"), json!("c")];
        let others = Others {
            earlier: Some(&json!(1)),
            other_message: Some(json!("m")),
            other_session: Some(json!("s")),
            members: &members,
        };
        for (operator, value, expected) in [
            (Operator::OtherMember, json!("a"), Some(json!("b"))),
            (Operator::OtherMember, json!("c"), Some(json!("a"))),
            (Operator::OtherMember, json!("unlisted"), Some(json!("a"))),
            (Operator::OtherMessageValue, json!("x"), Some(json!("m"))),
            (Operator::OtherMessageValue, json!("m"), None),
            (Operator::OtherSessionValue, json!("x"), Some(json!("s"))),
            (Operator::Fraction, json!(7), Some(json!(7.5))),
            (Operator::Float, json!(7), Some(json!(7.0))),
            (Operator::Float, json!("7"), None),
            (Operator::Trimmed, json!(" a b\n"), Some(json!("a b"))),
            (Operator::Trimmed, json!("a b"), None),
            (Operator::JsonEscaped, json!("say \"é\"\n"), Some(json!("say \\\"\\u00e9\\\"\\n"))),
            (Operator::JsonEscaped, json!("😀"), Some(json!("\\ud83d\\ude00"))),
            (Operator::JsonEscaped, json!("plain"), None),
            (Operator::HtmlEscaped, json!("a<b & 'c'"), Some(json!("a&lt;b &amp; &#39;c&#39;"))),
            (Operator::HtmlEscaped, json!("plain"), None),
        ] {
            assert_eq!(operator.changed(&value, &others), expected, "{operator:?} {value}");
        }
        assert_eq!(
            Operator::Float.changed(&json!(7), &others).map(|float| float.to_string()),
            Some("7.0".into())
        );
    }

    #[test]
    fn each_operator_has_a_name_of_its_own() {
        let fields = Operator::OF_FIELDS.iter().map(|(operator, name, _)| (*operator, *name));
        let all: Vec<_> = Operator::OF_MESSAGES.iter().copied().chain(fields).collect();
        let names: std::collections::BTreeSet<_> = all.iter().map(|(_, name)| name).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.iter().all(|(operator, name)| operator.name() == *name));
    }
}
