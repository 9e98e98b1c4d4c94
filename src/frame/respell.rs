//! The same JSON in other bytes.

use serde_json::Value;

/// A value as few writers write it: the members of objects in reverse order, white space wherever it may be, and escapes of which none
/// is needed. Whoever reads JSON by its grammar (RFC 8259) reads the same value.
pub(crate) fn respelled(value: &Value) -> String {
    let mut text = String::from("\n");
    write(value, &mut text);
    text.push_str(" \r\n");
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            text.push_str("{ ");
            for (index, (name, member)) in members.iter().rev().enumerate() {
                text.push_str(if index > 0 { "\t,\n" } else { "" });
                escape(name, text);
                text.push_str(" : ");
                write(member, text);
            }
            text.push_str(" }");
        }
        Value::Array(items) => {
            text.push_str("[ ");
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { " , " } else { "" });
                write(item, text);
            }
            text.push_str(" ]");
        }
        Value::String(string) => escape(string, text),
        other => text.push_str(&other.to_string()),
    }
}

/// Characters of a string beyond which only what must be escaped is: a long text must not become a message that is too long.
const ESCAPED: usize = 1_000;

/// A string whose first letter is escaped, as are slashes and what is not ASCII.
fn escape(string: &str, text: &mut String) {
    text.push('"');
    for (index, c) in string.chars().enumerate() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if index > ESCAPED && !c.is_control() => text.push(c),
            '/' => text.extend(['\\', c]),
            c if index > 0 && (' '..='~').contains(&c) => text.push(c),
            c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04X}"))),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::respelled;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<String>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            Just(Value::Null),
            any::<bool>().prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect()))
            ]
        })
    }

    proptest! {
        #[test]
        fn the_value_is_the_same(value in any_value()) {
            let read: Value = serde_json::from_str(&respelled(&value)).expect("JSON");
            prop_assert_eq!(read, value);
        }
    }

    #[test]
    fn a_long_text_is_not_much_longer() {
        let text = "é/😀".repeat(100_000);
        assert!(respelled(&json!(text)).len() < text.len() + 12 * super::ESCAPED);
    }

    #[test]
    fn the_bytes_are_others() {
        let text = respelled(&json!({ "a": "x/😀", "b": [1, {}] }));
        assert_eq!(
            text,
            "\n{ \"\\u0062\" : [ 1 , {  } ]\t,\n\"\\u0061\" : \"\\u0078\\/\\uD83D\\uDE00\" } \r\n"
        );
    }
}
