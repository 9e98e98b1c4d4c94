//! The verbs of a step, and the modifiers that each takes: the loader and `docs/scenario-reference.md` go by this table.

use std::collections::BTreeSet;

use super::file::ScenarioFile;
use crate::source::schema_of;

/// A verb.
#[derive(Debug)]
pub struct VerbInfo {
    /// Its key in a step.
    pub name: &'static str,
    /// What stands behind the key.
    pub value: &'static str,
    /// The modifiers that it takes, beside those of [`COMMON`].
    pub modifiers: &'static [&'static str],
}

/// What every step may have.
pub const COMMON: &[&str] = &["covers", "when"];

const fn verb(name: &'static str, value: &'static str, modifiers: &'static [&'static str]) -> VerbInfo {
    VerbInfo { name, value, modifiers }
}

/// Every verb, in the order in which the documentation lists them.
pub const VERBS: &[VerbInfo] = &[
    verb("open", "NAME", &["session", "opening", "with", "may-refuse", "headers", "protocols", "selects"]),
    verb("close", "NAME", &[]),
    verb("drop", "NAME", &["after", "noticed"]),
    verb("stall", "NAME", &[]),
    verb("unstall", "NAME", &[]),
    verb("send", "{…}", &["as", "count", "abandon"]),
    verb("raw", "TEXT", &["as", "count", "abandon"]),
    verb("binary", "BASE64", &["as"]),
    verb("frame", "{…}", &["as", "count"]),
    verb("bytes", "HEX", &["as", "count"]),
    verb(
        "expect",
        "TYPE or [TYPES]",
        &[
            "as",
            "with",
            "where",
            "save",
            "reply",
            "refuse",
            "within",
            "count",
            "past-errors",
            "keep",
            "tolerated",
            "allowed",
            "warns",
        ],
    ),
    verb("check", "{SCHEMA}", &["as", "tolerated", "allowed", "warns"]),
    verb("never", "TYPE or [TYPES]", &["as", "with", "where", "window", "tolerated", "allowed", "warns"]),
    verb("ping", "TEXT", &["as"]),
    verb("joined", "{ of: PATTERN, at: [POINTER, …], by: POINTER }", &["as", "where"]),
    verb("settle", "NAME", &[]),
    verb("alive", "NAME", &["codes"]),
    verb("ended", "NAME", &["codes"]),
    verb("refusal", "NAME", &["with", "where", "save", "tolerated", "allowed", "warns"]),
    verb("rejected", "N", &["as", "tolerated", "allowed"]),
    verb("unseen", "TEXT", &["as"]),
    verb("restart", "hard", &[]),
    verb("expect_file", "PATH", &["where", "within"]),
    verb("get", "PATH", &["headers", "with", "where", "within"]),
    verb("assert", "{ RELATION: [VALUES] }", &[]),
    verb("unchanged", "[STEPS]", &["as"]),
    verb("repeat", "[STEPS]", &["until", "with", "where", "count"]),
    verb("steps", "[STEPS]", &["vars"]),
    verb("parallel", "[[STEPS], …]", &[]),
];

/// Whether a verb takes a modifier.
pub fn takes(verb: &str, modifier: &str) -> bool {
    VERBS.iter().any(|known| known.name == verb && known.modifiers.contains(&modifier))
}

/// The verbs that take a modifier.
pub fn taking(modifier: &str) -> Vec<&'static str> {
    VERBS.iter().filter(|verb| verb.modifiers.contains(&modifier)).map(|verb| verb.name).collect()
}

/// The tables of verbs and modifiers for `docs/scenario-reference.md`, in the words of the JSON Schema.
pub fn documentation() -> String {
    let schema = schema_of::<ScenarioFile>();
    let about = |field: &str| {
        let text = schema["$defs"]["Step"]["properties"][field]["description"].as_str().unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
    };
    let list = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let mut text = "| verb | what it does | modifiers |\n|---|---|---|\n".to_owned();
    for verb in VERBS {
        let VerbInfo { name, value, modifiers } = verb;
        text += &format!("| `{name}: {value}` | {} | {} |\n", about(name), list(modifiers));
    }
    text += "\n| modifier | of | meaning |\n|---|---|---|\n";
    let mut named = BTreeSet::new();
    for modifier in VERBS.iter().flat_map(|verb| verb.modifiers).filter(|modifier| named.insert(**modifier)) {
        text += &format!("| `{modifier}` | {} | {} |\n", list(&taking(modifier)), about(modifier));
    }
    for modifier in COMMON {
        text += &format!("| `{modifier}` | every verb | {} |\n", about(modifier));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_field_of_a_step() {
        let schema = schema_of::<ScenarioFile>();
        let fields = schema["$defs"]["Step"]["properties"].as_object().expect("the fields of a step");
        let named = VERBS.iter().flat_map(|verb| verb.modifiers.iter().chain([&verb.name])).chain(COMMON);
        assert_eq!(
            named.copied().collect::<BTreeSet<_>>(),
            fields.keys().map(String::as_str).collect::<BTreeSet<_>>()
        );
    }
}
