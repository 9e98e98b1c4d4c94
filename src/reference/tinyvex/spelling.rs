//! Two ways to spell what ACP defines: its own, and that of the snake_case port whose type names the document uses.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// How a server spells ACP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// As the published protocol does; what the document prints is literal.
    Acp,
    /// As the port does.
    SnakeCase,
}

/// The version of the port, and how it stands in the published protocol.
const VERSION: (&str, u64) = ("0.7.0", 1);

impl Spelling {
    /// The params of a request in ACP's own spelling. What is spelt otherwise than this server does is not there.
    pub fn params<'p>(self, method: &str, params: &'p Map<String, Value>) -> Cow<'p, Map<String, Value>> {
        let known = ["initialize", "session/new", "session/prompt"].contains(&method);
        if self == Self::Acp || !known {
            return Cow::Borrowed(params);
        }
        let own = params.iter().filter(|(key, _)| !key.contains(char::is_uppercase));
        let mut read: Map<String, Value> = own.map(|(key, value)| (camel(key), value.clone())).collect();
        if let Some(version) = read.get_mut("protocolVersion") {
            let text = version.as_str().and_then(|text| text.split('.').next()?.parse().ok());
            *version = match (version.as_str(), text) {
                (Some(text), _) if text == VERSION.0 => json!(VERSION.1),
                (_, Some(major)) => json!(u64::max(major, VERSION.1)),
                _ => Value::Null,
            };
        }
        Cow::Owned(read)
    }

    /// A result of an ACP method.
    pub fn result(self, mut result: Value) -> Value {
        if self == Self::Acp {
            return result;
        }
        if result["protocolVersion"] == VERSION.1 {
            result["protocolVersion"] = json!(VERSION.0);
        }
        snake_keys(result)
    }

    /// The update of a session/update.
    pub fn update(self, update: Value) -> Value {
        if self == Self::Acp {
            return update;
        }
        let kind = update["sessionUpdate"].as_str().unwrap_or_default().to_owned();
        let Value::Object(mut update) = update else { return update };
        let mut moved = |from: &str| update.remove(from);
        let nested = |pairs: Vec<(&str, Option<Value>)>| -> Map<String, Value> {
            pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
        };
        let (key, told) = match kind.as_str() {
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                ("content", nested(vec![("content", moved("content"))]))
            }
            "plan" => ("plan", nested(vec![("entries", moved("entries"))])),
            "tool_call" => {
                let call = vec![
                    ("call_id", moved("toolCallId")),
                    ("name", moved("title")),
                    ("arguments", moved("rawInput")),
                ];
                moved("kind");
                moved("status");
                ("tool_call", nested(call))
            }
            "tool_call_update" => {
                let status = moved("status").map(|status| match status.as_str() {
                    Some("in_progress") => json!("started"),
                    Some("failed") => json!("error"),
                    _ => status,
                });
                let update =
                    vec![("call_id", moved("toolCallId")), ("status", status), ("output", moved("content"))];
                ("tool_call_update", nested(update))
            }
            _ => {
                let renamed = update.into_iter().map(|(key, value)| match key.as_str() {
                    "availableCommands" | "currentModeId" => (snake(&key), value),
                    _ => (key, value),
                });
                return Value::Object(renamed.collect());
            }
        };
        update.insert(key.to_owned(), Value::Object(told));
        Value::Object(update)
    }
}

fn snake(key: &str) -> String {
    let mut text = String::new();
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

fn camel(key: &str) -> String {
    let mut words = key.split('_');
    let mut text = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        text.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        text.push_str(letters.as_str());
    }
    text
}

fn snake_keys(value: Value) -> Value {
    match value {
        Value::Object(map) => map.into_iter().map(|(key, value)| (snake(&key), snake_keys(value))).collect(),
        Value::Array(items) => items.into_iter().map(snake_keys).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_nests_and_renames() {
        for (acp, port) in [
            (
                json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "a" } }),
                json!({ "sessionUpdate": "agent_message_chunk", "content": { "content": { "type": "text", "text": "a" } } }),
            ),
            (
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed" }),
                json!({ "sessionUpdate": "tool_call_update", "tool_call_update": { "call_id": "c", "status": "error" } }),
            ),
            (
                json!({ "sessionUpdate": "current_mode_update", "currentModeId": "code" }),
                json!({ "sessionUpdate": "current_mode_update", "current_mode_id": "code" }),
            ),
        ] {
            assert_eq!(Spelling::SnakeCase.update(acp.clone()), port);
            assert_eq!(Spelling::Acp.update(acp.clone()), acp);
        }
    }

    #[test]
    fn each_reads_its_own_spelling_only() {
        let params = |spelling: Spelling, params: Value| {
            let params = params.as_object().cloned().expect("an object");
            Value::Object(spelling.params("initialize", &params).into_owned())
        };
        let (acp, port) = (json!({ "protocolVersion": 1 }), json!({ "protocol_version": "0.7.0" }));
        assert_eq!(params(Spelling::SnakeCase, port.clone()), acp);
        assert_eq!(params(Spelling::SnakeCase, acp.clone()), json!({}));
        assert_eq!(
            params(Spelling::SnakeCase, json!({ "protocol_version": 1 })),
            json!({ "protocolVersion": null })
        );
        assert_eq!(params(Spelling::Acp, acp.clone()), acp);
        assert_eq!(params(Spelling::Acp, port.clone()), port);
    }
}
