//! How defects and styles change single messages and items.

use serde_json::{Value, json};

use super::Behaviour;
use super::faults::Defect;
use super::store::Thread;
use super::styles::Style;

fn without(value: &mut Value, name: &str) {
    value.as_object_mut().map(|object| object.shift_remove(name));
}

/// The frames that stand for one of the plain server.
pub(super) fn frames(behaviour: &Behaviour, mut frame: Value) -> Vec<Value> {
    let method = frame["method"].as_str().unwrap_or_default().to_owned();
    let is_response = method.is_empty();
    let is_error = frame.get("error").is_some();
    let is_request = !is_response && frame.get("id").is_some();
    if behaviour.style(Style::MoreFields) {
        let part = if is_response { "result" } else { "params" };
        if frame[part].as_object().is_some_and(|object| !object.is_empty()) {
            frame[part]["_meta"] = json!({ "spare": [1, "two"] });
        }
    }
    if behaviour.style(Style::NullsAreLeftOut) {
        without_nulls(&mut frame);
    }
    if behaviour.style(Style::ErrorData) && is_response && is_error {
        frame["error"]["data"] = json!({ "why": "x" });
    }
    match behaviour.striking() {
        Some(Defect::Versions) => frame["jsonrpc"] = json!("2.0"),
        Some(Defect::AnswersTwice) if is_response && frame["result"].get("data").is_some() => {
            return vec![frame.clone(), frame];
        }
        Some(Defect::IdsAsText) if is_response && frame["id"].is_number() => {
            frame["id"] = json!(frame["id"].to_string())
        }
        Some(Defect::ResultBesideError) if is_response && is_error => frame["result"] = Value::Null,
        Some(Defect::ErrorsHaveNoCode) if is_response && is_error => without(&mut frame["error"], "code"),
        Some(Defect::NotificationsHaveIds) if !is_response && !is_request => frame["id"] = json!(0),
        Some(Defect::FramesAreLists) if method == "thread/tokenUsage/updated" => return vec![json!([frame])],
        Some(Defect::NoUserAgent) if frame["result"].is_object() => {
            without(&mut frame["result"], "userAgent");
        }
        Some(Defect::NoHome) if frame["result"].get("codexHome").is_some() => {
            frame["result"]["codexHome"] = json!("")
        }
        Some(Defect::NoPlatform) if frame["result"].is_object() => {
            without(&mut frame["result"], "platformOs");
        }
        Some(Defect::InitializeIsNull) if frame["result"].get("userAgent").is_some() => {
            frame["result"] = Value::Null
        }
        Some(Defect::InitializeIsEmpty) if frame["result"].get("userAgent").is_some() => {
            frame["result"] = json!({})
        }
        Some(Defect::NoNextCursor) if frame["result"]["data"].is_array() => {
            without(&mut frame["result"], "nextCursor")
        }
        Some(Defect::NewThreadsHaveAPreview) => preview(&mut frame, &method),
        Some(Defect::ThreadsHaveNoProvider)
            if frame["result"]["thread"]["turns"].is_array() && frame["result"].get("model").is_some() =>
        {
            without(&mut frame["result"]["thread"], "modelProvider");
        }
        Some(Defect::EphemeralIsNotTold) => {
            for part in ["result", "params"] {
                if frame[part]["thread"]["ephemeral"] == true {
                    frame[part]["thread"]["ephemeral"] = json!(false);
                }
            }
        }
        Some(Defect::EphemeralHasAPath) => {
            for part in ["result", "params"] {
                if frame[part]["thread"]["ephemeral"] == true {
                    frame[part]["thread"]["path"] = json!("/tmp/thread.jsonl");
                }
            }
        }
        Some(Defect::StatusIsAText) if method == "thread/status/changed" => {
            frame["params"]["status"] = frame["params"]["status"]["type"].clone();
        }
        Some(Defect::StatusHasNoThread) if method == "thread/status/changed" => {
            without(&mut frame["params"], "threadId")
        }
        Some(Defect::UnsubscribeIsEmpty) if frame["result"]["status"].is_string() => {
            frame["result"] = json!({})
        }
        Some(Defect::ArchivedHasNoThread) if method == "thread/archived" => {
            without(&mut frame["params"], "threadId")
        }
        Some(Defect::NameUpdatedIsEmpty) if method == "thread/name/updated" => {
            without(&mut frame["params"], "threadId")
        }
        _ => {}
    }
    vec![frame]
}

/// The params of a notification; if it is about an agent's message, with an id of the message that only this client gets.
pub(super) fn with_own_item_ids(method: &str, params: &Value, client: u64) -> Value {
    let mut params = params.clone();
    let is_message = method == "item/agentMessage/delta" || params["item"]["type"] == "agentMessage";
    for at in ["/item/id", "/itemId"] {
        if let Some(Value::String(id)) = params.pointer_mut(at).filter(|_| is_message) {
            id.push_str(&format!("-{client}"));
        }
    }
    params
}

fn preview(frame: &mut Value, method: &str) {
    let part = if method == "thread/started" { "params" } else { "result" };
    if frame[part]["thread"]["preview"] == "" {
        frame[part]["thread"]["preview"] = json!("New thread");
    }
}

/// Members of the params and of threads that are null go.
fn without_nulls(frame: &mut Value) {
    let strip = |value: &mut Value| {
        if let Some(object) = value.as_object_mut() {
            object.retain(|name, value| {
                !value.is_null()
                    || ["error", "nextCursor", "path", "gitInfo", "decision"].contains(&name.as_str())
            });
        }
    };
    for part in ["params", "result"] {
        if frame[part].is_object() {
            strip(&mut frame[part]);
            for inner in ["thread", "item"] {
                if frame[part][inner].is_object() {
                    strip(&mut frame[part][inner]);
                }
            }
        }
    }
}

/// A thread as a server with a defect has stored it.
pub(super) fn stored(thread: &mut Thread, defect: Option<Defect>) {
    match defect {
        Some(Defect::NamesAreNotStored) => thread.about.name = None,
        Some(Defect::ArchiveIsNotStored) => thread.about.archived = false,
        Some(Defect::MetadataDies) => thread.about.git.clear(),
        Some(Defect::PolicyIsNotStored) => thread.settings.approval = json!("never"),
        Some(Defect::ItemsAreNotStored) => thread.turns.iter_mut().for_each(|turn| turn.items.clear()),
        _ => {}
    }
}

/// A message or a piece of reasoning.
pub(super) fn message(mut item: Value, defect: Option<Defect>) -> Value {
    let is_text = item["type"] == "agentMessage";
    match defect {
        Some(Defect::MessagesHaveNoText) if is_text => without(&mut item, "text"),
        Some(Defect::ReasoningHasNoContent) if !is_text => without(&mut item, "content"),
        Some(Defect::MessagesChangeTheirType) if is_text && item["text"] != "" => {
            item["type"] = json!("plan")
        }
        Some(Defect::UnknownItems) if !is_text => item["type"] = json!("pondering"),
        Some(Defect::ItemsHaveNoType) if !is_text => without(&mut item, "type"),
        _ => {}
    }
    item
}

/// A command, as it is started or completed.
pub(super) fn command(mut item: Value, defect: Option<Defect>, starts: bool) -> Value {
    match defect {
        Some(Defect::CommandsHaveNoFolder) => without(&mut item, "cwd"),
        Some(Defect::CommandsStartCompleted) if starts => item["status"] = json!("completed"),
        Some(Defect::CommandsAreDone) if !starts && item["status"] == "completed" => {
            item["status"] = json!("done")
        }
        Some(Defect::NoExitCodes) if !starts && item["status"] == "completed" => {
            item["exitCode"] = Value::Null
        }
        Some(Defect::NoDurations) if !starts => item["durationMs"] = Value::Null,
        Some(Defect::OutputIsCut) if !starts => {
            let output = item["aggregatedOutput"].as_str().unwrap_or_default();
            let first = output.lines().next().unwrap_or_default();
            item["aggregatedOutput"] = json!(first);
        }
        Some(Defect::CommandsStayInProgress) if !starts => item["status"] = json!("inProgress"),
        _ => {}
    }
    item
}

/// A command that has run.
pub(super) fn ran(mut item: Value, code: i64, output: String, time: u64) -> Value {
    item["status"] = json!(if code == 0 { "completed" } else { "failed" });
    item["exitCode"] = json!(code);
    item["aggregatedOutput"] = json!(output);
    item["durationMs"] = json!(time);
    item
}

/// The params of a request for an approval.
pub(super) fn request(params: &mut Value, defect: Option<Defect>) {
    match defect {
        Some(Defect::RequestsHaveNoReason) => params["reason"] = Value::Null,
        Some(Defect::RequestsHaveNoCommand) => params["command"] = Value::Null,
        Some(Defect::UnknownDecisionsAreOffered) => params["availableDecisions"] = json!(["accept", "maybe"]),
        Some(Defect::AdditionalPermissions) => params["additionalPermissions"] = json!({ "network": true }),
        _ => {}
    }
}

/// The turn of a turn/completed.
pub(super) fn ended(turn: &mut Value, defect: Option<Defect>) {
    match defect {
        Some(Defect::TurnsEndDone) if turn["status"] == "completed" => turn["status"] = json!("done"),
        Some(Defect::FailedIsCompleted) if turn["status"] == "failed" => {
            turn["status"] = json!("completed");
            turn["error"] = Value::Null;
        }
        Some(Defect::FailedHasNoError) if turn["status"] == "failed" => turn["error"] = Value::Null,
        Some(Defect::CompletedHasAnError) if turn["status"] == "completed" => {
            turn["error"] = json!({ "message": "none" });
        }
        _ => {}
    }
}

/// What is told of a provider's failure.
pub(super) fn error(status: u16, message: &str, defect: Option<Defect>) -> Value {
    let info = match (status, defect) {
        (_, Some(Defect::ErrorsAreUnknown)) => json!("providerFailure"),
        (400, Some(Defect::BadRequestIsOther)) => json!("other"),
        (400, _) => json!("badRequest"),
        (401, _) => json!("unauthorized"),
        (500..=599, _) => json!("internalServerError"),
        (_, Some(Defect::NoHttpStatus)) => json!({ "responseTooManyFailedAttempts": {} }),
        (status, _) => json!({ "responseTooManyFailedAttempts": { "httpStatusCode": status } }),
    };
    json!({ "message": format!("the provider answered {status}: {message}"), "codexErrorInfo": info, "additionalDetails": null })
}
