//! The keys of monitors.

use super::end_values::ValuesOf;
use super::path::INVARIANTS;
use super::rules::{Rule, Scope};
use super::{ConnectionEvent, Matcher, Pattern, Protocol};
use crate::source::{Diagnostic, Diagnostics, Document, Part, escape_token};
use crate::trace::Direction;

/// Whose ends of connections a pattern is about, if about nothing else.
fn only_ends(pattern: &Pattern, protocol: &Protocol) -> Option<Direction> {
    let matcher = Matcher::of_connection(pattern, protocol).ok()?;
    let end = protocol.index_of_event(ConnectionEvent::Close);
    let [one] = matcher.alternatives() else { return None };
    (one.messages()? == [end]).then(|| one.direction())
}

/// A key must say where it stands, and nothing that the monitor would not look at.
pub(super) fn verify_keys(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    for (name, invariant) in &protocol.extension.invariants {
        let at = |field: &str| format!("{INVARIANTS}/{}/monitor/{field}", escape_token(name));
        for (field, key, sides) in invariant.monitor.keys() {
            if let Some(mistake) = key.mistake(sides) {
                errors.push(Diagnostic::new(mistake).at(api, &at(field), Part::Value));
            }
        }
        if let Rule::Holds(rule) = &invariant.monitor
            && let Some((field, mistake)) = rule.mistake()
        {
            errors.push(Diagnostic::new(mistake).at(api, &at(&format!("holds{field}")), Part::Key));
        }
        if let Rule::Holds(rule) = &invariant.monitor
            && let Some(dir) = only_ends(&rule.message, protocol)
            && rule.at.is_none()
        {
            for mistake in rule.schema.iter().flat_map(|schema| ValuesOf::End(dir).mistakes_of_schema(schema))
            {
                let place = at(&format!("holds/schema{}", mistake.at));
                errors.push(Diagnostic::new(mistake.message).hint(mistake.hint).at(api, &place, Part::Value));
            }
        }
        if let Rule::Correlation(rule) = &invariant.monitor
            && rule.id.is_none()
        {
            let of_ids = [
                ("echo", &rule.echo),
                ("foreign", &rule.foreign),
                ("invented", &rule.invented),
                ("missing", &rule.missing),
            ];
            for (field, _) in of_ids.iter().filter(|(_, ids)| !ids.is_empty()) {
                let mistake = format!("`{field}` has no effect where messages have no ids");
                let place = at(&format!("correlation/{field}"));
                errors.push(Diagnostic::new(mistake).hint("add `id: POINTER`").at(api, &place, Part::Key));
            }
        }
        let batches = Some(super::Batches::Both);
        if let Rule::Correlation(rule) = &invariant.monitor
            && !rule.batched.is_empty()
            && protocol.extension.batches != batches
        {
            let mistake = "`batched` has no effect in a protocol whose two sides do not send batches";
            let hint = "`batches: both` in `x-frameproof` declares that they do";
            errors.push(Diagnostic::new(mistake).at(api, &at("correlation/batched"), Part::Key).hint(hint));
        }
        if let Rule::Absence(rule) = &invariant.monitor
            && rule.answered.is_some()
            && (rule.until_anywhere || rule.scope == Scope::Session)
        {
            let other = if rule.until_anywhere { "until-anywhere" } else { "scope: session" };
            let mistake = format!("`answered` does not go with `{other}`");
            let hint = "an answer shows what the server has read on the same connection: leave the other out";
            errors.push(Diagnostic::new(mistake).at(api, &at("absence/answered"), Part::Key).hint(hint));
        }
    }
}
