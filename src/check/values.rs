//! Values of messages as monitors compare and show them.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Number, Value};

/// A key as text: strings as they are, numbers by value, other values as JSON.
pub(crate) fn key_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Number(number) if number.is_f64() => {
            Cow::Owned(whole_number(number).map_or_else(|| number.to_string(), |whole| whole.to_string()))
        }
        other => Cow::Owned(other.to_string()),
    }
}

/// The whole number that a number is, however it is written: 1 and 1.0 are one, 2^53 and 2^53 + 1 are two.
pub(super) fn whole_number(number: &Number) -> Option<i128> {
    let exact = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    let float = || {
        number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e30).map(|float| float as i128)
    };
    exact.or_else(float)
}

/// Whether two values are equal as JSON: numbers by value, objects without an order.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (whole_number(one), whole_number(other)) {
            (None, None) => one.as_f64() == other.as_f64(),
            (one, other) => one == other,
        },
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(key, one)| other.get(key).is_some_and(|other| same(one, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

/// A counter's value: a whole number, however large or written. `None`: it is none.
pub(crate) fn counter(value: &Value) -> Option<i128> {
    value.as_number().and_then(whole_number)
}

/// Which of two numbers is the larger one: whole ones exactly, others as far as a float can tell.
pub(crate) fn compared(one: &Number, other: &Number) -> Option<Ordering> {
    match (whole_number(one), whole_number(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// A counter's value, where it fits into `T`.
pub(crate) fn counter_as<T: TryFrom<i128>>(value: &Value) -> Option<T> {
    counter(value).and_then(|counter| T::try_from(counter).ok())
}

/// A counter as JSON, for a report.
pub(crate) fn counter_json(counter: i128) -> Value {
    i64::try_from(counter)
        .map(Value::from)
        .or_else(|_| u64::try_from(counter).map(Value::from))
        .unwrap_or_else(|_| Value::from(counter.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_the_same_by_value() {
        let sames = [
            (json!(7), json!(7.0), true),
            (json!({ "a": [1, { "b": 2.0 }] }), json!({ "a": [1.0, { "b": 2 }] }), true),
            (json!({ "a": 1, "b": 2 }), json!({ "b": 2, "a": 1 }), true),
            (json!(7.5), json!(7.5), true),
            (json!(7), json!(7.5), false),
            (json!(9_007_199_254_740_992_u64), json!(9_007_199_254_740_993_u64), false),
            (json!({ "a": 1 }), json!({ "a": 1, "b": null }), false),
            (json!([1]), json!([1, 1]), false),
            (json!("7"), json!(7), false),
        ];
        for (one, other, expected) in sames {
            assert_eq!((same(&one, &other), same(&other, &one)), (expected, expected), "{one} {other}");
        }
    }
}
