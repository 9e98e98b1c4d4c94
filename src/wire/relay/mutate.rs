//! Mutants of the wire: a correct server's messages, one of them mutated in one way.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Interceptor, Plan, Way};
use crate::frame::Pointer;
use crate::wire::frame::Frame;

/// How late a delayed message comes.
const LATE: Duration = Duration::from_millis(300);

/// What is done to a message, or to one field of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// The message is not sent.
    Drop,
    /// It is sent twice.
    Duplicate,
    /// It is sent after the next one.
    Swap,
    /// It, and everything behind it, comes 300 ms late.
    Delay,
    /// The one before of its kind is sent in its place.
    Earlier,
    /// The field is left out.
    Absent,
    /// It is null.
    Null,
    /// It is of another type.
    WrongType,
    /// It has the value that it had in the message before of this kind.
    EarlierValue,
    /// A number is one more.
    OneMore,
    /// A number is one less.
    OneLess,
    /// An integer is no integer.
    Fraction,
    /// A truth is the other one.
    Negated,
    /// A text is another one.
    OtherText,
    /// A text lacks its last character.
    Cut,
    /// A text is empty.
    Empty,
    /// A text is in the other letter case.
    OtherCase,
    /// A list or an object lacks its last element.
    Shorter,
}

impl Operator {
    /// Those for whole messages, by name.
    pub const OF_MESSAGES: [(Self, &'static str); 5] = [
        (Self::Drop, "drop"),
        (Self::Duplicate, "duplicate"),
        (Self::Swap, "swap"),
        (Self::Delay, "delay"),
        (Self::Earlier, "earlier"),
    ];

    /// Those for fields, by name.
    pub const OF_FIELDS: [(Self, &'static str); 13] = [
        (Self::Absent, "absent"),
        (Self::Null, "null"),
        (Self::WrongType, "wrong-type"),
        (Self::EarlierValue, "earlier-value"),
        (Self::OneMore, "one-more"),
        (Self::OneLess, "one-less"),
        (Self::Fraction, "fraction"),
        (Self::Negated, "negated"),
        (Self::OtherText, "other-text"),
        (Self::Cut, "cut"),
        (Self::Empty, "empty"),
        (Self::OtherCase, "other-case"),
        (Self::Shorter, "shorter"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let mut all = Self::OF_MESSAGES.iter().chain(&Self::OF_FIELDS);
        all.find(|(operator, _)| *operator == self).map_or("", |(_, name)| name)
    }

    /// The value in place of another; `None`: it has no such one.
    fn changed(self, value: &Value, earlier: Option<&Value>) -> Option<Value> {
        let number = |by: i64| value.as_i64().and_then(|number| number.checked_add(by)).map(Value::from);
        let text = |other: fn(&str) -> String| value.as_str().map(|text| Value::from(other(text)));
        let changed = match self {
            Self::Null => Some(Value::Null),
            Self::WrongType => Some(if value.is_string() { json!(7) } else { json!("7") }),
            Self::EarlierValue => earlier.cloned(),
            Self::OneMore => number(1),
            Self::OneLess => number(-1),
            Self::Fraction => value.as_i64().map(|number| json!(number as f64 + 0.5)),
            Self::Negated => value.as_bool().map(|truth| json!(!truth)),
            Self::OtherText => text(|text| format!("{text}x")),
            Self::Cut => text(|text| text.chars().take(text.chars().count().saturating_sub(1)).collect()),
            Self::Empty => text(|_| String::new()),
            Self::OtherCase => text(|text| match text.to_uppercase() {
                upper if upper == text => text.to_lowercase(),
                upper => upper,
            }),
            Self::Shorter => shorter(value),
            _ => None,
        };
        changed.filter(|changed| changed != value)
    }
}

fn shorter(value: &Value) -> Option<Value> {
    let mut value = value.clone();
    match &mut value {
        Value::Array(items) => drop(items.pop()?),
        Value::Object(fields) => {
            let last = fields.keys().next_back().cloned()?;
            fields.remove(&last);
        }
        _ => return None,
    }
    Some(value)
}

/// At which of the messages that it fits a mutation strikes, on each connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrence {
    /// At each.
    Every,
    /// At the first.
    First,
    /// At the second.
    Second,
}

/// One mutation of a server's messages.
#[derive(Debug)]
pub struct Mutation {
    /// Where a message says which it is.
    pub discriminator: Pointer,
    /// What it says there; none: a reply, which says nothing there.
    pub message: Option<String>,
    /// The field; `None`: the whole message.
    pub field: Option<Pointer>,
    /// What is done to it.
    pub operator: Operator,
    /// To which of them.
    pub occurrence: Occurrence,
    /// How often it was done.
    pub hits: AtomicU64,
}

impl Mutation {
    /// How it is called: message, field, operator and occurrence.
    pub fn name(&self) -> String {
        let message = self.message.as_deref().unwrap_or("(reply)");
        let field = self.field.as_ref().map_or("", |field| field.as_str());
        let occurrence = match self.occurrence {
            Occurrence::Every => "every",
            Occurrence::First => "first",
            Occurrence::Second => "second",
        };
        format!("{message}{field} {} {occurrence}", self.operator.name())
    }

    fn fits(&self, body: &Value) -> bool {
        let says = self.discriminator.get(body).and_then(Value::as_str);
        says == self.message.as_deref() && self.field.as_ref().is_none_or(|field| field.get(body).is_some())
    }

    /// What becomes of the connections of one server.
    pub fn interceptor(self: &Arc<Self>) -> Box<dyn Interceptor> {
        Box::new(Mutator {
            mutation: Arc::clone(self),
            seen: 0,
            earlier: None,
            held: None,
            values: HashMap::new(),
        })
    }
}

struct Mutator {
    mutation: Arc<Mutation>,
    /// Messages that fitted so far.
    seen: u64,
    /// The one before.
    earlier: Option<Vec<u8>>,
    /// What is sent after the next message.
    held: Option<Vec<u8>>,
    values: HashMap<String, Value>,
}

impl Mutator {
    fn is_due(&self) -> bool {
        match self.mutation.occurrence {
            Occurrence::Every => true,
            Occurrence::First => self.seen == 1,
            Occurrence::Second => self.seen == 2,
        }
    }

    fn hit(&self) {
        self.mutation.hits.fetch_add(1, Ordering::Relaxed);
    }

    fn message(&mut self, bytes: Vec<u8>, plan: &mut Plan) {
        let way = Way::ToClient;
        let earlier = self.earlier.replace(bytes.clone());
        match self.mutation.operator {
            Operator::Drop => {}
            Operator::Duplicate => {
                plan.write(way, bytes.clone());
                plan.write(way, bytes);
            }
            Operator::Swap => self.held = Some(bytes),
            Operator::Delay => {
                plan.wait(way, LATE);
                plan.write(way, bytes);
            }
            Operator::Earlier => match earlier {
                Some(earlier) if earlier != bytes => plan.write(way, earlier),
                _ => return plan.write(way, bytes),
            },
            _ => return plan.write(way, bytes),
        }
        self.hit();
    }

    /// The message with its field changed; `None`: there is nothing to change.
    fn field(&mut self, body: &Value, field: &Pointer) -> Option<Value> {
        let value = field.get(body)?.clone();
        let earlier = self.values.insert(field.as_str().to_owned(), value.clone());
        if !self.is_due() {
            return None;
        }
        let mut body = body.clone();
        if self.mutation.operator == Operator::Absent {
            field.take(&mut body)?;
            return Some(body);
        }
        let changed = self.mutation.operator.changed(&value, earlier.as_ref())?;
        *body.pointer_mut(field.as_str())? = changed;
        Some(body)
    }
}

impl Interceptor for Mutator {
    fn frame(&mut self, way: Way, frame: Frame, bytes: Vec<u8>, plan: &mut Plan) {
        if way == Way::ToServer || frame.opcode != 1 || !frame.fin {
            return plan.write(way, bytes);
        }
        let held = self.held.take();
        let body = serde_json::from_slice::<Value>(&frame.payload).unwrap_or_default();
        let mutation = Arc::clone(&self.mutation);
        if !mutation.fits(&body) {
            plan.write(way, bytes);
        } else {
            self.seen += 1;
            match &mutation.field {
                None if self.is_due() => self.message(bytes, plan),
                None => {
                    self.earlier = Some(bytes.clone());
                    plan.write(way, bytes);
                }
                Some(field) => match self.field(&body, field) {
                    Some(changed) => {
                        self.hit();
                        let payload = changed.to_string().into_bytes();
                        plan.write(way, Frame { payload, form: None, ..frame }.encode());
                    }
                    None => plan.write(way, bytes),
                },
            }
        }
        held.into_iter().for_each(|held| plan.write(way, held));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What two messages `{"type":"a","n":…}` become, and one of another kind.
    fn mutated(operator: Operator, field: Option<&str>, occurrence: Occurrence) -> Vec<Value> {
        let mutation = Arc::new(Mutation {
            discriminator: Pointer::new("/type").expect("a pointer"),
            message: Some("a".to_owned()),
            field: field.map(|field| Pointer::new(field).expect("a pointer")),
            operator,
            occurrence,
            hits: AtomicU64::new(0),
        });
        let (mut mutator, mut plan) = (mutation.interceptor(), Plan::default());
        for body in [json!({ "type": "a", "n": 1 }), json!({ "type": "b" }), json!({ "type": "a", "n": 2 })] {
            let frame = Frame { mask: None, ..Frame::new(1, body.to_string()) };
            let bytes = frame.encode();
            mutator.frame(Way::ToClient, frame, bytes, &mut plan);
        }
        let mut frames = super::super::Frames::default();
        frames.take_head(b"\r\n\r\n");
        frames.take_head(&plan.written(Way::ToClient));
        let next = || frames.next_frame().map(|(frame, _)| serde_json::from_slice(&frame.payload));
        std::iter::from_fn(next).map(|body| body.expect("JSON")).collect()
    }

    #[test]
    fn messages_are_spoilt_as_the_operator_says() {
        let a = |n: Value| json!({ "type": "a", "n": n });
        let b = || json!({ "type": "b" });
        let (one, two) = (|| a(json!(1)), || a(json!(2)));
        use Occurrence::{Every, First, Second};
        for (operator, field, occurrence, expected) in [
            (Operator::Drop, None, Second, vec![one(), b()]),
            (Operator::Duplicate, None, First, vec![one(), one(), b(), two()]),
            (Operator::Swap, None, First, vec![b(), one(), two()]),
            (Operator::Earlier, None, Every, vec![one(), b(), one()]),
            (Operator::EarlierValue, Some("/n"), Every, vec![one(), b(), one()]),
            (Operator::OneMore, Some("/n"), First, vec![two(), b(), two()]),
            (Operator::Absent, Some("/n"), First, vec![json!({ "type": "a" }), b(), two()]),
            (Operator::Null, Some("/n"), Second, vec![one(), b(), a(Value::Null)]),
            (Operator::Cut, Some("/n"), Every, vec![one(), b(), two()]),
        ] {
            assert_eq!(mutated(operator, field, occurrence), expected, "{operator:?}");
        }
    }
}
