//! Frames on their way out, as the defects of single frames leave them.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::Behaviour;
use super::faults::Defect;

fn text(frame: &Value) -> Message {
    Message::text(frame.to_string())
}

/// The messages that a frame becomes: itself, unless there is a defect.
pub(super) fn apply_frame_fault(behaviour: &Behaviour, frame: Value) -> Vec<Message> {
    let mut messages = vec![text(&frame)];
    behaviour.mutate(&mut messages, |defect, messages| *messages = mutated(defect, frame));
    messages
}

/// The messages that a defect makes of a frame.
fn mutated(defect: Defect, frame: Value) -> Vec<Message> {
    let kind = frame["type"].as_str().unwrap_or_default().to_owned();
    let mut frame = frame;
    let mut times = 1;
    let remove = |frame: &mut Value, at: &str, name: &str| {
        frame.pointer_mut(at).and_then(Value::as_object_mut).map(|map| map.remove(name));
    };
    match (defect, kind.as_str()) {
        (Defect::BinaryFrames, "TextDelta") => return vec![Message::binary(frame.to_string().into_bytes())],
        (Defect::PongInAnArray, "Pong") => frame = json!([frame]),
        (Defect::NamelessFrames, "TextDelta") => {
            remove(&mut frame, "", "type");
            frame["kind"] = json!("TextDelta");
        }
        (Defect::LowerCaseTypes, "TextDelta") => frame["type"] = json!("text_delta"),
        (Defect::UnlistedType, "Finished") => {
            return vec![text(&json!({ "type": "TurnStats", "turns": 1 })), text(&frame)];
        }
        (Defect::GreetsTwice, "Connected")
        | (Defect::FinishesTwice, "Finished")
        | (Defect::EndsTwice, "ToolCompleted")
        | (Defect::StartsTwice, "ToolStarted")
        | (Defect::PongsTwice, "Pong")
        | (Defect::HistoriesTwice, "History")
        | (Defect::StatesTwice, "State") => times = 2,
        (Defect::NoFinished, "Finished") | (Defect::NoPong, "Pong") | (Defect::NoEnd, "ToolCompleted") => {
            times = 0;
        }
        (Defect::SessionIdIsNumber, "Connected") => frame["session_id"] = json!(1),
        (Defect::AgentIsText, "TextDelta") => frame["agent_id"] = json!("0"),
        (Defect::TextHasExtra, "TextDelta") => frame["index"] = json!(1),
        (Defect::ThoughtIsList, "ThinkingDelta") => frame["content"] = json!([frame["content"]]),
        (Defect::CallsAreEmpty, "ToolRequest") => frame["calls"] = json!([]),
        (Defect::ParamsAreText, "ToolRequest") => {
            for call in frame["calls"].as_array_mut().into_iter().flatten() {
                call["params"] = json!(call["params"].to_string());
            }
        }
        (Defect::EmptyParamsAreNull, "ToolRequest") => {
            let calls = frame["calls"].as_array_mut().into_iter().flatten();
            for call in calls.filter(|call| call["params"] == json!({}) && call["name"] != "write_note") {
                call["params"] = Value::Null;
            }
        }
        (Defect::NumbersStayNumbers, "TextDelta") => {
            let text = frame["content"].as_str().unwrap_or_default();
            let number = serde_json::from_str(text).ok().filter(Value::is_number);
            frame["content"] = number.unwrap_or(json!(text));
        }
        (Defect::OutputIsBytes, "ToolDelta") => {
            let text = frame["content"].as_str().unwrap_or_default();
            frame["content"] = if text.is_ascii() { json!(text) } else { json!(text.as_bytes()) };
        }
        (Defect::EmptyOutputIsNull, "ToolDelta") if frame["content"] == "" => frame["content"] = Value::Null,
        (Defect::AskingLacksBackground, "ToolAwaitingApproval") => remove(&mut frame, "", "background"),
        (Defect::AsksWithOtherParams, "ToolAwaitingApproval") => frame["params"] = json!({ "key": "other" }),
        (Defect::StartLacksName, "ToolStarted") => remove(&mut frame, "", "name"),
        (Defect::StartsUnderAnotherName, "ToolStarted") => frame["name"] = json!("tool"),
        (Defect::OutputIsList, "ToolDelta") => frame["content"] = json!([frame["content"]]),
        (Defect::CompletedLacksContent, "ToolCompleted") => remove(&mut frame, "", "content"),
        (Defect::ToolErrorUnderAnotherName, "ToolError") => {
            let error = frame["error"].take();
            remove(&mut frame, "", "error");
            frame["message"] = error;
        }
        (Defect::ErrorOfAnotherCall, "ToolError") if frame["error"] != "cancelled" => {
            frame["call_id"] = json!("call_0")
        }
        (Defect::EndsInBothWays, "ToolCompleted") => {
            let error = json!({
                "type": "ToolError", "agent_id": frame["agent_id"], "call_id": frame["call_id"], "error": "late",
            });
            return vec![text(&frame), text(&error)];
        }
        (Defect::AgentOfToolsVaries, "ToolCompleted") => frame["agent_id"] = json!(1),
        (Defect::UsageIsText, "Finished") => frame["usage"]["output_tokens"] = json!("many"),
        (Defect::UsageLacksCache, "Finished") => remove(&mut frame, "/usage", "cache_read_tokens"),
        (Defect::AttemptZero, "Retrying") => {
            frame["attempt"] = json!(frame["attempt"].as_i64().unwrap_or(1) - 1);
        }
        (Defect::HistoryIsMap, "History") => frame["messages"] = json!({ "all": frame["messages"] }),
        (Defect::TimesAreNaive, "History") => {
            for entry in frame["messages"].as_array_mut().into_iter().flatten() {
                entry["timestamp"] = json!("2024-01-15 10:30");
            }
        }
        (Defect::NoAgents, "State") => frame["agents"] = json!([]),
        (Defect::PendingLacksParams, "State") => {
            for call in frame["pending_approvals"].as_array_mut().into_iter().flatten() {
                remove(call, "", "params");
            }
        }
        (Defect::PendingIsCut, "State") => {
            let pending = frame["pending_approvals"].as_array_mut().into_iter().flatten();
            let params = pending.filter_map(|call| call["params"].as_object_mut());
            for value in params.flat_map(|params| params.values_mut()) {
                if let Some(text) = value.as_str() {
                    *value = json!(text.chars().take(100).collect::<String>());
                }
            }
        }
        (Defect::LosesSigns, "TextDelta") => {
            let text = frame["content"].as_str().unwrap_or_default();
            frame["content"] = json!(text.replace(|c: char| c.is_control() && !c.is_whitespace(), ""));
        }
        (Defect::PendingIsHidden, "State") => frame["pending_approvals"] = json!([]),
        (Defect::PongHasExtra, "Pong") => frame["time"] = json!(0),
        (Defect::ErrorLacksFatal, "Error") => remove(&mut frame, "", "fatal"),
        _ => {}
    }
    vec![text(&frame); times]
}
