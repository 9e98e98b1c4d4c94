//! TOML as JSON, with places.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::{Places, escape_token};
use super::{Diagnostic, Diagnostics, Document, Span};

impl Document {
    /// Parses TOML. A byte order mark is passed over. Dates are texts.
    ///
    /// # Errors
    /// Broken syntax, duplicate keys.
    pub fn toml(name: &str, text: &str) -> Result<Self, Diagnostics> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let bare = Self::foreign(name, text);
        let table = DeTable::parse(text).map_err(|error| {
            let mut diagnostic = Diagnostic::new(error.message().trim());
            diagnostic.place =
                error.span().map(|span| (bare.clone(), Span { start: span.start, end: span.end }));
            Diagnostics::from(diagnostic.hint("the TOML is invalid from here on"))
        })?;
        let mut reader = Reader { document: &bare, places: HashMap::new() };
        let value = reader.table(table.get_ref(), &mut String::new());
        let places = reader.places;
        Ok(Self::with_places(name, text, value, places))
    }
}

struct Reader<'d> {
    document: &'d Document,
    places: HashMap<String, Places>,
}

impl Reader<'_> {
    fn place(&self, offset: usize) -> (usize, usize) {
        let (line, column, _) = self.document.place(offset);
        (line, column)
    }

    fn table(&mut self, table: &DeTable<'_>, pointer: &mut String) -> Value {
        let mut map = Map::new();
        let length = pointer.len();
        // The parser sorts them by name; where the first that fits counts, it is the first as written.
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            pointer.push('/');
            pointer.push_str(&escape_token(key.get_ref()));
            let found = self.value(value, Some(key.span().start), pointer);
            pointer.truncate(length);
            map.insert(key.get_ref().to_string(), found);
        }
        Value::Object(map)
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, key: Option<usize>, pointer: &mut String) -> Value {
        let own = self.place(value.span().start);
        let key = key.map_or(own, |key| self.place(key));
        // What a header opens begins at the header.
        let own = if matches!(value.get_ref(), DeValue::Table(_)) && own < key { key } else { own };
        self.places.insert(pointer.clone(), Places { key, value: own });
        let length = pointer.len();
        match value.get_ref() {
            DeValue::String(text) => Value::from(text.as_ref()),
            DeValue::Boolean(truth) => Value::Bool(*truth),
            // Checked by the parser; one that does not fit into 64 bits is shown as it is written.
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or_else(|_| Value::from(number.as_str()), Value::from),
            DeValue::Float(number) => {
                // JSON has no infinity: that, too, is shown as it is written.
                let finite = number.as_str().replace('_', "").parse().ok().and_then(Number::from_f64);
                finite.map_or_else(|| Value::from(number.as_str()), Value::Number)
            }
            DeValue::Datetime(date) => Value::from(date.to_string()),
            DeValue::Array(items) => {
                let mut values = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    pointer.push_str(&format!("/{index}"));
                    values.push(self.value(item, None, pointer));
                    pointer.truncate(length);
                }
                Value::Array(values)
            }
            DeValue::Table(table) => self.table(table, pointer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Part;
    use serde_json::json;

    #[test]
    fn values_have_places() {
        let text = "\u{feff}a = 1\n[t.'x/y']\nlist = [1.5, { k = 'v' }]\nb = true\n[[t.many]]\nbig = 99999999999999999999\n\
                    far = [inf, nan, 1e400, 1_0.5]\n";
        let found = Document::toml("c.toml", text).expect("TOML");
        assert_eq!(
            *found.value,
            json!({ "a": 1, "t": { "x/y": { "list": [1.5, { "k": "v" }], "b": true },
                    "many": [{ "big": "99999999999999999999", "far": ["inf", "nan", "1e400", 10.5] }] } })
        );
        for (at, part, line, column) in [
            ("/a", Part::Value, 1, 5),
            ("/t/x~1y", Part::Key, 2, 4),
            ("/t/x~1y/list", Part::Key, 3, 1),
            ("/t/x~1y/list/1/k", Part::Value, 3, 20),
            ("/t/x~1y/none", Part::Value, 2, 4),
            ("/t/many/0/big", Part::Value, 6, 7),
        ] {
            let (found_line, found_column, _) = found.place(found.span(at, part).start);
            assert_eq!((found_line, found_column), (line, column), "{at}");
        }
        let error = Document::toml("c.toml", "a = \n").expect_err("broken").to_string();
        assert!(error.contains("c.toml:1:"), "{error}");
    }
}
