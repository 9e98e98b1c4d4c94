//! The APIs, the paths that lead to them, and what each has to be able to say.

use serde_json::Value;

use super::error::ApiError;
use super::reply::{Block, Reply};

/// Whose words errors and lists are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    OpenAi,
    Anthropic,
}

/// An API that plays cues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI's older completions of a bare prompt, which Ollama has, too.
    Completions,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// `POST`: an answer.
    Play(Api),
    /// `POST`: how many tokens a request has.
    Count(Api),
    /// `POST`: embeddings.
    Embeddings,
    /// `GET`: the models.
    Models,
    /// `GET`: one of them.
    Model(String),
    /// `GET`: a sign of life.
    Root,
}

impl Api {
    pub fn family(self) -> Family {
        if self == Self::Messages { Family::Anthropic } else { Family::OpenAi }
    }
}

impl Endpoint {
    /// What this path leads to. Only its end counts: clients differ in whether their base URL has the `/v1`, and some put
    /// more before it.
    pub fn of(path: &str) -> Option<Self> {
        const ENDS: &[(&str, Endpoint)] = &[
            ("/chat/completions", Endpoint::Play(Api::Chat)),
            ("/completions", Endpoint::Play(Api::Completions)),
            ("/responses", Endpoint::Play(Api::Responses)),
            ("/responses/input_tokens", Endpoint::Count(Api::Responses)),
            ("/messages", Endpoint::Play(Api::Messages)),
            ("/messages/count_tokens", Endpoint::Count(Api::Messages)),
            ("/embeddings", Endpoint::Embeddings),
            ("/models", Endpoint::Models),
        ];
        let path = path.trim_end_matches('/');
        if matches!(path, "" | "/v1") {
            return Some(Self::Root);
        }
        let known = ENDS.iter().find(|(end, _)| path.ends_with(end));
        known
            .map(|(_, endpoint)| endpoint.clone())
            .or_else(|| path.split_once("/models/").map(|(_, id)| Self::Model(decoded(id))))
    }

    pub fn method(&self) -> &'static str {
        if matches!(self, Self::Models | Self::Model(_) | Self::Root) { "GET" } else { "POST" }
    }

    pub fn api(&self) -> Option<Api> {
        match self {
            Self::Play(api) | Self::Count(api) => Some(*api),
            _ => None,
        }
    }
}

fn decoded(id: &str) -> String {
    percent_encoding::percent_decode_str(id).decode_utf8_lossy().into_owned()
}

/// How an API words an answer: as a whole, or event by event while it comes into being. `block` is always the newest of
/// `reply`.
pub(super) trait Dialect: Send {
    /// Whether reasoning has a place in the answer; else it is left out.
    fn thinks(&self) -> bool {
        true
    }
    /// Whether tool calls have.
    fn calls(&self) -> bool {
        true
    }
    /// The answer begins.
    fn begin(&mut self, reply: &Reply, out: &mut Sse);
    /// A block begins.
    fn open(&mut self, reply: &Reply, block: &Block, out: &mut Sse);
    /// A piece of a block.
    fn delta(&mut self, reply: &Reply, block: &Block, piece: &str, out: &mut Sse);
    /// A block ends.
    fn close(&mut self, reply: &Reply, block: &Block, out: &mut Sse);
    /// The answer ends.
    fn end(&mut self, reply: &Reply, out: &mut Sse);
    /// The provider fails while it streams.
    fn fail(&mut self, reply: &Reply, error: &ApiError, out: &mut Sse);
    /// The answer in one piece.
    fn whole(&self, reply: &Reply) -> Value;
}

/// Server-sent events that are ready to go out.
#[derive(Debug, Default)]
pub(super) struct Sse(String);

impl Sse {
    /// An event without a name.
    pub fn data(&mut self, data: &Value) {
        self.0.push_str(&format!("data: {data}\n\n"));
    }

    /// An event that is named as its `type` says.
    pub fn named(&mut self, data: &Value) {
        let name = data["type"].as_str().unwrap_or("message");
        self.0.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    }

    /// The end of a stream in OpenAI's older APIs.
    pub fn done(&mut self) {
        self.0.push_str("data: [DONE]\n\n");
    }

    /// Takes what is there.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_clients_of_all_habits_expect() {
        for (path, endpoint) in [
            ("/v1/chat/completions", Some(Endpoint::Play(Api::Chat))),
            ("/chat/completions/", Some(Endpoint::Play(Api::Chat))),
            ("/openai/deployments/x/chat/completions", Some(Endpoint::Play(Api::Chat))),
            ("/v1/completions", Some(Endpoint::Play(Api::Completions))),
            ("/v1/responses", Some(Endpoint::Play(Api::Responses))),
            ("/v1/v1/messages", Some(Endpoint::Play(Api::Messages))),
            ("/v1/messages/count_tokens", Some(Endpoint::Count(Api::Messages))),
            ("/v1/models", Some(Endpoint::Models)),
            ("/v1/models/org/name:7b", Some(Endpoint::Model("org/name:7b".into()))),
            ("/", Some(Endpoint::Root)),
            ("/v1/models/org%2Fname", Some(Endpoint::Model("org/name".into()))),
            ("/v1/threads", None),
            ("/v1/responses/resp_1", None),
        ] {
            assert_eq!(Endpoint::of(path), endpoint, "{path}");
        }
    }
}
