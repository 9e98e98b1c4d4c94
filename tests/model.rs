//! The scripted model over plain HTTP: what goes over the wire, byte by byte, without anybody's SDK.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine;
use serde_json::{Value, json};
use support::{Served, frameproof, text};

const KEY: &str = "sk-this-must-stay-secret";

/// `frameproof model` in a process of its own, with its log.
struct Model {
    served: Served,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

/// An answer.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Model {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log.jsonl");
        let served = Served::command("model", &["--log", log.to_str().expect("UTF-8")]);
        Self { served, log, _folder: folder }
    }

    fn open(&self) -> TcpStream {
        let address = self.served.url.strip_prefix("http://").expect("its base URL");
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
        stream
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = self.open();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {KEY}\r\nx-api-key: {KEY}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
        .expect("sent");
        stream
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut bytes = Vec::new();
        self.send(method, path, headers, body).read_to_end(&mut bytes).expect("an answer");
        parse(&bytes)
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, "", &body.to_string())
    }

    /// Lines of the log, once there are as many as this.
    fn log(&self, lines: usize) -> Vec<Value> {
        let begin = Instant::now();
        loop {
            let text = fs::read_to_string(&self.log).expect("a log");
            let whole: Vec<Value> = text
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n'))
                .map(|line| serde_json::from_str(line).expect("JSON"))
                .collect();
            if whole.len() >= lines {
                return whole;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "{lines} lines awaited:\n{text}");
            std::thread::yield_now();
        }
    }
}

fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("the end of the head");
    let head = String::from_utf8(bytes[..end].to_vec()).expect("UTF-8").to_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let rest = &bytes[end + 4..];
    let body = if head.contains("transfer-encoding: chunked") { unchunk(rest) } else { rest.to_vec() };
    Answer { status, head, body: String::from_utf8(body).expect("UTF-8") }
}

/// The content of a chunked body, as far as it came.
fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let length =
            usize::from_str_radix(std::str::from_utf8(&bytes[..end]).expect("hex"), 16).expect("hex");
        if length == 0 {
            break;
        }
        body.extend_from_slice(&bytes[end + 2..end + 2 + length]);
        bytes = &bytes[end + 4 + length..];
    }
    body
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The events of a stream: name and data.
    fn events(&self) -> Vec<(String, Value)> {
        assert_eq!(self.header("content-type"), Some("text/event-stream; charset=utf-8"), "{}", self.body);
        assert!(self.body.ends_with("\n\n"), "{}", self.body);
        let event = |block: &str| {
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            let data = field("data: ").unwrap_or_else(|| panic!("no data: {block}"));
            let data =
                if data == "[DONE]" { json!("[DONE]") } else { serde_json::from_str(data).expect("JSON") };
            (field("event: ").unwrap_or_default().to_owned(), data)
        };
        self.body.trim_end().split("\n\n").map(event).collect()
    }

    /// The names of a stream's events, each of which must be its data's type as well.
    fn names(&self) -> Vec<String> {
        let named = |(name, data): (String, Value)| {
            assert_eq!(data["type"], name.as_str());
            name
        };
        self.events().into_iter().map(named).collect()
    }
}

fn cue(steps: Value) -> String {
    let json = json!({ "v": 1, "turn": steps }).to_string();
    format!("please [[cue:{}]] now", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json))
}

/// A request of each API for this text; the two that can hold a conversation in messages first.
fn requests(text: &str, stream: bool) -> [(&'static str, Value); 3] {
    let messages = json!([{ "role": "user", "content": text }]);
    [
        ("/v1/chat/completions", json!({ "model": "any/name:1", "stream": stream, "messages": messages })),
        (
            "/v1/messages",
            json!({ "model": "any/name:1", "stream": stream, "max_tokens": 10, "messages": messages }),
        ),
        ("/v1/responses", json!({ "model": "any/name:1", "stream": stream, "input": text })),
    ]
}

/// Reasoning, text, two calls; then more text.
fn rich() -> String {
    cue(json!([
        { "think": ["h", "m"] }, { "say": ["Hel", "", "lo"] },
        { "call": { "name": "write_note", "args": { "key": "k", "text": "ünïcode" } } },
        { "call": { "name": "read_note", "args": {} } }, { "say": ["done"] },
    ]))
}

#[test]
fn chat_completions_stream_as_the_provider_does() {
    let model = Model::start();
    let (path, mut body) = requests(&rich(), true)[0].clone();
    body["stream_options"] = json!({ "include_usage": true });
    let events = model.post(path, &body).events();
    assert!(events.iter().all(|(name, _)| name.is_empty()));
    let (done, chunks) = events.split_last().expect("events");
    assert_eq!(done.1, "[DONE]");
    for (_, chunk) in chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!((&chunk["model"], &chunk["id"]), (&json!("any/name:1"), &chunks[0].1["id"]));
    }
    let (usage, chunks) = chunks.split_last().expect("chunks");
    assert_eq!(usage.1["choices"], json!([]));
    let figures = &usage.1["usage"];
    assert_eq!(figures["completion_tokens_details"]["reasoning_tokens"], 1);
    let sum =
        figures["prompt_tokens"].as_u64().zip(figures["completion_tokens"].as_u64()).map(|(a, b)| a + b);
    assert_eq!(figures["total_tokens"].as_u64(), sum);
    assert!(chunks.iter().all(|(_, chunk)| chunk["usage"].is_null()));
    let deltas: Vec<&Value> = chunks.iter().map(|(_, chunk)| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(deltas[0], &json!({ "role": "assistant", "content": "", "refusal": null }));
    assert_eq!(deltas[1]["reasoning_content"], "h");
    assert_eq!(deltas[2]["reasoning"], "m");
    assert_eq!((deltas[3], deltas[4]), (&json!({ "content": "Hel" }), &json!({ "content": "lo" })));
    let mut arguments = [String::new(), String::new()];
    let mut named = Vec::new();
    for call in deltas[5..].iter().filter_map(|delta| delta["tool_calls"].get(0)) {
        let index = usize::try_from(call["index"].as_u64().expect("an index")).expect("small");
        arguments[index].push_str(call["function"]["arguments"].as_str().expect("a piece"));
        if let Some(name) = call["function"]["name"].as_str() {
            assert!(call["id"].as_str().is_some_and(|id| id.starts_with("call_")));
            named.push(name.to_owned());
        }
    }
    assert_eq!(named, ["write_note", "read_note"]);
    assert_eq!(arguments, [r#"{"key":"k","text":"ünïcode"}"#, "{}"]);
    let reasons: Vec<&Value> =
        chunks.iter().map(|(_, chunk)| &chunk["choices"][0]["finish_reason"]).collect();
    assert_eq!(reasons.last(), Some(&&json!("tool_calls")));
    assert!(reasons[..reasons.len() - 1].iter().all(|reason| reason.is_null()));
}

#[test]
fn messages_stream_as_the_provider_does() {
    let model = Model::start();
    let (path, body) = requests(&rich(), true)[1].clone();
    let answer = model.post(path, &body);
    assert!(answer.header("request-id").is_some_and(|id| id.starts_with("req_")));
    let block = |deltas: usize| {
        let mut block = vec!["content_block_start"];
        block.extend(vec!["content_block_delta"; deltas]);
        block.push("content_block_stop");
        block
    };
    // Thinking and its signature; text; arguments, which begin with an empty piece.
    let mut expected = vec!["message_start"];
    expected.extend(block(3));
    expected.insert(2, "ping");
    expected.extend([block(2), block(4), block(2)].concat());
    expected.extend(["message_delta", "message_stop"]);
    assert_eq!(answer.names(), expected);
    let events = answer.events();
    let of = |kind: &str| {
        events.iter().map(|(_, data)| data).filter(|data| data["type"] == kind).collect::<Vec<_>>()
    };
    let begin = &of("message_start")[0]["message"];
    assert_eq!((&begin["content"], &begin["stop_reason"]), (&json!([]), &Value::Null));
    let kinds: Vec<&Value> = of("content_block_delta").iter().map(|data| &data["delta"]["type"]).collect();
    assert_eq!(
        kinds[..5],
        ["thinking_delta", "thinking_delta", "signature_delta", "text_delta", "text_delta"]
    );
    assert!(kinds[5..].iter().all(|kind| *kind == "input_json_delta"));
    let indices: Vec<&Value> = of("content_block_start").iter().map(|data| &data["index"]).collect();
    assert_eq!(indices, [0, 1, 2, 3]);
    let delta = of("message_delta")[0];
    assert_eq!(delta["delta"], json!({ "stop_reason": "tool_use", "stop_sequence": null }));
    assert!(delta["usage"]["output_tokens"].as_u64() > Some(0));
}

#[test]
fn responses_stream_as_the_provider_does() {
    let model = Model::start();
    let (path, body) = requests(&rich(), true)[2].clone();
    let answer = model.post(path, &body);
    let reasoning = ["output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"];
    let call = ["output_item.added", "function_call_arguments.delta"];
    let called = ["function_call_arguments.done", "output_item.done"];
    let mut expected = vec!["created", "in_progress"];
    expected.extend(reasoning);
    expected.extend(["reasoning_summary_text.delta", "reasoning_summary_text.done"]);
    expected.extend(["reasoning_summary_part.done", "output_item.done"]);
    expected.extend(["output_item.added", "content_part.added", "output_text.delta", "output_text.delta"]);
    expected.extend(["output_text.done", "content_part.done", "output_item.done"]);
    expected.extend(call);
    expected.extend(["function_call_arguments.delta"; 2]);
    expected.extend(called);
    expected.extend(call);
    expected.extend(called);
    expected.push("completed");
    let expected: Vec<String> = expected.iter().map(|name| format!("response.{name}")).collect();
    assert_eq!(answer.names(), expected);
    let events = answer.events();
    for (number, (_, data)) in events.iter().enumerate() {
        assert_eq!(data["sequence_number"], number);
    }
    let response = &events.last().expect("events").1["response"];
    let kinds: Vec<&Value> =
        response["output"].as_array().expect("items").iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call", "function_call"]);
    assert_eq!(response["output"][2]["arguments"], r#"{"key":"k","text":"ünïcode"}"#);
    // What was announced while it streamed is what there is at the end.
    let added = events.iter().filter(|(name, _)| name == "response.output_item.done");
    assert!(added.map(|(_, data)| &data["item"]).eq(response["output"].as_array().expect("items")));
    assert_eq!(response["usage"]["output_tokens_details"]["reasoning_tokens"], 1);
}

#[test]
fn whole_answers_say_the_same() {
    let model = Model::start();
    let [chat, messages, responses] =
        requests(&rich(), false).map(|(path, body)| model.post(path, &body).json());
    let message = &chat["choices"][0]["message"];
    assert_eq!((&message["content"], &message["reasoning"]), (&json!("Hello"), &json!("hm")));
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], r#"{"key":"k","text":"ünïcode"}"#);
    assert_eq!(message["tool_calls"][1]["function"]["name"], "read_note");
    assert_eq!(chat["choices"][0]["finish_reason"], "tool_calls");
    let kinds: Vec<&Value> =
        messages["content"].as_array().expect("blocks").iter().map(|b| &b["type"]).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_use"]);
    assert_eq!(messages["content"][2]["input"], json!({ "key": "k", "text": "ünïcode" }));
    assert_eq!(messages["stop_reason"], "tool_use");
    assert_eq!(responses["status"], "completed");
    assert_eq!(responses["output"][1]["content"][0]["text"], "Hello");
    let tokens = [
        &chat["usage"]["completion_tokens"],
        &messages["usage"]["output_tokens"],
        &responses["usage"]["output_tokens"],
    ];
    assert!(tokens.iter().all(|figure| *figure == tokens[0] && figure.as_u64() > Some(4)), "{tokens:?}");
}

#[test]
fn plain_text_bad_cues_and_disabled_thinking() {
    let model = Model::start();
    for (said, expected) in
        [("hello", "ok"), ("[[cue:%%]]", "cue error: "), ("[[cue:e30]]", "cue error: unknown version null")]
    {
        for (path, body) in requests(said, false) {
            let answer = model.post(path, &body);
            assert_eq!(answer.status, 200);
            assert!(answer.body.contains(&format!("\"{expected}")), "{}", answer.body);
        }
    }
    let (path, mut body) = requests(&rich(), false)[1].clone();
    body["thinking"] = json!({ "type": "disabled" });
    assert_eq!(model.post(path, &body).json()["content"][0]["type"], "text");
}

#[test]
fn errors_are_in_the_providers_words() {
    let model = Model::start();
    for stream in [false, true] {
        let limited = cue(json!([{ "pause_ms": 1 }, { "fail": { "status": 429, "message": "slow down" } }]));
        let [chat, messages, responses] =
            requests(&limited, stream).map(|(path, body)| model.post(path, &body));
        let openai = json!({ "error": {
            "message": "slow down", "type": "requests", "param": null, "code": "rate_limit_exceeded",
        } });
        assert_eq!((chat.json(), responses.json()), (openai.clone(), openai));
        let error = messages.json();
        assert_eq!(error["error"], json!({ "type": "rate_limit_error", "message": "slow down" }));
        assert_eq!(
            (&error["type"], error["request_id"].as_str()),
            (&json!("error"), messages.header("request-id"))
        );
        for answer in [chat, messages, responses] {
            assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
            assert_eq!(answer.header("retry-after-ms"), Some("100"));
        }
        let overloaded = cue(json!([{ "fail": { "status": 529, "message": "m", "retry_after_ms": 2001 } }]));
        let [chat, messages, _] = requests(&overloaded, stream).map(|(path, body)| model.post(path, &body));
        assert_eq!(chat.json()["error"]["type"], "server_error");
        assert_eq!(messages.json()["error"]["type"], "overloaded_error");
        assert_eq!((messages.status, messages.header("retry-after")), (529, Some("3")));
        let internal = cue(json!([{ "fail": { "status": 500, "message": "m" } }]));
        let answer = requests(&internal, stream)
            .map(|(path, body)| model.post(path, &body).header("retry-after").is_some());
        assert_eq!(answer, [false; 3]);
    }
}

#[test]
fn a_failure_in_the_middle_of_a_stream_is_an_event() {
    let model = Model::start();
    let text = cue(
        json!([{ "say": ["half"] }, { "fail": { "status": 500, "message": "broke" } }, { "say": ["no"] }]),
    );
    let [chat, messages, responses] = requests(&text, true).map(|(path, body)| model.post(path, &body));
    for answer in [&chat, &messages, &responses] {
        assert_eq!(answer.status, 200);
        assert!(answer.body.contains("half") && !answer.body.contains("\"no\""), "{}", answer.body);
    }
    let last = |answer: &Answer| answer.events().last().expect("events").1.clone();
    assert_eq!(last(&chat)["error"]["message"], "broke");
    assert_eq!(last(&messages)["error"], json!({ "type": "api_error", "message": "broke" }));
    assert_eq!(responses.names().last().map(String::as_str), Some("response.failed"));
    assert_eq!(last(&responses)["response"]["error"], json!({ "code": "server_error", "message": "broke" }));
    // Not streamed, it is the whole answer.
    for (path, body) in requests(&text, false) {
        assert_eq!(model.post(path, &body).status, 500);
    }
}

#[test]
fn a_numbered_retry_gets_over_a_passing_failure() {
    let model = Model::start();
    let text =
        cue(json!([{ "fail": { "status": 503, "message": "m", "times": 2 } }, { "say": ["over it"] }]));
    for (path, body) in requests(&text, false) {
        for (retry, status) in
            [("", 503), ("x-stainless-retry-count: 1\r\n", 503), ("x-stainless-retry-count: 2\r\n", 200)]
        {
            let answer = model.ask("POST", path, retry, &body.to_string());
            assert_eq!(answer.status, status, "{path} {retry}");
            assert_eq!(answer.body.contains("over it"), status == 200);
        }
    }
}

#[test]
fn a_conversation_is_played_response_by_response() {
    let model = Model::start();
    let asked = rich();
    let mut messages = json!([{ "role": "user", "content": asked }]);
    let chat = |messages: &Value| {
        model.post("/v1/chat/completions", &json!({ "model": "m", "messages": messages })).json()["choices"]
            [0]
        .clone()
    };
    let first = chat(&messages)["message"].clone();
    let list = messages.as_array_mut().expect("a list");
    list.push(first.clone());
    for call in first["tool_calls"].as_array().expect("two calls") {
        list.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": "[[cue:ignored]]" }));
    }
    let second = chat(&messages);
    assert_eq!((&second["message"]["content"], &second["finish_reason"]), (&json!("done"), &json!("stop")));
    messages.as_array_mut().expect("a list").push(second["message"].clone());
    assert_eq!(chat(&messages)["message"]["content"], "", "past the end there is nothing to say");
    messages.as_array_mut().expect("a list").push(json!({ "role": "user", "content": "thanks" }));
    assert_eq!(chat(&messages)["message"]["content"], "ok");
    // A call without its result is refused, as the providers do.
    messages.as_array_mut().expect("a list").remove(2);
    let answer = model.post("/v1/chat/completions", &json!({ "model": "m", "messages": messages }));
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("did not have response messages"), "{}", answer.body);

    // Responses: by the previous response's id alone.
    let first = model.post("/v1/responses", &json!({ "model": "m", "input": asked })).json();
    let outputs: Vec<Value> = first["output"].as_array().expect("items")[2..]
        .iter()
        .map(|call| json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "x" }))
        .collect();
    let body = json!({ "model": "m", "previous_response_id": first["id"], "input": outputs });
    assert_eq!(model.post("/v1/responses", &body).json()["output"][0]["content"][0]["text"], "done");
}

#[test]
fn chunks_come_one_by_one_and_a_hang_lasts_until_it_is_cancelled() {
    let model = Model::start();
    let text = cue(json!([{ "say": ["first"] }, { "hang": true }]));
    let mut lines = 0;
    for (path, body) in requests(&text, true) {
        let mut stream = model.send("POST", path, "", &body.to_string());
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains("first") {
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).expect("what was said before the hang");
            assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&buffer[..count]);
        }
        assert!(!String::from_utf8_lossy(&seen).contains("\r\n0\r\n"), "it hangs");
        drop(stream);
        lines += 2;
        let ended = model.log(lines)[lines - 1].clone();
        assert_eq!((&ended["event"], &ended["ended"]), (&json!("response"), &json!("cancelled")));
    }
    for (path, body) in requests(&text, false) {
        let stream = model.send("POST", path, "", &body.to_string());
        model.log(lines + 1);
        stream.shutdown(Shutdown::Both).expect("cut");
        lines += 2;
        let ended = model.log(lines)[lines - 1].clone();
        assert_eq!((&ended["ended"], &ended["status"]), (&json!("cancelled"), &Value::Null));
    }
}

#[test]
fn a_slow_stream_takes_its_time() {
    let model = Model::start();
    let text = cue(json!([{ "say": ["a", "b", "c"], "every_ms": 40 }, { "pause_ms": 40 }, { "say": ["d"] }]));
    for stream in [true, false] {
        for (path, body) in requests(&text, stream) {
            let begin = Instant::now();
            let answer = model.post(path, &body);
            assert!(begin.elapsed() >= Duration::from_millis(120), "{path}");
            // One run of text, whatever the pauses.
            assert_eq!(answer.body.contains("abcd"), !stream || path == "/v1/responses", "{}", answer.body);
        }
    }
}

#[test]
fn many_sessions_at_once_get_each_their_own() {
    let model = Model::start();
    std::thread::scope(|scope| {
        for number in 0..40 {
            let model = &model;
            scope.spawn(move || {
                let word = format!("word-{number}-");
                let text = cue(json!([{ "say": [word] , "every_ms": 1 }, { "pause_ms": 5 }]));
                let (path, body) = requests(&text, number % 2 == 0)[number % 3].clone();
                assert!(model.post(path, &body).body.contains(&word));
            });
        }
    });
}

#[test]
fn the_other_paths() {
    let model = Model::start();
    let models = model.ask("GET", "/v1/models", "", "").json();
    assert_eq!((&models["object"], &models["data"][0]["id"]), (&json!("list"), &json!("scripted")));
    let models = model.ask("GET", "/v1/models", "anthropic-version: 2023-06-01\r\n", "").json();
    assert_eq!((&models["has_more"], &models["data"][0]["type"]), (&json!(false), &json!("model")));
    assert_eq!(model.ask("GET", "/v1/models/any/name", "", "").json()["id"], "any/name");
    assert_eq!(model.ask("GET", "/", "", "").status, 200);
    assert_eq!(model.ask("HEAD", "/", "", "").status, 200);
    let [_, (_, messages), (_, responses)] = requests("12345678", false);
    assert_eq!(model.post("/v1/messages/count_tokens", &messages).json()["input_tokens"], 3);
    assert_eq!(model.post("/v1/responses/input_tokens", &responses).json()["input_tokens"], 2);
    let embedded =
        model.post("/v1/embeddings", &json!({ "model": "m", "input": "x", "dimensions": 8 })).json();
    assert_eq!(embedded["data"][0]["embedding"].as_array().map(Vec::len), Some(8));
    let completion = json!({ "model": "m", "prompt": cue(json!([{ "say": ["a", "b"] }])) });
    assert_eq!(model.post("/v1/completions", &completion).json()["choices"][0]["text"], "ab");
    let streamed = json!({ "model": "m", "stream": true, "prompt": completion["prompt"] });
    let texts: Vec<Value> = model
        .post("/v1/completions", &streamed)
        .events()
        .iter()
        .map(|(_, data)| data["choices"][0]["text"].clone())
        .collect();
    assert_eq!(texts, [json!("a"), json!("b"), json!(""), Value::Null]);
    // Also without the `/v1`, with it twice, and the way Azure has it.
    let (_, body) = requests("hi", false)[0].clone();
    for path in [
        "/chat/completions",
        "/v1/v1/chat/completions",
        "/openai/deployments/d/chat/completions?api-version=1",
    ] {
        assert_eq!(model.post(path, &body).status, 200, "{path}");
    }
}

#[test]
fn nonsense_is_refused_and_harms_nobody() {
    let model = Model::start();
    let deep = "[".repeat(100_000);
    for (method, path, body, status) in [
        ("POST", "/v1/chat/completions", "{", 400),
        ("POST", "/v1/chat/completions", "[]", 400),
        ("POST", "/v1/messages", "{}", 400),
        ("POST", "/v1/responses", deep.as_str(), 400),
        ("POST", "/v1/embeddings", "\u{0}", 400),
        ("GET", "/v1/chat/completions", "", 405),
        ("DELETE", "/v1/models", "", 405),
        ("POST", "/v1/threads", "{}", 404),
        ("GET", "/v1/responses/resp_1", "", 404),
    ] {
        let answer = model.ask(method, path, "", body);
        assert_eq!(answer.status, status, "{method} {path}");
        assert!(answer.json()["error"]["message"].is_string(), "{}", answer.body);
    }
    // A body that is announced as too large is refused before it is sent.
    let mut stream = model.open();
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 99999999\r\n\r\n"
    )
    .expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let answer = parse(&bytes);
    assert_eq!((answer.status, &answer.json()["error"]["type"]), (413, &json!("request_too_large")));
    // One that is not announced is refused when it gets there.
    let mut stream = model.open();
    write!(stream, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        .expect("sent");
    let chunk = [format!("{:x}\r\n", 1 << 20).into_bytes(), vec![b' '; 1 << 20], b"\r\n".to_vec()].concat();
    let mut head = [0; 12];
    for _ in 0..34 {
        if stream.write_all(&chunk).is_err() {
            break;
        }
    }
    // Its answer may be lost when it closes on what it has not read; what matters is that it does not take it all.
    if stream.read_exact(&mut head).is_ok() {
        assert_eq!(&head, b"HTTP/1.1 413");
    }
    drop(stream);
    let (path, body) = requests("hi", false)[0].clone();
    assert_eq!(model.post(path, &body).status, 200, "it still serves");
}

#[test]
fn the_log_tells_what_was_asked_and_no_secret() {
    let model = Model::start();
    let (path, mut body) = requests(&rich(), true)[0].clone();
    body["tools"] = json!([{ "type": "function", "function": { "name": "write_note" } }]);
    body["messages"][0]["content"] = format!("my key is {KEY}, {}", rich()).into();
    model.ask("POST", &format!("{path}?key={KEY}"), "x-stainless-retry-count: 1\r\n", &body.to_string());
    model.ask("GET", &format!("/v1/models/{KEY}"), "", "");
    model.ask("POST", "/v1/messages", "", "{");
    let lines = model.log(6);
    let asked = &lines[0];
    for (field, value) in [
        ("event", json!("request")),
        ("path", json!(path)),
        ("model", json!("any/name:1")),
        ("stream", json!(true)),
        ("retry", json!(1)),
        ("tools", json!(["write_note"])),
        ("cue", json!("found")),
        ("response", json!(0)),
    ] {
        assert_eq!(asked[field], value, "{field}");
    }
    assert!(asked["text"].as_str().is_some_and(|text| text.starts_with("my key is [key], please [[cue:")));
    assert_eq!((&lines[1]["status"], &lines[1]["ended"]), (&json!(200), &json!("complete")));
    assert_eq!((&lines[5]["id"], &lines[5]["status"]), (&json!(3), &json!(400)));
    assert!(!fs::read_to_string(&model.log).expect("a log").contains(KEY));
}

#[test]
fn what_cannot_start_says_why() {
    let model = Model::start();
    let address = model.served.url.strip_prefix("http://").expect("its base URL");
    for (arguments, parts) in [
        (&["model", "--listen", address][..], &["cannot listen on", "--listen 127.0.0.1:0"][..]),
        (&["model", "--listen", "nowhere"], &["--listen"]),
        (&["model", "--log", "no/such/folder/log"], &["no/such/folder/log cannot be written"]),
    ] {
        let output = frameproof(Path::new("."), arguments);
        assert_eq!(output.status.code(), Some(2));
        let shown = text(&output.stderr);
        assert!(parts.iter().all(|part| shown.contains(part)), "{shown}");
    }
}
