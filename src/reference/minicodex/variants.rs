//! What events look like under the legal styles.

use serde_json::{Map, Value, json};

use super::Behaviour;
use super::session::Session;
use super::styles::Style;

/// The kinds of events that are items of the transcript.
pub(super) fn is_item(kind: &str) -> bool {
    matches!(kind, "user_text" | "assistant_text" | "tool_call" | "function_call_output" | "reasoning")
}

/// Shapes an event that is about to be logged.
pub(super) fn shape_event(session: &Session, event: &mut Value, kind: &str) {
    let Some(fields) = event.as_object_mut() else { return };
    if session.style(Style::BareEvents) {
        fields.retain(|name, _| name != "ts" && (name != "run_id" || kind == "turn_done"));
    }
    if session.style(Style::FullEnvelopes) {
        fields.insert("v".into(), json!("1.0.0"));
        fields.insert("session_id".into(), json!(session.id));
    }
}

/// Shapes an item before it gets into the transcript.
pub(super) fn shape_item(session: &Session, item: &mut Value) {
    if session.style(Style::ItemsHaveMore) {
        item["origin"] = json!("agent");
    }
    let Some(result) = item.get_mut("result").and_then(Value::as_object_mut) else { return };
    if session.style(Style::SuccessUnmarked) && result.get("isError") == Some(&json!(false)) {
        result.shift_remove("isError");
    }
    if session.style(Style::NullStructured) {
        result.insert("structuredContent".into(), Value::Null);
    }
}

/// Shapes the announcement of a guarded call.
pub(super) fn shape_announcement(session: &Session, event: &mut Value, args: &Value) {
    if session.style(Style::NoArgs) {
        event.as_object_mut().map(|event| event.shift_remove("args_json"));
    } else if session.style(Style::NullArgs) {
        event["args_json"] = Value::Null;
    } else if session.style(Style::IndentedArgs) {
        event["args_json"] = json!(serde_json::to_string_pretty(args).unwrap_or_default());
    } else if session.style(Style::ReorderedArgs) {
        let args = args.as_object().cloned().unwrap_or_default();
        let reordered: Map<_, _> = args.into_iter().rev().collect();
        event["args_json"] = json!(Value::Object(reordered).to_string());
    }
}

/// The chunks of a text, cut anew.
pub(super) fn recut(behaviour: &Behaviour, chunks: Vec<String>) -> Vec<String> {
    behaviour.recut(chunks, Style::OnePiece, Style::SmallPieces)
}
