//! How defects and styles change single messages and items.

use serde_json::{Value, json};

use super::Behaviour;
use super::faults::Defect;
use super::store::Thread;
use super::styles::Style;

/// Characters of what is cut only where it is long.
const LONG: usize = 100;

fn without(value: &mut Value, name: &str) {
    value.as_object_mut().map(|object| object.shift_remove(name));
}

/// The frames that stand for one of the plain server.
pub(super) fn frames(behaviour: &Behaviour, mut frame: Value) -> Vec<Value> {
    let is_response = frame.get("method").is_none();
    let is_error = frame.get("error").is_some();
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
    let mut frames = vec![frame];
    behaviour.mutate(&mut frames, |defect, frames| *frames = mutated(defect, frames.remove(0)));
    frames
}

/// The frames that a server with a defect sends for one of the plain server.
fn mutated(defect: Defect, mut frame: Value) -> Vec<Value> {
    let method = frame["method"].as_str().unwrap_or_default().to_owned();
    let is_response = method.is_empty();
    let is_error = frame.get("error").is_some();
    let is_request = !is_response && frame.get("id").is_some();
    match defect {
        Defect::Versions => frame["jsonrpc"] = json!("2.0"),
        Defect::AnswersTwice if is_response && frame["result"].get("data").is_some() => {
            return vec![frame.clone(), frame];
        }
        Defect::IdsAsText if is_response && frame["id"].is_number() => {
            frame["id"] = json!(frame["id"].to_string())
        }
        Defect::ResultBesideError if is_response && is_error => frame["result"] = Value::Null,
        Defect::ErrorsHaveNoCode if is_response && is_error => without(&mut frame["error"], "code"),
        Defect::NotificationsHaveIds if !is_response && !is_request => frame["id"] = json!(0),
        Defect::UnreadableHasNoMessage if frame["error"]["code"] == -32700 => {
            without(&mut frame["error"], "message");
        }
        Defect::EndsHaveTheIdNull if method == "turn/completed" => frame["id"] = Value::Null,
        Defect::NumericIdsBecomeNumbers if is_response && frame["id"].is_string() => {
            let number = frame["id"].as_str().and_then(|id| id.parse::<u64>().ok());
            frame["id"] = number.map_or_else(|| frame["id"].clone(), |number| json!(number));
        }
        Defect::FramesAreLists if method == "thread/tokenUsage/updated" => return vec![json!([frame])],
        Defect::NoUserAgent if frame["result"].is_object() => {
            without(&mut frame["result"], "userAgent");
        }
        Defect::NoHome if frame["result"].get("codexHome").is_some() => {
            frame["result"]["codexHome"] = json!("")
        }
        Defect::NoPlatform if frame["result"].is_object() => {
            without(&mut frame["result"], "platformOs");
        }
        Defect::InitializeIsNull if frame["result"].get("userAgent").is_some() => {
            frame["result"] = Value::Null
        }
        Defect::InitializeIsEmpty if frame["result"].get("userAgent").is_some() => {
            frame["result"] = json!({})
        }
        Defect::NoNextCursor if frame["result"]["data"].is_array() => {
            without(&mut frame["result"], "nextCursor")
        }
        Defect::NewThreadsHaveAPreview => preview(&mut frame, &method),
        Defect::ThreadsHaveNoProvider
            if frame["result"]["thread"]["turns"].is_array() && frame["result"].get("model").is_some() =>
        {
            without(&mut frame["result"]["thread"], "modelProvider");
        }
        Defect::EphemeralIsNotTold => {
            for part in ["result", "params"] {
                if frame[part]["thread"]["ephemeral"] == true {
                    frame[part]["thread"]["ephemeral"] = json!(false);
                }
            }
        }
        Defect::EphemeralHasAPath => {
            for part in ["result", "params"] {
                if frame[part]["thread"]["ephemeral"] == true {
                    frame[part]["thread"]["path"] = json!("/tmp/thread.jsonl");
                }
            }
        }
        Defect::StatusIsAText if method == "thread/status/changed" => {
            frame["params"]["status"] = frame["params"]["status"]["type"].clone();
        }
        Defect::StatusHasNoThread if method == "thread/status/changed" => {
            without(&mut frame["params"], "threadId")
        }
        Defect::UnsubscribeIsEmpty if frame["result"]["status"].is_string() => frame["result"] = json!({}),
        Defect::ArchivedHasNoThread if method == "thread/archived" => {
            without(&mut frame["params"], "threadId")
        }
        Defect::NameUpdatedIsEmpty if method == "thread/name/updated" => {
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
pub(super) fn stored(thread: &mut Thread, behaviour: &Behaviour) {
    let Thread { about, settings, turns, .. } = thread;
    behaviour.mutate(&mut about.name, |defect, name| {
        if defect == Defect::NamesAreNotStored {
            *name = None
        }
    });
    behaviour
        .mutate(&mut about.archived, |defect, archived| *archived &= defect != Defect::ArchiveIsNotStored);
    behaviour.mutate(&mut about.git, |defect, git| {
        if defect == Defect::MetadataDies {
            git.clear()
        }
    });
    behaviour.mutate(&mut settings.approval, |defect, approval| {
        if defect == Defect::PolicyIsNotStored {
            *approval = json!("never")
        }
    });
    behaviour.mutate(turns, |defect, turns| {
        if defect == Defect::ItemsAreNotStored {
            turns.iter_mut().for_each(|turn| turn.items.clear())
        }
    });
}

/// A message or a piece of reasoning.
pub(super) fn message(mut item: Value, behaviour: &Behaviour) -> Value {
    let is_text = item["type"] == "agentMessage";
    behaviour.mutate(&mut item, |defect, item| match defect {
        Defect::MessagesHaveNoText if is_text => without(item, "text"),
        Defect::ReasoningHasNoContent if !is_text => without(item, "content"),
        Defect::MessagesChangeTheirType if is_text && item["text"] != "" => item["type"] = json!("plan"),
        Defect::UnknownItems if !is_text => item["type"] = json!("pondering"),
        Defect::ItemsHaveNoType if !is_text => without(item, "type"),
        _ => {}
    });
    item
}

/// A command, as it is started or completed.
pub(super) fn command(mut item: Value, behaviour: &Behaviour, starts: bool) -> Value {
    behaviour.mutate(&mut item, |defect, item| match defect {
        Defect::CommandsHaveNoFolder => without(item, "cwd"),
        Defect::CommandsStartCompleted if starts => item["status"] = json!("completed"),
        Defect::CommandsAreDone if !starts && item["status"] == "completed" => item["status"] = json!("done"),
        Defect::NoExitCodes if !starts && item["status"] == "completed" => item["exitCode"] = Value::Null,
        Defect::NoDurations if !starts => item["durationMs"] = Value::Null,
        Defect::OutputIsCut if !starts => {
            let output = item["aggregatedOutput"].as_str().unwrap_or_default();
            let first = output.lines().next().unwrap_or_default();
            item["aggregatedOutput"] = json!(first);
        }
        Defect::LongOutputIsCut if !starts => {
            let output = item["aggregatedOutput"].as_str().unwrap_or_default();
            item["aggregatedOutput"] = json!(output.chars().take(LONG).collect::<String>());
        }
        Defect::CommandsStayInProgress if !starts => item["status"] = json!("inProgress"),
        _ => {}
    });
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
pub(super) fn request(params: &mut Value, behaviour: &Behaviour) {
    behaviour.mutate(params, |defect, params| match defect {
        Defect::RequestsHaveNoReason => params["reason"] = Value::Null,
        Defect::RequestsAreCut => {
            if let Some(command) = params["command"].as_str().filter(|command| command.len() > LONG) {
                params["command"] = json!(command.chars().take(LONG).collect::<String>());
            }
        }
        Defect::RequestsHaveNoCommand => params["command"] = Value::Null,
        Defect::UnknownDecisionsAreOffered => params["availableDecisions"] = json!(["accept", "maybe"]),
        Defect::AdditionalPermissions => params["additionalPermissions"] = json!({ "network": true }),
        _ => {}
    });
}

/// The turn of a turn/completed.
pub(super) fn ended(turn: &mut Value, behaviour: &Behaviour) {
    behaviour.mutate(turn, |defect, turn| match defect {
        Defect::TurnsEndDone if turn["status"] == "completed" => turn["status"] = json!("done"),
        Defect::FailedIsCompleted if turn["status"] == "failed" => {
            turn["status"] = json!("completed");
            turn["error"] = Value::Null;
        }
        Defect::FailedHasNoError if turn["status"] == "failed" => turn["error"] = Value::Null,
        Defect::CompletedHasAnError if turn["status"] == "completed" => {
            turn["error"] = json!({ "message": "none" });
        }
        _ => {}
    });
}

/// What is told of a provider's failure.
pub(super) fn error(status: u16, message: &str, behaviour: &Behaviour) -> Value {
    let mut info = match status {
        400 => json!("badRequest"),
        401 => json!("unauthorized"),
        500..=599 => json!("internalServerError"),
        status => json!({ "responseTooManyFailedAttempts": { "httpStatusCode": status } }),
    };
    behaviour.mutate(&mut info, |defect, info| match defect {
        Defect::ErrorsAreUnknown => *info = json!("providerFailure"),
        Defect::BadRequestIsOther if status == 400 => *info = json!("other"),
        Defect::HttpStatusIsText if info.is_object() => {
            *info = json!({ "responseTooManyFailedAttempts": { "httpStatusCode": status.to_string() } });
        }
        Defect::NoHttpStatus if info.is_object() => *info = json!({ "responseTooManyFailedAttempts": {} }),
        _ => {}
    });
    json!({ "message": format!("the provider answered {status}: {message}"), "codexErrorInfo": info, "additionalDetails": null })
}
