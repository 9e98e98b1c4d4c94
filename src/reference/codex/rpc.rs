//! JSON-RPC without its version member: what comes is read, what is wrong with it is said.

use serde_json::{Map, Value, json};

pub(super) const PARSE: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;

/// Why a request is not carried out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub code: i64,
    pub message: String,
}

pub(super) fn refuse(message: impl Into<String>) -> Refusal {
    Refusal { code: INVALID_REQUEST, message: message.into() }
}

/// Params that a method does not take.
pub(super) fn invalid(what: &str) -> Refusal {
    Refusal { code: INVALID_PARAMS, message: format!("Invalid params: {what}") }
}

/// A message of the client.
#[derive(Debug)]
pub(super) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
    },
    /// An answer to a request of ours; none: an error.
    Answer {
        id: Value,
        result: Option<Value>,
    },
}

/// Reads a message. An error: with the id that its answer bears.
pub(super) fn read(bytes: &[u8]) -> Result<Incoming, (Value, Refusal)> {
    let message: Value = serde_json::from_slice(bytes)
        .map_err(|error| (Value::Null, Refusal { code: PARSE, message: format!("Parse error: {error}") }))?;
    let Value::Object(mut message) = message else {
        return Err((Value::Null, refuse("Invalid request: no object")));
    };
    let id = message.remove("id");
    let known = id.as_ref().is_none_or(|id| id.is_string() || id.is_number());
    let told = id.clone().filter(|_| known).unwrap_or_default();
    if !known {
        return Err((told, refuse("Invalid request: the id is neither a string nor a number")));
    }
    match (message.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => {
            Ok(Incoming::Request { id, method, params: message.remove("params").unwrap_or_default() })
        }
        (Some(Value::String(method)), None) => Ok(Incoming::Notification { method }),
        (None, Some(id)) if message.contains_key("error") => Ok(Incoming::Answer { id, result: None }),
        (None, Some(id)) if message.contains_key("result") => {
            Ok(Incoming::Answer { id, result: message.remove("result") })
        }
        _ => Err((told, refuse("Invalid request: no method"))),
    }
}

/// The params of a request.
pub(super) struct Params<'p>(pub &'p Map<String, Value>);

impl<'p> Params<'p> {
    /// A member; null is none.
    pub fn get(&self, name: &str) -> Option<&'p Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn fitting<T>(&self, name: &str, fit: impl FnOnce(&'p Value) -> Option<T>) -> Result<Option<T>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => fit(value).map(Some).ok_or_else(|| invalid(&format!("{name} is of a wrong type"))),
        }
    }

    pub fn text(&self, name: &str) -> Result<&'p str, Refusal> {
        self.maybe_text(name)?.ok_or_else(|| invalid(&format!("missing field `{name}`")))
    }

    pub fn maybe_text(&self, name: &str) -> Result<Option<&'p str>, Refusal> {
        self.fitting(name, Value::as_str)
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        self.fitting(name, Value::as_bool)
    }

    pub fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        self.fitting(name, Value::as_u64)
    }

    pub fn list(&self, name: &str) -> Result<Option<&'p Vec<Value>>, Refusal> {
        self.fitting(name, Value::as_array)
    }

    pub fn object(&self, name: &str) -> Result<Option<&'p Map<String, Value>>, Refusal> {
        self.fitting(name, Value::as_object)
    }

    /// A list of strings.
    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>, Refusal> {
        self.fitting(name, |value| {
            value.as_array()?.iter().map(|each| each.as_str().map(str::to_owned)).collect()
        })
    }

    /// A string that is one of these.
    pub fn one_of(&self, name: &str, known: &[&str]) -> Result<Option<&'p str>, Refusal> {
        self.fitting(name, |value| value.as_str().filter(|text| known.contains(text)))
    }
}

/// A response.
pub(super) fn response(id: &Value, answer: &Result<Value, Refusal>) -> Value {
    match answer {
        Ok(result) => json!({ "id": id, "result": result }),
        Err(refusal) => {
            json!({ "id": id, "error": { "code": refusal.code, "message": refusal.message } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let read = |text: &str| read(text.as_bytes());
        assert!(matches!(read(r#"{"id":1,"method":"m"}"#), Ok(Incoming::Request { .. })));
        assert!(matches!(read(r#"{"method":"m"}"#), Ok(Incoming::Notification { .. })));
        assert!(matches!(read(r#"{"id":1,"result":{}}"#), Ok(Incoming::Answer { result: Some(_), .. })));
        assert!(matches!(read(r#"{"id":1,"error":{}}"#), Ok(Incoming::Answer { result: None, .. })));
        for (text, id, code) in [
            ("{oops", Value::Null, PARSE),
            ("[]", Value::Null, INVALID_REQUEST),
            ("{}", Value::Null, INVALID_REQUEST),
            (r#"{"id":3,"method":5}"#, json!(3), INVALID_REQUEST),
            (r#"{"id":{},"method":"m"}"#, Value::Null, INVALID_REQUEST),
        ] {
            let (told, refusal) = read(text).expect_err(text);
            assert_eq!((told, refusal.code), (id, code), "{text}");
        }
    }
}
