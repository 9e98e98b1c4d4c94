//! OpenAI Chat Completions, as OpenAI and Ollama speak it.

use serde_json::{Value, json};

use super::api::{Dialect, Family, Sse};
use super::error::ApiError;
use super::reply::{Block, Kind, Reply};

/// The dialect, with what a request asks of it.
pub(super) struct Chat {
    /// `stream_options.include_usage`: a last chunk with the usage.
    include_usage: bool,
    calls: usize,
}

impl Chat {
    pub fn new(body: &Value) -> Self {
        Self { include_usage: body["stream_options"]["include_usage"] == true, calls: 0 }
    }

    fn chunk(&self, reply: &Reply, delta: &Value, finish_reason: Option<&str>) -> Value {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason });
        self.envelope(reply, &json!([choice]))
    }

    fn envelope(&self, reply: &Reply, choices: &Value) -> Value {
        let mut chunk = json!({
            "id": reply.id, "object": "chat.completion.chunk", "created": reply.created, "model": reply.model,
            "service_tier": "default", "system_fingerprint": "fp_frameproof", "choices": choices,
        });
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}

/// OpenAI's own API does not show reasoning. Ollama's has it as `reasoning`, others as `reasoning_content`; a client reads
/// the one that it knows.
fn reasoning(message: &mut Value, text: &str) {
    message["reasoning"] = text.into();
    message["reasoning_content"] = text.into();
}

fn finish_reason(reply: &Reply) -> &'static str {
    if reply.calls().next().is_some() { "tool_calls" } else { "stop" }
}

/// Usage figures of OpenAI's older APIs.
pub(super) fn usage(reply: &Reply) -> Value {
    let output = reply.output_tokens();
    json!({
        "prompt_tokens": reply.input_tokens, "completion_tokens": output,
        "total_tokens": reply.input_tokens + output,
        "prompt_tokens_details": { "cached_tokens": 0, "audio_tokens": 0 },
        "completion_tokens_details": {
            "reasoning_tokens": reply.reasoning_tokens(), "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}

impl Dialect for Chat {
    fn begin(&mut self, reply: &Reply, out: &mut Sse) {
        let delta = json!({ "role": "assistant", "content": "", "refusal": null });
        out.data(&self.chunk(reply, &delta, None));
    }

    fn open(&mut self, reply: &Reply, block: &Block, out: &mut Sse) {
        if let Kind::Call(name) = &block.kind {
            let function = json!({ "name": name, "arguments": "" });
            let call = json!({
                "index": self.calls, "id": format!("call_{}", block.key), "type": "function", "function": function,
            });
            out.data(&self.chunk(reply, &json!({ "tool_calls": [call] }), None));
        }
    }

    fn delta(&mut self, reply: &Reply, block: &Block, piece: &str, out: &mut Sse) {
        let delta = match block.kind {
            Kind::Text => json!({ "content": piece }),
            Kind::Think => {
                let mut delta = json!({});
                reasoning(&mut delta, piece);
                delta
            }
            Kind::Call(_) => {
                json!({ "tool_calls": [{ "index": self.calls, "function": { "arguments": piece } }] })
            }
        };
        out.data(&self.chunk(reply, &delta, None));
    }

    fn close(&mut self, _: &Reply, block: &Block, _: &mut Sse) {
        if matches!(block.kind, Kind::Call(_)) {
            self.calls += 1;
        }
    }

    fn end(&mut self, reply: &Reply, out: &mut Sse) {
        out.data(&self.chunk(reply, &json!({}), Some(finish_reason(reply))));
        if self.include_usage {
            let mut chunk = self.envelope(reply, &json!([]));
            chunk["usage"] = usage(reply);
            out.data(&chunk);
        }
        out.done();
    }

    fn fail(&mut self, reply: &Reply, error: &ApiError, out: &mut Sse) {
        out.data(&error.body(Family::OpenAi, &reply.id));
    }

    fn whole(&self, reply: &Reply) -> Value {
        let calls: Vec<Value> = reply
            .calls()
            .map(|(block, name)| {
                let function = json!({ "name": name, "arguments": block.content });
                json!({ "id": format!("call_{}", block.key), "type": "function", "function": function })
            })
            .collect();
        let text = reply.text();
        let mut message = json!({ "role": "assistant", "content": text, "refusal": null, "annotations": [] });
        if !calls.is_empty() {
            if text.is_empty() {
                message["content"] = Value::Null;
            }
            message["tool_calls"] = calls.into();
        }
        let thinking = reply.thinking();
        if !thinking.is_empty() {
            reasoning(&mut message, &thinking);
        }
        let finish_reason = finish_reason(reply);
        let choice =
            json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason });
        json!({
            "id": reply.id, "object": "chat.completion", "created": reply.created, "model": reply.model,
            "choices": [choice], "usage": usage(reply), "service_tier": "default",
            "system_fingerprint": "fp_frameproof",
        })
    }
}
