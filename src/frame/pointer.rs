//! JSON Pointers (RFC 6901), split once and followed often.

use serde_json::{Map, Value};

/// Objects up to this many keys are searched one after the other.
const SMALL: usize = 12;

/// A compiled JSON Pointer, such as `/run_state/status`. The empty pointer is the whole value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pointer {
    text: String,
    tokens: Box<[Token]>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Token {
    key: String,
    index: Option<usize>,
}

/// The text is not a JSON Pointer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a JSON Pointer: it must be empty or begin with `/`")]
pub struct PointerError(pub String);

/// The value of an object's field. Frames are small: to compare a few keys is cheaper than to hash one.
pub(crate) fn field<'v>(map: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    if map.len() > SMALL {
        return map.get(name);
    }
    map.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

impl Pointer {
    /// Compiles `text`.
    ///
    /// # Errors
    /// A text that is neither empty nor begins with `/`.
    pub fn new(text: &str) -> Result<Self, PointerError> {
        if !text.is_empty() && !text.starts_with('/') {
            return Err(PointerError(text.to_owned()));
        }
        let tokens = text
            .split('/')
            .skip(1)
            .map(|token| {
                let key = token.replace("~1", "/").replace("~0", "~");
                let canonical = key == "0" || !key.starts_with('0');
                let index = if canonical { key.parse().ok() } else { None };
                Token { key, index }
            })
            .collect();
        Ok(Self { text: text.to_owned(), tokens })
    }

    /// The value that the pointer names in `value`, if there is one.
    pub fn get<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.tokens.iter().try_fold(value, |at, token| match at {
            Value::Object(map) => field(map, &token.key),
            Value::Array(items) => items.get(token.index?),
            _ => None,
        })
    }

    /// The text that the pointer names, `*` standing for every element of a list: their texts, put together. None: there is none.
    pub fn text(&self, value: &Value) -> Option<String> {
        let mut here = vec![value];
        for token in &self.tokens {
            let next = here.into_iter().flat_map(|at| match at {
                Value::Object(map) => field(map, &token.key).into_iter().collect(),
                Value::Array(items) if token.key == "*" => items.iter().collect(),
                Value::Array(items) => token.index.and_then(|index| items.get(index)).into_iter().collect(),
                _ => Vec::new(),
            });
            here = next.collect();
        }
        let texts: Vec<&str> = here.into_iter().filter_map(Value::as_str).collect();
        (!texts.is_empty()).then(|| texts.concat())
    }

    /// Takes the member that the pointer names out of its object, if there is one.
    pub fn take(&self, value: &mut Value) -> Option<Value> {
        let (last, parents) = self.tokens.split_last()?;
        let parent = parents.iter().try_fold(value, |at, token| match at {
            Value::Object(map) => map.get_mut(&token.key),
            Value::Array(items) => items.get_mut(token.index?),
            _ => None,
        });
        parent?.as_object_mut()?.remove(&last.key)
    }

    /// Puts a member into its object, with the objects that lead there. Where something else than an object is in the way,
    /// nothing happens.
    pub fn put(&self, value: &mut Value, member: Value) {
        let Some((last, parents)) = self.tokens.split_last() else { return };
        let mut here = value;
        for token in parents {
            let Some(map) = here.as_object_mut() else { return };
            here = map.entry(token.key.as_str()).or_insert_with(|| Value::Object(serde_json::Map::new()));
        }
        if let Some(map) = here.as_object_mut() {
            map.insert(last.key.clone(), member);
        }
    }

    /// The pointer as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl std::fmt::Display for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for Pointer {
    type Err = PointerError;
    fn from_str(text: &str) -> Result<Self, PointerError> {
        Self::new(text)
    }
}

impl<'de> serde::Deserialize<'de> for Pointer {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

impl serde::Serialize for Pointer {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl schemars::JsonSchema for Pointer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Pointer".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "A JSON Pointer (RFC 6901): empty, or begins with `/`.", "pattern": "^(/.*)?$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn takes_and_puts_members() {
        let pointer = |text| Pointer::new(text).expect("valid");
        let mut value = json!({ "a": { "b/c": 1 }, "l": [{ "x": 2 }], "n": 3 });
        assert_eq!(pointer("/a/b~1c").take(&mut value), Some(json!(1)));
        assert_eq!(pointer("/l/0/x").take(&mut value), Some(json!(2)));
        for nothing in ["", "/a/b~1c", "/l/0", "/l/9/x", "/n/x"] {
            assert_eq!(pointer(nothing).take(&mut value), None, "{nothing}");
        }
        pointer("/p/q~0").put(&mut value, json!(4));
        pointer("/n/x").put(&mut value, json!(5));
        pointer("").put(&mut value, json!(6));
        assert_eq!(value, json!({ "a": {}, "l": [{}], "n": 3, "p": { "q~": 4 } }));
    }

    #[test]
    fn follows_objects_arrays_and_escapes() {
        let value = json!({ "a": [10, { "b/c": { "~": true } }], "": 1 });
        for (pointer, expected) in [
            ("", Some(value.clone())),
            ("/a/0", Some(json!(10))),
            ("/a/1/b~1c/~0", Some(json!(true))),
            ("/", Some(json!(1))),
            ("/a/2", None),
            ("/a/00", None),
            ("/a/0/x", None),
            ("/nope", None),
        ] {
            assert_eq!(Pointer::new(pointer).expect("valid").get(&value).cloned(), expected, "{pointer}");
        }
        assert!(Pointer::new("a").is_err());
    }
}
