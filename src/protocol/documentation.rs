//! Keys of a protocol's files that frameproof does not act on: they are for people, and for other readers of AsyncAPI.
//!
//! Every other key has an effect: `tests/it/keys.rs` takes each out of the files that ship, and what is loaded is another protocol, or
//! nothing is; `.ci/unread` shows that what is loaded is read. This is the one list of exceptions.

use serde_json::Value;

use crate::source::escape_token;

/// Keys of an AsyncAPI document by their places, with the reason. `*` is any one token of the place, and what is below belongs to it.
const PLACES: &[(&str, &str)] = &[
    ("/info/description", "what the protocol is, for people"),
    ("/defaultContentType", "AsyncAPI's word for JSON frames; there are no others"),
    ("/channels/*/description", "for people"),
    ("/channels/*/summary", "for people"),
    ("/channels/*/title", "for people"),
    (
        "/channels/*/parameters",
        "AsyncAPI wants the parameters of an address declared; frameproof takes them from the address",
    ),
    ("/operations/*/channel", "AsyncAPI wants the channel of an operation; a protocol has one"),
    ("/operations/*/description", "for people"),
    ("/operations/*/reply/channel", "AsyncAPI wants the channel of a reply; a protocol has one"),
    ("/operations/*/summary", "for people"),
    ("/operations/*/title", "for people"),
    ("/components/correlationIds", "AsyncAPI's word for what `replies`, `barrier` and monitors say"),
    ("/components/messages/*/contentType", "AsyncAPI's word for JSON frames; there are no others"),
    (
        "/components/messages/*/correlationId",
        "AsyncAPI's word for what `replies`, `barrier` and monitors say",
    ),
    ("/components/messages/*/description", "for people"),
    ("/components/messages/*/examples/*/name", "names an example, for people"),
    ("/components/messages/*/examples/*/summary", "for people"),
    ("/components/messages/*/summary", "for people"),
    ("/components/messages/*/title", "for people"),
    ("/x-frameproof/dialects/*/about", "what a dialect is, for people"),
    ("/x-frameproof/mutants/*/why", "why mutants are harmless, for people"),
    ("/components/messages/*/payload/type", "a frame is an object anyway; other readers must be told"),
];

/// Annotations of JSON Schema: they say something about a value and demand nothing.
const ANNOTATIONS: &[&str] =
    &["$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"];

/// Keywords of JSON Schema below which names are free.
const NAMED: &[&str] = &["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Why a key of an AsyncAPI document has no effect, if it is one of those that are there for others. `at`: the tokens of its place.
pub fn documentation<S: AsRef<str>>(document: &Value, at: &[S]) -> Option<&'static str> {
    let listed = PLACES.iter().find(|(place, _)| {
        let mut tokens = place.split('/').skip(1);
        let mut own = at.iter().map(AsRef::as_ref);
        tokens.all(|token| own.next().is_some_and(|own| token == "*" || token == own))
    });
    let at: Vec<&str> = at.iter().map(AsRef::as_ref).collect();
    listed.map(|(_, why)| *why).or_else(|| match at[..] {
        ["channels", name, "address"] if document["channels"][name]["address"] == "/" => {
            Some("says the default in so many words")
        }
        ["components", "messages", key, "name"] if document["components"]["messages"][key]["name"] == key => {
            Some("says the default in so many words")
        }
        ["operations", _] | ["operations", _, "messages", ..] | ["operations", _, "reply", ..]
            if lists_again(document, &at) =>
        {
            Some("an operation lists all its messages; frameproof needs each to be listed once")
        }
        _ => is_annotation(in_schema(&at)?).then_some("an annotation of JSON Schema demands nothing"),
    })
}

/// Whether each message that is listed at or below a place within an operation is listed by another operation, in the same direction.
fn lists_again(document: &Value, at: &[&str]) -> bool {
    let place: String = at.iter().map(|token| format!("/{}", escape_token(token))).collect();
    let place = place + "/";
    let mut elsewhere = Vec::new();
    let mut here = Vec::new();
    for (name, operation) in document["operations"].as_object().into_iter().flatten() {
        let served = operation["action"] == "send";
        for (list, served) in [("/messages", served), ("/reply/messages", !served)] {
            for (index, message) in
                operation.pointer(list).and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                let own = format!("/operations/{}{list}/{index}/", escape_token(name));
                let within = own.starts_with(&place) || place.starts_with(&own);
                let lists = if within { &mut here } else { &mut elsewhere };
                lists.push((message, served));
            }
        }
    }
    !here.is_empty() && here.iter().all(|listed| elsewhere.contains(listed))
}

/// A schema of the document without what demands nothing.
pub fn without_annotations(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !ANNOTATIONS.contains(&key.as_str()));
            let inner = |key: &String, value: &Value| match value {
                Value::Object(named) if NAMED.contains(&key.as_str()) => Value::Object(
                    named.iter().map(|(name, one)| (name.clone(), without_annotations(one))).collect(),
                ),
                value if matches!(key.as_str(), "const" | "enum") => value.clone(),
                value => without_annotations(value),
            };
            Value::Object(kept.map(|(key, value)| (key.clone(), inner(key, value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_annotations).collect()),
        other => other.clone(),
    }
}

/// The part of a place that is within a schema.
fn in_schema<'a, 's>(at: &'a [&'s str]) -> Option<&'a [&'s str]> {
    let begin = match at {
        ["components", "messages", _, "payload", ..] => 4,
        ["components", "schemas", _, ..] => 3,
        _ => return None,
    };
    Some(&at[begin..])
}

/// Whether a place in a schema is at or below an annotation.
fn is_annotation(at: &[&str]) -> bool {
    let mut tokens = at.iter().copied();
    while let Some(token) = tokens.next() {
        if NAMED.contains(&token) {
            // The next one is a name, whatever it says.
            tokens.next();
        } else if matches!(token, "const" | "enum") {
            return false;
        } else if ANNOTATIONS.contains(&token) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn is_documentation(place: &str) -> bool {
        let document = json!({
            "channels": { "a": { "address": "/" }, "b": { "address": "/ws" } },
            "components": { "messages": { "x": { "name": "x" }, "y": { "name": "a/y" } } },
            "operations": {
                "ask": { "action": "receive", "messages": ["x"], "reply": { "messages": ["error", "y"] } },
                "again": { "action": "send", "messages": ["error"] },
                "tell": { "action": "send", "messages": ["error", "x"] },
            },
        });
        documentation(&document, &place.split('/').skip(1).collect::<Vec<_>>()).is_some()
    }

    #[test]
    fn what_is_called_as_an_annotation_is_one_only_where_it_is_a_keyword() {
        assert!(is_documentation("/info/description"));
        assert!(!is_documentation("/info/title"), "reports show it");
        assert!(is_documentation("/components/messages/hello/payload/properties/title/description"));
        assert!(!is_documentation("/components/messages/hello/payload/properties/title"));
        assert!(!is_documentation("/components/messages/hello/payload/const/title"));
        assert!(is_documentation("/components/schemas/X/items/default/type"));
        assert!(!is_documentation("/components/schemas/title"));
        assert!(!is_documentation("/x-frameproof/invariants/a/description"));
    }

    #[test]
    fn what_is_said_elsewhere_or_by_default_is_documentation() {
        assert!(is_documentation("/channels/a/address") && !is_documentation("/channels/b/address"));
        assert!(is_documentation("/operations/ask/reply/messages/0/$ref"));
        assert!(is_documentation("/operations/tell/messages/0/$ref"));
        assert!(!is_documentation("/operations/ask/reply/messages/1/$ref"), "the only place");
        assert!(!is_documentation("/operations/tell/messages/1/$ref"), "the other direction");
        assert!(!is_documentation("/operations/ask/reply") && !is_documentation("/operations/ask"));
        assert!(is_documentation("/operations/again"));
        assert!(
            is_documentation("/components/messages/x/name")
                && !is_documentation("/components/messages/y/name")
        );
    }

    #[test]
    fn a_schema_without_annotations_demands_the_same() {
        let schema =
            json!({ "title": "T", "properties": { "title": { "const": { "title": 1 }, "default": 2 } } });
        let bare = json!({ "properties": { "title": { "const": { "title": 1 } } } });
        assert_eq!(without_annotations(&schema), bare);
    }
}
