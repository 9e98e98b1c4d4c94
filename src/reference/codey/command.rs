//! What clients send, and what is wrong with it.

use serde_json::{Map, Value};

use super::Behaviour;
use super::faults::Defect;
use crate::reference::faults::mutate::resembles;

/// A message of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    SendMessage { content: String, agent: Option<i64> },
    ToolDecision { call_id: Option<String>, approved: bool },
    Cancel,
    GetHistory,
    GetState,
    Ping,
}

/// What is wrong with a message, roughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    NoJson,
    NoType,
    UnknownType,
    Fields,
}

/// What a defect can make a difference to: a busy session refuses each SendMessage, one without pending calls each ToolDecision.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Open {
    pub to_messages: bool,
    pub to_decisions: bool,
    /// A message has named the agent.
    pub named: bool,
}

/// Reads a message.
pub(super) fn read(bytes: &[u8], open: Open, behaviour: &Behaviour) -> Result<Command, (Wrong, String)> {
    let body = match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(body)) => body,
        Ok(_) => return Err((Wrong::NoType, "a message is a JSON object".to_owned())),
        Err(error) => return Err((Wrong::NoJson, format!("not JSON: {error}"))),
    };
    let Some(kind) = body.get("type").and_then(Value::as_str) else {
        return Err((Wrong::NoType, "a message has a type".to_owned()));
    };
    let fields = |problem: &str| (Wrong::Fields, format!("{kind}: {problem}"));
    match kind {
        _ if resembles(kind, "Cancel") && behaviour.strikes(Defect::CancelInAnyCase) => Ok(Command::Cancel),
        "SendMessage" => {
            let strikes = |defect| open.to_messages && behaviour.strikes(defect);
            send_message(&body, open, strikes).map_err(fields)
        }
        "ToolDecision" => {
            let strikes = |defect| open.to_decisions && behaviour.strikes(defect);
            tool_decision(&body, strikes).map_err(fields)
        }
        "Cancel" => Ok(Command::Cancel),
        "GetHistory" => Ok(Command::GetHistory),
        "GetState" => Ok(Command::GetState),
        "Ping" => Ok(Command::Ping),
        other => Err((Wrong::UnknownType, format!("unknown type {other:?}"))),
    }
}

fn send_message(
    body: &Map<String, Value>,
    open: Open,
    strikes: impl Fn(Defect) -> bool,
) -> Result<Command, &'static str> {
    let text = body.get("text").and_then(Value::as_str);
    let content = match body.get("content") {
        Some(Value::String(content)) => content.clone(),
        None if strikes(Defect::MissingContentIsTaken) => String::new(),
        None if text.is_some() && strikes(Defect::TextIsContent) => text.unwrap_or_default().to_owned(),
        None => return Err("content is missing"),
        Some(Value::Array(texts))
            if texts.iter().all(Value::is_string) && strikes(Defect::TextsAreJoined) =>
        {
            texts.iter().filter_map(Value::as_str).collect()
        }
        Some(other) if strikes(Defect::AnyContentIsTaken) => other.to_string(),
        Some(_) => return Err("content must be a string"),
    };
    let agent = match body.get("agent_id") {
        Some(Value::Null) if strikes(Defect::NullAgentIsRefused) => {
            return Err("agent_id must be an integer");
        }
        Some(Value::Null) if open.named && strikes(Defect::NullAgentIsRefusedLater) => {
            return Err("agent_id must be the agent's");
        }
        None | Some(Value::Null) => None,
        Some(Value::String(id)) if id.parse::<i64>().is_ok() && strikes(Defect::DigitsAreAnAgent) => {
            id.parse().ok()
        }
        Some(agent) => match agent.as_i64() {
            Some(_) if strikes(Defect::NamedAgentIsRefused) => return Err("agent_id must be null"),
            Some(agent) => Some(agent),
            None if strikes(Defect::AnyAgentIsTaken) => None,
            None => return Err("agent_id must be an integer or null"),
        },
    };
    Ok(Command::SendMessage { content, agent })
}

fn tool_decision(
    body: &Map<String, Value>,
    strikes: impl Fn(Defect) -> bool,
) -> Result<Command, &'static str> {
    let is_nameless = !body.contains_key("call_id");
    let denies = is_nameless && strikes(Defect::DeniesTheOldest);
    let call_id = match body.get("call_id") {
        Some(Value::String(call_id)) => Some(call_id.clone()),
        None if denies || strikes(Defect::DecidesTheOldest) => None,
        Some(Value::Null) if strikes(Defect::NullIdDecides) => None,
        _ => return Err("call_id must be a string"),
    };
    let approved = match body.get("approved") {
        Some(Value::Bool(approved)) => *approved,
        Some(_) if strikes(Defect::TruthyApproves) => true,
        None if strikes(Defect::SilenceApproves) => true,
        _ => return Err("approved must be a boolean"),
    };
    Ok(Command::ToolDecision { call_id, approved: approved && !denies })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_right_and_names_what_is_wrong() {
        let right = br#"{"type":"SendMessage","content":"hi","agent_id":0,"more":1}"#;
        let hi = Command::SendMessage { content: "hi".into(), agent: Some(0) };
        assert_eq!(read(right, Open::default(), &Behaviour::default()), Ok(hi));
        for (text, wrong) in [
            ("{oops", Wrong::NoJson),
            ("[]", Wrong::NoType),
            ("{}", Wrong::NoType),
            (r#"{"type":7}"#, Wrong::NoType),
            (r#"{"type":"ping"}"#, Wrong::UnknownType),
            (r#"{"type":"Pong"}"#, Wrong::UnknownType),
            (r#"{"type":"SendMessage"}"#, Wrong::Fields),
            (r#"{"type":"SendMessage","content":[]}"#, Wrong::Fields),
            (r#"{"type":"SendMessage","content":"hi","agent_id":1.5}"#, Wrong::Fields),
            (r#"{"type":"ToolDecision","call_id":"c","approved":"true"}"#, Wrong::Fields),
            (r#"{"type":"ToolDecision","approved":true}"#, Wrong::Fields),
        ] {
            assert_eq!(
                read(text.as_bytes(), Open::default(), &Behaviour::default()).map_err(|(wrong, _)| wrong),
                Err(wrong),
                "{text}"
            );
        }
    }
}
