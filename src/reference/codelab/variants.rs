//! What frames and results look like under the legal styles.

use serde_json::{Value, json};

use super::Behaviour;
use super::styles::Style;
use crate::reference::styles::pieces;

/// Characters of a token, where text is joined.
const JOINED: usize = 120;
/// A text has about so many small pieces at most.
const PARTS: usize = 400;

/// A frame with a further field.
pub(super) fn widened(frame: &Value) -> Value {
    let mut frame = frame.clone();
    frame["origin"] = json!("agent");
    frame
}

/// The id of a session's call of this number.
pub(super) fn call_id(behaviour: &Behaviour, number: u64) -> String {
    if behaviour.style(Style::LongCallIds) {
        format!("call <{number}> of & /{}/", "é".repeat(100))
    } else if behaviour.style(Style::UuidCallIds) {
        uuid::Uuid::new_v4().to_string()
    } else if behaviour.style(Style::DigitCallIds) {
        (1000 + number).to_string()
    } else {
        format!("call-{number}")
    }
}

/// The error frame of a refusal.
pub(super) fn error(behaviour: &Behaviour, code: &str, message: &str) -> Value {
    let malformed = matches!(code, "INVALID_TYPE" | "MISSING_FIELD");
    let code = if malformed && behaviour.style(Style::BroadCode) { "INVALID_FORMAT" } else { code };
    if behaviour.style(Style::CodeInField) {
        json!({ "type": "error", "content": message, "code": code })
    } else if behaviour.style(Style::ErrorCodeInField) {
        json!({ "type": "error", "content": message, "error_code": code })
    } else if behaviour.style(Style::NoCodes) {
        json!({ "type": "error", "content": "Сообщение не принято" })
    } else if behaviour.style(Style::NullCode) {
        json!({ "type": "error", "content": message, "code": null, "error_code": null })
    } else {
        json!({ "type": "error", "content": format!("{code}: {message}") })
    }
}

/// What a tool came to, in other words.
pub(super) fn reworded(outcome: &str) -> String {
    match outcome.starts_with("wrote ") || outcome.starts_with("no note ") {
        true => "ok".to_owned(),
        false => format!("[{outcome}]"),
    }
}

/// The tokens of a text, cut anew.
pub(super) fn recut(behaviour: &Behaviour, chunks: Vec<String>) -> Vec<String> {
    if behaviour.style(Style::OnePiece) {
        return pieces::sized(&chunks.concat(), JOINED);
    }
    if behaviour.style(Style::SmallPieces) {
        return pieces::small(&[chunks.concat()], PARTS);
    }
    chunks
}
