//! Writing a case as a scenario file that people can read and the loader takes back.

use std::fmt::Write as _;

use serde_json::Value;

use crate::text::safe;

/// Keys whose value is written in one line, as JSON.
const FLAT: &[&str] = &[
    "send", "with", "where", "covers", "expect", "save", "say", "call", "suspend", "codes", "frame", "reply",
    "refuse",
];

/// A scenario file of a family with these cases, under comment lines.
pub fn file(comments: &[String], family: &str, cases: &[Value]) -> String {
    let mut out = String::new();
    for comment in comments {
        let _ = writeln!(out, "# {}", safe::terminal(comment));
    }
    let _ = writeln!(out, "family: {}\ncases:", name(family));
    cases.iter().for_each(|case| list_item(case, 2, &mut out));
    out
}

fn list_item(value: &Value, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (index, (key, value)) in map.iter().enumerate() {
                out.push_str(&pad);
                out.push_str(if index == 0 { "- " } else { "  " });
                entry(key, value, indent + 2, out);
            }
        }
        other => {
            let _ = writeln!(out, "{pad}- {}", flow(other));
        }
    }
}

fn entry(key: &str, value: &Value, indent: usize, out: &mut String) {
    out.push_str(&name(key));
    out.push(':');
    match value {
        Value::Array(items) if !items.is_empty() && !FLAT.contains(&key) => {
            out.push('\n');
            items.iter().for_each(|item| list_item(item, indent + 2, out));
        }
        Value::Object(map) if !map.is_empty() && !FLAT.contains(&key) => {
            out.push('\n');
            for (key, value) in map {
                out.push_str(&" ".repeat(indent + 2));
                entry(key, value, indent + 2, out);
            }
        }
        other => {
            let _ = writeln!(out, " {}", flow(other));
        }
    }
}

fn name(key: &str) -> String {
    let simple = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let plain = simple && key.starts_with(|c: char| c.is_ascii_alphabetic());
    // What YAML takes for a boolean or null must be quoted.
    if plain
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&key.to_lowercase().as_str())
    {
        key.to_owned()
    } else {
        safe::yaml(key)
    }
}

/// A value in one line: JSON, with what YAML does not take unescaped escaped.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => safe::yaml(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let fields: Vec<String> =
                map.iter().map(|(key, value)| format!("{}: {}", name(key), flow(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Document;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read_back() {
        let odd = "a\u{0}\u{1b}\u{7f}\u{85}\u{feff}\u{fffe}\u{2028}\u{1f468}\"\\\n\t# : - {{x}} é Привет";
        let case = json!({
            "name": "n", "title": odd, "covers": ["A-1"], "settle": false,
            "turns": { "clean": [{ "say": ["a", ""] }, { "hang": true }], "no": [] },
            "steps": [
                { "send": { "type": "x", odd: [1, -2.5, null, {}], "true": [] }, "as": "alice" },
                { "unchanged": [{ "raw": "{oops" }, { "rejected": 3, "covers": [] }] },
                { "steps": [{ "raw": "" }], "vars": { "x": [odd] } },
                { "parallel": [[{ "raw": odd }], [{ "raw": "" }]] },
            ],
        });
        let text =
            file(&["a comment\nwith a line end \u{1b}".to_owned()], "fuzz", std::slice::from_ref(&case));
        let document = Document::parse("t.yaml", &text).expect("YAML");
        assert_eq!(*document.value, json!({ "family": "fuzz", "cases": [case] }), "{text}");
    }
}
