//! What is allowed in a scenario and yet perhaps not meant.

use serde_json::Value;

use super::file::{Case, Step};
use super::verify::{CLOSE, means};
use crate::protocol::Protocol;
use crate::source::{Diagnostic, Document, Part, escape_token, nearest};
use crate::trace::Direction;

/// Notes about a case that holds no mistakes.
pub(super) fn of(case: &Case, protocol: &Protocol, document: &Document, at: &str) -> Vec<Diagnostic> {
    let mut notes = Vec::new();
    look(&case.steps, protocol, document, &format!("{at}/steps"), &mut notes);
    notes
}

/// Looks at steps, and at those within them.
fn look(steps: &[Step], protocol: &Protocol, document: &Document, at: &str, notes: &mut Vec<Diagnostic>) {
    for (index, step) in steps.iter().enumerate() {
        let at = format!("{at}/{index}");
        for (place, within) in step.inner() {
            look(within, protocol, document, &format!("{at}/{place}"), notes);
        }
        fields(step, protocol, document, &at, notes);
        sends(step, &steps[index + 1..], protocol, document, &at, notes);
    }
}

/// A message that no client of the protocol sends, where nothing shows that this is what is tested.
fn sends(
    step: &Step,
    behind: &[Step],
    protocol: &Protocol,
    document: &Document,
    at: &str,
    notes: &mut Vec<Diagnostic>,
) {
    let Some(note) = step.send.as_ref().and_then(|message| unknown(message, protocol)) else { return };
    let follows = behind.iter().find(|step| step.send.is_none());
    if !follows.is_some_and(|step| awaits_refusal(step, protocol)) {
        let place = format!("{at}/send{}", protocol.extension.discriminator);
        notes.push(note.at(document, &place, Part::Value));
    }
}

/// Fields that an `expect` asks for and that its message's schema does not know.
fn fields(step: &Step, protocol: &Protocol, document: &Document, at: &str, notes: &mut Vec<Diagnostic>) {
    let names = step.expect.as_ref().map(|names| names.as_slice()).unwrap_or_default();
    let ([name], Some(Value::Object(with))) = (names, &step.with) else { return };
    let Ok(message) = protocol.message_named(name, Direction::Recv) else { return };
    let payload = protocol.messages[message].payload();
    // Elsewhere the fields are not all in one place.
    let is_composed = ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"];
    let is_composed = is_composed.iter().any(|keyword| payload.get(keyword).is_some());
    let Some(known) = payload["properties"].as_object().filter(|_| !is_composed) else { return };
    for field in with.keys().filter(|field| !known.contains_key(*field)) {
        let note = Diagnostic::note(format!("the schema of `{name}` does not declare `{field}`"));
        let note = note.suggest(field, known.keys().map(String::as_str));
        notes.push(note.at(document, &format!("{at}/with/{}", escape_token(field)), Part::Key));
    }
}

fn unknown(message: &Value, protocol: &Protocol) -> Option<Diagnostic> {
    let name = protocol.extension.discriminator.get(message)?.as_str()?;
    if name.contains("{{")
        || protocol.is_reply(message)
        || protocol.message_of(message, Direction::Send).is_some()
    {
        return None;
    }
    let note = Diagnostic::note(format!("clients of this protocol send no message `{name}`"));
    let known = protocol.messages.iter().filter(|message| message.dir == Direction::Send);
    Some(note.hint(match nearest(name, known.map(|message| message.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "if that is the test, state the result: `expect` the error, or send it with `raw`".to_owned(),
    }))
}

/// The step shows that what was sent is meant to be wrong.
fn awaits_refusal(step: &Step, protocol: &Protocol) -> bool {
    let errors = protocol.roles().errors.as_ref().and_then(|(on, _)| on.messages().map(<[usize]>::to_vec));
    let is_error = |name: &String| {
        let message = protocol.message_named(name, Direction::Recv);
        means(name, CLOSE, protocol)
            || message.is_ok_and(|message| errors.as_ref().is_some_and(|errors| errors.contains(&message)))
    };
    let named = step.expect.iter().flat_map(|names| names.as_slice()).any(is_error);
    named || step.rejected.is_some() || step.alive.is_some() || step.ended.is_some()
}
