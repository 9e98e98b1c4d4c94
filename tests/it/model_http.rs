//! The scripted model as an HTTP server: errors, cancelling, limits, the log.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::path::Path;

use crate::support::model::{Answer, KEY, Model, cue, parse, requests, rich};
use crate::support::{frameproof, text};
use serde_json::{Value, json};

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
        "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 99999999\r\n\r\n"
    )
    .expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let answer = parse(&bytes);
    assert_eq!((answer.status, &answer.json()["error"]["type"]), (413, &json!("request_too_large")));
    // One that is not announced is refused when it gets there.
    let mut stream = model.open();
    write!(stream, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
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
