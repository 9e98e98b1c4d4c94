//! Ids that the server gives, written as literals.

use serde_json::Value;

use super::{Linter, Rule, awaits_refusal, is_stimulus};
use crate::frame::Pointer;
use crate::scenario::case::{Awaited, Step, Verb};
use crate::source::Part;
use crate::trace::Direction;

const HINT: &str = "keep the id with `save` where the server sends it, and write `{{NAME}}` here";

pub(super) fn look(linter: &mut Linter<'_>, step: &Step, behind: &[&Step], at: &str) {
    match &step.verb {
        Verb::Expect(verb) => awaited(linter, &verb.awaited, at),
        Verb::Never(verb) => awaited(linter, &verb.awaited, at),
        Verb::Send(verb) => sent(linter, &verb.message, behind, at),
        _ => {}
    }
}

/// A literal that could be an id of the reference server's: a text with a number in it. What is 0, null or a truth is none.
fn is_literal(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(|c: char| c.is_ascii_digit()) && !text.contains("{{"),
        Value::Number(number) => number.as_i64().is_some_and(|number| number > 0),
        _ => false,
    }
}

/// Where a JSON Schema would say that the value at a place is a certain one.
fn constant<'v>(schema: &'v Value, at: &Pointer) -> Option<(&'v Value, String)> {
    let path = at.as_str().replace('/', "/properties/") + "/const";
    schema.pointer(&path).map(|value| (value, path))
}

fn awaited(linter: &mut Linter<'_>, awaited: &Awaited, at: &str) {
    let roles = linter.protocol.roles();
    let named = |name: &String| linter.protocol.index_of(name, Direction::Recv);
    let messages: Vec<usize> = awaited.names.iter().filter_map(named).collect();
    let mut places: Vec<(String, String)> = Vec::new();
    for (id, (on, place)) in &roles.seen {
        if !messages.iter().any(|index| on.may_be(*index)) {
            continue;
        }
        if awaited.with.as_ref().and_then(|with| place.get(with)).is_some_and(is_literal) {
            places.push((id.clone(), format!("{at}/with{}", place.as_str())));
        }
        let given = awaited.schema.as_ref().map(|schema| &schema.given);
        if let Some((_, path)) =
            given.and_then(|given| constant(given, place)).filter(|(value, _)| is_literal(value))
        {
            places.push((id.clone(), format!("{at}/where{path}")));
        }
    }
    for (id, place) in places {
        let message = format!("the server chooses the id of the {id}");
        linter.found(Rule::LiteralId, &place, Part::Value, message, HINT);
    }
}

fn sent(linter: &mut Linter<'_>, message: &Value, behind: &[&Step], at: &str) {
    // What is to be refused, or is to do nothing, may well be made up.
    if linter.in_unchanged {
        return;
    }
    let next = behind.iter().find(|step| !is_stimulus(step));
    let wrong = next.is_none_or(|step| {
        awaits_refusal(step, linter.protocol)
            || matches!(step.verb, Verb::Never(_) | Verb::Alive(_) | Verb::Settle(_) | Verb::Assert(_))
            || matches!(&step.verb, Verb::Expect(verb) if verb.awaited.names.len() > 1)
    });
    let Some(index) = linter.protocol.message_of(message, Direction::Send).filter(|_| !wrong) else { return };
    let mut places = Vec::new();
    for (name, rule) in &linter.protocol.extension.fuzzing.ids {
        for place in &rule.fields {
            let known = |name: &String| linter.protocol.index_of(name, Direction::Send) == Some(index);
            let is_here = place.message.as_slice().iter().any(known);
            // Clients may name what they join: a session.
            if is_here && !rule.grants && place.at.get(message).is_some_and(is_literal) {
                places.push((name.clone(), format!("{at}/send{}", place.at.as_str())));
            }
        }
    }
    for (name, place) in places {
        let message = format!("the server chose the id of the {name}");
        linter.found(Rule::LiteralId, &place, Part::Value, message, HINT);
    }
}
