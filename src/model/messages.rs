//! Anthropic Messages.

use serde_json::{Value, json};

use super::api::{Dialect, Family, Sse};
use super::error::ApiError;
use super::reply::{Block, Kind, Reply};

/// The dialect, with what a request asks of it.
pub(super) struct Messages {
    thinks: bool,
    pinged: bool,
}

impl Messages {
    pub fn new(body: &Value) -> Self {
        Self { thinks: body["thinking"]["type"] != "disabled", pinged: false }
    }

    /// One ping a stream, after the first block begins, as the provider sends it.
    fn ping(&mut self, out: &mut Sse) {
        if !self.pinged {
            out.named(&json!({ "type": "ping" }));
        }
        self.pinged = true;
    }
}

/// What stands for the provider's signature of a thinking block.
fn signature(block: &Block) -> String {
    format!("frameproof-{}", block.key)
}

fn stop_reason(reply: &Reply) -> &'static str {
    if reply.calls().next().is_some() { "tool_use" } else { "end_turn" }
}

fn usage(reply: &Reply, output_tokens: u64) -> Value {
    json!({
        "input_tokens": reply.input_tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": output_tokens, "service_tier": "standard",
    })
}

fn message(reply: &Reply, content: &[Value], stop_reason: Option<&str>, usage: &Value) -> Value {
    json!({
        "id": reply.id, "type": "message", "role": "assistant", "model": reply.model, "content": content,
        "stop_reason": stop_reason, "stop_sequence": null, "usage": usage,
    })
}

/// The index of the newest block.
fn index(reply: &Reply) -> usize {
    reply.blocks.len().saturating_sub(1)
}

fn delta_event(reply: &Reply, delta: &Value) -> Value {
    json!({ "type": "content_block_delta", "index": index(reply), "delta": delta })
}

impl Dialect for Messages {
    fn thinks(&self) -> bool {
        self.thinks
    }

    fn begin(&mut self, reply: &Reply, out: &mut Sse) {
        let message = message(reply, &[], None, &usage(reply, 1));
        out.named(&json!({ "type": "message_start", "message": message }));
    }

    fn open(&mut self, reply: &Reply, block: &Block, out: &mut Sse) {
        let content_block = match &block.kind {
            Kind::Text => json!({ "type": "text", "text": "" }),
            Kind::Think => json!({ "type": "thinking", "thinking": "", "signature": "" }),
            Kind::Call(name) => {
                json!({ "type": "tool_use", "id": format!("toolu_{}", block.key), "name": name, "input": {} })
            }
        };
        let index = index(reply);
        out.named(&json!({ "type": "content_block_start", "index": index, "content_block": content_block }));
        self.ping(out);
        if matches!(block.kind, Kind::Call(_)) {
            out.named(&delta_event(reply, &json!({ "type": "input_json_delta", "partial_json": "" })));
        }
    }

    fn delta(&mut self, reply: &Reply, block: &Block, piece: &str, out: &mut Sse) {
        let delta = match block.kind {
            Kind::Text => json!({ "type": "text_delta", "text": piece }),
            Kind::Think => json!({ "type": "thinking_delta", "thinking": piece }),
            Kind::Call(_) => json!({ "type": "input_json_delta", "partial_json": piece }),
        };
        out.named(&delta_event(reply, &delta));
    }

    fn close(&mut self, reply: &Reply, block: &Block, out: &mut Sse) {
        if block.kind == Kind::Think {
            let delta = json!({ "type": "signature_delta", "signature": signature(block) });
            out.named(&delta_event(reply, &delta));
        }
        out.named(&json!({ "type": "content_block_stop", "index": index(reply) }));
    }

    fn end(&mut self, reply: &Reply, out: &mut Sse) {
        self.ping(out);
        let mut usage = usage(reply, reply.output_tokens());
        if let Some(usage) = usage.as_object_mut() {
            usage.remove("service_tier");
        }
        let delta = json!({ "stop_reason": stop_reason(reply), "stop_sequence": null });
        out.named(&json!({ "type": "message_delta", "delta": delta, "usage": usage }));
        out.named(&json!({ "type": "message_stop" }));
    }

    fn fail(&mut self, reply: &Reply, error: &ApiError, out: &mut Sse) {
        out.named(&error.body(Family::Anthropic, &reply.id));
    }

    fn whole(&self, reply: &Reply) -> Value {
        let content = |block: &Block| match &block.kind {
            Kind::Text => json!({ "type": "text", "text": block.content }),
            Kind::Think => {
                json!({ "type": "thinking", "thinking": block.content, "signature": signature(block) })
            }
            Kind::Call(name) => {
                // It is what an object was written out as.
                let input: Value = serde_json::from_str(&block.content).unwrap_or_else(|_| json!({}));
                json!({ "type": "tool_use", "id": format!("toolu_{}", block.key), "name": name, "input": input })
            }
        };
        let content: Vec<Value> = reply.blocks.iter().map(content).collect();
        message(reply, &content, Some(stop_reason(reply)), &usage(reply, reply.output_tokens()))
    }
}
