//! Schemas that come in messages, and values in JSON texts.

use serde_json::{Value, json};

use crate::support::own::{check, load, protocol};

const SENT: [&str; 2] = ["call", "start"];
const RECEIVED: [&str; 3] = ["tools", "result", "pair"];

fn with(rule: &str) -> tempfile::TempDir {
    let rest = "  turn: { start: { type: start, text: '{{text}}' }, end: result }\n  parts: { tool: { of: tools, at: /tools } }\n";
    let invariants = format!("  invariants:\n    rule:\n      about: a rule\n      monitor: {{ {rule} }}\n");
    protocol(&SENT, &RECEIVED, &format!("{rest}{invariants}"))
}

const DECLARED: &str = "holds: { on: result, at: /value, told: { on: tool, at: /outputSchema }, key: [{ on: tool, at: /name }, \
                        { at: /id, through: { on: { type: call, dir: send }, at: /id, gives: /tool } }], decides: [A-2] }";

fn tools(schemas: &Value) -> (&'static str, Value) {
    let tools = schemas.as_object().expect("schemas by name").iter();
    let tools: Vec<Value> = tools
        .map(|(name, schema)| match schema {
            Value::Null => json!({ "name": name }),
            schema => json!({ "name": name, "outputSchema": schema }),
        })
        .collect();
    ("recv", json!({ "type": "tools", "tools": tools }))
}

fn call(id: u64, tool: &str) -> (&'static str, Value) {
    ("send", json!({ "type": "call", "id": id, "tool": tool }))
}

fn result(id: u64, value: Value) -> (&'static str, Value) {
    ("recv", json!({ "type": "result", "id": id, "value": value }))
}

#[test]
fn a_schema_that_a_message_brings_holds_for_later_ones() {
    let folder = with(DECLARED);
    let number = json!({ "type": "object", "required": ["n"] });
    let both = tools(&json!({ "add": number, "say": { "type": "string" } }));
    for (lines, code, why) in [
        (vec![both.clone(), call(1, "add"), result(1, json!({ "n": 3 }))], 0, "as declared"),
        (vec![both.clone(), call(1, "add"), result(1, json!({ "m": 3 }))], 1, "not as declared"),
        (vec![both.clone(), call(1, "say"), result(1, json!("hi"))], 0, "each tool has its own"),
        (
            vec![both.clone(), call(2, "say"), call(1, "add"), result(2, json!({ "n": 1 }))],
            1,
            "that of another tool",
        ),
        (vec![call(1, "add"), result(1, json!("x")), both.clone()], 0, "it was not declared yet"),
        (vec![both.clone(), call(1, "nobody"), result(1, json!(1))], 0, "not declared"),
        (
            vec![both.clone(), tools(&json!({ "add": null })), call(1, "add"), result(1, json!(1))],
            0,
            "taken back",
        ),
        (
            vec![
                both.clone(),
                tools(&json!({ "add": { "type": "null" } })),
                call(1, "add"),
                result(1, json!({ "n": 1 })),
            ],
            1,
            "the newest counts",
        ),
        (
            vec![tools(&json!({ "add": { "$ref": "#" } })), call(1, "add"), result(1, json!(1))],
            0,
            "endless: judges nothing",
        ),
        (
            vec![tools(&json!({ "add": { "type": "nothing" } })), call(1, "add"), result(1, json!(1))],
            0,
            "no schema",
        ),
    ] {
        let (found, shown) = check(&folder, &lines);
        assert_eq!((found, shown.contains("A-2")), (Some(code), code == 1), "{why}: {shown}");
    }
}

#[test]
fn values_in_texts_are_compared() {
    let pair = |text: &str| ("recv", json!({ "type": "pair", "id": 1, "value": { "n": 1 }, "text": text }));
    let equal = "relation: { on: pair, left: { json: /text }, is: equal, right: /value, decides: [A-2] }";
    let part =
        "relation: { on: pair, left: { json: /text, at: /n }, is: at-most, right: /value/n, decides: [A-2] }";
    let echoed = "echo: { request: { type: call, dir: send }, reply: pair, id: /id, asked: /value, told: { json: /text }, decides: [A-2] }";
    let held = "holds: { on: pair, at: { json: /text, at: /n }, schema: { type: integer }, decides: [A-2] }";
    for (rule, text, code) in [
        (equal, "{ \"n\" : 1 }", 0),
        (equal, "{\"n\":2}", 1),
        (equal, "no JSON", 1),
        (part, "{\"n\":1}", 0),
        (part, "{\"n\":2}", 1),
        (part, "{}", 0),
        (echoed, "{\"n\":7}", 0),
        (echoed, "{\"n\":1}", 1),
        (held, "{\"n\":1}", 0),
        (held, "{\"n\":\"x\"}", 1),
    ] {
        let asked = ("send", json!({ "type": "call", "id": 1, "value": { "n": 7 } }));
        let (found, shown) = check(&with(rule), &[asked, pair(text)]);
        assert_eq!((found, shown.contains("A-2")), (Some(code), code == 1), "{rule} {text}: {shown}");
    }
}

#[test]
fn what_cannot_hold_is_refused() {
    for (rule, error) in [
        ("holds: { on: result, decides: [A-2] }", "it says no schema"),
        (
            "holds: { on: result, schema: {}, told: { on: tool, at: /s }, decides: [A-2] }",
            "it has `schema` or `told`, not both",
        ),
        ("holds: { on: result, schema: {}, key: /id, decides: [A-2] }", "`key` has no effect without `told`"),
        (
            "holds: { on: result, schema: {}, at: /a, json: /b, decides: [A-2] }",
            "it has `at` or `json`, not both",
        ),
        (
            "holds: { on: result, told: { on: tol, at: /s }, decides: [A-2] }",
            "the server sends no message `tol`",
        ),
        ("relation: { on: pair, left: { json: /a, on: /b }, is: equal, right: /c, decides: [A-2] }", "left"),
    ] {
        let (code, shown) = load(&with(rule));
        assert!(code == Some(2) && shown.contains(error), "{rule}: {shown}");
    }
}
