//! How a bundle of JSON Schemas is read that the server under test generates of itself (`--schemas DIR`).

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Protocol;
use crate::frame::Pointer;
use crate::source::{Diagnostic, Diagnostics, Document, Part};

/// How a folder of JSON Schemas that a server generates is read. A schema is named by its file, relative to the folder, and
/// perhaps a JSON Pointer behind `#`: `events.json#/definitions/Event`. Each file is self-contained: its references point into the
/// same file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BundleRules {
    /// How a user gets such a folder: shown when a folder cannot be used.
    pub about: String,
    /// The result for a frame that does not match the bundle. An overlay may change it.
    #[serde(default)]
    pub level: BundleLevel,
    /// The messages that the server sends: schemas of one message, or unions (`oneOf`, `anyOf`) of such. The constant of the
    /// discriminator (`const`, or the values of `enum`) names the message of a schema.
    pub received: Vec<String>,
    /// The same for the requests of clients: they are used to find the schemas of answers. Messages of clients are not checked.
    #[serde(default)]
    pub requests: Vec<String>,
    /// Where the schemas of answers are, in a protocol with `replies`.
    pub answers: Option<AnswerSchemas>,
    /// The schema of a reply that is an error, in a protocol with `replies`.
    pub error: Option<String>,
}

/// Whether what a bundle refuses fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BundleLevel {
    /// It fails the case.
    #[default]
    Failure,
    /// It is a warning.
    Warning,
}

/// Where the schemas of answers to requests are.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AnswerSchemas {
    /// Where in the schema of a request a `$ref` leads to the definition that gives the answer its name, directly or in one of several
    /// alternatives: `/properties/params`.
    #[schemars(extend("x-pointer" = "free"))]
    pub named_at: Pointer,
    /// What such a definition is called: `{name}Params`.
    pub named: String,
    /// The schema of the answer, the first of these that is there: `v2/{name}Response.json`.
    pub schemas: Vec<String>,
    /// The schemas of answers that these rules do not find, by the discriminator of the request.
    #[serde(default)]
    pub by_name: IndexMap<String, String>,
}

/// A schema's file, and its place there.
pub(super) fn file_and_pointer(name: &str) -> (&str, &str) {
    name.split_once('#').unwrap_or((name, ""))
}

/// Whether a file's name stays within its folder.
pub(super) fn stays_within(name: &str) -> bool {
    let (file, pointer) = file_and_pointer(name);
    let part_is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', ':', '\0']);
    file.split('/').all(part_is_plain) && (pointer.is_empty() || pointer.starts_with('/'))
}

/// Checks `schemas`.
pub(super) fn verify_bundle_rules(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    let Some(rules) = &protocol.extension.schemas else { return };
    let at = "/x-frameproof/schemas";
    let mut names: Vec<(String, &str)> = Vec::new();
    for (field, list) in [("received", &rules.received), ("requests", &rules.requests)] {
        names.extend(
            list.iter().enumerate().map(|(index, name)| (format!("{at}/{field}/{index}"), &name[..])),
        );
    }
    names.extend(rules.error.iter().map(|name| (format!("{at}/error"), &name[..])));
    if let Some(answers) = &rules.answers {
        let listed = answers.schemas.iter().enumerate();
        names.extend(listed.map(|(index, name)| (format!("{at}/answers/schemas/{index}"), &name[..])));
        let by_name = answers.by_name.iter();
        names.extend(by_name.map(|(request, name)| {
            (format!("{at}/answers/by-name/{}", crate::source::escape_token(request)), &name[..])
        }));
        if answers.named.matches("{name}").count() != 1 {
            let error = Diagnostic::new("`named` has one `{name}`").hint("for example `{name}Params`");
            errors.push(error.at(api, &format!("{at}/answers/named"), Part::Value));
        }
    }
    for (at, _) in names.iter().filter(|(_, name)| !stays_within(name)) {
        let error = Diagnostic::new("this names no file within the bundle");
        errors.push(error.hint("a path below the folder, such as `v2/Event.json#/definitions/Event`").at(
            api,
            at,
            Part::Value,
        ));
    }
    if rules.received.is_empty() {
        let error = Diagnostic::new("`received` names no schema");
        errors.push(error.at(api, &format!("{at}/received"), Part::Value));
    }
    for (field, is_there) in [("answers", rules.answers.is_some()), ("error", rules.error.is_some())] {
        if is_there && protocol.extension.replies.is_none() {
            let error = Diagnostic::new(format!("`{field}` is for protocols with `replies`"));
            errors.push(error.at(api, &format!("{at}/{field}"), Part::Key));
        }
    }
}

/// The names of definitions that references at a place lead to: of the place itself, or of its alternatives.
pub(super) fn references(node: &Value) -> Vec<&str> {
    let own = node.get("$ref").and_then(Value::as_str).and_then(|to| to.rsplit('/').next());
    let alternatives =
        ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| node.get(*key)?.as_array()).flatten();
    own.into_iter().chain(alternatives.flat_map(references)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_the_bundle() {
        for (name, expected) in [
            ("v2/A.json", true),
            ("A.json#/definitions/B", true),
            ("../A.json", false),
            ("/etc/passwd", false),
            ("a/./b", false),
            ("a\\b", false),
            ("A.json#B", false),
        ] {
            assert_eq!(stays_within(name), expected, "{name}");
        }
    }
}
