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

const COMMANDS: &[&str] = &["hello", "resume", "send", "approve", "deny", "abort", "get_snapshot", "ping"];

/// The command that a defect takes a message for.
fn taken_for(body: &Map<String, Value>, behaviour: &Behaviour) -> Option<&'static str> {
    match body.get("type") {
        None if body.contains_key("text") => behaviour.strikes(Defect::TextMeansSend).then_some("send"),
        Some(Value::String(name)) if name == "user_text" => {
            behaviour.strikes(Defect::UserTextMeansSend).then_some("send")
        }
        Some(Value::String(name)) => {
            let known = COMMANDS.iter().copied().find(|known| known.eq_ignore_ascii_case(name));
            known.filter(|known| known != name && behaviour.strikes(Defect::TypesIgnoreCase))
        }
        _ => None,
    }
}

/// Whether a defect does without a required field.
fn is_spared(command: &str, field: &str, body: &Map<String, Value>, behaviour: &Behaviour) -> bool {
    match (command, field) {
        ("send", _) if behaviour.strikes(Defect::MissingFieldIsTaken) => true,
        ("send", _) => body.contains_key("client_msg_id") && behaviour.strikes(Defect::AnIdIsEnough),
        ("hello", _) if behaviour.strikes(Defect::VersionIsOptional) => true,
        ("hello", _) if body.contains_key("session_id") => {
            behaviour.strikes(Defect::OldSessionsNeedNoVersion)
        }
        ("hello", _) => {
            body.contains_key("client_capabilities") && behaviour.strikes(Defect::CapabilitiesAreEnough)
        }
        (_, "call_id") => behaviour.strikes(Defect::DecidesWithoutCallId),
        _ => false,
    }
}

/// Whether a defect takes a value of a wrong type.
fn is_taken(field: &str, value: &Value, behaviour: &Behaviour) -> bool {
    let is_number = value.is_number();
    let said = value.as_str();
    let empty = [Value::Bool(false), json!(0), json!([]), json!({})];
    let taken = match field {
        "client_capabilities" => vec![
            (Defect::CapabilitiesOfAnyType, value.is_array()),
            (Defect::CapabilitiesInText, said.is_some()),
        ],
        "last_seen_event_id" => vec![
            (Defect::CursorsInText, said.is_some_and(|text| text.parse::<i64>().is_ok())),
            (Defect::CursorsAreRounded, is_number),
            (Defect::CursorsAreFlags, value.is_boolean()),
        ],
        "text" => vec![(Defect::NullTextIsEmpty, value.is_null()), (Defect::NumbersAreTexts, is_number)],
        "client_msg_id" => {
            vec![(Defect::NumbersAreIds, is_number), (Defect::EmptyIsNoId, empty.contains(value))]
        }
        "include_transcript_window" => vec![
            (Defect::FlagsInText, matches!(said, Some("true" | "false"))),
            (Defect::FlagsInNumbers, is_number),
        ],
        "nonce" => vec![
            (Defect::NumbersAreNonces, is_number),
            (Defect::NoncesHaveParts, value.is_array() || value.is_object()),
        ],
        "call_id" => vec![(Defect::NullCallIdDecides, value.is_null())],
        "v" => vec![(Defect::NumbersAreVersions, is_number), (Defect::NullIsAVersion, value.is_null())],
        _ => Vec::new(),
    };
    taken.into_iter().any(|(defect, is_so)| is_so && behaviour.strikes(defect))
}

/// What a defect refuses although it is valid.
fn refused_anyway(command: &str, body: &Map<String, Value>, behaviour: &Behaviour) -> Option<Refusal> {
    if body.contains_key("ts") && behaviour.strikes(Defect::EnvelopeIsUndeclared) {
        return Some(refuse("BAD_ARGUMENT", "ts is for events"));
    }
    let opens = matches!(command, "hello" | "resume");
    if !opens && body.contains_key("v") && behaviour.strikes(Defect::VersionIsForHello) {
        return Some(refuse("BAD_ARGUMENT", "v is for hello"));
    }
    if command != "abort" && body.contains_key("run_id") && behaviour.strikes(Defect::RunIdIsForAbort) {
        return Some(refuse("BAD_ARGUMENT", "run_id is for abort"));
    }
    let comes_back = command == "hello" && body.contains_key("session_id");
    if comes_back
        && !body.contains_key("client_capabilities")
        && behaviour.strikes(Defect::OldSessionsNeedThem)
    {
        return Some(refuse_field("MISSING_FIELD", "client_capabilities", "is missing"));
    }
    if command == "ping" && !body.contains_key("nonce") && behaviour.strikes(Defect::NoncesAreNeeded) {
        return Some(refuse_field("MISSING_FIELD", "nonce", "is missing"));
    }
    let id = body.get("client_msg_id").and_then(Value::as_str)?;
    if id.len() > 64 && behaviour.strikes(Defect::LongIdsAreRefused) {
        return Some(refuse_field("BAD_ARGUMENT", "client_msg_id", "is too long"));
    }
    if id.is_empty() && behaviour.strikes(Defect::EmptyIdsAreRefused) {
        return Some(refuse_field("BAD_ARGUMENT", "client_msg_id", "is empty"));
    }
    None
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
    let taken_for = taken_for(body, behaviour);
    let command = match body.get("type") {
        _ if taken_for.is_some() => taken_for.unwrap_or_default(),
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
                if is_spared(command, field.0, body, behaviour) {
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
            Some(value) if is_taken(field.0, value, behaviour) => {}
            Some(_) => return Err(refuse_field("BAD_ARGUMENT", field.0, "has a wrong type")),
        }
    }
    let known = |key: &String| key == "type" || own.iter().chain(ENVELOPE).any(|field| field.0 == key);
    let is_of_another = |key: &str| {
        let mut all = COMMANDS.iter().filter_map(|command| fields(command)).flatten();
        all.any(|field| field.0 == key) && behaviour.strikes(Defect::FieldsOfOthersAreTaken)
    };
    let tolerated = |key: &str| {
        is_of_another(key)
            || (body.get(key).is_some_and(Value::is_null)
                && behaviour.strikes(Defect::UndeclaredNullsAreTaken))
    };
    if let Some(unknown) = body.keys().find(|key| !known(key) && !tolerated(key))
        && !behaviour.strikes(Defect::UndeclaredFieldsAreTaken)
    {
        return Err(refuse("BAD_ARGUMENT", format!("{unknown:?} is no field of {command}")));
    }
    refused_anyway(command, body, behaviour).map_or(Ok(command), Err)
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
        Defect::ErrorHasAVersion => frame["v"] = json!("1.0"),
        Defect::ErrorNamesASession => frame["session_id"] = json!("default"),
        Defect::BusyNamesNoUuid if refusal.code == "BUSY" => frame["run_id"] = json!("current"),
        Defect::IdleErrorHasARun if refusal.code == "NOT_RUNNING" => frame["run_id"] = json!(""),
        Defect::ErrorTimeIsANumber if refusal.field.is_some() => frame["ts"] = json!(1_767_323_045),
        Defect::CodeIsANumber if refusal.message.starts_with("not a JSON") => frame["code"] = json!(400),
        Defect::DetailsAreAList if refusal.message.contains("is no field") => {
            frame["details"] = json!([refusal.message]);
        }
        Defect::BusyDetailsAreText if refusal.code == "BUSY" => frame["details"] = json!("try again"),
        Defect::UnknownTypeLosesReqId if refusal.message.starts_with("unknown type") => {
            frame.as_object_mut().map(|frame| frame.remove("req_id"));
        }
        _ => {}
    });
    frame
}
