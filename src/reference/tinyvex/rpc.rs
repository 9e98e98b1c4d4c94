//! JSON-RPC 2.0: reading frames, checking params, building answers.

use serde_json::{Map, Value, json};

use super::Behaviour;
use super::faults::Defect;
use super::styles::Style;

pub(super) const PARSE: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL: i64 = -32603;
/// The server's own: a stream, a mutation or an action that it has not, or that failed.
pub(super) const REJECTED: i64 = -32001;

/// A refused request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

pub(super) fn refuse(code: i64, message: impl Into<String>) -> Refusal {
    Refusal { code, message: message.into(), data: None }
}

/// A refusal of one parameter, by its path below `params`.
pub(super) fn invalid(path: &[&str]) -> Refusal {
    let path: Vec<&str> = std::iter::once("params").chain(path.iter().copied()).collect();
    Refusal { code: INVALID_PARAMS, message: "Invalid params".into(), data: Some(json!({ "path": path })) }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        refuse(INTERNAL, error.to_string())
    }
}

/// A request, or a notification where it has no id.
#[derive(Debug)]
pub(super) struct Request {
    pub id: Option<Value>,
    pub method: String,
    pub params: Option<Value>,
}

/// Reads a frame.
///
/// # Errors
/// What is wrong with it, and the id to answer with: null where it has none that can be read.
pub(super) fn read(bytes: &[u8], behaviour: &Behaviour) -> Result<Request, Box<(Value, Refusal)>> {
    let bad = |id: Value, code: i64| {
        let message = if code == PARSE { "Parse error" } else { "Invalid Request" };
        Box::new((id, refuse(code, message)))
    };
    let body = match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(body)) => body,
        Ok(Value::String(text))
            if serde_json::from_str::<Value>(&text).is_ok_and(|inner| inner.is_object())
                && behaviour.strikes(Defect::TextsAreRead) =>
        {
            return read(text.as_bytes(), behaviour);
        }
        Ok(_) if behaviour.strikes(Defect::ScalarsAreParseErrors) => {
            return Err(bad(Value::Null, PARSE));
        }
        Ok(_) => return Err(bad(Value::Null, INVALID_REQUEST)),
        Err(_) => return Err(bad(Value::Null, PARSE)),
    };
    let id = body.get("id").cloned();
    let readable = id.as_ref().is_none_or(|id| id.is_string() || id.is_number() || id.is_null());
    let told = id.clone().filter(|_| readable).unwrap_or_default();
    let version = body.get("jsonrpc") == Some(&json!("2.0")) || behaviour.strikes(Defect::AnyVersion);
    let Some(method) = body.get("method").and_then(Value::as_str).filter(|_| version && readable) else {
        let is_unknown =
            version && !body.contains_key("method") && behaviour.strikes(Defect::NoMethodIsUnknown);
        return Err(bad(told, if is_unknown { METHOD_NOT_FOUND } else { INVALID_REQUEST }));
    };
    Ok(Request { id, method: method.to_owned(), params: body.get("params").cloned() })
}

/// Named params.
pub(super) struct Params<'p>(pub &'p Map<String, Value>);

impl<'p> Params<'p> {
    pub fn get(&self, name: &str) -> Option<&'p Value> {
        self.0.get(name)
    }

    pub fn text(&self, name: &str) -> Result<&'p str, Refusal> {
        self.get(name).and_then(Value::as_str).ok_or_else(|| invalid(&[name]))
    }

    pub fn given(&self, name: &str) -> Result<&'p Value, Refusal> {
        self.get(name).ok_or_else(|| invalid(&[name]))
    }

    /// A value that may be left out, if it fits.
    pub fn optional(&self, name: &str, fits: fn(&Value) -> bool) -> Result<Option<&'p Value>, Refusal> {
        match self.get(name) {
            Some(value) if !fits(value) => Err(invalid(&[name])),
            value => Ok(value),
        }
    }
}

/// The content blocks of a prompt, as the text that the model gets.
pub(super) fn prompt_text(params: &Params<'_>, behaviour: &Behaviour) -> Result<String, Refusal> {
    let prompt = params.given("prompt")?;
    if let Some(text) = prompt.as_str()
        && behaviour.strikes(Defect::PromptMayBeText)
    {
        return Ok(text.to_owned());
    }
    let blocks = match prompt {
        Value::Array(blocks) => blocks.as_slice(),
        Value::Object(_) if behaviour.strikes(Defect::PromptMayBeOneBlock) => std::slice::from_ref(prompt),
        _ => return Err(invalid(&["prompt"])),
    };
    let mut text = Vec::new();
    for block in blocks {
        let field = |name: &str| block.get(name).and_then(Value::as_str);
        let said = match field("type") {
            Some("text") if field("text") == Some("") && behaviour.strikes(Defect::EmptyTextIsRefused) => {
                None
            }
            Some("text") => field("text").map(str::to_owned),
            Some("resource_link") if behaviour.strikes(Defect::RefusesLinks) => None,
            Some("resource_link")
                if field("title").is_none() && behaviour.strikes(Defect::LinksNeedTitles) =>
            {
                None
            }
            Some("resource_link") => {
                field("name").zip(field("uri")).map(|(name, uri)| format!("[{name}]({uri})"))
            }
            Some("resource") => {
                let resource = block.get("resource");
                let uri = resource.and_then(|resource| resource.get("uri")).and_then(Value::as_str);
                uri.map(|uri| format!("<{uri}>"))
            }
            _ => None,
        };
        match said {
            None if behaviour.strikes(Defect::BadBlocksAreSkipped) => {}
            said => text.push(said.ok_or_else(|| invalid(&["prompt"]))?),
        }
    }
    Ok(text.join("\n"))
}

/// A response.
pub(super) fn response(id: &Value, answer: &Result<Value, Refusal>, behaviour: &Behaviour) -> Value {
    let mut frame = json!({ "jsonrpc": "2.0", "id": id });
    match answer {
        Ok(result) => {
            frame["result"] = result.clone();
            if result.is_object() && behaviour.style(Style::MoreFields) {
                frame["result"]["_meta"] = json!({});
            }
        }
        Err(refusal) => {
            let mut error = json!({ "code": refusal.code, "message": refusal.message });
            if let Some(data) = refusal.data.as_ref().filter(|_| !behaviour.style(Style::NoErrorData)) {
                error["data"] = data.clone();
            }
            frame["error"] = error;
        }
    }
    behaviour.mutate(&mut frame, |defect, frame| match (defect, answer) {
        (Defect::IdsAsText, _) if id.is_number() => frame["id"] = json!(id.to_string()),
        (Defect::ResultBesideError, Err(_)) => frame["result"] = Value::Null,
        (Defect::NeitherResultNorError, Ok(result)) if *result == json!({ "ok": true }) => {
            frame.as_object_mut().map(|frame| frame.remove("result"));
        }
        (Defect::MutationsHaveNullErrors, Ok(result)) if result.get("requestId").is_some() => {
            frame["error"] = Value::Null;
        }
        (Defect::NullIdsInErrors, Err(_)) => frame["id"] = Value::Null,
        (Defect::ErrorCodesAsText, Err(refusal)) => frame["error"]["code"] = json!(refusal.code.to_string()),
        (Defect::PathAsText, Err(Refusal { data: Some(data), .. })) if data.get("path").is_some() => {
            frame["error"]["data"]["path"] = json!("params");
        }
        (Defect::OneErrorCode, Err(_)) => frame["error"]["code"] = json!(INTERNAL),
        _ => {}
    });
    frame
}

/// A notification.
pub(super) fn notification(method: &str, params: Value, behaviour: &Behaviour) -> Value {
    let mut frame = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    if behaviour.style(Style::MoreFields) {
        frame["params"]["_meta"] = json!({});
    }
    let is_data = method == "tinyvex/data";
    behaviour.mutate(&mut frame, |defect, frame| match defect {
        Defect::NoVersion => {
            frame.as_object_mut().map(|frame| frame.remove("jsonrpc"));
        }
        Defect::NotificationsHaveIds => frame["id"] = json!(0),
        Defect::BareNames => frame["method"] = json!(method.trim_start_matches("tinyvex/")),
        _ if is_data => deform(defect, frame),
        _ => {}
    });
    frame
}

/// What defects make of a tinyvex/data.
fn deform(defect: Defect, frame: &mut Value) {
    let params = frame["params"].clone();
    match defect {
        Defect::ListsAreSentFlat if params["value"].as_array().is_some_and(|list| list.len() > 1) => {
            frame.as_object_mut().map(|frame| frame.remove("params"));
            for (name, value) in params.as_object().into_iter().flatten() {
                frame[name.as_str()] = value.clone();
            }
        }
        Defect::NumbersAreSentByPosition if params["value"].is_number() => {
            frame["params"] = json!([params["subId"], params["seq"], params["value"]]);
        }
        Defect::ParamsAreEncodedTwice if !params.to_string().is_ascii() => {
            frame["params"] = json!(params.to_string());
        }
        _ => {}
    }
}

/// JSON text with the keys of every object sorted.
pub(super) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            let members = keys.into_iter().map(|key| {
                let value = map.get(key).map(canonical).unwrap_or_default();
                format!("{}:{value}", Value::from(key.as_str()))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// JSON text with the keys of the outermost object sorted, and those within as they come.
pub(super) fn canonical_outside(value: &Value) -> String {
    let mut members: Vec<(&String, &Value)> = value.as_object().into_iter().flatten().collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    format!("{members:?}")
}

/// A value whose lists are sorted and whose members that are null are gone, as `lists` and `nulls` say.
pub(super) fn simplified(value: &Value, lists: bool, nulls: bool) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !nulls || !value.is_null());
            kept.map(|(key, value)| (key.clone(), simplified(value, lists, nulls))).collect()
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| simplified(item, lists, nulls)).collect();
            if lists {
                items.sort_by_key(canonical);
            }
            Value::Array(items)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_text_goes_by_content() {
        let table = [
            (json!({ "b": [1, { "d": 1, "c": 2 }], "a": "x" }), r#"{"a":"x","b":[1,{"c":2,"d":1}]}"#),
            (json!([2, 1]), "[2,1]"),
            (json!("1"), "\"1\""),
            (json!(1), "1"),
            (json!({ "\"": null }), r#"{"\"":null}"#),
        ];
        for (value, expected) in table {
            assert_eq!(canonical(&value), expected);
        }
    }

    #[test]
    fn frames_are_read_or_refused_with_their_id() {
        for (text, id, code) in [
            ("{oops", Value::Null, PARSE),
            ("[1]", Value::Null, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":7}"#, json!(7), INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":"a","method":"m"}"#, json!("a"), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, Value::Null, INVALID_REQUEST),
        ] {
            let (told, refusal) = *read(text.as_bytes(), &Behaviour::default()).expect_err(text);
            assert_eq!((told, refusal.code), (id, code), "{text}");
        }
        let request =
            read(br#"{"jsonrpc":"2.0","method":"m"}"#, &Behaviour::default()).expect("a notification");
        assert!(request.id.is_none());
    }
}
