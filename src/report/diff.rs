//! Expected against actual, line by line.

use serde_json::Value;
use similar::DiffOp;
use similar::algorithms::{Capture, Replace, myers};

use crate::results::Check;
use crate::results::event::Failure;

/// What was expected against what came, as far as that was asked for.
pub(super) struct Comparison {
    /// As [`lines`] gives them.
    pub lines: Vec<(char, String)>,
    /// There is more in what came that nobody asked for.
    pub more: bool,
    /// The schema of a step's `where`.
    pub schema: Option<Value>,
}

/// Compares a failure's values. A step asks for a part of a message only; the rest is no difference.
pub(super) fn compare(failure: &Failure, expected: &Value, actual: &Value) -> Comparison {
    let mut expected = expected.clone();
    let mut shown = (actual.clone(), false);
    let mut schema = None;
    if failure.check == Check::Step && actual.is_object() {
        schema = expected.as_object_mut().and_then(|expected| expected.shift_remove("where"));
        shown = asked_for(&expected, actual);
    }
    Comparison { lines: lines(&expected, &shown.0), more: shown.1, schema }
}

/// The part of a value that an expected part of it speaks of, and whether there is more: what nobody asked for is no
/// difference.
fn asked_for(expected: &Value, actual: &Value) -> (Value, bool) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            let mut more = actual.keys().any(|key| !expected.contains_key(key));
            let common =
                expected.iter().filter_map(|(key, expected)| Some((key, expected, actual.get(key)?)));
            let part = common.map(|(key, expected, actual)| {
                let (part, rest) = asked_for(expected, actual);
                more |= rest;
                (key.clone(), part)
            });
            let part = part.collect();
            (Value::Object(part), more)
        }
        _ => (actual.clone(), false),
    }
}

/// A line of a difference: `-` expected, `+` actual, ` ` both.
pub(super) fn lines(expected: &Value, actual: &Value) -> Vec<(char, String)> {
    let are_texts = expected.is_string() && actual.is_string();
    let text = |value: &Value| match value {
        Value::String(text) if are_texts => text.clone(),
        // Values always serialise.
        // That one more follows is no difference.
        value => serde_json::to_string_pretty(value).unwrap_or_default().replace(",\n", "\n"),
    };
    let (expected, actual) = (text(expected), text(actual));
    let (expected, actual): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    // One algorithm by its own name: what chooses among all of them compiles all of them.
    let mut found = Replace::new(Capture::new());
    let Ok(()) = myers::diff_deadline_raw(
        &mut found,
        &expected[..],
        0..expected.len(),
        &actual[..],
        0..actual.len(),
        None,
    );
    let mut lines = Vec::new();
    let mut add = |sign, text: &[&str]| lines.extend(text.iter().map(|line| (sign, (*line).to_owned())));
    for op in found.into_inner().into_ops() {
        if let DiffOp::Equal { .. } = op {
            add(' ', &expected[op.old_range()]);
        } else {
            add('-', &expected[op.old_range()]);
            add('+', &actual[op.new_range()]);
        }
    }
    lines
}

/// The lines that differ, with so many around them; `…` stands for those that are left out.
pub(super) fn hunks(lines: Vec<(char, String)>, around: usize) -> Vec<(char, String)> {
    let differs: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].0 != ' ').collect();
    let is_near = |at: usize| {
        let next = differs.partition_point(|differs| differs + around < at);
        differs.get(next).is_some_and(|differs| *differs <= at + around)
    };
    let mut shown: Vec<(char, String)> = Vec::new();
    for (at, line) in lines.into_iter().enumerate() {
        if is_near(at) {
            shown.push(line);
        } else if shown.last().is_none_or(|(sign, _)| *sign != '…') {
            shown.push(('…', String::new()));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_far_from_a_difference_is_left_out() {
        let one = json!([1, 2, 3, 4, 5, 6, 7, 8]);
        let shown = hunks(lines(&one, &json!([1, 2, 3, 4, 0, 6, 7, 8])), 1);
        let signs: String = shown.iter().map(|(sign, _)| *sign).collect();
        assert_eq!(signs, "… -+ …");
        assert_eq!(hunks(lines(&one, &one), 1), [('…', String::new())]);
    }

    #[test]
    fn what_nobody_asked_for_is_no_difference() {
        let expected = json!({ "type": "a", "run": { "id": 1 }, "gone": true });
        let actual = json!({ "seq": 7, "type": "a", "run": { "id": 2, "at": 3 } });
        let (part, more) = asked_for(&expected, &actual);
        assert_eq!((&part, more), (&json!({ "type": "a", "run": { "id": 2 } }), true));
        let signs: Vec<char> = lines(&expected, &part).iter().map(|(sign, _)| *sign).collect();
        assert!(signs.contains(&'-') && signs.contains(&'+'), "{signs:?}");
        assert_eq!(asked_for(&json!({ "a": 1 }), &json!({ "a": 1 })), (json!({ "a": 1 }), false));
        let signs = |one, other| lines(&one, &other).iter().filter(|(sign, _)| *sign != ' ').count();
        assert_eq!(signs(json!({ "a": 1 }), json!({ "a": 1, "b": 2 })), 1, "a comma is no difference");
        assert_eq!(signs(json!({ "a": ",\n" }), json!({ "a": "\n" })), 2, "one in a text is");
        assert_eq!(asked_for(&json!({ "a": 1 }), &json!("text")), (json!("text"), false));
        assert_eq!(signs(json!("5"), json!(5)), 2, "a text that looks like a number is none");
        assert_eq!(signs(json!("a"), json!("b")), 2);
        assert_eq!(
            signs(json!({ "a": null, "b": 1 }), json!({ "b": 1 })),
            1,
            "a null that was expected, and did not come"
        );
    }
}
