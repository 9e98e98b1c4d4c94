//! What a server owes for a text: the protocol's `fuzzing.refused`, applied; and the steps that check it.

use serde_json::{Value, json};

use super::input::{Input, Obligation};
use crate::frame::{self, FrameError};
use crate::protocol::{InFrame, Message, Protocol, Refusal};
use crate::source::schema::{Problem, Violation};
use crate::trace::Direction;

/// The obligation for a text. Templates in it stand for what fits.
pub fn obligation_of(protocol: &Protocol, text: &str) -> Obligation {
    match owed(protocol, text) {
        None => left_open(protocol, text),
        Some(Refusal { covers, tolerated, close }) if close.is_empty() => {
            Obligation::Refuse { covers, tolerated }
        }
        // The document may be read otherwise: nothing is owed then.
        Some(Refusal { tolerated: Some(_), .. }) => Obligation::MayClose { codes: Vec::new() },
        Some(Refusal { covers, close: codes, .. }) => Obligation::MustClose { codes, covers },
    }
}

/// The obligation for what is the reader's choice. A server that refuses by a close may take it for one of the mistakes.
pub fn readers_choice(protocol: &Protocol) -> Obligation {
    Obligation::may_close(protocol.extension.fuzzing.close_codes())
}

/// The obligation for a valid command: by what the client did before, it may be one that ends the connection.
pub fn owed_for_command(protocol: &Protocol, name: &str) -> Obligation {
    let codes = protocol.extension.fuzzing.closes.get(name);
    Obligation::may_close(codes.into_iter().flatten().copied())
}

/// The obligation for a text that is owed no refusal: it is valid, or the document leaves open what it is.
fn left_open(protocol: &Protocol, text: &str) -> Obligation {
    let valid = |body: &Value| {
        let message = protocol.type_of(body).and_then(|name| protocol.index_of(name, Direction::Send));
        let message = &protocol.messages[message?];
        message.violations(body).is_empty().then_some(message.name.as_str())
    };
    let body = frame::parse_within(text).ok();
    body.as_ref()
        .and_then(valid)
        .map_or_else(|| readers_choice(protocol), |name| owed_for_command(protocol, name))
}

fn owed(protocol: &Protocol, text: &str) -> Option<Refusal> {
    let refused = &protocol.extension.fuzzing.refused;
    let limits = frame::Limits { max_bytes: 4 << 20, max_depth: 100 };
    match protocol.messages_in(text, Direction::Send, &limits) {
        Ok(InFrame::One(body)) => owed_for(protocol, &body),
        // What of its messages is refused, and how, is the server's choice.
        Ok(InFrame::Batch(_)) => None,
        // What JSON leaves to its readers is no mistake: how deep, how large, how often a key, how great a number.
        Err(FrameError::Number { .. }) => None,
        Err(FrameError::Syntax { .. } | FrameError::InvalidUtf8 { .. }) => given(&refused.no_json),
        // A list may be a batch where requests and replies are distinguished by ids.
        Err(FrameError::NotAnObject { found })
            if found == "an array" && protocol.extension.replies.is_some() =>
        {
            None
        }
        Err(FrameError::NotAnObject { .. }) => given(&refused.no_object),
        Err(_) => None,
    }
}

fn given(refusal: &Option<Refusal>) -> Option<Refusal> {
    refusal.clone().filter(|refusal| !refusal.covers.is_empty())
}

/// The obligation for an object.
fn owed_for(protocol: &Protocol, body: &Value) -> Option<Refusal> {
    let refused = &protocol.extension.fuzzing.refused;
    if let Some(replies) = &protocol.extension.replies {
        // Without an id to answer to there is no answer; and what looks like a reply is none of the server's business.
        let id = replies.id.get(body);
        let addressed = id.is_some_and(|id| id.is_string() || id.is_i64() || id.is_u64());
        if !addressed || replies.result.get(body).is_some() || replies.error.get(body).is_some() {
            return None;
        }
    }
    let Some(name) = protocol.extension.discriminator.get(body).and_then(Value::as_str) else {
        return given(&refused.no_type);
    };
    let Some(message) = protocol.index_of(name, Direction::Send) else {
        let servers = protocol.index_of(name, Direction::Recv).is_some();
        return given(if servers { &refused.server_type } else { &refused.unknown_type });
    };
    let message = &protocol.messages[message];
    let violations = message.violations(body);
    if violations.is_empty() {
        return unknown_id(protocol, name, body);
    }
    violations.iter().find_map(|violation| owed_at(protocol, message, body, violation))
}

/// The obligation for one violation of a command's schema.
fn owed_at(protocol: &Protocol, message: &Message, body: &Value, violation: &Violation) -> Option<Refusal> {
    let refused = &protocol.extension.fuzzing.refused;
    let at = violation.subject();
    let rule = refused.fields.iter().find(|rule| rule.is_about(&message.name, &at));
    let own = |ids: Option<&Vec<String>>, general: &Option<Refusal>| match ids {
        Some(ids) => {
            let general = general.as_ref().map(|refusal| refusal.close.clone()).unwrap_or_default();
            let own = rule.map(|rule| rule.close.clone()).unwrap_or_default();
            let close = if own.is_empty() { general } else { own };
            let tolerated = rule.and_then(|rule| rule.tolerated.clone());
            Some(Refusal { covers: ids.clone(), tolerated, close })
                .filter(|refusal| !refusal.covers.is_empty())
        }
        None => given(general),
    };
    let value = body.pointer(&violation.at);
    if value.and_then(Value::as_str).is_some_and(|text| text.contains("{{")) {
        return None;
    }
    match &violation.problem {
        Problem::Missing(_) => own(rule.and_then(|rule| rule.missing.as_ref()), &refused.missing),
        Problem::Undeclared(_) => given(&refused.undeclared),
        // Null for a field that may be left out is often meant, and taken, as leaving it out.
        _ if value.is_some_and(Value::is_null) && !is_required(message, &violation.at) => None,
        Problem::Type(_) | Problem::NotOneOf(_) if refused.coerces && !is_container(value) => None,
        Problem::Type(_) | Problem::NotOneOf(_) => {
            own(rule.and_then(|rule| rule.invalid.as_ref()), &refused.invalid)
        }
        Problem::Other(_) => None,
    }
}

fn is_container(value: Option<&Value>) -> bool {
    value.is_some_and(|value| value.is_object() || value.is_array())
}

/// Whether a field at the top of a command is required. What lies deeper is left open.
fn is_required(message: &Message, at: &str) -> bool {
    let mut schema = message.payload();
    for _ in 0..8 {
        let Some(target) = schema.get("$ref").and_then(Value::as_str) else { break };
        let Some(next) = message.payload().pointer(target.trim_start_matches('#')) else { break };
        schema = next;
    }
    let name = at.trim_start_matches('/');
    schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|one| one == name))
}

/// The obligation for a command that is valid but for an id that the server never sent.
fn unknown_id(protocol: &Protocol, command: &str, body: &Value) -> Option<Refusal> {
    protocol.extension.fuzzing.ids.values().find_map(|rule| {
        let mut places =
            rule.fields.iter().filter(|place| place.message.as_slice().iter().any(|name| name == command));
        let is_known = |value: &Value| value.as_str().is_none_or(|text| text.contains("{{"));
        let is_unknown = places.any(|place| place.at.get(body).is_some_and(|value| !is_known(value)));
        if is_unknown { given(&rule.unknown) } else { None }
    })
}

/// The step that holds the server to how a connection may, or must, end.
pub(super) fn framing_step(input: &Input, survives: &[String]) -> Option<Value> {
    match &input.obligation {
        Obligation::MayClose { codes } => {
            Some(json!({ "alive": input.client, "codes": codes, "covers": survives }))
        }
        Obligation::MustClose { codes, covers } if covers.is_empty() => {
            Some(json!({ "ended": input.client, "codes": codes }))
        }
        Obligation::MustClose { codes, covers } => {
            Some(json!({ "ended": input.client, "codes": codes, "covers": covers }))
        }
        Obligation::Refuse { .. } | Obligation::Survive => None,
    }
}

/// The steps that check the obligations for inputs that it must refuse.
pub(super) fn refusal_steps(inputs: &[Input], survives: &[String]) -> Vec<Value> {
    let mut steps = Vec::new();
    let mut clients: Vec<&str> = inputs.iter().map(|input| input.client.as_str()).collect();
    clients.sort_unstable();
    clients.dedup();
    for client in clients {
        let mut alive = json!({ "alive": client });
        if !survives.is_empty() {
            alive["covers"] = json!(survives);
        }
        steps.push(alive);
        let (mut ids, mut ambiguity, mut count): (Vec<String>, _, _) = (Vec::new(), None, 0);
        for input in inputs.iter().filter(|input| input.client == client) {
            if let Obligation::Refuse { covers, tolerated } = &input.obligation {
                count += 1;
                ambiguity = ambiguity.or(tolerated.clone());
                for id in covers {
                    if !ids.contains(id) {
                        ids.push(id.clone());
                    }
                }
            }
        }
        let mut step = json!({ "rejected": count, "as": client, "covers": ids });
        if let Some(reading) = ambiguity {
            step["tolerated"] = json!(reading);
        }
        steps.push(step);
    }
    steps
}
