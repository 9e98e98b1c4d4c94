//! What clients send: which fields each message has, and what is wrong with one.

use serde_json::{Map, Value, json};

use super::Behaviour;
use super::faults::Defect;
use super::styles::Style;

/// A message that is not obeyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub code: &'static str,
    pub message: String,
}

pub(super) fn refuse(code: &'static str, message: impl Into<String>) -> Refusal {
    Refusal { code, message: message.into() }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Object,
    Role,
    Decision,
}

/// A field: name, type, whether it is required, and the defects that overlook what is wrong with it.
struct Field(&'static str, Kind, bool, &'static [Overlooked]);

/// A defect that takes a value which is not as it must be: the value as it was sent.
struct Overlooked(Defect, fn(Option<&Value>) -> bool);

const ANYTHING: fn(Option<&Value>) -> bool = |_| true;
const ABSENT: fn(Option<&Value>) -> bool = |value| value.is_none_or(Value::is_null);
const NULL: fn(Option<&Value>) -> bool = |value| value.is_some_and(Value::is_null);
const WRONG: fn(Option<&Value>) -> bool = |value| value.is_some_and(|value| !value.is_null());

fn fields(message: &str) -> Option<&'static [Field]> {
    Some(match message {
        "user_message" => &[
            Field(
                "content",
                Kind::Text,
                true,
                &[
                    Overlooked(Defect::ContentMayBeMissing, ABSENT),
                    Overlooked(Defect::NullIsContent, NULL),
                    Overlooked(Defect::AnyContent, WRONG),
                    Overlooked(Defect::ListsAreContent, |value| value.is_some_and(Value::is_array)),
                ],
            ),
            Field(
                "role",
                Kind::Role,
                false,
                &[
                    Overlooked(Defect::AnyRole, ANYTHING),
                    Overlooked(Defect::RolesInAnyCase, is_capital_role),
                    Overlooked(Defect::EmptyRole, |value| value.is_some_and(|role| role == "")),
                    Overlooked(Defect::RolesAreTrimmed, is_spaced_role),
                ],
            ),
        ],
        "tool_result" => &[
            Field(
                "call_id",
                Kind::Text,
                true,
                &[
                    Overlooked(Defect::ResultWithoutCallIdIsIgnored, ANYTHING),
                    Overlooked(Defect::ResultWithoutCallIdAnswers, ABSENT),
                ],
            ),
            Field("result", Kind::Object, false, &[]),
            Field(
                "error",
                Kind::Text,
                false,
                &[
                    Overlooked(Defect::AnyResultError, ANYTHING),
                    Overlooked(Defect::ResultErrorsAreNumbers, |value| value.is_some_and(Value::is_number)),
                    Overlooked(Defect::ErrorObjectsAreRead, |value| {
                        value.and_then(|error| error.get("message")).is_some_and(Value::is_string)
                    }),
                ],
            ),
        ],
        "hitl_decision" => &[
            Field(
                "call_id",
                Kind::Text,
                true,
                &[
                    Overlooked(Defect::DecidesWithoutCallId, ANYTHING),
                    Overlooked(Defect::DecisionWithoutCallIdIsIgnored, ABSENT),
                ],
            ),
            Field(
                "decision",
                Kind::Decision,
                true,
                &[
                    Overlooked(Defect::DecisionMayBeMissing, ABSENT),
                    Overlooked(Defect::MissingDecisionsReject, ABSENT),
                    Overlooked(Defect::AnyDecision, WRONG),
                    Overlooked(Defect::UnknownDecisionsReject, WRONG),
                ],
            ),
            Field(
                "modified_arguments",
                Kind::Object,
                false,
                &[Overlooked(Defect::AnyModifiedArguments, ANYTHING)],
            ),
            Field("feedback", Kind::Text, false, &[]),
        ],
        "switch_agent" => {
            &[Field("agent_type", Kind::Text, true, &[]), Field("content", Kind::Text, true, &[])]
        }
        _ => return None,
    })
}

fn is_capital_role(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|text| fits(&text.to_ascii_lowercase().into(), Kind::Role))
}

fn is_spaced_role(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|text| fits(&text.trim().into(), Kind::Role))
}

fn fits(value: &Value, kind: Kind) -> bool {
    let one_of = |list: &[&str]| value.as_str().is_some_and(|text| list.contains(&text));
    match kind {
        Kind::Text => value.is_string(),
        Kind::Object => value.is_object(),
        Kind::Role => one_of(&["user", "assistant", "system", "tool"]),
        Kind::Decision => one_of(&["approve", "edit", "reject"]),
    }
}

/// The message's type, or what is wrong with it.
pub(super) fn check<'b>(body: &'b Map<String, Value>, behaviour: &Behaviour) -> Result<&'b str, Refusal> {
    let kind = match body.get("type") {
        None => return Err(refuse("MISSING_FIELD", "type is missing")),
        Some(Value::String(kind)) => kind.as_str(),
        Some(_) => return Err(refuse("INVALID_TYPE", "type must be a string")),
    };
    let Some(fields) = fields(kind) else {
        return Err(refuse("INVALID_TYPE", format!("unknown type {kind:?}")));
    };
    for Field(name, field, required, overlooked) in fields {
        let sent = body.get(*name);
        let overlooks =
            || overlooked.iter().any(|Overlooked(defect, takes)| takes(sent) && behaviour.strikes(*defect));
        match sent.filter(|value| !value.is_null()) {
            None if !required || overlooks() => {}
            None => return Err(refuse("MISSING_FIELD", format!("{name} is missing"))),
            Some(value) if fits(value, *field) || overlooks() => {}
            Some(_) => return Err(refuse("INVALID_FORMAT", format!("{name} is not as it must be"))),
        }
    }
    match kind {
        "tool_result"
            if body.contains_key("result") == body.contains_key("error")
                && !behaviour.style(Style::AnyResult) =>
        {
            Err(refuse("INVALID_FORMAT", "a tool_result has either result or error"))
        }
        "tool_result" if lacks_answer(body, behaviour) => {
            Err(refuse("MISSING_FIELD", "result or error is missing"))
        }
        "hitl_decision"
            if edits_nothing(body)
                && !behaviour.strikes(Defect::EmptyEditsDrop)
                && !behaviour.style(Style::EmptyEditApproves) =>
        {
            Err(refuse("MISSING_FIELD", "modified_arguments is missing"))
        }
        "user_message" if !body.contains_key("role") && behaviour.strikes(Defect::RoleIsRequired) => {
            Err(refuse("MISSING_FIELD", "role is missing"))
        }
        "user_message"
            if body.get("role").is_some_and(|it| it != "user")
                && (behaviour.strikes(Defect::UsersOnly) || behaviour.style(Style::UsersOnly)) =>
        {
            Err(refuse("INVALID_FORMAT", "role must be user"))
        }
        "user_message" if behaviour.style(Style::NoMore) && has_more(body) => {
            Err(refuse("INVALID_FORMAT", "a field is not in the list"))
        }
        kind => Ok(kind),
    }
}

/// A defect does not take what a tool_result has for an answer.
fn lacks_answer(body: &Map<String, Value>, behaviour: &Behaviour) -> bool {
    let is_empty = |name: &str, empty: &Value| body.get(name) == Some(empty);
    !body.contains_key("result") && behaviour.strikes(Defect::ErrorNeedsResult)
        || is_empty("result", &json!({})) && behaviour.strikes(Defect::EmptyResultsAreMissing)
        || is_empty("error", &json!("")) && behaviour.strikes(Defect::EmptyErrorsAreMissing)
}

/// An edit that leaves out what it edits.
pub(super) fn edits_nothing(body: &Map<String, Value>) -> bool {
    body.get("decision").is_some_and(|it| it == "edit") && !body.contains_key("modified_arguments")
}

fn has_more(body: &Map<String, Value>) -> bool {
    body.keys().any(|name| !matches!(name.as_str(), "type" | "content" | "role"))
}

pub(super) fn rejects_silently(body: &Map<String, Value>) -> bool {
    body.get("decision").is_some_and(|it| it == "reject") && !body.contains_key("feedback")
}
