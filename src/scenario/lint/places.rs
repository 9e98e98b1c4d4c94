//! Places of messages, in steps, that none of the messages has which the step is about.

use serde_json::Value;

use super::{Linter, Rule};
use crate::protocol::{END, HTTP_ANSWER, Matcher, Protocol};
use crate::scenario::case::{Awaited, Step, Verb};
use crate::scenario::{CLOSE, TURN_END, means};
use crate::source::{Part, escape_token, nearest, unescape_token};
use crate::trace::Direction;

/// What a step is about.
enum Subject {
    /// A message, by its index.
    Message(usize),
    /// Something with these fields.
    Fields(&'static [&'static str]),
}

/// A place of a message, and the JSON Pointer in the step of what names it.
type Named = (Vec<String>, String);

pub(super) fn look(linter: &mut Linter<'_>, step: &Step, at: &str) {
    match &step.verb {
        Verb::Expect(verb) => {
            let saved = verb.save.iter();
            let saved = saved
                .map(|(name, place)| (tokens(place.as_str()), format!("{at}/save/{}", escape_token(name))));
            awaited(linter, &verb.awaited, saved.collect(), at);
        }
        Verb::Never(verb) => awaited(linter, &verb.awaited, Vec::new(), at),
        Verb::Repeat(verb) => awaited(linter, &verb.until, Vec::new(), at),
        Verb::Joined(verb) => {
            let Ok(matcher) = Matcher::new(&verb.pieces.of, linter.protocol) else { return };
            let Some(subjects) = messages_of(&matcher, linter.protocol) else { return };
            let pieces = &verb.pieces;
            let places = pieces.at.iter().enumerate().map(|(index, place)| (place, format!("at/{index}")));
            let others = [("by", &pieces.by), ("order", &pieces.order)];
            let others =
                others.into_iter().filter_map(|(name, place)| Some((place.as_ref()?, name.to_owned())));
            let named = places.chain(others);
            let named = named.map(|(place, name)| (tokens(place.as_str()), format!("{at}/joined/{name}")));
            report(linter, &subjects, named.collect());
        }
        _ => {}
    }
}

fn tokens(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(unescape_token).collect()
}

fn awaited(linter: &mut Linter<'_>, awaited: &Awaited, mut named: Vec<Named>, at: &str) {
    let refusal = awaited.refusal.then(|| vec![Subject::Fields(&HTTP_ANSWER)]);
    let Some(subjects) = refusal.or_else(|| subjects(&awaited.names, linter.protocol)) else { return };
    if let Some(with) = &awaited.with {
        of_part(with, &mut Vec::new(), &format!("{at}/with"), &mut named);
    }
    if let Some(schema) = &awaited.schema {
        of_schema(&schema.given, &mut Vec::new(), &format!("{at}/where"), &mut named);
    }
    report(linter, &subjects, named);
}

/// What these names stand for; `None`: that is not known.
fn subjects(names: &[String], protocol: &Protocol) -> Option<Vec<Subject>> {
    let mut found = Vec::new();
    for name in names {
        if means(name, CLOSE, protocol) {
            found.push(Subject::Fields(&END));
        } else if name == TURN_END {
            found.extend(messages_of(&protocol.roles().turn_end, protocol)?);
        } else {
            found.push(Subject::Message(protocol.index_of(name, Direction::Recv)?));
        }
    }
    (!found.is_empty()).then_some(found)
}

/// The messages that a pattern names; `None`: any, or what is no message.
fn messages_of(matcher: &Matcher, protocol: &Protocol) -> Option<Vec<Subject>> {
    let mut found = Vec::new();
    for one in matcher.alternatives() {
        for index in one.messages()? {
            protocol.messages.get(*index)?;
            found.push(Subject::Message(*index));
        }
    }
    (!found.is_empty()).then_some(found)
}

/// The places of a part of a message.
fn of_part(part: &Value, place: &mut Vec<String>, at: &str, named: &mut Vec<Named>) {
    let keyed: Vec<(String, &Value)> = match part {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => return,
    };
    for (key, value) in keyed {
        let at = format!("{at}/{}", escape_token(&key));
        place.push(key);
        named.push((place.clone(), at.clone()));
        of_part(value, place, &at, named);
        place.pop();
    }
}

/// The places that a JSON Schema wants to be there, or says something about. What must not be there may be unknown.
fn of_schema(schema: &Value, place: &mut Vec<String>, at: &str, named: &mut Vec<Named>) {
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        if below == &Value::Bool(false) {
            continue;
        }
        let at = format!("{at}/properties/{}", escape_token(key));
        place.push(key.clone());
        named.push((place.clone(), at.clone()));
        of_schema(below, place, &at, named);
        place.pop();
    }
    for (index, key) in schema["required"].as_array().into_iter().flatten().enumerate() {
        if let Some(key) = key.as_str() {
            let place = place.iter().cloned().chain([key.to_owned()]).collect();
            named.push((place, format!("{at}/required/{index}")));
        }
    }
    for key in ["items", "contains"] {
        if let Some(below) = schema.get(key) {
            place.push("*".to_owned());
            of_schema(below, place, &format!("{at}/{key}"), named);
            place.pop();
        }
    }
    for key in ["if", "then", "else"] {
        if let Some(below) = schema.get(key) {
            of_schema(below, place, &format!("{at}/{key}"), named);
        }
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, below) in schema[key].as_array().into_iter().flatten().enumerate() {
            of_schema(below, place, &format!("{at}/{key}/{index}"), named);
        }
    }
}

fn report(linter: &mut Linter<'_>, subjects: &[Subject], named: Vec<Named>) {
    let protocol = linter.protocol;
    let has = |place: &[String]| {
        subjects.iter().any(|subject| match subject {
            Subject::Message(index) => protocol.messages[*index].may_have(place),
            Subject::Fields(fields) => match place {
                [] => true,
                [field, rest @ ..] => {
                    fields.contains(&field.as_str()) && (rest.is_empty() || field == "headers")
                }
            },
        })
    };
    let mut told: Vec<Vec<String>> = Vec::new();
    for (place, at) in named {
        if has(&place) || told.iter().any(|known| place.starts_with(known)) {
            continue;
        }
        let text: String = place.iter().map(|token| format!("/{}", escape_token(token))).collect();
        let fields: Vec<String> = subjects
            .iter()
            .flat_map(|subject| match subject {
                Subject::Message(index) => protocol.messages[*index].fields(),
                Subject::Fields(fields) => fields.iter().map(|field| format!("/{field}")).collect(),
            })
            .collect();
        let hint = match nearest(&text, fields.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "correct the place, or declare the field in the schema of the message".to_owned(),
        };
        let message = format!("by its schema, nothing that the step is about has anything at {text}");
        linter.found(Rule::UnknownPlace, &at, Part::Value, message, &hint);
        told.push(place);
    }
}
