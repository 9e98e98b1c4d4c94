//! OpenAI's older completions of a bare prompt: text only.

use serde_json::{Value, json};

use super::api::{Dialect, Family, Sse};
use super::chat::usage;
use super::error::ApiError;
use super::reply::{Block, Reply};

/// The dialect, with what a request asks of it.
pub(super) struct Completions {
    include_usage: bool,
}

impl Completions {
    pub fn new(body: &Value) -> Self {
        Self { include_usage: body["stream_options"]["include_usage"] == true }
    }
}

fn envelope(reply: &Reply, choices: &Value) -> Value {
    json!({
        "id": reply.id, "object": "text_completion", "created": reply.created, "model": reply.model,
        "system_fingerprint": "fp_frameproof", "choices": choices,
    })
}

fn choice(text: &str, finish_reason: Option<&str>) -> Value {
    json!([{ "index": 0, "text": text, "logprobs": null, "finish_reason": finish_reason }])
}

impl Dialect for Completions {
    fn thinks(&self) -> bool {
        false
    }

    fn calls(&self) -> bool {
        false
    }

    fn begin(&mut self, _: &Reply, _: &mut Sse) {}

    fn open(&mut self, _: &Reply, _: &Block, _: &mut Sse) {}

    fn delta(&mut self, reply: &Reply, _: &Block, piece: &str, out: &mut Sse) {
        out.data(&envelope(reply, &choice(piece, None)));
    }

    fn close(&mut self, _: &Reply, _: &Block, _: &mut Sse) {}

    fn end(&mut self, reply: &Reply, out: &mut Sse) {
        out.data(&envelope(reply, &choice("", Some("stop"))));
        if self.include_usage {
            let mut chunk = envelope(reply, &json!([]));
            chunk["usage"] = usage(reply);
            out.data(&chunk);
        }
        out.done();
    }

    fn fail(&mut self, reply: &Reply, error: &ApiError, out: &mut Sse) {
        out.data(&error.body(Family::OpenAi, &reply.id));
    }

    fn whole(&self, reply: &Reply) -> Value {
        let mut whole = envelope(reply, &choice(&reply.text(), Some("stop")));
        whole["usage"] = usage(reply);
        whole
    }
}
