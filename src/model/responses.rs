//! OpenAI Responses.

use serde_json::{Value, json};

use super::api::{Dialect, Sse};
use super::error::ApiError;
use super::reply::{Block, Kind, Reply};

/// The dialect, with what a request says that its answer repeats.
pub(super) struct Responses {
    sequence: u64,
    repeated: Value,
}

impl Responses {
    pub fn new(body: &Value) -> Self {
        let or = |field: &str, default: Value| match &body[field] {
            Value::Null => default,
            value => value.clone(),
        };
        let repeated = json!({
            "background": false,
            "instructions": body["instructions"],
            "max_output_tokens": body["max_output_tokens"],
            "metadata": or("metadata", json!({})),
            "parallel_tool_calls": or("parallel_tool_calls", true.into()),
            "previous_response_id": body["previous_response_id"],
            "reasoning": or("reasoning", json!({ "effort": null, "summary": null })),
            "store": or("store", true.into()),
            "temperature": or("temperature", json!(1.0)),
            "text": or("text", json!({ "format": { "type": "text" } })),
            "tool_choice": or("tool_choice", "auto".into()),
            "tools": or("tools", json!([])),
            "top_p": or("top_p", json!(1.0)),
            "truncation": or("truncation", "disabled".into()),
        });
        Self { sequence: 0, repeated }
    }

    fn event(&mut self, kind: &str, fields: Value, out: &mut Sse) {
        let mut event = json!({ "type": kind, "sequence_number": self.sequence });
        self.sequence += 1;
        if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
            event.extend(fields);
        }
        out.named(&event);
    }

    fn response(&self, reply: &Reply, status: &str) -> Value {
        let done = status == "completed";
        let output: Vec<Value> = if done {
            reply.blocks.iter().map(|block| item(block, "completed")).collect()
        } else {
            Vec::new()
        };
        let mut response = json!({
            "id": reply.id, "object": "response", "created_at": reply.created, "status": status,
            "error": null, "incomplete_details": null, "model": reply.model, "output": output,
            "usage": if done { usage(reply) } else { Value::Null }, "user": null,
        });
        if let (Some(response), Some(repeated)) = (response.as_object_mut(), self.repeated.as_object()) {
            response.extend(repeated.clone());
        }
        response
    }
}

fn usage(reply: &Reply) -> Value {
    let output = reply.output_tokens();
    json!({
        "input_tokens": reply.input_tokens,
        "input_tokens_details": { "cached_tokens": 0, "cache_write_tokens": 0 },
        "output_tokens": output,
        "output_tokens_details": { "reasoning_tokens": reply.reasoning_tokens() },
        "total_tokens": reply.input_tokens + output,
    })
}

fn item_id(block: &Block) -> String {
    let prefix = match block.kind {
        Kind::Think => "rs",
        Kind::Text => "msg",
        Kind::Call(_) => "fc",
    };
    format!("{prefix}_{}", block.key)
}

/// The item that a block is; while it is in progress it has no content yet.
fn item(block: &Block, status: &str) -> Value {
    let id = item_id(block);
    let empty = status == "in_progress";
    match &block.kind {
        Kind::Think => {
            let summary = if empty { json!([]) } else { json!([summary(&block.content)]) };
            json!({ "id": id, "type": "reasoning", "summary": summary })
        }
        Kind::Text => {
            let content = if empty { json!([]) } else { json!([text(&block.content)]) };
            json!({ "id": id, "type": "message", "status": status, "role": "assistant", "content": content })
        }
        Kind::Call(name) => json!({
            "id": id, "type": "function_call", "status": status, "call_id": format!("call_{}", block.key),
            "name": name, "arguments": if empty { "" } else { block.content.as_str() },
        }),
    }
}

fn summary(content: &str) -> Value {
    json!({ "type": "summary_text", "text": content })
}

fn text(content: &str) -> Value {
    json!({ "type": "output_text", "annotations": [], "logprobs": [], "text": content })
}

/// Where an event of a block belongs: its item, and within the item its part.
fn place(reply: &Reply, block: &Block) -> Value {
    let mut place =
        json!({ "item_id": item_id(block), "output_index": reply.blocks.len().saturating_sub(1) });
    match block.kind {
        Kind::Think => place["summary_index"] = 0.into(),
        Kind::Text => place["content_index"] = 0.into(),
        Kind::Call(_) => {}
    }
    place
}

/// A place with more fields.
fn with(mut place: Value, fields: &[(&str, Value)]) -> Value {
    for (field, value) in fields {
        place[*field] = value.clone();
    }
    place
}

impl Dialect for Responses {
    fn begin(&mut self, reply: &Reply, out: &mut Sse) {
        let response = self.response(reply, "in_progress");
        self.event("response.created", json!({ "response": response }), out);
        self.event("response.in_progress", json!({ "response": response }), out);
    }

    fn open(&mut self, reply: &Reply, block: &Block, out: &mut Sse) {
        let place = place(reply, block);
        let added = json!({ "output_index": place["output_index"], "item": item(block, "in_progress") });
        self.event("response.output_item.added", added, out);
        match block.kind {
            Kind::Think => {
                let part = with(place, &[("part", summary(""))]);
                self.event("response.reasoning_summary_part.added", part, out);
            }
            Kind::Text => {
                self.event("response.content_part.added", with(place, &[("part", text(""))]), out);
            }
            Kind::Call(_) => {}
        }
    }

    fn delta(&mut self, reply: &Reply, block: &Block, piece: &str, out: &mut Sse) {
        let delta = with(place(reply, block), &[("delta", piece.into())]);
        match block.kind {
            Kind::Think => self.event("response.reasoning_summary_text.delta", delta, out),
            Kind::Text => {
                self.event("response.output_text.delta", with(delta, &[("logprobs", json!([]))]), out);
            }
            Kind::Call(_) => self.event("response.function_call_arguments.delta", delta, out),
        }
    }

    fn close(&mut self, reply: &Reply, block: &Block, out: &mut Sse) {
        let place = place(reply, block);
        let output_index = place["output_index"].clone();
        let content = Value::from(block.content.as_str());
        match &block.kind {
            Kind::Think => {
                let done = with(place.clone(), &[("text", content)]);
                self.event("response.reasoning_summary_text.done", done, out);
                let part = with(place, &[("part", summary(&block.content))]);
                self.event("response.reasoning_summary_part.done", part, out);
            }
            Kind::Text => {
                let done = with(place.clone(), &[("text", content), ("logprobs", json!([]))]);
                self.event("response.output_text.done", done, out);
                let part = with(place, &[("part", text(&block.content))]);
                self.event("response.content_part.done", part, out);
            }
            Kind::Call(name) => {
                let done = with(place, &[("name", name.as_str().into()), ("arguments", content)]);
                self.event("response.function_call_arguments.done", done, out);
            }
        }
        let done = json!({ "output_index": output_index, "item": item(block, "completed") });
        self.event("response.output_item.done", done, out);
    }

    fn end(&mut self, reply: &Reply, out: &mut Sse) {
        let response = self.response(reply, "completed");
        self.event("response.completed", json!({ "response": response }), out);
    }

    fn fail(&mut self, reply: &Reply, error: &ApiError, out: &mut Sse) {
        let mut response = self.response(reply, "failed");
        response["error"] = json!({ "code": error.response_code(), "message": error.message });
        self.event("response.failed", json!({ "response": response }), out);
    }

    fn whole(&self, reply: &Reply) -> Value {
        self.response(reply, "completed")
    }
}
