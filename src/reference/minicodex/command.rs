//! Commands: which fields each has, and what is wrong with one.

use serde_json::{Map, Value, json};

use super::Behaviour;
use super::faults::Defect;

/// A refused command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub code: &'static str,
    pub message: String,
    /// The field that is to blame, for `details`.
    pub field: Option<&'static str>,
}

pub(super) fn refuse(code: &'static str, message: impl Into<String>) -> Refusal {
    Refusal { code, message: message.into(), field: None }
}

fn refuse_field(code: &'static str, field: &'static str, problem: &str) -> Refusal {
    Refusal { code, message: format!("{field} {problem}"), field: Some(field) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Integer,
    Boolean,
    Texts,
}

/// A field of a command: name, type, whether it is required, whether null stands for absent.
struct Field(&'static str, Kind, bool, bool);

const ENVELOPE: &[Field] = &[
    Field("v", Kind::Text, false, true),
    Field("session_id", Kind::Text, false, true),
    Field("run_id", Kind::Text, false, true),
    Field("event_id", Kind::Integer, false, true),
    Field("ts", Kind::Text, false, true),
    Field("req_id", Kind::Text, false, true),
];

fn fields(command: &str) -> Option<&'static [Field]> {
    Some(match command {
        "hello" => {
            &[Field("v", Kind::Text, true, false), Field("client_capabilities", Kind::Texts, false, false)]
        }
        "resume" => &[Field("last_seen_event_id", Kind::Integer, false, true)],
        "send" => &[Field("text", Kind::Text, true, false), Field("client_msg_id", Kind::Text, false, true)],
        "approve" | "deny" => &[Field("call_id", Kind::Text, true, false)],
        "abort" => &[],
        "get_snapshot" => &[Field("include_transcript_window", Kind::Boolean, false, false)],
        "ping" => &[Field("nonce", Kind::Text, false, true)],
        _ => return None,
    })
}

fn fits(value: &Value, kind: Kind) -> bool {
    match kind {
        Kind::Text => value.is_string(),
        Kind::Integer => value.is_i64() || value.is_u64(),
        Kind::Boolean => value.is_boolean(),
        Kind::Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
    }
}

/// The command's type, or what is wrong with it.
pub(super) fn check<'b>(body: &'b Map<String, Value>, behaviour: &Behaviour) -> Result<&'b str, Refusal> {
    let command = match body.get("type") {
        None => return Err(refuse("MISSING_FIELD", "type is missing")),
        Some(Value::String(command)) => command.as_str(),
        Some(_) => return Err(refuse("INVALID_COMMAND", "type must be a string")),
    };
    let is_known = command != "resume" || !behaviour.strikes(Defect::ResumeIsUnknown);
    let Some(own) = fields(command).filter(|_| is_known) else {
        return Err(refuse("INVALID_COMMAND", format!("unknown type {command:?}")));
    };
    for field in own.iter().chain(ENVELOPE) {
        match body.get(field.0) {
            None if field.2 => {
                if command == "send" && behaviour.strikes(Defect::MissingFieldIsTaken) {
                    continue;
                }
                if field.0 == "call_id" && behaviour.strikes(Defect::DecidesWithoutCallId) {
                    continue;
                }
                if command == "hello" && behaviour.strikes(Defect::VersionIsOptional) {
                    continue;
                }
                if behaviour.strikes(Defect::WrongCodeForMissingField) {
                    return Err(refuse_field("INVALID_COMMAND", field.0, "is missing"));
                }
                return Err(refuse_field("MISSING_FIELD", field.0, "is missing"));
            }
            None => {}
            Some(Value::Null) if field.3 => {}
            Some(value) if fits(value, field.1) => {}
            Some(_) if behaviour.strikes(Defect::WrongTypesAreTaken) => {}
            Some(_) => return Err(refuse_field("BAD_ARGUMENT", field.0, "has a wrong type")),
        }
    }
    let known = |key: &String| key == "type" || own.iter().chain(ENVELOPE).any(|field| field.0 == key);
    if let Some(unknown) = body.keys().find(|key| !known(key))
        && !behaviour.strikes(Defect::UndeclaredFieldsAreTaken)
    {
        return Err(refuse("BAD_ARGUMENT", format!("{unknown:?} is no field of {command}")));
    }
    if body.contains_key("ts") && behaviour.strikes(Defect::EnvelopeIsUndeclared) {
        return Err(refuse("BAD_ARGUMENT", "ts is for events"));
    }
    Ok(command)
}

/// The error frame of a refusal.
pub(super) fn error_frame(refusal: &Refusal, req_id: Option<&str>, behaviour: &Behaviour) -> Value {
    let mut frame = json!({ "type": "error", "code": refusal.code, "message": refusal.message });
    if let Some(field) = refusal.field {
        frame["details"] = json!({ "field": field });
    }
    if let Some(req_id) = req_id.filter(|_| !behaviour.strikes(Defect::ErrorWithoutReqId)) {
        frame["req_id"] = json!(req_id);
    }
    behaviour.mutate(&mut frame, |defect, frame| match defect {
        Defect::ErrorWithoutMessage => {
            frame.as_object_mut().map(|frame| frame.remove("message"));
        }
        Defect::ErrorDetailsIsText => frame["details"] = json!("see the log"),
        Defect::UnlistedErrorCode => frame["code"] = json!("E_OOPS"),
        _ => {}
    });
    frame
}
