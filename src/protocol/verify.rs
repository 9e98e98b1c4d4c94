//! What the types of a protocol file cannot say: that its parts fit together.

use serde_json::Value;

use super::barrier::verify_barrier;
use super::bundle_rules::verify_bundle_rules;
use super::client_rules::verify_client;
use super::connection_rules::verify_connection;
use super::extension::Echo;
use super::harmless::verify_harmless;
use super::path::{INVARIANTS, Path};
use super::refs::Refs;
use super::repeats::verify_repeats;
use super::times::verify_times;
use super::verify_generated::{verify_explore, verify_fuzzing};
use super::verify_keys::verify_keys;
use super::verify_requests::verify_requests;
use super::{Matcher, Protocol};
use crate::source::{Diagnostic, Diagnostics, Document, Part, check_keywords, escape_token};

/// What steps of scenarios call the end of a turn.
const TURN_END: &str = "turn-end";

/// Checks ids, patterns and examples.
pub(super) fn verify(protocol: &Protocol, api: &Document, document: &Value, errors: &mut Diagnostics) {
    verify_references(protocol, api, errors);
    verify_written_ids(protocol, api, document, Path::Root, errors);
    verify_examples(protocol, api, document, errors);
    verify_components(protocol, api, document, errors);
    verify_schemas(api, document, errors);
    verify_fuzzing(protocol, api, errors);
    verify_explore(protocol, api, errors);
    verify_dialects(protocol, api, errors);
    verify_envelope(protocol, api, errors);
    let changed_by = protocol.extension.state.iter().map(|state| ("state/changed-by", &state.changed_by));
    for (key, names) in [("ambient", &protocol.extension.ambient)].into_iter().chain(changed_by) {
        for name in names {
            if let Err(error) = protocol.message_named(name, crate::trace::Direction::Recv) {
                place_all(error, api, &format!("/x-frameproof/{key}"), errors);
            }
        }
    }
    for (opening, steps) in &protocol.extension.openings {
        for (index, step) in steps.iter().enumerate() {
            let at = format!("/x-frameproof/openings/{}/{index}", escape_token(opening));
            for name in step.expect.iter().flat_map(|names| names.as_slice()) {
                if let Err(error) = protocol.message_named(name, crate::trace::Direction::Recv) {
                    place_all(error, api, &format!("{at}/expect"), errors);
                }
            }
            if step.send.is_some() == step.expect.is_some() {
                errors.push(Diagnostic::new("a step of an exchange either sends or expects").at(
                    api,
                    &at,
                    Part::Value,
                ));
            }
        }
    }
    verify_names(protocol, api, errors);
    verify_fallbacks(protocol, api, errors);
    verify_echoes(protocol, api, errors);
    verify_repeats(protocol, api, errors);
    verify_barrier(protocol, api, errors);
    verify_requests(protocol, api, errors);
    verify_client(protocol, api, errors);
    verify_bundle_rules(protocol, api, errors);
    verify_harmless(protocol, api, errors);
    verify_connection(protocol, api, errors);
}

/// A message goes before an event of the connection of the same name. What ends a turn is more than a message, and has one name only.
fn verify_names(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    let received = protocol.messages.iter().filter(|message| message.dir == crate::trace::Direction::Recv);
    for message in received.filter(|message| message.name == TURN_END) {
        let error = Diagnostic::new(format!("a message of the server cannot be called `{TURN_END}`"));
        let hint = "steps of scenarios call the end of a turn so; a dialect can spell a message of another name like this";
        errors.push(error.hint(hint).at(api, &message.place, Part::Key));
    }
}

/// `or` names an opening that has none itself.
fn verify_fallbacks(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    let openings = &protocol.extension.openings;
    let ends =
        |name: &String| openings.get(name).is_some_and(|steps| steps.iter().all(|step| step.or.is_none()));
    for (opening, steps) in openings {
        for (index, step) in steps.iter().enumerate() {
            if let Some(other) = step.or.as_ref().filter(|other| !ends(other)) {
                let error =
                    Diagnostic::new(format!("`{other}` is not an opening without an `or` of its own"));
                let at = format!("/x-frameproof/openings/{}/{index}/or", escape_token(opening));
                errors.push(error.at(api, &at, Part::Value));
            }
        }
    }
}

/// `echo` names a place of the message that was sent last, and stands where that is looked at.
fn verify_echoes(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    let extension = &protocol.extension;
    let barrier = (extension.barrier_place(), extension.barrier_query());
    let query =
        extension.state.iter().map(|state| ("/x-frameproof/state/query".to_owned(), &state.query[..]));
    for (at, steps) in std::iter::once(barrier).chain(query) {
        let mut sent = &Value::Null;
        for (index, step) in steps.iter().enumerate() {
            sent = step.send.as_ref().unwrap_or(sent);
            let place = step.echo.as_ref().map(Echo::sent);
            if let Some(place) = place.filter(|place| place.get(sent).is_none()) {
                let error = Diagnostic::new(format!("the message sent before has nothing at {place}"))
                    .hint("`[PLACE, PLACE]`, if the answer has it elsewhere than the message that was sent");
                errors.push(error.at(api, &format!("{at}/{index}/echo"), Part::Value));
            }
        }
    }
    for (class, tool) in &extension.tools {
        for (index, need) in
            tool.needs.iter().enumerate().filter(|(_, need)| !extension.capabilities.contains_key(*need))
        {
            let known = extension.capabilities.keys().map(String::as_str);
            let error = Diagnostic::new(format!("unknown capability `{need}`")).suggest(need, known);
            let at = format!("/x-frameproof/tools/{}/needs/{index}", escape_token(class));
            errors.push(error.at(api, &at, Part::Value));
        }
    }
    let fuzzing = &extension.fuzzing;
    let own = [("prepare", &fuzzing.prepare), ("rest", &fuzzing.rest)];
    let own = own.into_iter().map(|(name, steps)| (format!("/x-frameproof/fuzzing/{name}"), steps));
    let states = fuzzing.states.iter().flat_map(|(name, state)| {
        let at = format!("/x-frameproof/fuzzing/states/{}", escape_token(name));
        let ways = state.ways.iter();
        let ways = ways.map(|(way, steps)| (format!("{at}/ways/{}", escape_token(way)), steps));
        let fixed = [("enter", &state.enter), ("leave", &state.leave), ("shows", &state.shows)];
        fixed.map(|(name, steps)| (format!("{at}/{name}"), steps)).into_iter().chain(ways).collect::<Vec<_>>()
    });
    let explore = &extension.explore;
    let turns = explore.turns.iter().map(|(name, turn)| {
        (format!("/x-frameproof/explore/turns/{}/steps", escape_token(name)), &turn.steps)
    });
    let messages = explore
        .messages
        .iter()
        .map(|(name, steps)| (format!("/x-frameproof/explore/messages/{}", escape_token(name)), steps));
    let rest = [("/x-frameproof/explore/at-rest".to_owned(), &explore.at_rest)];
    let explored = turns.chain(messages).chain(rest);
    for (at, steps) in own.chain(states).chain(explored) {
        for (index, _) in steps.iter().enumerate().filter(|(_, step)| step.echo.is_some()) {
            let error = Diagnostic::new("`echo` is for openings, barriers and queries")
                .hint("`with` compares with what was saved");
            errors.push(error.at(api, &format!("{at}/{index}/echo"), Part::Key));
        }
    }
}

/// A message that no operation has would be passed over in silence; in an overlay, a misspelt name is the likely mistake.
fn verify_components(protocol: &Protocol, api: &Document, document: &Value, errors: &mut Diagnostics) {
    let keys = |at: &str| {
        let map = document.pointer(at).and_then(Value::as_object);
        map.into_iter().flat_map(|map| map.keys().cloned()).collect::<Vec<_>>()
    };
    for key in keys("/components/messages") {
        let at = format!("/components/messages/{}", escape_token(&key));
        if !protocol.messages.iter().any(|message| message.place == at) {
            let known = protocol.messages.iter().filter_map(|message| message.place.rsplit('/').next());
            let diagnostic =
                Diagnostic::new(format!("message `{key}` is in no operation")).suggest(&key, known);
            errors.push(diagnostic.at(api, &at, Part::Key));
        }
    }
}

/// Keywords that no schema knows, in payloads, components and the schemas of patterns and monitors.
fn verify_schemas(api: &Document, document: &Value, errors: &mut Diagnostics) {
    let below = |at: &str| entries(document, at);
    for (at, schema) in below("/components/schemas") {
        check_keywords(schema, api, &at, errors);
    }
    let channels = below("/channels").into_iter().flat_map(|(at, _)| below(&format!("{at}/messages")));
    for (at, message) in below("/components/messages").into_iter().chain(channels) {
        if let Some(payload) = message.get("payload") {
            check_keywords(payload, api, &format!("{at}/payload"), errors);
        }
    }
    for (at, value) in below("/x-frameproof") {
        match at.as_str() {
            // Patches are looked at where they are applied.
            "/x-frameproof/readings" | "/x-frameproof/dialects" => {}
            // An invariant may have any name, that of a keyword too.
            INVARIANTS => entries(document, INVARIANTS)
                .iter()
                .for_each(|(at, invariant)| own_schemas(invariant, api, at, errors)),
            _ => own_schemas(value, api, &at, errors),
        }
    }
}

/// The values of a map, each with its pointer.
fn entries<'d>(document: &'d Value, at: &str) -> Vec<(String, &'d Value)> {
    let map = document.pointer(at).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, value)| (format!("{at}/{}", escape_token(key)), value)).collect()
}

fn own_schemas(node: &Value, api: &Document, at: &str, errors: &mut Diagnostics) {
    match node {
        Value::Object(map) => {
            for (key, value) in map {
                let below = format!("{at}/{}", escape_token(key));
                if matches!(key.as_str(), "where" | "schema") && value.is_object() {
                    check_keywords(value, api, &below, errors);
                } else if key != "with" {
                    own_schemas(value, api, &below, errors);
                }
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                own_schemas(value, api, &format!("{at}/{index}"), errors);
            }
        }
        _ => {}
    }
}

/// Messages and ambiguities that dialects name must be there.
fn verify_dialects(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    use crate::trace::Direction::{Recv, Send};
    for (name, dialect) in &protocol.extension.dialects {
        let at = format!("/x-frameproof/dialects/{}", escape_token(name));
        if matches!(name.as_str(), "auto" | "own") {
            errors.push(Diagnostic::new(format!("`{name}` is not a valid dialect name")).at(
                api,
                &at,
                Part::Key,
            ));
        }
        for id in dialect.answers.iter().filter(|id| !protocol.extension.readings.contains_key(*id)) {
            let unknown = Diagnostic::new(format!("unknown ambiguity `{id}`"));
            let known = protocol.extension.readings.keys().map(String::as_str);
            errors.push(unknown.suggest(id, known).at(api, &format!("{at}/answers"), Part::Value));
        }
        for (index, rule) in dialect.spelling.iter().enumerate() {
            for name in rule.message.as_slice() {
                if let Err(error) =
                    protocol.message_named(name, Send).or_else(|_| protocol.message_named(name, Recv))
                {
                    place_all(error, api, &format!("{at}/spelling/{index}/message"), errors);
                }
            }
        }
    }
}

/// An envelope is larger than its message, and has room for it.
fn verify_envelope(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    use crate::trace::Direction::{Recv, Send};
    for (key, dir) in [("server", Recv), ("client", Send)] {
        let Some(at) = protocol.envelope(dir) else { continue };
        let mut whole = serde_json::json!({});
        protocol.enclose(&mut whole);
        let message = match (at.as_str(), dir) {
            ("", _) => {
                "an envelope is larger than its message: a pointer to a member, such as `/message`".to_owned()
            }
            (_, Send) if at.get(&whole).is_none_or(|it| !it.is_object()) => {
                format!("no message can be at `{at}`: `with` has something else in its way")
            }
            _ => continue,
        };
        let at = format!("/x-frameproof/envelope/{key}");
        errors.push(Diagnostic::new(message).at(api, &at, Part::Value));
    }
}

pub(super) fn place_all(found: Diagnostics, api: &Document, at: &str, errors: &mut Diagnostics) {
    errors.0.extend(found.0.into_iter().map(|one| one.at(api, at, Part::Value)));
}

/// Every requirement that the extension names must be in the catalogue, and every pattern must compile.
fn verify_references(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    let refs = Refs::of(&protocol.extension);
    for (at, ids) in &refs.ids {
        for (index, id) in ids.iter().enumerate() {
            verify_id(
                protocol,
                api,
                id,
                Path::Index(&Path::At(&format!("/x-frameproof{at}")), index),
                errors,
            );
        }
    }
    for (at, pattern) in &refs.patterns {
        let has_events = at.starts_with("/invariants/") || at == "/errors/message";
        let compile = if has_events { Matcher::of_connection } else { Matcher::new };
        if let Err(error) = compile(pattern, protocol) {
            place_all(error, api, &format!("/x-frameproof{at}"), errors);
        }
    }
    verify_keys(protocol, api, errors);
    verify_times(protocol, api, errors);
}

fn verify_id(protocol: &Protocol, api: &Document, id: &str, at: Path<'_>, errors: &mut Diagnostics) {
    if protocol.requirements.get(id).is_none() {
        let known = protocol.requirements.0.keys().map(String::as_str);
        let unknown = Diagnostic::new(format!("unknown requirement `{id}`"));
        errors.push(unknown.at(api, &at.to_string(), Part::Value).suggest(id, known));
    }
}

/// The ids of messages and their schemas, which stand in maps of their own beside what AsyncAPI knows, and those of patches.
fn verify_written_ids(
    protocol: &Protocol,
    api: &Document,
    node: &Value,
    at: Path<'_>,
    errors: &mut Diagnostics,
) {
    match node {
        Value::Object(map) => {
            for (key, value) in map {
                let below = Path::Key(&at, key);
                match (key.as_str(), at) {
                    ("x-frameproof", Path::Root) => {
                        verify_patches(protocol, api, value, below, errors);
                    }
                    ("x-frameproof", _) => {
                        for (key, ids) in value.as_object().into_iter().flatten() {
                            verify_list(protocol, api, ids, Path::Key(&below, key), errors);
                        }
                    }
                    _ => verify_written_ids(protocol, api, value, below, errors),
                }
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                verify_written_ids(protocol, api, value, Path::Index(&at, index), errors);
            }
        }
        _ => {}
    }
}

fn verify_list(protocol: &Protocol, api: &Document, ids: &Value, at: Path<'_>, errors: &mut Diagnostics) {
    for (index, id) in ids.as_array().into_iter().flatten().enumerate() {
        if let Some(id) = id.as_str() {
            verify_id(protocol, api, id, Path::Index(&at, index), errors);
        }
    }
}

/// Patches are parts of a document that has no types yet: in them, any list of ids is one that looks so.
fn verify_patches(
    protocol: &Protocol,
    api: &Document,
    extension: &Value,
    at: Path<'_>,
    errors: &mut Diagnostics,
) {
    for kind in ["readings", "dialects"] {
        for (name, holder) in extension[kind].as_object().into_iter().flatten() {
            let (at, patch) = (Path::Key(&at, kind), &holder["patch"]);
            verify_lists(protocol, api, patch, Path::Key(&Path::Key(&at, name), "patch"), errors);
        }
    }
}

fn verify_lists(protocol: &Protocol, api: &Document, node: &Value, at: Path<'_>, errors: &mut Diagnostics) {
    match node {
        Value::Object(map) => {
            for (key, value) in map {
                verify_lists(protocol, api, value, Path::Key(&at, key), errors);
            }
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(|id| looks_like_id(protocol, id)) => {
            verify_list(protocol, api, node, at, errors);
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                verify_lists(protocol, api, value, Path::Index(&at, index), errors);
            }
        }
        _ => {}
    }
}

/// A text in capitals that begins as requirements of the protocol do.
fn looks_like_id(protocol: &Protocol, value: &Value) -> bool {
    let Some((prefix, rest)) = value.as_str().and_then(|text| text.split_once('-')) else { return false };
    let is_known = |id: &String| id.split_once('-').is_some_and(|(known, _)| known == prefix);
    rest.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-')
        && protocol.requirements.0.keys().any(is_known)
}

/// Every example must satisfy its message's schema.
fn verify_examples(protocol: &Protocol, api: &Document, document: &Value, errors: &mut Diagnostics) {
    for message in &protocol.messages {
        let at = format!("{}/examples", message.place);
        let written = document.pointer(&at).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if written.is_empty() {
            errors.push(Diagnostic::new(format!("message `{}` has no example", message.name)).at(
                api,
                &message.place,
                Part::Key,
            ));
        }
        for (index, example) in written.iter().enumerate() {
            let Some(example) = example.get("payload") else {
                let error = Diagnostic::new(format!("an example of `{}` has no `payload`", message.name));
                let error = error.hint("the value of `payload` is the message");
                errors.push(error.at(api, &format!("{at}/{index}"), Part::Value));
                continue;
            };
            for violation in message.schema.violations(example) {
                let place = format!("{at}/{index}/payload{}", violation.at);
                errors.push(
                    Diagnostic::new(format!("the example breaks its schema: {}", violation.problem)).at(
                        api,
                        &place,
                        Part::Value,
                    ),
                );
            }
            if !protocol.recognises(message, example) {
                errors.push(
                    Diagnostic::new(format!("the example is not recognised as `{}`", message.name))
                        .at(api, &format!("{at}/{index}"), Part::Value)
                        .hint(format!("{} must say which message it is", protocol.extension.discriminator)),
                );
            }
        }
    }
}
