//! Dialects: the same protocol, spelt otherwise on the wire.
//!
//! Scenarios, invariants and templates are written once, in the document's own spelling. In a dialect, what the harness sends is
//! respelt on its way out, and every frame is read back into the own spelling before it is judged; the wire log and the trace
//! keep what was on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::extension::{Ids, OneOrMany};
use super::{Protocol, is_subset};
use crate::frame::Pointer;
use crate::trace::Direction;

/// Which dialect is spoken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DialectChoice {
    /// Whichever the server understands: the document's own, unless it refuses that and takes another.
    #[default]
    Auto,
    /// The document's own.
    Own,
    /// The one of this name.
    Named(String),
}

impl From<&str> for DialectChoice {
    fn from(name: &str) -> Self {
        match name {
            "auto" => Self::Auto,
            "own" => Self::Own,
            name => Self::Named(name.to_owned()),
        }
    }
}

/// A way to spell the protocol's messages that servers are known to have. The names `auto` and `own` are reserved.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Dialect {
    /// What it is.
    pub about: String,
    /// The ambiguities to which it is an answer. Under their strict reading the dialect is not detected. For a server that uses it, their
    /// lenient reading applies to steps that are `tolerated` by them.
    #[serde(default)]
    pub answers: Ids,
    /// Subset of the message by which a server of this dialect refuses the first opening as the document spells it.
    pub refused: Value,
    /// The different spellings. Messages that are sent go through the list from first to last, ones that are read from last
    /// to first.
    pub spelling: Vec<Respelling>,
    /// A JSON Merge Patch on this document, for differences other than name and place.
    pub patch: Option<Value>,
}

/// A value with another place, and perhaps other values, in a dialect.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Respelling {
    /// The messages.
    #[schemars(extend("x-synonym" = "on"))]
    pub message: OneOrMany,
    /// Subset of the message, of fields that both spell alike.
    pub with: Option<Value>,
    /// The place of the value in the document's own spelling.
    pub ours: Pointer,
    /// Its place in the dialect.
    #[schemars(extend("x-pointer" = "free"))]
    pub theirs: Pointer,
    /// Values that have another form there; all others are unchanged.
    #[serde(default)]
    pub values: Vec<SpeltValue>,
}

/// A value in both spellings.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SpeltValue {
    /// In the document's own.
    pub ours: Value,
    /// In the dialect.
    pub theirs: Value,
}

impl Respelling {
    fn concerns(&self, name: &str, body: &Value) -> bool {
        self.message.as_slice().iter().any(|on| on == name)
            && self.with.as_ref().is_none_or(|with| is_subset(with, body))
    }

    fn to_theirs(&self, body: &mut Value) {
        let Some(value) = self.ours.take(body) else { return };
        let known = self.values.iter().find(|known| known.ours == value);
        self.theirs.put(body, known.map_or(value, |known| known.theirs.clone()));
    }

    fn to_ours(&self, body: &mut Value) {
        if let Some(value) = self.theirs.take(body) {
            let known = self.values.iter().find(|known| known.theirs == value);
            self.ours.put(body, known.map_or(value, |known| known.ours.clone()));
        } else if let Some(value) = self.ours.take(body) {
            // Spelt as the document does, which this dialect does not: one connection has one spelling. What the message
            // must have is then missing in it.
            self.theirs.put(body, value);
        }
    }
}

impl Dialect {
    /// What is spelt otherwise in this message, as it is now.
    fn rules(&self, name: &str, body: &Value) -> Vec<&Respelling> {
        self.spelling.iter().filter(|rule| rule.concerns(name, body)).collect()
    }
}

impl Protocol {
    /// The dialect that is spoken; none: the document's own.
    pub fn dialect(&self) -> Option<&str> {
        self.dialects.spoken.as_ref().map(|(name, _)| name.as_str())
    }

    /// The same protocol in each dialect that a server may turn out to speak, by name: where the choice is
    /// [`DialectChoice::Auto`].
    pub fn alternatives(&self) -> impl Iterator<Item = (&str, &std::sync::Arc<Self>)> {
        self.dialects.alternatives.iter().map(|(name, protocol)| (name.as_str(), protocol))
    }

    /// Spells a client's message, or each of a batch, as the server does, and puts it into its envelope.
    pub fn spell(&self, body: &mut Value) {
        if let Value::Array(members) = body {
            return members.iter_mut().for_each(|member| self.spell(member));
        }
        if let Some((_, dialect)) = &self.dialects.spoken
            && let Some(message) = self.message_of(body, Direction::Send)
        {
            let rules = dialect.rules(&self.messages[message].name, body);
            rules.into_iter().for_each(|rule| rule.to_theirs(body));
        }
        self.enclose(body);
    }

    /// Reads a message of either side as the document spells it.
    pub(crate) fn read_spelling(&self, message: Option<usize>, body: &mut Value) {
        let Some((_, dialect)) = &self.dialects.spoken else { return };
        let Some(message) = message.and_then(|message| self.messages.get(message)) else { return };
        dialect.rules(&message.name, body).into_iter().rev().for_each(|rule| rule.to_ours(body));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(ours: &str, theirs: &str, values: &[(Value, Value)]) -> Respelling {
        let place = |text: &str| Pointer::new(text).expect("a pointer");
        let values =
            values.iter().map(|(ours, theirs)| SpeltValue { ours: ours.clone(), theirs: theirs.clone() });
        Respelling {
            message: OneOrMany::One("m".to_owned()),
            with: None,
            ours: place(ours),
            theirs: place(theirs),
            values: values.collect(),
        }
    }

    #[test]
    fn there_and_back() {
        for (ours, theirs, values, own, spelt) in [
            (
                "/p/userId",
                "/p/user_id",
                &[][..],
                json!({ "p": { "userId": 1, "x": 2 } }),
                json!({ "p": { "user_id": 1, "x": 2 } }),
            ),
            // Nested deeper, and less deep.
            ("/c", "/c/c", &[], json!({ "c": { "t": 1 } }), json!({ "c": { "c": { "t": 1 } } })),
            ("/c/c", "/c", &[], json!({ "c": { "c": { "t": 1 } } }), json!({ "c": { "t": 1 } })),
            ("/id", "/call/id", &[], json!({ "id": "a" }), json!({ "call": { "id": "a" } })),
            ("/v", "/v_", &[(json!(1), json!("one"))], json!({ "v": 1 }), json!({ "v_": "one" })),
            ("/v", "/v_", &[(json!(1), json!("one"))], json!({ "v": 2 }), json!({ "v_": 2 })),
            ("/a", "/b", &[], json!({}), json!({})),
        ] {
            let rule = rule(ours, theirs, values);
            let mut body = own.clone();
            rule.to_theirs(&mut body);
            assert_eq!(body, spelt, "{ours} to {theirs}");
            rule.to_ours(&mut body);
            // An object that led to the value may stay behind, empty.
            body.as_object_mut()
                .expect("an object")
                .retain(|key, value| own.get(key).is_some() || *value != json!({}));
            assert_eq!(body, own, "{theirs} to {ours}");
        }
    }

    #[test]
    fn the_own_spelling_is_wrong_in_a_dialect() {
        let mut body = json!({ "userId": 1 });
        rule("/userId", "/user_id", &[]).to_ours(&mut body);
        assert_eq!(body, json!({ "user_id": 1 }));
        // Nothing is lost, and nothing panics, where something else is in the way.
        let mut body = json!({ "user": 7, "userId": 1 });
        rule("/user/id", "/user/id_", &[]).to_ours(&mut body);
        rule("/user/id", "/user/id_", &[]).to_theirs(&mut body);
        assert_eq!(body, json!({ "user": 7, "userId": 1 }));
    }
}
