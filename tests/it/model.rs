//! The scripted model over plain HTTP: what goes over the wire, byte by byte, without anybody's SDK.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::model::{Model, cue, requests, rich};
use serde_json::{Value, json};

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
fn the_cue_of_the_guide_plays() {
    let guide =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/model.md")).expect("the guide");
    let cue = guide.lines().find(|line| line.starts_with("[[cue:")).expect("a cue");
    let model = Model::start();
    for (path, body) in requests(cue, false) {
        assert!(model.post(path, &body).body.contains("\"Hello\""), "{path}");
    }
}
