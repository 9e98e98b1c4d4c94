//! Values in messages, and in the JSON texts that stand in messages.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::frame::{Pointer, parse_within};

/// A value in a message: at a place, or in the JSON text that stands at a place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Spot {
    /// At this place.
    At(Pointer),
    /// In a text.
    In(InText),
}

/// A value in a JSON text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct InText {
    /// The place of the text. If the text is not JSON, the value is the text itself; without a text, there is no value.
    pub json: Pointer,
    /// The place in the parsed text; none: all of it.
    #[schemars(extend("x-pointer" = "free"))]
    pub at: Option<Pointer>,
}

impl Spot {
    /// The value.
    pub fn get<'v>(&self, body: &'v Value) -> Option<Cow<'v, Value>> {
        match self {
            Self::At(at) => at.get(body).map(Cow::Borrowed),
            Self::In(InText { json, at }) => {
                let text = json.get(body).and_then(Value::as_str)?;
                let held = parse_within(text).unwrap_or_else(|_| Value::from(text));
                match at {
                    None => Some(Cow::Owned(held)),
                    Some(at) => at.get(&held).cloned().map(Cow::Owned),
                }
            }
        }
    }

    /// As a pointer to the place that shows what is wrong.
    pub fn place(&self) -> &Pointer {
        match self {
            Self::At(at) | Self::In(InText { json: at, .. }) => at,
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(at) => at.fmt(f),
            Self::In(InText { json, at: None }) => write!(f, "the JSON in {json}"),
            Self::In(InText { json, at: Some(at) }) => write!(f, "{at} of the JSON in {json}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_stands_in_a_message_or_in_its_text() {
        let body = json!({ "a": { "b": 1 }, "t": "{\"c\":[2]}", "w": "no JSON", "n": 3 });
        for (spot, expected) in [
            (json!("/a/b"), Some(json!(1))),
            (json!({ "json": "/t" }), Some(json!({ "c": [2] }))),
            (json!({ "json": "/t", "at": "/c/0" }), Some(json!(2))),
            (json!({ "json": "/t", "at": "/d" }), None),
            (json!({ "json": "/w" }), Some(json!("no JSON"))),
            (json!({ "json": "/n" }), None),
            (json!("/x"), None),
        ] {
            let read: Spot = serde_json::from_value(spot.clone()).expect("a spot");
            assert_eq!(read.get(&body).map(Cow::into_owned), expected, "{spot}");
        }
    }
}
