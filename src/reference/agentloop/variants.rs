//! What messages look like under the legal styles.

use serde_json::{Value, json};

use super::Behaviour;
use super::styles::Style;

/// Shapes a message that is about to be sent.
pub(super) fn shape_frame(behaviour: &Behaviour, frame: &mut Value, kind: &str) {
    match kind {
        "context_info" | "context_compacted" if behaviour.style(Style::WholeFloats) => {
            for value in frame["payload"].as_object_mut().into_iter().flat_map(|payload| payload.values_mut())
            {
                if let Some(count) = value.as_u64() {
                    *value = json!(count as f64);
                }
            }
        }
        "error" if behaviour.style(Style::NoDetails) => {
            frame["payload"].as_object_mut().map(|payload| payload.shift_remove("details"));
        }
        "error" if behaviour.style(Style::DetailsAreText) => {
            frame["payload"]["details"] = json!("see the log")
        }
        "response_item" => shape_item(behaviour, &mut frame["payload"]),
        "approval_request" => shape_request(behaviour, &mut frame["payload"]),
        _ => {}
    }
    if behaviour.style(Style::MoreFields) && frame.is_object() {
        frame["sentAt"] = json!(1_700_000_000);
        if frame["payload"].is_object() {
            frame["payload"]["origin"] = json!({ "server": "reference" });
        }
    }
}

fn shape_item(behaviour: &Behaviour, item: &mut Value) {
    let kind = item["type"].as_str().unwrap_or_default().to_owned();
    if behaviour.style(Style::ItemsHaveStatus) && kind != "local_shell_call" {
        item["status"] = json!("completed");
    }
    if behaviour.style(Style::ContentIsText) && kind == "message" {
        let parts = item["content"].as_array().into_iter().flatten();
        let text: String = parts.filter_map(|part| part["text"].as_str()).collect();
        item["content"] = json!(text);
    }
    if behaviour.style(Style::CallIdsApart) && matches!(kind.as_str(), "function_call" | "local_shell_call") {
        let id = format!("fc_{}", item["id"].as_str().unwrap_or_default());
        item["id"] = json!(id);
    }
    if kind.starts_with("local_shell") && behaviour.style(Style::ShellWithoutCallId) {
        item.as_object_mut().map(|item| item.shift_remove("call_id"));
    }
    if kind == "local_shell_call" && behaviour.style(Style::ShellInProgress) {
        item["status"] = json!("in_progress");
    }
    if behaviour.style(Style::IndentedArguments) {
        indent(item, "arguments");
    }
    if behaviour.style(Style::IndentedOutputs) && kind.ends_with("_output") {
        indent(item, "output");
    }
    if behaviour.style(Style::PlainOutputs) && kind.ends_with("_output") {
        let output = item["output"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        if let Some(text) = output.and_then(|output| output["output"].as_str().map(str::to_owned)) {
            item["output"] = json!(text);
        }
    }
}

/// Spells the JSON text of a field with white space; what is none stays as it is.
fn indent(item: &mut Value, field: &str) {
    let Some(text) = item.get_mut(field) else { return };
    let value = text.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    if let Some(pretty) = value.and_then(|value| serde_json::to_string_pretty(&value).ok()) {
        *text = json!(pretty);
    }
}

fn shape_request(behaviour: &Behaviour, request: &mut Value) {
    if let Some(patch) = request.get_mut("applyPatch") {
        if behaviour.style(Style::PatchHasMore) {
            patch["files"] = json!(1);
        }
        return;
    }
    if behaviour.style(Style::NullPatch) {
        request["applyPatch"] = Value::Null;
    }
    shape_command(behaviour, &mut request["command"]);
}

fn shape_command(behaviour: &Behaviour, command: &mut Value) {
    let Some(words) = command.as_array().filter(|words| words.len() > 1) else { return };
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    if behaviour.style(Style::WrappedCommand) {
        *command = json!(["bash", "-lc", words.join(" ")]);
    } else if behaviour.style(Style::JsonCommand) {
        *command = json!([words[0], json!({ "args": words[1..] }).to_string()]);
    }
}

/// The chunks of a text, cut anew.
pub(super) fn recut(behaviour: &Behaviour, chunks: Vec<String>) -> Vec<String> {
    let mut cut = behaviour.recut(chunks, Style::OnePiece, Style::SmallPieces);
    if behaviour.style(Style::EmptyFirstChunk) {
        cut.insert(0, String::new());
    }
    cut
}
