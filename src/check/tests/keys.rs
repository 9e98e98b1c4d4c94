//! What pairs messages: one place, a place on each side, several together, and a message between.

use serde_json::{Value, json};

use super::{judge, protocol};

fn broken(monitor: Value, frames: &[Value]) -> usize {
    let protocol = protocol(&json!({ "invariants": { "x": { "about": "a", "monitor": monitor } } }));
    judge(&protocol, frames).0
}

#[test]
fn each_side_has_a_place_of_its_own() {
    let rule = |key: Value| {
        json!({ "response": {
            "first": { "type": "ask", "dir": "send" }, "then": "done", "before": "log", "key": key, "decides": ["R-1"],
        } })
    };
    let ask = |id: u64| json!({ "type": "ask", "id": id });
    let done = |id: u64| json!({ "type": "done", "requestId": id });
    let log = json!({ "type": "log" });
    for key in [json!(["/id", "/requestId"]), json!([{ "on": "done", "at": "/requestId" }, { "at": "/id" }])]
    {
        assert_eq!(broken(rule(key.clone()), &[ask(1), ask(2), done(2), done(1), log.clone()]), 0);
        assert_eq!(broken(rule(key.clone()), &[ask(1), ask(2), done(2), log.clone()]), 1);
        assert_eq!(broken(rule(key), &[ask(1), done(2), log.clone()]), 1);
    }
    assert_eq!(broken(rule(json!("/id")), &[ask(1), done(1), log]), 1, "`done` has no /id");
}

#[test]
fn several_values_are_one_key() {
    let rule = json!({ "precedence": { "first": "work", "then": "output", "key": [{ "at": ["/run", "/id"] }], "decides": ["R-1"] } });
    let frame = |name: &str, run: Value, id: Value| json!({ "type": name, "run": run, "id": id });
    let begun = [frame("work", json!("a"), json!("b,c")), frame("work", json!(1), json!(2))];
    let then = |last: Value| broken(rule.clone(), &[&begun[..], &[last]].concat());
    assert_eq!(then(frame("output", json!("a"), json!("b,c"))), 0);
    assert_eq!(then(frame("output", json!(1), json!(2))), 0);
    assert_eq!(then(frame("output", json!("a"), json!(2))), 1, "each has been seen, not both together");
    assert_eq!(then(frame("output", json!("a,b"), json!("c"))), 1, "the values are told apart");
    assert_eq!(then(json!({ "type": "output", "run": "z" })), 0, "it has no key");
}

/// 7 and 7.0 are one number, and "7" is none.
#[test]
fn values_are_compared_as_numbers_and_not_as_they_are_written() {
    let echo = json!({ "echo": {
        "request": { "type": "ask", "dir": "send" }, "reply": "done", "id": "/id", "asked": "/t", "told": "/t", "decides": ["R-1"],
    } });
    let constant =
        json!({ "constant": { "values": [{ "message": "done", "at": "/t" }], "decides": ["R-1"] } });
    let relation = json!({ "relation": { "message": "done", "left": "/t", "is": "equal", "right": "/id", "decides": ["R-1"] } });
    let done = |t: Value| json!({ "type": "done", "id": 7, "t": t });
    for rule in [echo, constant, relation] {
        let after = |t: Value| {
            let asked = json!({ "type": "ask", "id": 7, "t": 7 });
            broken(rule.clone(), &[done(json!(7)), asked, done(t)])
        };
        assert_eq!(after(json!(7.0)), 0, "{rule}");
        assert_eq!(after(json!(7.5)), 1, "{rule}");
        assert_eq!(after(json!("7")), 1, "{rule}");
    }
}

#[test]
fn what_a_connection_does_not_know_may_begin_in_its_midst() {
    let rule = json!({ "precedence": {
        "first": "work", "then": "output", "key": "/id", "known": { "by": "say", "at": "/id", "named": "/run" }, "decides": ["R-1"],
    } });
    let told = |id: Value| json!({ "type": "say", "id": id });
    let output = |run: u64| json!({ "type": "output", "run": run, "id": 7 });
    assert_eq!(broken(rule.clone(), &[output(1)]), 0, "nobody told of it");
    assert_eq!(broken(rule.clone(), &[told(json!(1)), output(2)]), 0, "of another");
    assert_eq!(
        broken(rule.clone(), &[told(json!(1)), json!({ "type": "output", "id": 7 })]),
        0,
        "it names none"
    );
    assert_eq!(broken(rule.clone(), &[told(json!(1.0)), output(1)]), 1);
    assert_eq!(broken(rule, &[told(json!(1)), json!({ "type": "work", "id": 7 }), output(1)]), 0);
}

/// A progress token that a request has given, and that is used after the answer to it.
#[test]
fn a_third_message_tells_what_a_value_stands_for() {
    let rule = json!({ "absence": {
        "of": "work", "after": "done",
        "key": [{ "on": "work", "at": "/token", "through": { "on": { "type": "ask", "dir": "send" }, "at": "/token", "gives": "/id" } }, { "at": "/id" }],
        "decides": ["R-1"],
    } });
    let ask = |id: u64, token: &str| json!({ "type": "ask", "id": id, "token": token });
    let done = |id: u64| json!({ "type": "done", "id": id });
    let work = |token: &str| json!({ "type": "work", "token": token });
    let asked = [ask(1, "x"), ask(2, "y"), work("x"), done(1), work("y")];
    assert_eq!(broken(rule.clone(), &asked), 0);
    assert_eq!(broken(rule.clone(), &[&asked[..], &[work("x")]].concat()), 1);
    assert_eq!(broken(rule.clone(), &[&asked[..], &[work("z")]].concat()), 0, "nobody gave it");
    assert_eq!(broken(rule, &[&asked[..], &[ask(3, "x"), work("x")]].concat()), 0, "the newest counts");
}

#[test]
fn stretches_overlap_by_their_keys() {
    let rule = |key: Value| json!({ "existence": { "of": "output", "from": "work", "to": "done", "key": key, "min": 1, "max": 1, "decides": ["R-1"] } });
    let frame = |name: &str, id: u64| json!({ "type": name, "id": id });
    let both = [
        frame("work", 1),
        frame("work", 2),
        frame("output", 1),
        frame("output", 2),
        frame("done", 1),
        frame("done", 2),
    ];
    assert_eq!(broken(rule(json!("/id")), &both), 0);
    assert_eq!(broken(rule(Value::Null), &both), 1, "without a key the two are one after the other");
    let twice = [
        frame("work", 1),
        frame("work", 2),
        frame("output", 1),
        frame("output", 1),
        frame("done", 1),
        frame("done", 2),
    ];
    assert_eq!(broken(rule(json!("/id")), &twice), 2, "one has two, one has none");
    let end = json!({ "type": "done" });
    let open = [frame("work", 1), frame("work", 2), frame("output", 1), end];
    assert_eq!(broken(rule(json!("/id")), &open), 1, "an end without a key ends both");
}

#[test]
fn a_key_that_cannot_be_is_refused() {
    let load = |monitor: Value| {
        let invariants = json!({ "invariants": { "x": { "about": "a", "monitor": monitor } } });
        let loaded = std::panic::catch_unwind(|| protocol(&invariants));
        loaded.map(drop).map_err(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
    };
    for (monitor, error) in [
        (
            json!({ "increasing": { "on": "log", "at": "/n", "key": ["/a", "/b"], "order": [], "repeat": [] } }),
            "one kind only",
        ),
        (
            json!({ "precedence": { "first": "work", "then": "output", "key": [], "decides": [] } }),
            "no place",
        ),
        (
            json!({ "precedence": { "first": "work", "then": "output", "key": [{ "at": [] }], "decides": [] } }),
            "no place",
        ),
        (
            json!({ "precedence": { "first": "work", "then": "output", "key": [{ "on": "wrok", "at": "/id" }], "decides": [] } }),
            "wrok",
        ),
        (
            json!({ "precedence": { "first": "work", "then": "output", "key": [{ "at": "/t", "through": { "on": "lgo", "at": "/t", "gives": "/id" } }], "decides": [] } }),
            "lgo",
        ),
        (
            json!({ "correlation": { "request": { "type": "ask", "dir": "send" }, "reply": "done", "missing": ["R-1"] } }),
            "`missing` has no effect where messages have no ids",
        ),
    ] {
        let told = load(monitor.clone()).expect_err("it cannot be");
        assert!(told.contains(error), "{monitor}: {told}");
    }
}
