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
        after(&missing, &[json!({ "type": "work", "known": true })]),
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

#[test]
fn an_error_with_the_id_null_answers_only_what_could_not_be_read() {
    // JSON-RPC as its authors write it: the pattern of the replies says nothing of the type of the id.
    let protocol = protocol(&json!({
        "invariants": { "answered": { "about": "a", "monitor": { "correlation": {
            "request": { "dir": "send", "where": { "type": "object", "required": ["id", "type"] } },
            "reply": { "where": { "required": ["id"], "not": { "properties": { "type": { "const": "ask" } } } } },
            "id": "/id",
            "missing": ["R-1"],
        } } } },
    }));
    let null = r#"{"type":"say","id":null}"#;
    let answer = |id: &str| format!(r#"{{"type":"say","id":{id}}}"#);
    for (sent, received, broken) in [
        (vec![r#"{"type":"ask","id":7}"#], vec![null.to_owned()], 1),
        (vec![r#"{"type":"ask","id":"7"}"#], vec![null.to_owned()], 1),
        (vec![r#"{"type":"ask","id":7}"#], vec![null.to_owned(), answer("7")], 0),
        (vec!["{oops", r#"{"type":"ask","id":7}"#], vec![null.to_owned()], 1),
        (vec!["{oops", r#"{"type":"ask","id":7}"#], vec![answer("7"), null.to_owned()], 0),
        // No receiver need take these for ids, or for requests.
        (vec![r#"{"type":"ask","id":{}}"#], vec![null.to_owned()], 0),
        (vec![r#"{"type":"ask","id":1.5}"#], vec![null.to_owned()], 0),
        (vec![r#"{"type":5,"id":7}"#], vec![null.to_owned()], 0),
        (vec![r#"{"type":"ask","id":null}"#], vec![null.to_owned()], 0),
        // It is used up by the one that could not be read.
        (vec![r#"{"type":"ask","id":{}}"#, r#"{"type":"ask","id":7}"#], vec![null.to_owned(); 2], 1),
    ] {
        assert_eq!(violations(&protocol, &sent, &received), broken, "{sent:?} {received:?}");
    }
}

#[test]
fn an_answer_with_the_id_null_takes_no_request_its_own_answer() {
    let protocol = protocol(&json!({
        "invariants": { "answered": { "about": "a", "monitor": { "correlation": {
            "request": { "dir": "send", "where": { "type": "object", "required": ["id", "type"] } },
            "reply": { "where": { "required": ["id"], "not": { "properties": { "type": { "const": "ask" } } } } },
            "id": "/id",
            "twice": ["R-1"],
            "unsolicited": ["R-1"],
            "missing": ["R-1"],
        } } } },
    }));
    let null = r#"{"type":"say","id":null}"#;
    let answer = |id: &str| format!(r#"{{"type":"say","id":{id}}}"#);
    // Of both the id is there, and need not be read.
    let (first, second) = (r#"{"type":5,"id":"u"}"#, r#"{"type":5,"id":"v"}"#);
    let null = || null.to_owned();
    for (sent, received, broken) in [
        (vec![first, "s"], vec![null(), answer("\"u\"")], 0),
        (vec!["s", first], vec![answer("\"u\""), null()], 0),
        (vec![first, second], vec![null(), answer("\"u\"")], 0),
        (vec![first, second], vec![null(), answer("\"v\"")], 0),
        (vec![first, second], vec![null(), null()], 0),
        // There are more answers than requests.
        (vec![first], vec![null(), answer("\"u\"")], 1),
        (vec![first, second], vec![null(), answer("\"u\""), answer("\"v\"")], 1),
        (vec![first, second], vec![null(), null(), answer("\"u\"")], 1),
        (vec![first], vec![null(), null()], 1),
        // There are fewer.
        (vec![first, second], vec![null()], 1),
        // The id of an open request can be read: it is an answer to something else.
        (vec![r#"{"type":"ask","id":7}"#], vec![null(), answer("7")], 1),
    ] {
        assert_eq!(violations(&protocol, &sent, &received), broken, "{sent:?} {received:?}");
    }
}

/// Texts of the client, then of the server, and then a settled end: how many violations.
fn violations(protocol: &Arc<Protocol>, sent: &[&str], received: &[String]) -> usize {
    let mut judge = Judge::new(Arc::clone(protocol), Limits::default(), &[]).expect("monitors");
    let sent = sent.iter().map(|text| (Direction::Send, (*text).to_owned()));
    let received = received.iter().map(|text| (Direction::Recv, text.clone()));
    let mut count = 0;
    for (dir, text) in sent.chain(received) {
        let payload = Payload::Text(text.into());
        let event = event("a", dir, payload);
        count += judge.observe(&event).violations.len();
    }
    count + judge.finish(true).violations.len()
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
        let event = event("a", dir, payload);
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

#[test]
fn the_end_of_a_connection_can_be_a_reply_and_messages_need_no_ids() {
    let protocol =
        protocol(&json!({ "invariants": { "replies": { "about": "a", "monitor": { "correlation": {
        "request": { "type": "ask", "dir": "send" }, "reply": ["close", "done"], "unsolicited": ["R-1"],
    } } } } }));
    let broken = |steps: &[(Direction, Payload)]| {
        let mut judge = Judge::new(Arc::clone(&protocol), Limits::default(), &[]).expect("monitors");
        let mut count = 0;
        for (dir, payload) in steps {
            let (dir, payload) = (*dir, payload.clone());
            let event = event("a", dir, payload);
            count += judge.observe(&event).violations.len();
        }
        count + judge.finish(true).violations.len()
    };
    let text = |kind: &str| Payload::Text(json!({ "type": kind }).to_string().into());
    let ask = (Direction::Send, text("ask"));
    let done = (Direction::Recv, text("done"));
    let close = (Direction::Recv, Payload::Close { code: Some(4000), reason: "bye".into() });
    assert_eq!(broken(&[ask.clone(), close.clone()]), 0, "it answers the request");
    assert_eq!(broken(std::slice::from_ref(&close)), 1, "nobody asked for it");
    assert_eq!(broken(&[ask.clone(), done.clone(), close.clone()]), 1, "the request was answered before");
    assert_eq!(broken(&[ask.clone(), ask, done, close]), 0, "the second request is answered by the close");
}
