//! Other spellings of the same JSON.

use serde_json::Value;

/// With white space wherever it may stand.
pub(super) fn spaced(value: &Value) -> String {
    let mut out = String::from(" ");
    write(value, &mut out, "\r\n\t", &|text| Value::from(text).to_string());
    out.push('\n');
    out
}

/// With an escape for each character that is not ASCII, and for the solidus.
pub(super) fn escaped(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out, "", &escape);
    out
}

/// The fields of each object from the last to the first.
pub(super) fn reverse(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let mut reversed: Vec<_> = std::mem::take(fields).into_iter().collect();
            reversed.reverse();
            fields.extend(reversed);
            fields.values_mut().for_each(reverse);
        }
        Value::Array(items) => items.iter_mut().for_each(reverse),
        _ => {}
    }
}

fn escape(text: &str) -> String {
    let mut out = String::new();
    for unit in Value::from(text).to_string().encode_utf16() {
        match u8::try_from(unit) {
            Ok(b'/') => out.push_str("\\/"),
            Ok(byte) if byte.is_ascii() => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out
}

fn write(value: &Value, out: &mut String, space: &str, spell: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => out.push_str(&spell(text)),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(space);
                write(item, out, space, spell);
            }
            out.push_str(space);
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (index, (name, field)) in fields.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(space);
                out.push_str(&spell(name));
                out.push_str(space);
                out.push(':');
                out.push_str(space);
                write(field, out, space, spell);
            }
            out.push_str(space);
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_spelling_means_the_same() {
        let value =
            json!({ "a/b": ["\u{1f600}é\"\n", 1.5, null, [], {}], "z": { "true": true, "half": "\\ud800" } });
        let mut reversed = value.clone();
        reverse(&mut reversed);
        assert!(reversed.to_string().starts_with("{\"z\":{\"half\""), "{reversed}");
        assert!(escaped(&value).is_ascii());
        for text in [spaced(&value), escaped(&value), reversed.to_string()] {
            assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value, "{text}");
        }
    }
}
