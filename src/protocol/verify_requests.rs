//! Requests of the server: what their types cannot say, and the answers that exchanges give.

use super::extension::Exchange;
use super::rules::Rule;
use super::server_requests::{Form, id_of, template_of};
use super::{Answer, AnswerKind, Lack, Protocol};
use crate::source::{Diagnostic, Diagnostics, Document, Part, escape_token};
use crate::template;

/// Checks `requests`, and every `reply` and `refuse` in exchanges.
pub(super) fn verify_requests(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    let extension = &protocol.extension;
    for (name, one) in &extension.requests {
        let at = format!("/x-frameproof/requests/{}", escape_token(name));
        if id_of(one, extension).is_none() {
            let error = Diagnostic::new(format!("the place of the id of the requests `{name}` is not given"));
            errors.push(error.hint("add `id: /request_id`, for example").at(api, &at, Part::Key));
        }
        let forms = AnswerKind::ALL.map(|kind| (kind, template_of(one, kind, protocol)));
        if forms.iter().all(|(_, form)| form.is_none()) {
            let error = Diagnostic::new(format!("nothing says how the requests `{name}` are answered"));
            let hint = "add `reply: { id: \"{{id}}\", result: \"{{reply}}\" }`, for example";
            errors.push(error.hint(hint).at(api, &at, Part::Key));
        }
        for (kind, form) in forms {
            if let Some(form) = form {
                let at = format!("{at}/{}", kind.name());
                verify_form(kind, &Form::new(form, &extension.discriminator), api, &at, errors);
            }
        }
    }
    for (name, invariant) in &extension.invariants {
        let Rule::ServerRequests(rule) = &invariant.monitor else { continue };
        let at = format!("/x-frameproof/invariants/{}/monitor/server-requests", escape_token(name));
        if extension.requests.is_empty() {
            let error = Diagnostic::new("the protocol has no `x-frameproof.requests`");
            errors.push(error.hint("the server's requests are declared there").at(api, &at, Part::Key));
        }
        for one in rule.of.iter().flat_map(|of| of.as_slice()) {
            if !extension.requests.contains_key(one) {
                let known = extension.requests.keys().map(String::as_str);
                let error = Diagnostic::new(format!("`x-frameproof.requests` has no `{one}`"));
                errors.push(error.suggest(one, known).at(api, &format!("{at}/of"), Part::Value));
            }
        }
    }
    for (at, steps) in exchanges(protocol) {
        for (index, step) in steps.iter().enumerate() {
            verify_exchange(protocol, step, api, &format!("{at}/{index}"), errors);
        }
    }
}

/// The form of an answer has the request's id, and no variable but what a step gives.
fn verify_form(kind: AnswerKind, form: &Form, api: &Document, at: &str, errors: &mut Diagnostics) {
    let mut push = |message: String, hint: String| {
        errors.push(Diagnostic::new(message).hint(hint).at(api, at, Part::Value));
    };
    if !form.bears_id() {
        let hint = "put `\"{{id}}\"`, with nothing beside it, where the answer repeats the id of its request";
        push("the answer does not say which request it answers".to_owned(), hint.to_owned());
    }
    for (name, _) in template::mentions(&form.template) {
        let root = name.split('.').next().unwrap_or_default();
        if !["id", "uuid", "uid", kind.name()].contains(&root) {
            let hint = format!("the variables of a `{0}` are `id` and `{0}`", kind.name());
            push(format!("undefined variable `{name}`"), hint);
        }
    }
}

fn verify_exchange(protocol: &Protocol, step: &Exchange, api: &Document, at: &str, errors: &mut Diagnostics) {
    let names = step.expect.as_ref().map(|names| names.as_slice()).unwrap_or_default();
    match Answer::of(step.reply.clone(), step.refuse.clone()) {
        Ok(None) => {}
        Ok(Some(answer)) => {
            let key = answer.kind().name();
            if let Some(rule) = protocol.answering_rule(names, &[]) {
                let error =
                    Diagnostic::new(format!("`x-frameproof.client.{}` answers it already", rule.name));
                errors.push(error.hint("a request gets one answer").at(
                    api,
                    &format!("{at}/{key}"),
                    Part::Key,
                ));
            }
            for (message, hint) in mistakes(protocol, names, &answer) {
                errors.push(Diagnostic::new(message).hint(hint).at(api, &format!("{at}/{key}"), Part::Key));
            }
        }
        Err(message) => errors.push(Diagnostic::new(message).at(api, &format!("{at}/refuse"), Part::Key)),
    }
}

/// What is wrong with the answer to messages of these names, each with a hint.
pub(crate) fn mistakes(protocol: &Protocol, names: &[String], answer: &Answer) -> Vec<(String, String)> {
    let (kind, key) = (answer.kind(), answer.kind().name());
    if names.is_empty() {
        let hint = "it belongs to the `expect` of a request of the server".to_owned();
        return vec![(format!("`{key}` answers nothing"), hint)];
    }
    let mut wrong = Vec::new();
    for name in names {
        let mut known = protocol.server_requests_named(name).peekable();
        if known.peek().is_none() {
            wrong.push((
                format!("`{name}` is not a request of the server: there is nothing to answer"),
                known_requests(protocol),
            ));
        }
        for request in known {
            if request.form(kind).is_none() {
                let hint = format!("add `{key}` to `x-frameproof.requests.{}`", request.name);
                wrong.push((format!("the protocol does not say how `{name}` gets a `{key}`"), hint));
            }
            for lack in request.lacks(answer) {
                let form = format!("see `x-frameproof.requests.{}.{key}`", request.name);
                wrong.push(match lack {
                    Lack::Missing(member) => {
                        (format!("`{key}` has no `{member}`, which the answer to `{name}` has"), form)
                    }
                    Lack::NoPlace(member) => {
                        (format!("the answer to `{name}` has no place for `{member}`"), form)
                    }
                });
            }
        }
    }
    wrong
}

/// Which messages can be answered.
fn known_requests(protocol: &Protocol) -> String {
    if protocol.server_requests().is_empty() {
        return "the protocol names such requests below `x-frameproof.requests`; see docs/protocol-reference.md"
            .to_owned();
    }
    let messages = protocol.messages.iter().enumerate();
    let is_request = |index: usize| protocol.server_requests().iter().any(|one| one.may_be(index));
    let received = messages.filter(|(_, message)| message.dir == crate::trace::Direction::Recv);
    let names: Vec<String> = received
        .filter(|(index, _)| is_request(*index))
        .map(|(_, message)| format!("`{}`", message.name))
        .collect();
    format!("`x-frameproof.requests` has {}", names.join(", "))
}

/// All exchanges of a protocol file, each with its place.
pub(super) fn exchanges(protocol: &Protocol) -> Vec<(String, &[Exchange])> {
    let extension = &protocol.extension;
    let (fuzzing, explore) = (&extension.fuzzing, &extension.explore);
    let mut all: Vec<(String, &[Exchange])> = Vec::new();
    all.extend(extension.state.iter().map(|state| ("/state/query".to_owned(), &state.query[..])));
    all.push(("/turn/before".to_owned(), &extension.turn.before));
    all.push(("/fuzzing/prepare".to_owned(), &fuzzing.prepare));
    all.push(("/fuzzing/rest".to_owned(), &fuzzing.rest));
    all.push(("/explore/at-rest".to_owned(), &explore.at_rest));
    let named = |at: &str, name: &str| format!("{at}/{}", escape_token(name));
    all.extend(extension.openings.iter().map(|(name, steps)| (named("/openings", name), &steps[..])));
    all.extend(explore.messages.iter().map(|(name, steps)| (named("/explore/messages", name), &steps[..])));
    let turns = explore.turns.iter();
    all.extend(turns.map(|(name, turn)| (named("/explore/turns", name) + "/steps", &turn.steps[..])));
    for (name, state) in &fuzzing.states {
        let at = named("/fuzzing/states", name);
        all.push((format!("{at}/enter"), &state.enter));
        all.push((format!("{at}/leave"), &state.leave));
        all.push((format!("{at}/shows"), &state.shows));
        all.extend(state.ways.iter().map(|(way, steps)| (named(&format!("{at}/ways"), way), &steps[..])));
    }
    let all = all.into_iter().map(|(at, steps)| (format!("/x-frameproof{at}"), steps));
    all.chain([(extension.barrier_place(), extension.barrier_query())]).collect()
}
