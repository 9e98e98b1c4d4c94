//! Values of generated messages that are new each time: the ids of requests, and what `fuzzing.fresh` names.

use serde_json::{Value, json};

use crate::frame::Pointer;
use crate::protocol::Protocol;
use crate::trace::Direction;

/// A template for a new text.
pub const TEXT: &str = "{{uuid}}";
/// A template for a new number.
pub const NUMBER: &str = "{{number}}";

/// The templates, the preferred one first.
const TEMPLATES: [&str; 2] = [TEXT, NUMBER];

/// A value as a template gives it.
fn example(template: &str) -> Value {
    if template == TEXT { json!("7f0c2f5e-1f0b-4a4e-9a63-0f5a0f5f2b11") } else { json!(1_000_001) }
}

/// Puts templates for new values into a message of a client. A message that names no request (its id is absent or null) stays
/// without an id, and a reply keeps that of the request that it answers.
pub fn renew(protocol: &Protocol, message: &mut Value) {
    let replies = protocol.extension.replies.as_ref();
    let of_request = replies
        .filter(|replies| replies.result.get(message).is_none() && replies.error.get(message).is_none());
    for at in of_request.map(|replies| &replies.id).into_iter().chain(&protocol.extension.fuzzing.fresh) {
        if at.get(message).is_some_and(|value| !value.is_null()) {
            let template = template(protocol, message, at);
            put(message, at, json!(template));
        }
    }
}

/// Whether a value is a template for a new one.
pub fn is_new(value: &Value) -> bool {
    TEMPLATES.iter().any(|template| value == template)
}

/// A JSON text with templates, as it is sent: the quotes around a number's template are not part of the number.
pub fn written(text: &str) -> String {
    text.replace(&format!("\"{NUMBER}\""), NUMBER)
}

/// The first template whose values may stand at a place of a message; a text where none may.
fn template(protocol: &Protocol, message: &Value, at: &Pointer) -> &'static str {
    let named = protocol.type_of(message).and_then(|name| protocol.index_of(name, Direction::Send));
    let Some(index) = named else { return TEXT };
    let mut tried = message.clone();
    let mut fits = |template: &str| {
        put(&mut tried, at, example(template));
        protocol.messages[index].violations(&tried).iter().all(|one| one.at != at.as_str())
    };
    TEMPLATES.into_iter().find(|template| fits(template)).unwrap_or(TEXT)
}

fn put(message: &mut Value, at: &Pointer, value: Value) {
    if let Some(place) = message.pointer_mut(at.as_str()) {
        *place = value;
    }
}
