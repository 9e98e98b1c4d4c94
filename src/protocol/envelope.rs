//! Envelopes: a server that puts every message into a larger object, which the document does not have.
//!
//! As with dialects, everything else is written for bare messages: what the harness sends is put into its envelope on the way out,
//! and every frame is taken out of its own before it is judged. The wire log and the trace keep what was on the wire.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Protocol;
use crate::frame::{self, Pointer};
use crate::trace::Direction;

/// Where messages are in the objects that are on the wire. Each message of a batch has an envelope of its own.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Envelope {
    /// The place of the server's message in the object of its frame, for example `/event`. None: the server sends bare messages.
    #[schemars(extend("x-pointer" = "free"))]
    pub server: Option<Pointer>,
    /// The place of the client's message in the object that it sends. None: clients send bare messages.
    #[schemars(extend("x-pointer" = "free"))]
    pub client: Option<Pointer>,
    /// What else the object has that clients send.
    #[serde(default)]
    pub with: Map<String, Value>,
}

impl Envelope {
    fn at(&self, dir: Direction) -> Option<&Pointer> {
        match dir {
            Direction::Send => self.client.as_ref(),
            Direction::Recv => self.server.as_ref(),
        }
    }
}

impl Protocol {
    /// The place of messages of this direction in their envelope, if they have one.
    pub(crate) fn envelope(&self, dir: Direction) -> Option<&Pointer> {
        self.extension.envelope.as_ref()?.at(dir)
    }

    /// The message in an object that is on the wire: itself, where it has no envelope.
    ///
    /// # Errors
    /// The object, if no object is where the envelope has the message.
    pub(crate) fn take_out(&self, dir: Direction, mut body: Value) -> Result<Value, Value> {
        let Some(at) = self.envelope(dir) else { return Ok(body) };
        if !at.get(&body).is_some_and(Value::is_object) {
            return Err(body);
        }
        at.take(&mut body).ok_or(body)
    }

    /// The messages in the text of a frame: several in a batch, each in its place, null for one without the envelope. None in what is
    /// not JSON.
    pub(crate) fn bodies(&self, text: &str, dir: Direction) -> Vec<Value> {
        let found = match frame::parse_within(text) {
            Ok(Value::Array(members)) if self.may_batch(dir) => members,
            Ok(body) => vec![body],
            Err(_) => Vec::new(),
        };
        found.into_iter().map(|body| self.take_out(dir, body).unwrap_or_default()).collect()
    }

    /// Puts a client's message into its envelope.
    pub(super) fn enclose(&self, body: &mut Value) {
        let Some(envelope) = &self.extension.envelope else { return };
        let Some(at) = &envelope.client else { return };
        let mut whole = Value::Object(envelope.with.clone());
        at.put(&mut whole, body.take());
        *body = whole;
    }

    /// Puts the text of an object, which need not be a message, into the client's envelope. Any other text stays as it is.
    pub(crate) fn enclose_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let is_enclosed = self.envelope(Direction::Send).is_some();
        if !is_enclosed || !frame::parse_within(text).is_ok_and(|body| body.is_object()) {
            return Cow::Borrowed(text);
        }
        // A string that no envelope has for another reason. What the text says beyond its value is to stay: a key that comes twice, `1e0`.
        let mut whole = Value::from("\u{1}");
        let place = whole.to_string();
        self.enclose(&mut whole);
        Cow::Owned(whole.to_string().replacen(&place, text, 1))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::LoadOptions;

    fn enclosed(envelope: &Value) -> Protocol {
        let name = Protocol::embedded_names()[0];
        let mut protocol = Protocol::embedded(name, &LoadOptions::default()).expect("it loads");
        let own = std::sync::Arc::get_mut(&mut protocol).expect("nobody else has it");
        own.extension.envelope = Some(serde_json::from_value(envelope.clone()).expect("an envelope"));
        std::sync::Arc::into_inner(protocol).expect("nobody else has it")
    }

    #[test]
    fn there_and_back() {
        let protocol = enclosed(&json!({ "server": "/a/b", "client": "/op", "with": { "v": 1 } }));
        let mut body = json!({ "type": "hello" });
        protocol.spell(&mut body);
        assert_eq!(body, json!({ "v": 1, "op": { "type": "hello" } }));
        assert_eq!(protocol.take_out(Direction::Send, body), Ok(json!({ "type": "hello" })));
        let whole = json!({ "a": { "b": { "type": "pong" }, "c": 1 } });
        assert_eq!(protocol.take_out(Direction::Recv, whole), Ok(json!({ "type": "pong" })));
        for other in [json!({ "type": "pong" }), json!({ "a": { "b": 1 } }), json!({ "a": 1 }), json!(1)] {
            assert_eq!(protocol.take_out(Direction::Recv, other.clone()), Err(other));
        }
    }

    #[test]
    fn texts_of_objects_are_enclosed_as_they_are() {
        let protocol = enclosed(&json!({ "client": "/op/it" }));
        for (text, on_the_wire) in [
            (r#"{"a":1e0, "a":2}"#, r#"{"op":{"it":{"a":1e0, "a":2}}}"#),
            ("{\"a\":", "{\"a\":"),
            ("[{}]", "[{}]"),
            ("", ""),
        ] {
            assert_eq!(protocol.enclose_text(text), on_the_wire);
        }
        let bare = enclosed(&json!({ "server": "/event" }));
        assert_eq!(bare.enclose_text("{}"), "{}");
        assert_eq!(bare.bodies(r#"{"event":{"type":"x"}}"#, Direction::Recv), [json!({ "type": "x" })]);
        assert_eq!(bare.bodies(r#"{"type":"x"}"#, Direction::Recv), [Value::Null]);
    }
}
