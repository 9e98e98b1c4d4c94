//! Values of messages as monitors compare and show them.

use std::borrow::Cow;

use serde_json::Value;

/// A key as text: strings as they are, other values as JSON.
pub(crate) fn key_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// The whole number that a number is, however it is written: 1 and 1.0 are one, 2^53 and 2^53 + 1 are two.
pub(super) fn whole_number(number: &serde_json::Number) -> Option<i128> {
    let exact = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    let float = || {
        number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e30).map(|float| float as i128)
    };
    exact.or_else(float)
}

/// A counter's value: a whole number, however large or written. `None`: it is none.
pub(crate) fn counter(value: &Value) -> Option<i128> {
    value.as_number().and_then(whole_number)
}

/// A counter as JSON, for a report.
pub(crate) fn counter_json(counter: i128) -> Value {
    i64::try_from(counter)
        .map(Value::from)
        .or_else(|_| u64::try_from(counter).map(Value::from))
        .unwrap_or_else(|_| Value::from(counter.to_string()))
}
