//! Steps that no message can fail, and conditions that are the same in every run.

use serde_json::{Map, Value, json};

use super::{Linter, Rule};
use crate::scenario::case::{Constraint, Relation, Step, Verb};
use crate::scenario::{CLOSE, TURN_END, means};
use crate::source::Part;
use crate::trace::Direction;

/// Most values that a constraint is tried on.
const PROBES: usize = 4_000;
/// Places of a constraint that are looked at.
const PLACES: usize = 64;

/// An example of what a constraint is about.
struct Body {
    value: Value,
    /// What a message of this kind has at this place is given.
    kind: Option<Vec<String>>,
    /// It has no other fields.
    closed: bool,
}

impl From<Value> for Body {
    fn from(value: Value) -> Self {
        Self { value, kind: None, closed: false }
    }
}

pub(super) fn look(linter: &mut Linter<'_>, step: &Step, before: &[&Step], at: &str) {
    if let Some(relation) = &step.common.when
        && is_fixed(relation)
    {
        let message = "the condition compares no value of this run".to_owned();
        let hint = "compare with a `{{variable}}`, or remove `when`";
        linter.found(Rule::FixedCondition, &format!("{at}/when"), Part::Value, message, hint);
    }
    let constraint = match &step.verb {
        Verb::Assert(relation) if is_fixed(relation) => {
            let message = "the assertion compares no value of this run".to_owned();
            linter.found(
                Rule::CannotFail,
                &format!("{at}/assert"),
                Part::Value,
                message,
                "compare `{{variable}}`s",
            );
            return;
        }
        Verb::Never(verb) if verb.window.is_some_and(|window| window.is_zero()) => {
            let message = "no message can come within a window of zero".to_owned();
            linter.found(Rule::CannotFail, &format!("{at}/window"), Part::Value, message, "remove `window`");
            return;
        }
        Verb::Check(verb) => {
            let bodies = taken(linter, before, verb.by.as_deref());
            (&verb.schema, format!("{at}/check"), bodies)
        }
        Verb::Joined(verb) => {
            let mut texts = vec![json!(""), json!("?"), json!(null), json!({}), json!(7)];
            written(&verb.schema.given, &mut texts);
            if verb.pieces.by.is_some() {
                let lists = [json!([]), json!(["?", "!"])];
                texts = texts.into_iter().map(|text| json!([text])).chain(lists).collect();
            }
            (&verb.schema, format!("{at}/where"), texts.into_iter().map(Body::from).collect())
        }
        Verb::ExpectFile(verb) => {
            let Some(schema) = &verb.schema else { return };
            (schema, format!("{at}/where"), [Value::Null, json!("x")].map(Body::from).into())
        }
        Verb::Get(verb) => {
            let Some(schema) = &verb.schema else { return };
            let answers = [Value::Null, json!(200), json!(500)]
                .map(|status| json!({ "status": status, "headers": {}, "body": "" }));
            (schema, format!("{at}/where"), answers.map(Body::from).into())
        }
        _ => return,
    };
    let (schema, place, bodies) = constraint;
    if !bodies.is_empty() && cannot_fail(schema, &bodies) {
        let message = "no message that can come here fails this".to_owned();
        let hint = "name what must be present: `required`, or another field";
        linter.found(Rule::CannotFail, &place, Part::Value, message, hint);
    }
}

fn is_fixed(relation: &Relation) -> bool {
    let values = match relation {
        Relation::Equal(values) | Relation::Differ(values) | Relation::Ascending(values) => &values[..],
        Relation::Difference(values) => &values[..],
    };
    values.iter().all(crate::template::is_constant)
}

/// Examples of what the `expect` before has taken; none where that is not known.
fn taken(linter: &Linter<'_>, before: &[&Step], by: Option<&str>) -> Vec<Body> {
    let mut expects = before.iter().rev().filter_map(|step| match &step.verb {
        Verb::Expect(verb) if verb.by.as_deref() == by => Some(verb),
        _ => None,
    });
    let Some(verb) = expects.next() else { return Vec::new() };
    let mut bodies = Vec::new();
    for name in &verb.awaited.names {
        match name.as_str() {
            CLOSE if means(name, CLOSE, linter.protocol) => {
                let value = json!({ "code": 1000, "reason": "", "clean": true, "by": "server" });
                bodies.push(Body { value, kind: None, closed: true });
            }
            TURN_END => return Vec::new(),
            name => {
                let Some(index) = linter.protocol.index_of(name, Direction::Recv) else { return Vec::new() };
                let message = &linter.protocol.messages[index];
                // What names the message is as it is: it would be another one.
                let discriminator = linter.protocol.extension.discriminator.as_str();
                let kind = linter
                    .protocol
                    .says(name, Direction::Recv)
                    .then(|| discriminator.split('/').skip(1).map(str::to_owned).collect::<Vec<_>>());
                let examples = message.examples.iter().cloned();
                bodies.extend(examples.map(|value| Body { value, kind: kind.clone(), closed: false }));
            }
        }
    }
    bodies
}

/// Whether a constraint holds of bodies, whatever stands at the places that it names. One with templates is not known.
fn cannot_fail(constraint: &Constraint, bodies: &[Body]) -> bool {
    let Some(schema) = &constraint.fixed else { return false };
    let mut places = Vec::new();
    mentioned(&constraint.given, &mut Vec::new(), &mut places);
    let mut values = vec![
        json!(null),
        json!(false),
        json!(-1.5),
        json!(1e15),
        json!("?"),
        json!([]),
        json!({}),
        json!(["?", "!"]),
    ];
    written(&constraint.given, &mut values);
    let mut tried = 0;
    for body in bodies {
        if !schema.is_valid(&body.value) {
            return false;
        }
        for place in &places {
            let unknown = body.closed && place.first().is_some_and(|name| body.value.get(name).is_none());
            if body.kind.as_ref() == Some(place) || unknown {
                continue;
            }
            for value in values.iter().map(Some).chain([None]) {
                let mut body = body.value.clone();
                tried += 1;
                if tried > PROBES || (put(&mut body, place, value) && !schema.is_valid(&body)) {
                    return false;
                }
            }
        }
    }
    true
}

/// The texts that a JSON Schema writes as patterns or constants: what it makes conditions of.
fn written(schema: &Value, texts: &mut Vec<Value>) {
    match schema {
        Value::Object(fields) => {
            for (name, inner) in fields {
                match name.as_str() {
                    "pattern" | "const" if texts.len() < PLACES => {
                        let plain = inner
                            .as_str()
                            .map(|text| json!(text.trim_start_matches('^').trim_end_matches('$')));
                        texts.push(plain.unwrap_or_else(|| inner.clone()));
                    }
                    _ => written(inner, texts),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| written(item, texts)),
        _ => {}
    }
}

/// The places that a JSON Schema says something about; one step deeper than it does, to be left out.
fn mentioned(schema: &Value, at: &mut Vec<String>, places: &mut Vec<Vec<String>>) {
    if places.len() >= PLACES {
        return;
    }
    let Some(schema) = schema.as_object() else { return };
    let mut below = |name: &str, inner: &Value, places: &mut Vec<Vec<String>>| {
        at.push(name.to_owned());
        places.push(at.clone());
        mentioned(inner, at, places);
        at.pop();
    };
    for (name, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        below(name, inner, places);
    }
    for name in
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        below(name, &Value::Null, places);
    }
    for keyword in ["items", "contains"] {
        if let Some(inner) = schema.get(keyword) {
            below("0", inner, places);
        }
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for inner in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            mentioned(inner, at, places);
        }
    }
    for keyword in ["not", "if", "then", "else"] {
        if let Some(inner) = schema.get(keyword) {
            mentioned(inner, at, places);
        }
    }
}

/// Puts a value at a place, or takes it away, unless the place is that of the kind of a message. `false`: nothing has changed.
fn put(body: &mut Value, place: &[String], value: Option<&Value>) -> bool {
    let Some((name, rest)) = place.split_first() else { return false };
    if !rest.is_empty() {
        let below = match body {
            Value::Array(items) => items.first_mut(),
            Value::Object(fields) => Some(fields.entry(name.clone()).or_insert_with(|| Map::new().into())),
            _ => None,
        };
        return below.is_some_and(|below| put(below, rest, value));
    }
    match (body, value) {
        (Value::Object(fields), Some(value)) => {
            fields.insert(name.clone(), value.clone()).as_ref() != Some(value)
        }
        (Value::Object(fields), None) => fields.remove(name).is_some(),
        (Value::Array(items), Some(value)) if !items.is_empty() => {
            items[0] = value.clone();
            true
        }
        (Value::Array(items), None) if !items.is_empty() => {
            items.clear();
            true
        }
        _ => false,
    }
}
