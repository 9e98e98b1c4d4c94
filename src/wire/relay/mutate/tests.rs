use serde_json::{Value, json};

use super::*;
use crate::protocol::ReadingName;
use crate::source::Document;
use crate::wire::relay::Frames;

/// Messages that say `a` to `c`, turns from `ask` to `c`, and sessions that `b` tells.
const API: &str = "
asyncapi: 3.0.0
info: { title: Relayed, version: 1.0.0 }
channels: { it: { address: /it } }
operations:
  up: { action: receive, messages: [{ $ref: '#/components/messages/ask' }] }
  down:
    action: send
    messages: [{ $ref: '#/components/messages/a' }, { $ref: '#/components/messages/b' }, { $ref: '#/components/messages/c' }]
components:
  messages:
    ask: { payload: { properties: { type: { const: ask } } }, examples: [{ payload: { type: ask } }] }
    a: { payload: { properties: { type: { const: a } } }, examples: [{ payload: { type: a } }] }
    b: { payload: { properties: { type: { const: b } } }, examples: [{ payload: { type: b } }] }
    c: { payload: { properties: { type: { const: c } } }, examples: [{ payload: { type: c } }] }
x-frameproof:
  discriminator: /type
  frames: { object: [R-1], message: [R-1], schema: [R-1] }
  session: { id: [{ message: b, at: /session }], join: connection }
  openings: { plain: [] }
  turn: { start: { type: ask, text: '{{text}}' }, end: c }
";
const CATALOGUE: &str = "requirements: [{ id: R-1, level: MUST, area: it, text: All of it., source: it }]";

fn mutation(operator: Operator, field: Option<&str>, occurrence: Occurrence) -> Arc<Mutation> {
    let read =
        |name: &str, text: &str| Document::parse(name, text).unwrap_or_else(|errors| panic!("{errors}"));
    let (api, catalogue) = (read("asyncapi.yaml", API), read("requirements.yaml", CATALOGUE));
    let protocol = Protocol::from_documents("it", &api, &catalogue, ReadingName::Default, &[]);
    let protocol = protocol.unwrap_or_else(|errors| panic!("{errors}"));
    let mutation = Mutation::new(&protocol, Some("a".to_owned()), operator);
    let mutation = match field {
        Some(field) => mutation.of(Pointer::new(field).expect("a pointer"), vec![json!(1), json!(9)]),
        None => mutation,
    };
    Arc::new(mutation.at(occurrence))
}

/// A connection behind the mutation, and what its client gets.
struct Behind(Box<dyn Interceptor>);

impl Behind {
    fn new(mutation: &Arc<Mutation>, server: &str) -> Self {
        Self(mutation.interceptor(server))
    }

    fn client_says(&mut self, body: Value) {
        let frame = Frame::new(1, body.to_string());
        let bytes = frame.encode();
        self.0.frame(Way::ToServer, frame, bytes, &mut Plan::default());
    }

    /// What becomes of messages that come together.
    fn gets(&mut self, bodies: &[Value]) -> Vec<Value> {
        let mut plan = Plan::default();
        for body in bodies {
            let frame = Frame { mask: None, ..Frame::new(1, body.to_string()) };
            let bytes = frame.encode();
            self.0.frame(Way::ToClient, frame, bytes, &mut plan);
        }
        self.0.batch_over(Way::ToClient, &mut plan);
        let mut frames = Frames::default();
        frames.take_head(b"\r\n\r\n");
        frames.take_head(&plan.written(Way::ToClient));
        let next = || frames.next_frame().map(|(frame, _)| serde_json::from_slice(&frame.payload));
        std::iter::from_fn(next).map(|body| body.expect("JSON")).collect()
    }
}

fn a(n: impl Into<Value>) -> Value {
    json!({ "type": "a", "n": n.into() })
}

#[test]
fn messages_are_spoilt_as_the_operator_says() {
    let b = || json!({ "type": "b", "n": 5 });
    let (one, two) = (|| a(1), || a(2));
    use Occurrence::{Every, First, Last, Second};
    for (operator, field, occurrence, expected) in [
        (Operator::Drop, None, Second, vec![one(), b()]),
        (Operator::Drop, None, Last, vec![one(), b()]),
        (Operator::Duplicate, None, First, vec![one(), one(), b(), two()]),
        (Operator::Swap, None, First, vec![b(), one(), two()]),
        (Operator::Earlier, None, Every, vec![one(), b(), one()]),
        (Operator::EarlierValue, Some("/n"), Every, vec![one(), b(), one()]),
        (Operator::OtherMessageValue, Some("/n"), Every, vec![one(), b(), a(5)]),
        (Operator::OtherMember, Some("/n"), Every, vec![a(9), b(), one()]),
        (Operator::OneMore, Some("/n"), First, vec![two(), b(), two()]),
        (Operator::OneMore, Some("/n"), Last, vec![one(), b(), a(3)]),
        (Operator::Absent, Some("/n"), First, vec![json!({ "type": "a" }), b(), two()]),
        (Operator::Null, Some("/n"), Second, vec![one(), b(), a(Value::Null)]),
        (Operator::Cut, Some("/n"), Every, vec![one(), b(), two()]),
    ] {
        let mutation = mutation(operator, field, occurrence);
        let gets = Behind::new(&mutation, "server").gets(&[one(), b(), two()]);
        assert_eq!(gets, expected, "{}", mutation.name());
    }
}

#[test]
fn a_message_comes_behind_the_end_of_its_turn() {
    let (end, other) = (json!({ "type": "c" }), json!({ "type": "b" }));
    let mutation = mutation(Operator::PastTurn, None, Occurrence::Every);
    let mut behind = Behind::new(&mutation, "server");
    assert_eq!(behind.gets(&[a(1), end.clone()]), [a(1), end.clone()], "no turn has begun");
    behind.client_says(json!({ "type": "ask", "text": "hello" }));
    assert_eq!(behind.gets(&[a(2), other.clone()]), [other]);
    assert_eq!(behind.gets(std::slice::from_ref(&end)), [end.clone(), a(2)]);
    assert_eq!(behind.gets(&[a(3)]), [a(3)], "the turn is over");
    assert_eq!(mutation.hits.load(Ordering::Relaxed), 1);
}

#[test]
fn messages_go_astray_to_another_client_or_session_of_the_same_server() {
    let joined = |session: &str| json!({ "type": "b", "session": session });
    for (operator, expected) in
        [(Operator::ToOtherClient, [true, false, false]), (Operator::ToOtherSession, [false, true, false])]
    {
        let mutation = mutation(operator, None, Occurrence::Every);
        let mut behind =
            ["server", "server", "server", "another"].map(|server| Behind::new(&mutation, server));
        for (one, session) in behind.iter_mut().zip(["s", "s", "t", "u"]) {
            assert_eq!(one.gets(&[joined(session)]), [joined(session)]);
        }
        let [speaker, others @ ..] = &mut behind;
        assert_eq!(speaker.gets(&[a(1)]), [a(1)]);
        let gets = others.iter_mut().map(|one| one.gets(&[joined("x")])[0] == a(1)).collect::<Vec<_>>();
        assert_eq!(gets, expected, "{}", mutation.name());
        assert_eq!(mutation.hits.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn a_value_comes_from_another_session() {
    let mutation = mutation(Operator::OtherSessionValue, Some("/n"), Occurrence::Every);
    let [mut one, mut two, mut elsewhere] =
        ["server", "server", "another"].map(|server| Behind::new(&mutation, server));
    assert_eq!(one.gets(&[a(1), a(2)]), [a(1), a(2)], "there is no other yet");
    assert_eq!(two.gets(&[a(7)]), [a(2)]);
    assert_eq!(one.gets(&[a(3)]), [a(7)]);
    assert_eq!(elsewhere.gets(&[a(4)]), [a(4)]);
}
