//! What `fuzzing` and `explore` name must be there.

use serde_json::Value;

use super::Protocol;
use super::end_values::mistake_of_code;
use super::extension::{Ids, Join};
use super::fuzz_rules::{FieldRule, Refusal, Refusals};
use super::verify::place_all;
use crate::source::{Diagnostic, Diagnostics, Document, Part, escape_token};

/// Patterns, commands and invariants that `fuzzing` names must be there.
pub(super) fn verify_fuzzing(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    let fuzzing = &protocol.extension.fuzzing;
    let at = "/x-frameproof/fuzzing";
    let ids = fuzzing.ids.values().flat_map(|rule| &rule.fields).map(|place| &place.message);
    let fields = fuzzing.refused.fields.iter().filter_map(|rule| rule.message.as_ref());
    let commands =
        ids.chain(fields).flat_map(|on| on.as_slice()).chain(&fuzzing.avoid).chain(fuzzing.closes.keys());
    for name in commands {
        if let Err(error) = protocol.message_named(name, crate::trace::Direction::Send) {
            place_all(error, api, at, errors);
        }
    }
    for (state, situation) in &fuzzing.states {
        let openings = &protocol.extension.openings;
        if let Some(way) = situation.reopen.as_ref().filter(|way| !openings.contains_key(*way)) {
            let known = openings.keys().map(String::as_str);
            let unknown = Diagnostic::new(format!("unknown opening `{way}`")).suggest(way, known);
            errors.push(unknown.at(api, &format!("{at}/states/{}/reopen", escape_token(state)), Part::Value));
        }
        if situation.outlives && matches!(protocol.extension.session.join, Join::Connection) {
            let message =
                "`outlives` has no effect: every connection is a session of its own (`session.join`)";
            let place = format!("{at}/states/{}/outlives", escape_token(state));
            errors.push(Diagnostic::new(message).at(api, &place, Part::Key));
        }
        if situation.passing && !situation.leave.is_empty() {
            let message = "a `passing` state is left by waiting: it has no `leave`";
            let place = format!("{at}/states/{}/leave", escape_token(state));
            errors.push(Diagnostic::new(message).at(api, &place, Part::Key));
        }
    }
    verify_refusals(protocol, api, errors);
    for name in &fuzzing.suspend {
        if !protocol.may_suspend(name) {
            let unknown = protocol.unknown_to_suspend(name);
            errors.push(unknown.at(api, &format!("{at}/suspend"), Part::Value));
        }
    }
}

/// A refusal is the protocol's error, or a close whose code a server may send.
fn verify_refusals(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    let (refused, at) = (&protocol.extension.fuzzing.refused, "/x-frameproof/fuzzing/refused");
    for (command, codes) in &protocol.extension.fuzzing.closes {
        let at = format!("/x-frameproof/fuzzing/closes/{}", escape_token(command));
        verify_codes(codes, &at, api, errors);
    }
    verify_codes(&protocol.extension.fuzzing.taken_over, "/x-frameproof/fuzzing/taken-over", api, errors);
    let ids = protocol.extension.fuzzing.ids.iter();
    let ids = ids.map(|(name, rule)| {
        (format!("/x-frameproof/fuzzing/ids/{}/unknown", escape_token(name)), rule.unknown.as_ref())
    });
    let kinds = refused.kinds().into_iter().map(|(kind, refusal)| (format!("{at}/{kind}"), refusal));
    let kinds: Vec<(String, &[u16], bool)> = kinds
        .chain(ids)
        .filter_map(|(at, refusal)| {
            let refusal = refusal?;
            Some((at, refusal.close.as_slice(), !refusal.covers.is_empty() && refusal.close.is_empty()))
        })
        .chain(refused.fields.iter().enumerate().map(|(index, rule)| {
            (format!("{at}/fields/{index}"), rule.close.as_slice(), needs_error(rule, refused))
        }))
        .collect();
    for (index, rule) in refused.fields.iter().enumerate() {
        if rule.missing.is_none() && rule.invalid.is_none() {
            let error =
                Diagnostic::new("this rule has no effect: it says nothing of a missing or an invalid field");
            let error = error.hint("`missing: [ID]` or `invalid: [ID]`; an empty list demands no error");
            errors.push(error.at(api, &format!("{at}/fields/{index}"), Part::Value));
        }
    }
    for (at, codes, needs_error) in kinds {
        verify_codes(codes, &format!("{at}/close"), api, errors);
        if needs_error && protocol.extension.errors.is_none() {
            let error = Diagnostic::new(
                "this has no effect: the protocol has no `errors` by which a server could refuse it",
            );
            errors.push(
                error.at(api, &at, Part::Key).hint("`errors: { on: MESSAGE }`, or `close: [CODE]` here"),
            );
        }
    }
}

/// Whether some mistake in a field is refused by the protocol's error, as neither the field's rule nor that of all fields has a close code.
fn needs_error(rule: &FieldRule, refused: &Refusals) -> bool {
    let by_error = |own: &Option<Ids>, general: &Option<Refusal>| {
        let closes = general.as_ref().is_some_and(|refusal| !refusal.close.is_empty());
        own.as_ref().is_some_and(|ids| !ids.is_empty()) && !closes
    };
    rule.close.is_empty()
        && (by_error(&rule.missing, &refused.missing) || by_error(&rule.invalid, &refused.invalid))
}

fn verify_codes(codes: &[u16], at: &str, api: &Document, errors: &mut Diagnostics) {
    for (index, code) in codes.iter().enumerate() {
        if let Some((message, hint)) = mistake_of_code(*code) {
            errors.push(Diagnostic::new(message).hint(hint).at(api, &format!("{at}/{index}"), Part::Value));
        }
    }
}

/// Openings and classes of tools that `explore` names must be there.
pub(super) fn verify_explore(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    let extension = &protocol.extension;
    // What a reading or an overlay leaves out is no mistake here: it is not tried.
    let written = |key: &str| api.value.pointer(&format!("/x-frameproof/{key}")).and_then(Value::as_object);
    let written = |key: &str| written(key).into_iter().flat_map(|map| map.keys().map(String::as_str));
    let openings: Vec<&str> =
        extension.openings.keys().map(String::as_str).chain(written("openings")).collect();
    let classes: Vec<&str> = extension.tools.keys().map(String::as_str).chain(written("tools")).collect();
    let explore = &extension.explore;
    for (key, what, names, known) in [
        ("reopen", "opening", &explore.reopen, openings),
        ("calls", "class of tools", &explore.calls, classes),
    ] {
        for (index, name) in names.iter().enumerate().filter(|(_, name)| !known.contains(&name.as_str())) {
            let unknown =
                Diagnostic::new(format!("unknown {what} `{name}`")).suggest(name, known.iter().copied());
            errors.push(unknown.at(api, &format!("/x-frameproof/explore/{key}/{index}"), Part::Value));
        }
    }
    for (turn, scripted) in &explore.turns {
        let is_unknown = |(_, need): &(usize, &String)| !extension.capabilities.contains_key(*need);
        for (index, need) in scripted.needs.iter().enumerate().filter(is_unknown) {
            let known = extension.capabilities.keys().map(String::as_str);
            let unknown = Diagnostic::new(format!("unknown capability `{need}`")).suggest(need, known);
            let at = format!("/x-frameproof/explore/turns/{}/needs/{index}", escape_token(turn));
            errors.push(unknown.at(api, &at, Part::Value));
        }
    }
}
