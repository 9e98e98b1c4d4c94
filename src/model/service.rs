//! From an HTTP request to its answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER,
};
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::api::{Api, Endpoint, Family};
use super::embeddings;
use super::error::ApiError;
use super::hangs::Hangs;
use super::play::{Player, Stop, refusal};
use super::record::{Asked, CueState, Exchange, Observer};
use super::reply::{Reply, key};
use super::request::{Ask, response_id};
use crate::cue::Step;
use crate::wire::guard::Guard;

/// The largest body of a request in bytes: Anthropic's own limit, and far above what a conversation in a test has.
const LARGEST_BODY: usize = 32 * 1024 * 1024;
/// How long a client may take to send it.
const BODY: Duration = Duration::from_secs(60);
/// Events that wait for a client that does not read: few, since the script waits along.
const WAITING: usize = 4;
/// Characters of a text that are recorded.
const RECORDED: usize = 2000;
/// The shortest key that is looked for in texts: shorter ones would be found everywhere.
const SHORTEST_KEY: usize = 6;
/// The version of the model list's only entry, in seconds since 1970.
const CREATED: i64 = 1_700_000_000;

/// Answers requests.
pub(super) struct Service {
    observer: Option<Observer>,
    /// Who may ask; none: everybody.
    guard: Option<Guard>,
    /// The cases whose hangs end with them.
    hangs: Option<Hangs>,
    requests: AtomicU64,
}

/// An answer's body: whole, or a stream.
pub(super) type AnswerBody = Either<Full<Bytes>, Stream>;

/// Chunks as they come.
pub(super) struct Stream(mpsc::Receiver<Bytes>);

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

/// What of a request is needed after its body is read.
struct Head {
    method: String,
    path: String,
    family: Family,
    retry: u32,
    /// What must not be recorded.
    keys: Vec<String>,
    request_id: String,
    /// The cases whose hangs end with them.
    hangs: Option<Hangs>,
}

impl Head {
    fn of(request: &Request<Incoming>, endpoint: Option<&Endpoint>) -> Self {
        let headers = request.headers();
        let spoken = endpoint.and_then(Endpoint::api).map(Api::family);
        let named =
            if headers.contains_key("anthropic-version") { Family::Anthropic } else { Family::OpenAi };
        let retry = headers.get("x-stainless-retry-count").and_then(|value| value.to_str().ok());
        Self {
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            family: spoken.unwrap_or(named),
            retry: retry.and_then(|retry| retry.parse().ok()).unwrap_or(0),
            keys: keys(headers),
            request_id: format!("req_{}", key()),
            hangs: None,
        }
    }

    fn recorded(&self, text: &str) -> String {
        let text = self.keys.iter().fold(text.to_owned(), |text, key| text.replace(key, "[key]"));
        text.chars().take(RECORDED).collect()
    }

    fn asked(&self, id: u64) -> Asked {
        Asked {
            id,
            time: jiff::Timestamp::now(),
            method: self.recorded(&self.method),
            path: self.recorded(&self.path),
            model: None,
            stream: false,
            retry: self.retry,
            tools: Vec::new(),
            text: None,
            cue: CueState::None,
            response: None,
        }
    }
}

/// The keys in a request's headers: every word of those that providers and proxies take keys in.
fn keys(headers: &HeaderMap) -> Vec<String> {
    let mut keys: Vec<String> = ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"]
        .iter()
        .flat_map(|name| headers.get_all(*name))
        .filter_map(|value| value.to_str().ok())
        .flat_map(str::split_whitespace)
        .filter(|word| word.len() >= SHORTEST_KEY && !word.eq_ignore_ascii_case("bearer"))
        .map(str::to_owned)
        .collect();
    // A key that is part of another must not leave the rest of it standing.
    keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
    keys
}

impl Service {
    pub fn new(observer: Option<Observer>, guard: Option<Guard>, hangs: Option<Hangs>) -> Self {
        Self { observer, guard, hangs, requests: AtomicU64::new(0) }
    }

    /// Answers a request; the client's going away drops this, or what it left running, wherever it is.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let id = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let mut exchange = Exchange::new(id, self.observer.clone());
        let endpoint = Endpoint::of(request.uri().path());
        let head = Head { hangs: self.hangs.clone(), ..Head::of(&request, endpoint.as_ref()) };
        let denied = self.guard.as_ref().and_then(|guard| guard.admit(request.headers()).err());
        let result = match endpoint {
            _ if denied.is_some() => {
                exchange.asked(|| head.asked(id));
                let why = denied.map(|denied| denied.to_string()).unwrap_or_default();
                Err(ApiError::new(403, why))
            }
            Some(Endpoint::Play(api)) if request.method() == "POST" => {
                match read(request).await.and_then(|body| Ask::read(api, body)) {
                    Ok(ask) => match play(&head, api, ask, exchange).await {
                        Ok(response) => return finish(response, &head),
                        Err((error, back)) => {
                            exchange = *back;
                            Err(error)
                        }
                    },
                    Err(error) => {
                        exchange.asked(|| head.asked(id));
                        Err(error)
                    }
                }
            }
            endpoint => {
                exchange.asked(|| head.asked(id));
                other(endpoint, &head, request).await
            }
        };
        let response = result.unwrap_or_else(|error| refuse(&error, &head));
        exchange.status = Some(response.status().as_u16());
        exchange.complete();
        finish(response, &head)
    }
}

/// The answer to a request that plays no cue.
async fn other(
    endpoint: Option<Endpoint>,
    head: &Head,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, ApiError> {
    let Some(endpoint) = endpoint else {
        return Err(ApiError::new(404, format!("Invalid URL ({} {})", head.method, head.path)));
    };
    let allowed = endpoint.method();
    if head.method != allowed && !(head.method == "HEAD" && allowed == "GET") {
        let mut response = refuse(&ApiError::new(405, format!("{} is not allowed here", head.method)), head);
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        return Ok(response);
    }
    let answer = match endpoint {
        Endpoint::Root => json!("frameproof's scripted model is running"),
        Endpoint::Models => models(head.family),
        Endpoint::Model(id) => entry(head.family, &id),
        Endpoint::Embeddings => embeddings::answer(&read(request).await?)?,
        Endpoint::Count(api) | Endpoint::Play(api) => {
            let ask = Ask::read(api, read(request).await?)?;
            match api.family() {
                Family::Anthropic => json!({ "input_tokens": ask.input_tokens }),
                Family::OpenAi => {
                    json!({ "object": "response.input_tokens", "input_tokens": ask.input_tokens })
                }
            }
        }
    };
    Ok(whole(StatusCode::OK, &answer))
}

/// Plays what the request asks for. An error gives the exchange back.
async fn play(
    head: &Head,
    api: Api,
    ask: Ask,
    mut exchange: Exchange,
) -> Result<Response<AnswerBody>, (ApiError, Box<Exchange>)> {
    let part = ask.conversation.part();
    exchange.asked(|| Asked {
        model: Some(head.recorded(&ask.model)),
        stream: ask.stream,
        tools: ask.tools().iter().map(|tool| head.recorded(tool)).collect(),
        text: Some(head.recorded(&part.text)),
        cue: part.cue,
        response: (part.cue == CueState::Found).then_some(part.index),
        ..head.asked(exchange.id)
    });
    let id = match api {
        Api::Chat => format!("chatcmpl-{}", key()),
        Api::Completions => format!("cmpl-{}", key()),
        Api::Messages => format!("msg_{}", key()),
        Api::Responses => response_id(&part.text, part.index),
    };
    let reply = Reply::new(id, ask.model.clone(), ask.input_tokens);
    let mut player = Player::new(api.dialect(&ask), reply, head.retry);
    player.hangs_until = head.hangs.as_ref().map(|hangs| hangs.over(&part.text));
    let steps = match refusal(part.steps, head.retry).await {
        Ok(steps) => steps,
        Err(error) => return Err((error, Box::new(exchange))),
    };
    if ask.stream {
        exchange.status = Some(200);
        return Ok(streamed(player, steps, exchange));
    }
    match player.play(steps).await {
        Ok(()) => {}
        Err(Stop::Failed(error)) => return Err((error, Box::new(exchange))),
        Err(Stop::Gone | Stop::Hung | Stop::Released) => {
            let error = ApiError::new(504, "the cue's hang was not cancelled for an hour");
            return Err((error, Box::new(exchange)));
        }
    }
    exchange.status = Some(200);
    let response = whole(StatusCode::OK, &player.dialect.whole(&player.reply));
    exchange.complete();
    Ok(response)
}

/// An answer that is played while it is read.
fn streamed(mut player: Player, steps: Vec<Step>, exchange: Exchange) -> Response<AnswerBody> {
    let (sender, receiver) = mpsc::channel(WAITING);
    player.stream = Some(sender);
    tokio::spawn(async move {
        let result = match player.play(steps).await {
            Err(Stop::Failed(error)) => player.fail(&error).await,
            other => other,
        };
        // Closed before the end is recorded: nobody waits for more then.
        drop(player);
        if result.is_ok() {
            exchange.complete();
        }
    });
    let mut response = Response::new(Either::Right(Stream(receiver)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// A request's body as JSON.
async fn read(request: Request<Incoming>) -> Result<Value, ApiError> {
    let too_large = || ApiError::new(413, format!("the request is larger than {LARGEST_BODY} bytes"));
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if announced.and_then(|length| length.parse::<usize>().ok()).is_some_and(|length| length > LARGEST_BODY) {
        return Err(too_large());
    }
    let body = Limited::new(request.into_body(), LARGEST_BODY).collect();
    let body = tokio::time::timeout(BODY, body)
        .await
        .map_err(|_| ApiError::new(408, format!("the body did not come within {} s", BODY.as_secs())))?
        .map_err(|error| {
            if error.is::<LengthLimitError>() {
                too_large()
            } else {
                ApiError::new(400, "the body was cut short")
            }
        })?;
    serde_json::from_slice(&body.to_bytes())
        .map_err(|error| ApiError::new(400, format!("the body could not be parsed as JSON: {error}")))
}

fn whole(status: StatusCode, body: &Value) -> Response<AnswerBody> {
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(body.to_string()))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn refuse(error: &ApiError, head: &Head) -> Response<AnswerBody> {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = whole(status, &error.body(head.family, &head.request_id));
    if let Some(ms) = error.retry_after_ms {
        // Whole seconds are all that the standard header can say; the SDKs prefer the other one.
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000)));
        response.headers_mut().insert("retry-after-ms", HeaderValue::from(ms));
    }
    response
}

/// Adds what every answer has.
fn finish(mut response: Response<AnswerBody>, head: &Head) -> Response<AnswerBody> {
    let name = match head.family {
        Family::OpenAi => "x-request-id",
        Family::Anthropic => "request-id",
    };
    if let Ok(id) = HeaderValue::from_str(&head.request_id) {
        response.headers_mut().insert(name, id);
    }
    response
}

/// The list of models. Any name will do in a request; this is the one that is offered.
fn models(family: Family) -> Value {
    let entry = entry(family, "scripted");
    match family {
        Family::OpenAi => json!({ "object": "list", "data": [entry] }),
        Family::Anthropic => json!({
            "data": [entry], "has_more": false, "first_id": "scripted", "last_id": "scripted",
        }),
    }
}

fn entry(family: Family, id: &str) -> Value {
    match family {
        Family::OpenAi => {
            json!({ "id": id, "object": "model", "created": CREATED, "owned_by": "frameproof" })
        }
        Family::Anthropic => json!({
            "type": "model", "id": id, "display_name": id, "created_at": "2023-11-14T22:13:20Z",
            "lifecycle": "active",
        }),
    }
}
