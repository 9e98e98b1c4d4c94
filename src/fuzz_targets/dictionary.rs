//! Words for the fuzzer: property names and enum values of schemas, and what JSON, YAML and RFC 6901 are made of.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::{all_rules_protocol, shipped};
use crate::protocol::{Extension, Protocol, RequirementsFile};
use crate::results::baseline::BaselineFile;
use crate::scenario::file::ScenarioFile;
use crate::source::schema_of;
use crate::trace::Line;

/// Longest word; what is longer is found by nobody twice.
const MAX_WORD: usize = 60;

/// The words of a target, without quotes, sorted.
pub fn words(target: &str) -> Vec<String> {
    let mut words = BTreeSet::new();
    match target {
        "trace" => collect(&schema_of::<Line>(), &mut words),
        "scenario" => {
            collect(&schema_of::<ScenarioFile>(), &mut words);
            shipped().iter().for_each(|protocol| names(protocol, &mut words));
        }
        "protocol" | "overlay" => {
            collect(&schema_of::<Extension>(), &mut words);
            collect(&schema_of::<RequirementsFile>(), &mut words);
            names(all_rules_protocol::all_rules(), &mut words);
            let asyncapi =
                ["asyncapi", "operations", "action", "messages", "components", "payload", "examples", "$ref"];
            words.extend(asyncapi.map(str::to_owned));
        }
        "baseline" => collect(&schema_of::<BaselineFile>(), &mut words),
        // Their inputs are no text.
        "monitors" | "report" | "frame_structured" => {}
        _ => {
            let own = target.strip_prefix("message_");
            for protocol in shipped().iter().filter(|protocol| own.is_none_or(|own| protocol.name == own)) {
                names(protocol, &mut words);
                protocol.messages.iter().for_each(|message| collect(message.payload(), &mut words));
            }
        }
    }
    words.retain(|word| !word.is_empty() && word.len() <= MAX_WORD && word.is_ascii());
    words.into_iter().collect()
}

fn names(protocol: &Protocol, words: &mut BTreeSet<String>) {
    words.extend(protocol.messages.iter().map(|message| message.name.clone()));
}

/// Property names, and the texts of `enum` and `const`, anywhere in a schema.
fn collect(schema: &Value, words: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("properties", Value::Object(properties)) => words.extend(properties.keys().cloned()),
                    ("enum", Value::Array(options)) => {
                        words.extend(options.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    ("const", Value::String(text)) => drop(words.insert(text.clone())),
                    _ => {}
                }
                collect(value, words);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        _ => {}
    }
}

/// A target's dictionary in libFuzzer's format. `None`: its inputs are no text.
pub fn dictionary(target: &str) -> Option<String> {
    let words = words(target);
    if words.is_empty() {
        return None;
    }
    let yaml = ["scenario", "protocol", "overlay", "baseline"].contains(&target);
    let syntax: &[&str] = if yaml {
        &[": ", "\n- ", "\n  ", "{ ", " }", "[]", "&a ", "*a", "!!", "|\n", "'", "null", "#/"]
    } else {
        &[
            "{\"",
            "\":",
            "\",\"",
            "[]",
            "{}",
            "null",
            "true",
            "\\u0000",
            "\\ud800",
            "1e400",
            "-0",
            "9007199254740993",
        ]
    };
    let mut text = String::from("# Made by `cargo run --example fuzz_seeds`.\n");
    for word in syntax {
        let _ = writeln!(text, "\"{}\"", escape(word));
    }
    for word in words {
        let quoted = if yaml { word } else { format!("\"{word}\"") };
        let _ = writeln!(text, "\"{}\"", escape(&quoted));
    }
    Some(text)
}

fn escape(word: &str) -> String {
    word.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => drop(write!(text, "\\x{byte:02X}")),
        }
        text
    })
}
