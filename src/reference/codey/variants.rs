//! What frames look like under the legal styles.

use serde_json::{Value, json};

use super::Behaviour;
use super::styles::Style;
use crate::reference::styles::pieces;

/// A text has about so many small pieces at most.
const PARTS: usize = 400;

/// The frames that stand for one of the plain server.
pub(super) fn shape(behaviour: &Behaviour, mut frame: Value) -> Vec<Value> {
    match frame["type"].as_str().unwrap_or_default() {
        "Connected" if behaviour.style(Style::ConnectedVersion) => frame["version"] = json!("1.2.3"),
        "Error" if behaviour.style(Style::OtherWords) => frame["message"] = json!("Так нельзя"),
        "ToolError" if behaviour.style(Style::OtherWords) => frame["error"] = json!("нет"),
        "ToolCompleted" if behaviour.style(Style::Formatted) => {
            let content = frame["content"].as_str().unwrap_or_default();
            frame["content"] = json!(format!("<result>{content}</result>"));
        }
        "ThinkingDelta" if behaviour.style(Style::NoThinking) => return Vec::new(),
        "ToolRequest" if behaviour.style(Style::RequestPerCall) => return apart(&frame),
        "Finished" if behaviour.style(Style::NoCaches) => {
            frame["usage"]["cache_creation_tokens"] = json!(0);
            frame["usage"]["cache_read_tokens"] = json!(0);
        }
        _ => {}
    }
    vec![frame]
}

/// One ToolRequest for each call.
fn apart(frame: &Value) -> Vec<Value> {
    let calls = frame["calls"].as_array().into_iter().flatten();
    calls
        .map(|call| {
            let mut one = frame.clone();
            one["calls"] = json!([call]);
            one
        })
        .collect()
}

/// The id of a call.
pub(super) fn call_id(behaviour: &Behaviour) -> String {
    let id = uuid::Uuid::new_v4();
    if behaviour.style(Style::LongCallIds) {
        format!("call <{id}> of & /{}/", "é".repeat(100))
    } else if behaviour.style(Style::DigitCallIds) {
        id.as_u128().to_string()
    } else {
        format!("call_{}", id.simple())
    }
}

/// A timestamp of History.
pub(super) fn timestamp(behaviour: &Behaviour, plain: &str) -> Value {
    if behaviour.style(Style::NullTimes) {
        Value::Null
    } else if behaviour.style(Style::LocalTimes) {
        json!(plain.replace('Z', "+00:00"))
    } else {
        json!(plain)
    }
}

/// The pieces of a text, cut anew.
pub(super) fn recut(behaviour: &Behaviour, chunks: Vec<String>) -> Vec<String> {
    if behaviour.style(Style::OnePiece) {
        return vec![chunks.concat()];
    }
    if behaviour.style(Style::SmallPieces) {
        return pieces::small(&[chunks.concat()], PARTS);
    }
    chunks
}
