//! Expected against actual, line by line.

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// A line of a difference: `-` expected, `+` actual, ` ` both.
pub(super) fn lines(expected: &Value, actual: &Value) -> Vec<(char, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        // Values always serialise.
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    };
    let (expected, actual) = (text(expected), text(actual));
    let diff = TextDiff::from_lines(&expected, &actual);
    let changes = diff.iter_all_changes();
    changes
        .map(|change| {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            (sign, change.value().trim_end_matches('\n').to_owned())
        })
        .collect()
}
