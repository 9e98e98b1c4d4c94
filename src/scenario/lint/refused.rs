//! The right message sent at once behind the same one that is to be refused.

use serde_json::Value;

use super::{Linter, Rule, awaits_refusal};
use crate::protocol::Protocol;
use crate::scenario::case::{Step, Verb};
use crate::source::Part;
use crate::trace::Direction;

pub(super) fn look(linter: &mut Linter<'_>, steps: &[&Step], places: &[String]) {
    if linter.in_unchanged {
        return;
    }
    let mut refused: Option<(usize, Option<&str>)> = None;
    let mut found = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        if awaits_refusal(step, linter.protocol) {
            // What was refused: the message before.
            let sent = steps[..index].iter().rev().find_map(|step| kind(step, linter.protocol));
            refused = sent.map(|kind| (kind, step.verb.by()));
            continue;
        }
        match &step.verb {
            // They look at what has become of it.
            Verb::Never(_)
            | Verb::Unchanged(_)
            | Verb::Check(_)
            | Verb::Assert(_)
            | Verb::Expect(_)
            | Verb::Joined(_)
            | Verb::Alive(_) => refused = None,
            Verb::Send(verb) => {
                let own = kind(step, linter.protocol);
                // One that is refused, too, hides nothing.
                let next = steps[index + 1..].iter().find(|step| !super::is_stimulus(step));
                let is_right = next.is_none_or(|step| !awaits_refusal(step, linter.protocol));
                if is_right && own.is_some() && refused == own.map(|own| (own, verb.by.as_deref())) {
                    found.push((index, own));
                }
            }
            _ => {}
        }
    }
    for (index, kind) in found {
        let name =
            kind.and_then(|kind| linter.protocol.messages.get(kind)).map_or("", |message| &message.name);
        let message = format!(
            "an effect of the `{name}` that was refused before would look like an effect of this one"
        );
        let hint = "check the effect in between: `never`, or the refused message within `unchanged`";
        linter.found(Rule::HiddenEffect, &places[index], Part::Value, message, hint);
    }
}

/// The kind of message that a step sends, also where it is written as text.
fn kind(step: &Step, protocol: &Protocol) -> Option<usize> {
    let written: Value;
    let message = match &step.verb {
        Verb::Send(verb) => &verb.message,
        Verb::Raw(verb) => {
            written = serde_json::from_str(&verb.text).ok()?;
            &written
        }
        _ => return None,
    };
    protocol.message_of(message, Direction::Send)
}
