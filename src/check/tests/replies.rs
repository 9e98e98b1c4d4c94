//! Which request an answer belongs to.

use super::*;

fn correlation(more: &Value) -> Arc<Protocol> {
    let mut rule = json!({
        "request": { "type": "ask", "dir": "send", "with": { "known": true } }, "reply": "say", "instead": "work", "id": "/id",
    });
    json_patch::merge(&mut rule, more);
    protocol(&json!({ "invariants": { "replies": { "about": "a", "monitor": { "correlation": rule } } } }))
}

fn frame(kind: &str, id: &Value) -> Value {
    json!({ "type": kind, "id": id, "known": true })
}

#[test]
fn an_answer_with_an_id_belongs_to_that_id_alone() {
    let odd = json!({ "type": "ask", "id": "x", "known": false });
    let asked = [odd, frame("ask", &json!("y"))];
    let after =
        |protocol: &Arc<Protocol>, answers: &[Value]| judge(protocol, &[&asked[..], answers].concat()).0;
    let error = frame("work", &json!("x"));
    let result = frame("say", &json!("y"));
    for key in ["both", "twice"] {
        let protocol = correlation(&json!({ key: ["R-1"] }));
        assert_eq!(
            after(&protocol, &[error.clone(), result.clone()]),
            0,
            "{key}: it is the first answer to y"
        );
    }
    let both = correlation(&json!({ "both": ["R-1"] }));
    assert_eq!(after(&both, &[frame("work", &json!("y")), result.clone()]), 1, "y has an error and a result");
    let missing = correlation(&json!({ "missing": ["R-1"] }));
    assert_eq!(after(&missing, std::slice::from_ref(&error)), 1, "y is never answered");
    assert_eq!(after(&missing, &[error, result.clone()]), 0);
    assert_eq!(
        after(&missing, &[frame("work", &Value::Null)]),
        0,
        "an error without an id may be the answer to y"
    );
    // The same of the proper kind of answer.
    let foreign = frame("say", &json!("z"));
    assert_eq!(after(&missing, std::slice::from_ref(&foreign)), 1);
    let twice = correlation(&json!({ "twice": ["R-1"] }));
    assert_eq!(after(&twice, &[foreign, result.clone()]), 0);
    assert_eq!(after(&twice, &[result.clone(), result]), 1);
}

/// Messages of the client, as text, and then an error of the server's: how many violations.
fn error_after(sent: &[Payload], id: &Value, times: usize) -> usize {
    let protocol = protocol(&json!({
        "replies": { "id": "/id", "result": "/result", "error": "/error", "unmatched": ["R-1"] },
    }));
    let mut judge = Judge::new(protocol, Limits::default(), &[]).expect("monitors");
    let error = Payload::Text(json!({ "id": id, "error": {} }).to_string().into());
    let sent = sent.iter().map(|payload| (Direction::Send, payload.clone()));
    let events = sent.chain(std::iter::repeat_n((Direction::Recv, error), times));
    let judged = events.map(|(dir, payload)| {
        let event = Event { at: Duration::ZERO, case: None, client: "a".into(), dir, payload };
        judge.observe(&event).violations.len()
    });
    judged.sum()
}

#[test]
fn what_this_side_cannot_read_may_be_answered_once() {
    let text = |text: &str| Payload::Text(text.into());
    let deep = format!(r#"{{"type":"ask","id":7,"n":{}{}}}"#, "[".repeat(100), "]".repeat(100));
    for (sent, times, broken) in [
        (vec![], 1, 1),
        (vec![text(r#"{"type":"ask","id":7}"#)], 1, 0),
        (vec![text(r#"{"type":"ask","id":7,"id":7}"#)], 1, 0),
        (vec![text(r#"{"type":"ask","id":7,"id":7}"#)], 2, 1),
        (vec![text(&deep)], 1, 0),
        (vec![text(&deep), text("{oops")], 3, 1),
        (vec![Payload::Binary([0u8].as_slice().into())], 1, 0),
        (vec![text(r#"{"id":7,"result":1}"#)], 1, 0),
        (vec![text(r#"{"type":"ask","id":8}"#)], 1, 1),
    ] {
        assert_eq!(error_after(&sent, &json!(7), times), broken, "{sent:?}");
    }
}

#[test]
fn values_of_a_list_are_compared_within_it() {
    let with = |within: Value| {
        let rule = json!({ "on": "tool", "at": "/name", "within": within, "decides": ["R-1"] });
        protocol(&json!({
            "parts": { "tool": { "of": "work", "at": "/tools" } },
            "invariants": { "names": { "about": "a", "monitor": { "unique": rule } } },
        }))
    };
    let protocol = with(Value::Null);
    let list = |names: &[&str]| {
        let tools: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        json!({ "type": "work", "tools": tools })
    };
    assert_eq!(judge(&protocol, &[list(&["a", "b"])]), (0, 1));
    assert_eq!(judge(&protocol, &[list(&["a", "b", "a"])]).0, 1, "twice in one list");
    assert_eq!(judge(&protocol, &[list(&["a", "a", "a"])]).0, 2);
    assert_eq!(judge(&protocol, &[list(&["a", "b"]), list(&["a", "b"])]).0, 0, "a second listing");
    let protocol = with(json!("connection"));
    assert_eq!(judge(&protocol, &[list(&["a", "b", "a"])]).0, 1, "twice in one list");
    assert_eq!(judge(&protocol, &[list(&["a", "b"]), list(&["c", "b"])]).0, 1, "in another list");
}
