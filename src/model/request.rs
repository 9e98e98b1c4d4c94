//! Requests: from each API's body to the conversation that it carries.

use serde_json::Value;

use super::api::Api;
use super::conversation::{Conversation, Dangling, Entry, Output, newest_cue};
use super::error::ApiError;
use super::reply::{key, tokens_in};
use crate::cue::{CLOSE, OPEN};

/// Characters of a model's name that are kept.
const NAME: usize = 256;
/// The most responses that an id can say went before.
const RESPONSES: usize = 10_000;

/// A request that makes sense.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub model: String,
    pub stream: bool,
    pub conversation: Conversation,
    pub input_tokens: u64,
    pub body: Value,
}

impl Ask {
    /// Reads a body.
    ///
    /// # Errors
    /// What the provider itself refuses: no JSON object, a required field that is missing or of the wrong type, a tool
    /// call without its result.
    pub fn read(api: Api, body: Value) -> Result<Self, ApiError> {
        if !body.is_object() {
            return Err(ApiError::new(400, "the body is not a JSON object"));
        }
        let model: String = match &body["model"] {
            Value::String(model) => model.chars().take(NAME).collect(),
            Value::Null => return Err(ApiError::field("model", "model: field required")),
            _ => return Err(ApiError::field("model", "model: must be a string")),
        };
        let stream = match &body["stream"] {
            Value::Null => false,
            Value::Bool(stream) => *stream,
            _ => return Err(ApiError::field("stream", "stream: must be a boolean")),
        };
        let (conversation, input_tokens) = match api {
            Api::Chat => (chat(list(&body, "messages")?)?, tokens_in(&body["messages"])),
            Api::Messages => (
                messages(list(&body, "messages")?)?,
                tokens_in(&body["messages"]) + tokens_in(&body["system"]),
            ),
            Api::Responses => {
                (responses(&body)?, tokens_in(&body["input"]) + tokens_in(&body["instructions"]))
            }
            Api::Completions => (completions(&body)?, tokens_in(&body["prompt"])),
        };
        if let Some(dangling) = conversation.dangling() {
            return Err(refuse(api, &dangling));
        }
        let input_tokens = input_tokens + tokens_in(&body["tools"]);
        Ok(Self { model, stream, conversation, input_tokens, body })
    }

    /// The names of the tools that it offers, at most 100.
    pub fn tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        let name =
            |tool: &Value| tool["function"]["name"].as_str().or(tool["name"].as_str()).map(str::to_owned);
        tools.iter().take(100).filter_map(name).map(|name| name.chars().take(NAME).collect()).collect()
    }
}

/// The words in which the providers refuse a conversation.
fn refuse(api: Api, dangling: &Dangling) -> ApiError {
    match (api, dangling) {
        (Api::Responses, Dangling::Call(id)) => {
            ApiError::field("input", format!("No tool output found for function call {id}."))
        }
        (Api::Responses, Dangling::Result(id)) => ApiError::field(
            "input",
            format!("No tool call found for function call output with call_id {id}."),
        ),
        (Api::Messages, Dangling::Call(id)) => ApiError::field(
            "messages",
            format!(
                "messages: `tool_use` ids were found without `tool_result` blocks immediately after: {id}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            ),
        ),
        (Api::Messages, Dangling::Result(id)) => ApiError::field(
            "messages",
            format!(
                "messages: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            ),
        ),
        (_, Dangling::Call(id)) => ApiError::field(
            "messages",
            format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {id}"
            ),
        ),
        (_, Dangling::Result(id)) => ApiError::field(
            "messages",
            format!(
                "messages with role 'tool' must be a response to a preceeding message with 'tool_calls': there is none with the id {id}"
            ),
        ),
    }
}

fn list<'b>(body: &'b Value, field: &'static str) -> Result<&'b [Value], ApiError> {
    match &body[field] {
        Value::Array(items) if !items.is_empty() => Ok(items),
        Value::Null => Err(ApiError::field(field, format!("{field}: field required"))),
        _ => Err(ApiError::field(field, format!("{field}: must be a list that is not empty"))),
    }
}

/// The text of a content: a string, or a list of parts of which those with a `text` count.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.as_str().or(part["text"].as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn id(value: &Value, field: &str) -> Option<String> {
    value[field].as_str().map(str::to_owned)
}

/// A result, if it says which call it is of; `call` and `content` are the fields.
fn output(of: &Value, call: &str, content: &str) -> Option<Output> {
    Some(Output::new(id(of, call)?, text(&of[content])))
}

fn role(message: &Value) -> Result<&str, ApiError> {
    let role = message["role"].as_str();
    role.ok_or_else(|| ApiError::field("messages", "messages: every message must have a role"))
}

fn chat(messages: &[Value]) -> Result<Conversation, ApiError> {
    let mut entries = Vec::new();
    for message in messages {
        match role(message)? {
            "user" => entries.push(Entry::User(text(&message["content"]))),
            "assistant" => {
                let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
                entries.push(Entry::Model(calls.iter().filter_map(|call| id(call, "id")).collect()));
            }
            "tool" => {
                entries
                    .push(Entry::Results(output(message, "tool_call_id", "content").into_iter().collect()));
            }
            "function" => entries.push(Entry::Results(Vec::new())),
            "system" | "developer" => {}
            other => {
                let other: String = other.chars().take(40).collect();
                return Err(ApiError::field("messages", format!("messages: unknown role '{other}'")));
            }
        }
    }
    Ok(Conversation { entries, continued: false })
}

fn messages(messages: &[Value]) -> Result<Conversation, ApiError> {
    let mut entries = Vec::new();
    for message in messages {
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        let of_type = |kind: &'static str| blocks.iter().filter(move |block| block["type"] == kind);
        match role(message)? {
            "user" => {
                let results: Vec<Output> = of_type("tool_result")
                    .filter_map(|block| output(block, "tool_use_id", "content"))
                    .collect();
                let only_results = !results.is_empty() && text(&message["content"]).is_empty();
                if !results.is_empty() {
                    entries.push(Entry::Results(results));
                }
                if !only_results {
                    entries.push(Entry::User(text(&message["content"])));
                }
            }
            "assistant" => {
                entries.push(Entry::Model(of_type("tool_use").filter_map(|block| id(block, "id")).collect()));
            }
            "system" => {}
            other => {
                let other: String = other.chars().take(40).collect();
                return Err(ApiError::field("messages", format!("messages: unexpected role \"{other}\"")));
            }
        }
    }
    Ok(Conversation { entries, continued: false })
}

fn responses(body: &Value) -> Result<Conversation, ApiError> {
    if !body["conversation"].is_null() {
        return Err(ApiError::field(
            "conversation",
            "conversation: the scripted model keeps nothing between requests; send the items, or previous_response_id",
        ));
    }
    let mut conversation = Conversation::default();
    if let Some(previous) = body["previous_response_id"].as_str() {
        let (cue, answers) = previous_turn(previous).ok_or_else(|| {
            let message = "Previous response not found: this id is none that the scripted model gave out.";
            ApiError { status: 404, ..ApiError::field("previous_response_id", message) }
        })?;
        conversation.continued = true;
        conversation.entries.push(Entry::User(cue));
        for _ in 0..answers {
            conversation.entries.extend([Entry::Model(Vec::new()), Entry::Results(Vec::new())]);
        }
    }
    let items = match &body["input"] {
        Value::String(text) => {
            conversation.entries.push(Entry::User(text.clone()));
            return Ok(conversation);
        }
        Value::Array(items) => items,
        Value::Null => return Err(ApiError::field("input", "input: field required")),
        _ => return Err(ApiError::field("input", "input: must be a string or a list of items")),
    };
    for item in items {
        let kind = item["type"].as_str().unwrap_or("message");
        let entry = match (kind, item["role"].as_str()) {
            ("message", Some("user")) => Entry::User(text(&item["content"])),
            ("message", Some("assistant")) | ("reasoning" | "item_reference", _) => Entry::Model(Vec::new()),
            ("function_call" | "custom_tool_call", _) => {
                Entry::Model(id(item, "call_id").into_iter().collect())
            }
            ("function_call_output" | "custom_tool_call_output", _) => {
                Entry::Results(output(item, "call_id", "output").into_iter().collect())
            }
            _ => continue,
        };
        // The items that a reference stands for are not here, so their calls are not known either.
        conversation.continued |= kind == "item_reference";
        conversation.entries.push(entry);
    }
    Ok(conversation)
}

fn completions(body: &Value) -> Result<Conversation, ApiError> {
    let prompt = match &body["prompt"] {
        Value::Null => return Err(ApiError::field("prompt", "prompt: field required")),
        prompt => text(prompt),
    };
    Ok(Conversation { entries: vec![Entry::User(prompt)], continued: false })
}

/// An id for a response that says what `previous_response_id` has to: the cue of the text that decided it, and how many
/// answers there were. So that the model need not keep them.
pub(super) fn response_id(text: &str, index: usize) -> String {
    let payload = newest_cue(text).and_then(|cue| cue.strip_prefix(OPEN)?.split_once(CLOSE));
    let payload = payload.map_or("", |(payload, _)| payload);
    let payload = if payload.bytes().all(is_base64url) { payload } else { "" };
    format!("resp_{}_{}_{payload}", key(), index + 1)
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn previous_turn(id: &str) -> Option<(String, usize)> {
    let mut parts = id.strip_prefix("resp_")?.splitn(3, '_');
    let (_, answers, payload) = (parts.next()?, parts.next()?, parts.next()?);
    let answers = answers.parse().ok().filter(|answers| *answers <= RESPONSES)?;
    if !payload.bytes().all(is_base64url) {
        return None;
    }
    let cue = if payload.is_empty() { String::new() } else { format!("{OPEN}{payload}{CLOSE}") };
    Some((cue, answers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entries(api: Api, body: Value) -> Vec<Entry> {
        Ask::read(api, body).expect("it makes sense").conversation.entries
    }

    fn model(ids: &[&str]) -> Entry {
        Entry::Model(ids.iter().map(ToString::to_string).collect())
    }

    fn results(outputs: &[(&str, &str)]) -> Entry {
        let output = |(id, text): &(&str, &str)| Output::new((*id).to_owned(), (*text).to_owned());
        Entry::Results(outputs.iter().map(output).collect())
    }

    #[test]
    fn one_conversation_in_the_words_of_each_api() {
        let chat = json!({ "model": "m", "messages": [
            { "role": "system", "content": "s" },
            { "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
            { "role": "assistant", "content": null, "tool_calls": [{ "id": "1" }, { "id": "2" }] },
            { "role": "tool", "tool_call_id": "1", "content": "x" },
            { "role": "tool", "tool_call_id": "2", "content": "[[cue:no]]" },
        ] });
        let user = Entry::User("a\nb".into());
        let expected =
            [user.clone(), model(&["1", "2"]), results(&[("1", "x")]), results(&[("2", "[[cue:no]]")])];
        assert_eq!(entries(Api::Chat, chat), expected);

        let messages = json!({ "model": "m", "max_tokens": 9, "system": "s", "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "t", "signature": "s" },
                { "type": "tool_use", "id": "1", "name": "n", "input": {} },
                { "type": "tool_use", "id": "2", "name": "n", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "1", "content": "[[cue:no]]" },
                { "type": "tool_result", "tool_use_id": "2", "content": [{ "type": "text", "text": "[[cue:no]]" }] },
            ] },
        ] });
        assert_eq!(
            entries(Api::Messages, messages),
            [user.clone(), model(&["1", "2"]), results(&[("1", "[[cue:no]]"), ("2", "[[cue:no]]")])]
        );

        let responses = json!({ "model": "m", "input": [
            { "role": "user", "content": [{ "type": "input_text", "text": "a" }, { "type": "input_text", "text": "b" }] },
            { "type": "reasoning", "id": "r", "summary": [] },
            { "type": "function_call", "call_id": "1", "name": "n", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "1", "output": "[[cue:no]]" },
        ] });
        assert_eq!(
            entries(Api::Responses, responses),
            [user, model(&[]), model(&["1"]), results(&[("1", "[[cue:no]]")])]
        );
    }

    #[test]
    fn an_id_carries_what_a_continuation_needs() {
        let id = response_id("a [[cue:x]] b [[cue:abc_def]] c", 2);
        assert_eq!(previous_turn(&id), Some(("[[cue:abc_def]]".into(), 3)));
        assert_eq!(previous_turn(&response_id("hello", 0)), Some((String::new(), 1)));
        let input = json!([{ "type": "function_call_output", "call_id": "c", "output": "" }]);
        let body = json!({ "model": "m", "previous_response_id": id, "input": input });
        assert_eq!(entries(Api::Responses, body).len(), 8);
        for id in ["resp_x", "resp_a_99999_YQ", "resp_a_1_%%", "resp_a_x_YQ", "msg_1", "resp_a_-1_YQ"] {
            let body = json!({ "model": "m", "previous_response_id": id, "input": "x" });
            assert_eq!(Ask::read(Api::Responses, body).expect_err(id).status, 404);
        }
    }

    #[test]
    fn refuses_what_a_provider_refuses() {
        let user = json!([{ "role": "user", "content": "x" }]);
        for (api, body, part) in [
            (Api::Chat, json!([]), "not a JSON object"),
            (Api::Chat, json!({ "messages": user }), "model: field required"),
            (Api::Chat, json!({ "model": 1, "messages": user }), "model: must be a string"),
            (Api::Chat, json!({ "model": "m" }), "messages: field required"),
            (Api::Messages, json!({ "model": "m", "messages": [] }), "a list that is not empty"),
            (Api::Messages, json!({ "model": "m", "messages": [{}] }), "must have a role"),
            (Api::Chat, json!({ "model": "m", "messages": [{ "role": "bard" }] }), "'bard'"),
            (Api::Chat, json!({ "model": "m", "messages": user, "stream": "yes" }), "must be a boolean"),
            (Api::Responses, json!({ "model": "m" }), "input: field required"),
            (Api::Responses, json!({ "model": "m", "input": 1 }), "a string or a list"),
            (Api::Responses, json!({ "model": "m", "input": "x", "conversation": "c" }), "keeps nothing"),
            (Api::Completions, json!({ "model": "m" }), "prompt: field required"),
            (
                Api::Chat,
                json!({ "model": "m", "messages": [{ "role": "assistant", "tool_calls": [{ "id": "c1" }] }] }),
                "did not have response messages: c1",
            ),
        ] {
            let error = Ask::read(api, body.clone()).expect_err(part);
            assert!(error.message.contains(part), "{body}: {}", error.message);
            assert_eq!(error.status, 400);
        }
    }
}
