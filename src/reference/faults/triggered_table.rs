//! The faults that only fuzzing finds, by protocol.

use serde_json::{Value, json};

use super::Fault;
use super::triggered::{Effect, TriggeredFault};

const fn triggered(
    name: &'static str,
    title: &'static str,
    violates: &'static [&'static str],
    trigger: fn(&str, &Value) -> bool,
    effect: Effect,
) -> TriggeredFault {
    TriggeredFault { fault: Fault { name, title, violates, also: &[] }, trigger, effect }
}

/// An escape that stands for half a character.
fn lone_surrogate(text: &str, body: &Value) -> bool {
    text.contains("\\ud800") && body.is_null()
}

/// Lists within lists.
fn deep(text: &str, _: &Value) -> bool {
    text.contains(&"[".repeat(60))
}

fn is(body: &Value, name: &str) -> bool {
    body["type"] == name
}

/// A type that is no word of the protocol, of those that JavaScript stumbles over.
fn proto(_: &str, body: &Value) -> bool {
    body["type"] == "__proto__" || body["method"] == "__proto__"
}

/// A type that nobody knows.
fn unknown(_: &str, body: &Value) -> bool {
    ["__proto__", "frobnicate", "type"].iter().any(|name| body["type"] == *name)
}

fn broken(text: &str, body: &Value) -> bool {
    body.is_null() && text != "null"
}

fn as_text(body: &Value, at: &str) -> Value {
    let mut body = body.clone();
    if let Some(place) = body.pointer_mut(at) {
        *place = json!(place.to_string());
    }
    body
}

/// Protocol and faults.
pub(super) const ALL: &[(&str, &[TriggeredFault])] = &[
    ("agentloop", AGENTLOOP),
    ("codelab", CODELAB),
    ("codey", CODEY),
    ("minicodex", MINICODEX),
    ("tinyvex", TINYVEX),
];

const MINICODEX: &[TriggeredFault] = &[
    triggered(
        "fuzz-cut-on-surrogate",
        "Half a character in an escape ends the connection without a close frame",
        &["MC-ERR-7"],
        lone_surrogate,
        Effect::Cut,
    ),
    triggered(
        "fuzz-number-for-text",
        "A number is accepted as the text of send",
        &["MC-SND-3"],
        |_, body| is(body, "send") && body["text"].is_number(),
        Effect::Instead(|body| as_text(body, "/text")),
    ),
    triggered(
        "fuzz-refused-abort",
        "A message of a server's type is refused, and aborts the run",
        &["MC-ERR-6"],
        |_, body| is(body, "tool_call"),
        Effect::Besides(r#"{"type":"abort"}"#),
    ),
    triggered(
        "fuzz-error-quotes-others",
        "The error for an unknown type quotes a text of another session",
        &["MC-FAN-2"],
        unknown,
        Effect::Quote,
    ),
    triggered(
        "fuzz-hang-on-deep",
        "Deeply nested lists block the connection",
        &["MC-ERR-7", "MC-SNP-1"],
        deep,
        Effect::Hang,
    ),
    triggered(
        "fuzz-dies-of-a-list-of-types",
        "A type that is a list ends the server's process",
        &[],
        |_, body| body["type"].is_array(),
        Effect::Die(|_| "fatal: message $id has no route"),
    ),
    triggered(
        "fuzz-dies-in-two-places",
        "A type that is a number and one that is null end the server's process, each at a different place in its code",
        &[],
        |_, body| body["type"].is_number() || body.get("type").is_some_and(Value::is_null),
        Effect::Die(|body| match body["type"].is_number() {
            true => "thread 'main' panicked at src/router.rs:41:9:\nno name for message $id",
            false => "thread 'main' panicked at src/frames.rs:7:13:\nmessage $id is of no type",
        }),
    ),
    triggered(
        "fuzz-dies-of-age",
        "The 300th message ends the server's process",
        &[],
        |_, _| true,
        Effect::Wear(300),
    ),
    triggered(
        "fuzz-closed-door",
        "After a frame with a comment no further connection is served",
        &["MC-HS-1", "MC-ERR-7"],
        |text, _| text.contains("/* hi"),
        Effect::RefuseLater,
    ),
    triggered(
        "fuzz-empty-frame-cuts-others",
        "An empty frame ends every other connection",
        &["MC-FAN-2"],
        |text, _| text.trim().is_empty(),
        Effect::CutOthers,
    ),
];

const CODELAB: &[TriggeredFault] = &[
    triggered(
        "fuzz-cut-on-nul",
        "NUL in a text ends the connection without a close frame",
        &["CL-ER-6"],
        |text, _| text.contains("\\u0000"),
        Effect::Cut,
    ),
    triggered(
        "fuzz-broken-result-is-ignored",
        "A truncated tool_result gets no error",
        &["CL-ER-2"],
        |text, body| broken(text, body) && text.contains("tool_result"),
        Effect::Ignore,
    ),
    triggered(
        "fuzz-decision-list-is-ignored",
        "A decision that is a list or an object gets no error",
        &["CL-HI-7"],
        |_, body| is(body, "hitl_decision") && (body["decision"].is_array() || body["decision"].is_object()),
        Effect::Ignore,
    ),
    triggered(
        "fuzz-raw-echo",
        "The error for an unknown type contains it unescaped",
        &["CL-TRN-5"],
        proto,
        Effect::Answer("{\"type\":\"error\",\"content\":\"no such type: $text\"}"),
    ),
    triggered(
        "fuzz-cut-on-long-text",
        "A text of 60,000 characters ends the connection without a close frame",
        &["CL-ER-6"],
        |text, _| text.len() > 60_000,
        Effect::Cut,
    ),
];

const AGENTLOOP: &[TriggeredFault] = &[
    triggered(
        "fuzz-cut-on-nested-content",
        "A content that is not a list ends the connection",
        &["AL-CON-10"],
        |_, body| {
            is(body, "user_input")
                && !body["payload"]["input"][0]["content"].is_array()
                && body["payload"]["input"][0].is_object()
        },
        Effect::Cut,
    ),
    triggered(
        "fuzz-null-review-hangs",
        "A review that is null blocks the connection",
        &["AL-CON-10"],
        |_, body| is(body, "approval_response") && body["payload"].get("review").is_some_and(Value::is_null),
        Effect::Hang,
    ),
    triggered(
        "fuzz-error-without-message",
        "The error for an id that is a number has no message",
        &["AL-ERR-1"],
        |_, body| body["id"].is_number(),
        Effect::Answer(r#"{"id":"0b7c3c52-7c0e-4a58-8b7e-4f1f6f0f9d3e","type":"error","payload":{}}"#),
    ),
    triggered(
        "fuzz-scalar-is-ignored",
        "JSON that is a string, a number or a boolean gets no error",
        &["AL-ERR-2"],
        |_, body| body.is_string() || body.is_number() || body.is_boolean(),
        Effect::Ignore,
    ),
];

const CODEY: &[TriggeredFault] = &[
    triggered(
        "fuzz-cut-on-approved-text",
        "An approved that is a text ends the connection",
        &["CO-ER-5"],
        |_, body| is(body, "ToolDecision") && body["approved"].is_string(),
        Effect::Cut,
    ),
    triggered(
        "fuzz-hang-on-surrogate",
        "Half a character in an escape stops the connection",
        &["CO-ER-5"],
        lone_surrogate,
        Effect::Hang,
    ),
    triggered(
        "fuzz-scalar-cancels",
        "JSON that is a number or a boolean is refused, and cancels the turn",
        &["CO-ER-10"],
        |_, body| body.is_number() || body.is_boolean(),
        Effect::Besides(r#"{"type":"Cancel"}"#),
    ),
    triggered(
        "fuzz-memory-per-broken-frame",
        "The server's process keeps a megabyte for every frame that is not JSON",
        &[],
        broken,
        Effect::Leak,
    ),
    triggered(
        "fuzz-proto-is-ignored",
        "The type __proto__ gets no error",
        &["CO-ER-3"],
        proto,
        Effect::Ignore,
    ),
    triggered(
        "fuzz-fatal-as-text",
        "The Error for two objects in one frame has a fatal that is a text",
        &["CO-ER-1"],
        |text, body| broken(text, body) && text.contains("}{"),
        Effect::Answer(r#"{"type":"Error","message":"trailing characters","fatal":"no"}"#),
    ),
];

const TINYVEX: &[TriggeredFault] = &[
    triggered(
        "fuzz-cut-on-list-of-params",
        "A list for the params of unsubscribe ends the connection",
        &["TV-ERR-9"],
        |_, body| body["method"] == "tinyvex/unsubscribe" && body["params"].is_array(),
        Effect::Cut,
    ),
    triggered(
        "fuzz-hang-on-great-number",
        "A number beyond all bounds stops the connection",
        &["TV-ERR-9"],
        |text, _| text.contains("1e400"),
        Effect::Hang,
    ),
    triggered(
        "fuzz-method-number-is-ignored",
        "A method that is a number gets no answer",
        &["TV-TRN-7"],
        |_, body| body["method"].is_number(),
        Effect::Ignore,
    ),
    triggered(
        "fuzz-number-for-sub-id",
        "A number is taken for the subId of unsubscribe",
        &["TV-ERR-2"],
        |_, body| body["method"] == "tinyvex/unsubscribe" && body["params"]["subId"].is_number(),
        Effect::Instead(|body| as_text(body, "/params/subId")),
    ),
    triggered(
        "fuzz-code-as-text",
        "The code of the error for __proto__ is a text",
        &["TV-ERR-1"],
        proto,
        Effect::Answer(
            r#"{"jsonrpc":"2.0","id":$id,"error":{"code":"-32601","message":"Method not found"}}"#,
        ),
    ),
];
