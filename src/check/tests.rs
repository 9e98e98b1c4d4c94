//! Monitors on hand-made traces of small protocols.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::Judge;
use crate::frame::Limits;
use crate::protocol::{LoadOptions, Protocol};
use crate::trace::{Direction, Event, Payload};

mod joining;
mod keys;
mod pieces;
mod replies;
mod shown;
mod times;

/// A protocol whose client sends `ask` and whose server sends `say`, `done`, `work`, `output` and `log`.
pub(super) fn protocol(extension: &Value) -> Arc<Protocol> {
    let messages = ["ask", "say", "done", "work", "output", "log"];
    let reference = |name: &str| json!({ "$ref": format!("#/components/messages/{name}") });
    let message = |name: &str| {
        let payload = json!({ "type": "object", "properties": { "type": { "const": name } } });
        (name.to_owned(), json!({ "payload": payload, "examples": [{ "payload": { "type": name } }] }))
    };
    let mut document = json!({
        "asyncapi": "3.0.0",
        "channels": { "c": { "address": "/" } },
        "operations": {
            "up": { "action": "receive", "messages": [reference("ask")] },
            "down": { "action": "send", "messages": messages[1..].iter().map(|name| reference(name)).collect::<Vec<_>>() },
        },
        "components": { "messages": messages.iter().map(|name| message(name)).collect::<serde_json::Map<_, _>>() },
        "x-frameproof": {
            "discriminator": "/type",
            "session": { "join": "connection" },
            "openings": { "plain": [] },
            "turn": { "start": { "type": "ask" }, "end": "done" },
        },
    });
    json_patch::merge(&mut document["x-frameproof"], extension);
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).expect("written");
    write("asyncapi.yaml", document.to_string());
    let requirement = json!({ "id": "R-1", "level": "MUST", "area": "a", "text": "t", "source": "s" });
    write("requirements.yaml", json!({ "requirements": [requirement] }).to_string());
    let path: &Path = folder.path();
    Protocol::load(path, &LoadOptions::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// What a client sends or is sent, at the time zero.
pub(super) fn event(client: &str, dir: Direction, payload: Payload) -> Event {
    Event { at: Duration::ZERO, case: None, client: client.into(), dir, payload, why: None }
}

/// How many violations and how often R-1 was exercised.
fn judge(protocol: &Arc<Protocol>, frames: &[Value]) -> (usize, u64) {
    let mut judge = Judge::new(Arc::clone(protocol), Limits::default(), &[]).expect("monitors");
    let mut broken = 0;
    for frame in frames {
        let dir = if frame["type"] == "ask" { Direction::Send } else { Direction::Recv };
        let payload = Payload::Text(frame.to_string().into());
        let event = event("a", dir, payload);
        broken += judge.observe(&event).violations.len();
    }
    let end = judge.finish(true);
    (broken + end.violations.len(), end.exercised.get("R-1").copied().unwrap_or(0))
}

#[test]
fn a_frame_without_a_type_may_have_requirements_of_its_own() {
    let nameless = [json!({ "kind": "say" }), json!({ "type": 7 })];
    let misnamed = [json!({ "type": "shout" })];
    for (rules, without, unlisted) in [
        (json!({ "message": ["R-1"] }), 2, 1),
        (json!({ "discriminator": ["R-1"] }), 2, 0),
        (json!({ "discriminator": ["R-1"], "message": ["R-1"] }), 2, 1),
    ] {
        let protocol = protocol(&json!({ "frames": rules }));
        assert_eq!(judge(&protocol, &nameless).0, without, "{rules}");
        assert_eq!(judge(&protocol, &misnamed).0, unlisted, "{rules}");
    }
}

#[test]
fn what_came_while_nobody_was_there_is_not_missed() {
    let protocol = protocol(&json!({
        "session": { "id": [{ "on": "log", "at": "/room" }] },
        "invariants": { "first": { "about": "a", "monitor": {
            "precedence": { "first": "work", "then": "output", "key": "/id", "decides": ["R-1"] },
        } } },
    }));
    let joined = || Some(json!({ "type": "log", "room": "r" }));
    let output = || Some(json!({ "type": "output", "id": 1 }));
    let broken = |steps: &[(&str, Option<Value>)]| {
        let mut judge = Judge::new(Arc::clone(&protocol), Limits::default(), &[]).expect("monitors");
        let mut broken = 0;
        for (client, frame) in steps {
            let payload = match frame {
                Some(frame) => Payload::Text(frame.to_string().into()),
                None => Payload::End(crate::trace::End::Dropped),
            };
            let event = event(client, Direction::Recv, payload);
            broken += judge.observe(&event).violations.len();
        }
        broken
    };
    assert_eq!(broken(&[("a", joined()), ("a", joined()), ("a", output())]), 1, "it was there all the time");
    assert_eq!(broken(&[("a", joined()), ("a", None), ("a", joined()), ("a", output())]), 0);
    let watched = [("a", joined()), ("b", joined()), ("a", None), ("a", joined())];
    let then = |more: &[(&'static str, Option<Value>)]| broken(&[&watched[..], more].concat());
    assert_eq!(then(&[("b", output())]), 1, "it was there all the time");
    assert_eq!(then(&[("a", output())]), 1, "the other one was not told it, either");
    let gone = [("a", joined()), ("b", joined()), ("a", None), ("b", None), ("c", joined()), ("c", output())];
    assert_eq!(broken(&gone), 0);
}

#[test]
fn parts_of_a_list_are_messages_for_monitors() {
    let protocol = protocol(&json!({
        "parts": { "job": { "of": "work", "at": "/jobs", "keep": ["by"] } },
        "invariants": {
            "known": { "about": "a", "monitor": { "precedence": { "first": "job", "then": "output", "key": "/id", "decides": ["R-1"] } } },
            "by": { "about": "a", "monitor": { "constant": { "values": [{ "on": ["job", "output"], "at": "/by" }], "key": "/id", "decides": ["R-1"] } } },
            // A pattern that names no message does not mean parts.
            "any": { "about": "a", "monitor": { "holds": { "on": { "with": { "id": 9 } }, "schema": false, "decides": ["R-1"] } } },
        },
    }));
    let work = json!({ "type": "work", "by": 1, "jobs": [{ "id": 1 }, { "id": 9, "by": 2 }, "no object"] });
    let output = |id: u64, by: u64| json!({ "type": "output", "id": id, "by": by });
    assert_eq!(judge(&protocol, &[work.clone(), output(1, 1)]).0, 0);
    assert_eq!(judge(&protocol, &[work.clone(), output(2, 1)]).0, 1, "an unknown job");
    assert_eq!(judge(&protocol, &[work.clone(), output(1, 2)]).0, 1, "by is kept");
    assert_eq!(judge(&protocol, &[work, output(9, 2)]).0, 1, "only the message itself matches");
}

#[test]
fn a_bracket_lets_exempt_keys_out() {
    let protocol = protocol(&json!({
        "invariants": { "inside": { "about": "a", "monitor": { "bracket": {
            "open": { "type": "ask", "dir": "send" }, "close": "done", "inside": "output",
            "exempt": { "on": { "type": "work", "with": { "late": true } }, "at": "/id" },
            "before": [], "after": ["R-1"],
        } } } },
    }));
    let frame = |name: &str, id: u64, late: bool| json!({ "type": name, "id": id, "late": late });
    let turn =
        [frame("ask", 0, false), frame("work", 1, true), frame("work", 2, false), frame("done", 0, false)];
    let with = |last: Value| turn.iter().cloned().chain([last]).collect::<Vec<_>>();
    assert_eq!(judge(&protocol, &with(frame("output", 1, false))).0, 0);
    assert_eq!(judge(&protocol, &with(frame("output", 2, false))).0, 1);
}

#[test]
fn what_is_owed_may_still_come() {
    let rule = |kind: &str, rule: Value| {
        protocol(&json!({ "invariants": { "x": { "about": "a", "monitor": { kind: rule } } } }))
    };
    let frames = |names: &[&str]| names.iter().map(|name| json!({ "type": name })).collect::<Vec<_>>();
    let ask = json!({ "type": "ask", "dir": "send" });
    let absence = rule(
        "absence",
        json!({
            "of": "say", "after": "done", "until": { "any": ["work", ask] }, "owed": ask, "decides": ["R-1"],
        }),
    );
    let bracket = rule(
        "bracket",
        json!({
            "open": ask, "close": "done", "inside": "say", "counted": true, "before": [], "after": ["R-1"],
        }),
    );
    for protocol in [&absence, &bracket] {
        assert_eq!(judge(protocol, &frames(&["ask", "ask", "done", "say", "done"])).0, 0);
        assert_eq!(judge(protocol, &frames(&["ask", "done", "say"])).0, 1);
        assert_eq!(judge(protocol, &frames(&["ask", "ask", "done", "done", "say"])).0, 1);
        assert_eq!(judge(protocol, &frames(&["ask", "done", "ask", "done", "say"])).0, 1);
    }
    let doubled = frames(&["ask", "say", "done", "ask", "done", "say", "done"]);
    assert_eq!(judge(&bracket, &doubled).0, 0, "the second `done` was the first one again");
    assert_eq!(judge(&bracket, &frames(&["ask", "done", "ask", "done", "say", "ask", "say", "done"])).0, 1);
    assert_eq!(judge(&bracket, &frames(&["ask", "done", "ask", "say", "done", "say", "done"])).0, 1);
    let pausing = ["ask", "ask", "done", "work", "say", "done", "say", "done"];
    assert_eq!(judge(&absence, &frames(&pausing)).0, 0, "the first answer was not over");
    let unless = rule(
        "absence",
        json!({
            "of": "output", "after": "done", "unless": "work", "key": "/id", "decides": ["R-1"],
        }),
    );
    let keyed = |names: &[(&str, u64)]| {
        let frames: Vec<Value> = names.iter().map(|(name, id)| json!({ "type": name, "id": id })).collect();
        judge(&unless, &frames).0
    };
    assert_eq!(keyed(&[("work", 1), ("done", 1), ("output", 1)]), 0);
    assert_eq!(keyed(&[("work", 2), ("done", 1), ("output", 1)]), 1);
    assert_eq!(keyed(&[("done", 1), ("work", 1), ("output", 1)]), 1);
}

#[test]
fn a_history_has_what_was_said() {
    let protocol = protocol(&json!({
        "invariants": { "history": { "about": "a", "monitor": { "dialogue": {
            "history": { "on": "log", "at": "/all" }, "text": "/t",
            "asked": { "who": "u" }, "answered": { "who": "a" },
            "question": { "on": { "type": "ask", "dir": "send" }, "at": "/t" },
            "piece": { "on": "say", "at": "/t" }, "over": "done", "unsure": ["work"],
            "decides": ["R-1"],
        } } } },
    }));
    let frame = |name: &str, text: &str| json!({ "type": name, "t": text });
    let log = |all: &[(&str, &str)]| {
        let all: Vec<Value> = all.iter().map(|(who, text)| json!({ "who": who, "t": text })).collect();
        json!({ "type": "log", "all": all })
    };
    let turn = [frame("ask", "q"), frame("say", "he"), frame("say", "llo")];
    let done = frame("done", "");
    let then = |more: &[Value]| {
        judge(&protocol, &turn.iter().cloned().chain(more.iter().cloned()).collect::<Vec<_>>())
    };
    let whole = log(&[("u", "before"), ("u", "q"), ("a", "hel"), ("tool", "x"), ("a", "lo")]);
    assert_eq!(then(&[done.clone(), whole.clone()]), (0, 1));
    assert_eq!(then(&[done.clone(), log(&[("u", "q"), ("a", "hel")])]).0, 1, "an answer cut short");
    assert_eq!(then(&[done.clone(), log(&[])]).0, 1, "nothing");
    assert_eq!(then(&[done.clone(), log(&[("u", "other"), ("a", "hello")])]).0, 1, "another question");
    for open in [log(&[]), log(&[("u", "q")]), log(&[("u", "q"), ("a", "he")]), whole] {
        assert_eq!(then(&[open]).0, 0, "an answer that is not over may be shown in part");
    }
    assert_eq!(then(&[log(&[("u", "q"), ("a", "other")])]).0, 1);
    assert_eq!(then(&[frame("work", ""), done.clone(), log(&[])]).0, 0, "nobody knows");
    assert_eq!(then(&[frame("ask", "again"), done.clone(), log(&[])]).0, 0, "nobody knows");
    let next = [frame("ask", "r"), frame("say", "x"), done.clone()];
    let (gone, there) = (log(&[("u", "r"), ("a", "x")]), log(&[("u", "q"), ("u", "r"), ("a", "x")]));
    let late = log(&[("u", "r"), ("a", "x"), ("u", "q"), ("a", "he")]);
    for (shown, broken) in [(gone, 0), (there, 0), (late, 1)] {
        let behind = [&[frame("work", ""), done.clone()], &next[..], std::slice::from_ref(&shown)].concat();
        assert_eq!(then(&behind).0, broken, "behind an answer of which nobody knows: {shown}");
        let unended = [&[frame("work", "")], &next[..], &[shown]].concat();
        assert_eq!(then(&unended).0, 0, "the end may be that of the answer of which nobody knows");
    }
}

#[test]
fn replies_repeat_what_was_asked() {
    let protocol = protocol(&json!({ "invariants": { "echo": { "about": "a", "monitor": { "echo": {
        "request": { "type": "ask", "dir": "send" }, "reply": "say", "id": "/id", "asked": "/n", "told": "/n",
        "decides": ["R-1"],
    } } } } }));
    let ask = |id: Value, n: u64| json!({ "type": "ask", "id": id, "n": n });
    let say = |id: Value, n: u64| json!({ "type": "say", "id": id, "n": n });
    let (one, text) = (json!(1), json!("1"));
    let good = [ask(one.clone(), 5), ask(text.clone(), 6), say(text.clone(), 6), say(one.clone(), 5)];
    assert_eq!(judge(&protocol, &good), (0, 2));
    assert_eq!(judge(&protocol, &[ask(one.clone(), 5), say(one.clone(), 6)]).0, 1, "another value");
    assert_eq!(judge(&protocol, &[ask(one.clone(), 5), json!({ "type": "say", "id": 1 })]).0, 1, "no value");
    assert_eq!(judge(&protocol, &[ask(one, 5), say(text, 6)]), (0, 0), "another request");
}

#[test]
fn pieces_are_complete_and_make_json() {
    let protocol = protocol(&json!({ "invariants": { "series": { "about": "a", "monitor": { "series": {
        "on": "say", "key": "/of", "part": "/part", "total": "/total", "text": "/text", "same": ["/seq"],
        "complete": ["R-1"], "json": ["R-1"],
    } } } } }));
    let piece = |part: u64, total: u64, text: &str| json!({ "type": "say", "of": "v", "part": part, "total": total, "text": text, "seq": 1 });
    let other = json!({ "type": "say", "of": "v", "part": 1, "total": 2, "text": "2]", "seq": 2 });
    let (first, last) = (piece(0, 2, "[1,"), piece(1, 2, "2]"));
    for (frames, broken, why) in [
        (vec![first.clone(), last.clone()], 0, "in order"),
        (vec![last.clone(), first.clone()], 0, "out of order"),
        (vec![piece(1, 2, "[1,"), piece(2, 2, "2]")], 0, "counted from 1"),
        (vec![first.clone()], 1, "one is missing"),
        (vec![first.clone(), first.clone(), last.clone()], 1, "one comes twice"),
        (vec![first.clone(), piece(2, 2, "2]"), last.clone()], 1, "one too many"),
        (vec![piece(2, 2, "2]"), first.clone(), last.clone()], 1, "counted from 0 and from 1"),
        (vec![first.clone(), other, last.clone()], 1, "of another value"),
        (vec![piece(0, 2, "2]"), piece(1, 2, "[1,")], 1, "no JSON"),
    ] {
        assert_eq!(judge(&protocol, &frames).0, broken, "{why}");
    }
    // The rest of a value is waited for at the end of a case.
    let mut judge = Judge::new(protocol, Limits::default(), &[]).expect("monitors");
    let mut is_owed_after = |frame: &Value| {
        judge.observe(&event("a", Direction::Recv, Payload::Text(frame.to_string().into())));
        judge.is_owed()
    };
    assert!(is_owed_after(&first));
    assert!(!is_owed_after(&last));
}

#[test]
fn what_lacks_between_two_messages_is_waited_for() {
    let existence = |rule: Value| {
        let mut given = json!({ "of": "say", "from": "work", "to": "done", "decides": ["R-1"] });
        json_patch::merge(&mut given, &rule);
        let protocol = protocol(
            &json!({ "invariants": { "says": { "about": "a", "monitor": { "existence": given } } } }),
        );
        Judge::new(protocol, Limits::default(), &[]).expect("monitors")
    };
    let owed_after = |judge: &mut Judge, name: &str| {
        let payload = Payload::Text(json!({ "type": name }).to_string().into());
        judge.observe(&event("a", Direction::Recv, payload));
        judge.is_owed()
    };
    let mut one = existence(json!({ "min": 1, "max": 1 }));
    let owed = ["work", "done", "say", "say"].map(|name| owed_after(&mut one, name));
    assert_eq!(owed, [false, true, false, false]);
    let mut in_time = existence(json!({ "min": 1, "max": 1, "within": "0.25s" }));
    assert_eq!(["work", "done"].map(|name| owed_after(&mut in_time, name)), [false, false]);
}

#[test]
fn a_counter_may_have_a_key() {
    let protocol = protocol(&json!({ "invariants": { "grows": { "about": "a", "monitor": { "increasing": {
        "on": "say", "at": "/n", "key": "/of", "order": ["R-1"], "repeat": ["R-1"],
        "restarts": { "type": "ask", "dir": "send" },
    } } } } }));
    let say = |of: &str, n: u64| json!({ "type": "say", "of": of, "n": n });
    let ask = |of: &str| json!({ "type": "ask", "of": of });
    assert_eq!(judge(&protocol, &[say("a", 2), say("b", 1), say("a", 3)]), (0, 1));
    assert_eq!(judge(&protocol, &[say("a", 2), say("b", 1), say("a", 2)]).0, 1);
    assert_eq!(judge(&protocol, &[say("a", 2), ask("b"), say("a", 1)]).0, 1, "another key restarts");
    assert_eq!(judge(&protocol, &[say("a", 2), ask("a"), say("a", 1)]).0, 0, "its own restarts");
}

#[test]
fn a_counter_may_have_to_be_written_as_an_integer() {
    let rule = |written: Value| {
        protocol(&json!({ "invariants": { "grows": { "about": "a", "monitor": { "increasing": {
            "on": "say", "at": "/n", "order": [], "repeat": [], "written": written,
        } } } } }))
    };
    let say = |n: Value| json!({ "type": "say", "n": n });
    let frames = [say(json!(1)), say(json!(2.0)), say(json!(3))];
    assert_eq!(judge(&rule(json!(["R-1"])), &frames).0, 1);
    assert_eq!(judge(&rule(json!(["R-1"])), &[say(json!(1)), say(json!(2))]).0, 0);
    assert_eq!(judge(&rule(json!([])), &frames).0, 0, "unless asked for");
}

#[test]
fn a_duty_that_was_released_before_it_began_is_none() {
    let protocol = protocol(&json!({ "invariants": { "answered": { "about": "a", "monitor": { "response": {
        "first": { "type": "ask", "dir": "send", "with": { "n": 1 } }, "then": "say",
        "unless": { "type": "ask", "dir": "send", "with": { "n": 0 } },
        "before": { "type": "ask", "dir": "send", "with": { "n": 2 } }, "key": "/of", "decides": ["R-1"],
    } } } } }));
    let ask = |n: u64, of: &str| json!({ "type": "ask", "n": n, "of": of });
    assert_eq!(judge(&protocol, &[ask(1, "a"), ask(2, "a")]).0, 1);
    assert_eq!(judge(&protocol, &[ask(1, "a"), ask(0, "a"), ask(2, "a")]).0, 0);
    assert_eq!(judge(&protocol, &[ask(0, "a"), ask(1, "a"), ask(2, "a")]).0, 0);
    assert_eq!(judge(&protocol, &[ask(0, "b"), ask(1, "a"), ask(2, "a")]).0, 1, "another key");
}

#[test]
fn a_stretch_that_may_be_replayed_in_part_is_not_judged() {
    let protocol = protocol(&json!({ "invariants": { "once": { "about": "a", "monitor": { "existence": {
        "of": "say", "from": { "type": "ask", "dir": "send", "with": { "n": 1 } },
        "to": { "type": "ask", "dir": "send", "with": { "n": 2 } },
        "unless": { "type": "ask", "dir": "send", "with": { "n": 0 } }, "min": 1, "decides": ["R-1"],
    } } } } }));
    let ask = |n: u64| json!({ "type": "ask", "n": n });
    assert_eq!(judge(&protocol, &[ask(1), ask(2)]).0, 1);
    assert_eq!(judge(&protocol, &[ask(0), ask(1), ask(2)]).0, 0);
}

#[test]
fn a_condition_looks_into_a_string_that_holds_json() {
    let protocol = protocol(&json!({
        "invariants": {
            "json": { "about": "a", "monitor": { "holds": { "on": "output", "json": "/text", "schema": { "type": "object", "required": ["a"] }, "decides": ["R-1"] } } },
        },
    }));
    let output = |text: Value| json!({ "type": "output", "text": text });
    for (text, expected) in [
        (json!("{\"a\": 1}"), (0, 1)),
        (json!("{\"b\": 1}"), (1, 1)),
        (json!("no JSON"), (1, 1)),
        // What is no string at all is the schema's business.
        (json!({ "a": 1 }), (0, 0)),
    ] {
        assert_eq!(judge(&protocol, &[output(text.clone())]), expected, "{text}");
    }
}

#[test]
fn what_an_invariant_only_warns_of_says_so() {
    for warns in [false, true] {
        let protocol = protocol(&json!({
            "invariants": {
                "no-log": { "about": "a", "warns": warns, "monitor": { "holds": { "on": "log", "schema": false, "decides": ["R-1"] } } },
            },
        }));
        let mut judge = Judge::new(protocol, Limits::default(), &[]).expect("monitors");
        let payload = Payload::Text(json!({ "type": "log" }).to_string().into());
        let event = event("a", Direction::Recv, payload);
        let found: Vec<bool> =
            judge.observe(&event).violations.iter().map(|violation| violation.warns).collect();
        assert_eq!(found, [warns]);
    }
}

#[test]
fn pieces_that_repeat_the_text_so_far_are_no_increments() {
    let protocol = protocol(&json!({
        "invariants": {
            "pieces": { "about": "a", "monitor": { "increments": { "on": "say", "at": "/text", "key": "/id", "decides": ["R-1"] } } },
        },
    }));
    for (pieces, broken) in [
        (&["a long", "a long text", "a long text so far"][..], 1),
        (&["a long", "a long text", "a long text so far", "!"], 0),
        (&["1", "10", "100"], 0),
        (&["ha", "haha"], 0),
        (&["a", "b", "c"], 0),
        (&["a", "ab", "c", "ca", "cab"], 0),
        (&["x", "x", "x"], 0),
        (&["", "It is ", "It is a ", "It is a word"], 1),
    ] {
        let say = |(id, text): (usize, &&str)| json!({ "type": "say", "id": id, "text": text });
        let of_one: Vec<Value> = pieces.iter().map(|text| say((1, text))).collect();
        assert_eq!(judge(&protocol, &of_one), (broken, pieces.len() as u64 - 1), "{pieces:?}");
        let of_many: Vec<Value> = pieces.iter().enumerate().map(say).collect();
        assert_eq!(judge(&protocol, &of_many), (0, 0), "texts of their own: {pieces:?}");
    }
}

#[test]
fn too_many_are_reported_at_once_and_in_a_trace_that_stops() {
    let protocol = protocol(&json!({ "invariants": { "one": { "about": "a", "monitor": { "existence": {
        "of": "say", "from": { "type": "ask", "dir": "send" }, "to": "done", "without": "log", "min": 1, "max": 1,
        "decides": ["R-1"],
    } } } } }));
    let frame = |name: &str| json!({ "type": name });
    let found = |names: &[&str], close: bool| {
        let mut judge = Judge::new(Arc::clone(&protocol), Limits::default(), &[]).expect("monitors");
        let event = |dir, payload| event("a", dir, payload);
        let broken = names.iter().map(|name| {
            let dir = if *name == "ask" { Direction::Send } else { Direction::Recv };
            judge.observe(&event(dir, Payload::Text(frame(name).to_string().into()))).violations.len()
        });
        let broken: usize = broken.sum();
        if close {
            judge.disconnect("a");
        }
        let end = judge.finish(false);
        (broken, end.violations.len(), end.exercised.get("R-1").copied().unwrap_or(0))
    };
    for close in [false, true] {
        assert_eq!(found(&["ask", "say", "say", "done"], close), (1, 0, 1));
        assert_eq!(found(&["ask", "say", "done", "say", "say"], close), (1, 0, 1), "once");
        assert_eq!(found(&["ask", "say", "done"], close), (0, 0, 1));
        assert_eq!(found(&["ask", "done"], close), (0, 0, 0), "it may still have come");
        assert_eq!(found(&["ask", "say", "say", "log", "done"], close), (0, 0, 0));
        assert_eq!(found(&["ask", "say", "say"], close), (0, 0, 0), "not over");
    }
}

#[test]
fn counters_are_compared_however_they_are_written() {
    let protocol = protocol(&json!({ "invariants": { "grows": { "about": "a", "monitor": { "increasing": {
        "on": "say", "at": "/n", "order": ["R-1"], "repeat": ["R-1"],
    } } } } }));
    let say = |n: Value| json!({ "type": "say", "n": n });
    for (left, right, broken) in [
        (json!(5.0), json!(4.0), 1),
        (json!(5.0), json!(5), 1),
        (json!(5.0), json!(6), 0),
        (json!(u64::MAX), json!(u64::MAX - 1), 1),
        (json!(u64::MAX - 1), json!(u64::MAX), 0),
        (json!(1), json!(1e40), 0),
        (json!(1e40), json!(1), 1),
        (json!(-2.5), json!(-2), 0),
        (json!(-2), json!(-2.5), 1),
        (json!(2.5), json!(2.5), 1),
        (json!(1), json!(null), 0),
    ] {
        assert_eq!(judge(&protocol, &[say(left.clone()), say(right.clone())]).0, broken, "{left} {right}");
    }
}

#[test]
fn an_id_may_be_used_again_once_it_is_answered() {
    let protocol =
        protocol(&json!({ "invariants": { "replies": { "about": "a", "monitor": { "correlation": {
        "request": { "type": "ask", "dir": "send" }, "reply": "say", "id": "/id",
        "twice": ["R-1"],
    } } } } }));
    let (ask, say) = (json!({ "type": "ask", "id": 1 }), json!({ "type": "say", "id": 1 }));
    let frames =
        |order: &'static str| order.chars().map(|c| if c == 'q' { ask.clone() } else { say.clone() });
    for (order, broken) in [("qaqa", 0), ("qqaa", 0), ("qaa", 1), ("qaqaa", 1)] {
        assert_eq!(judge(&protocol, &frames(order).collect::<Vec<_>>()).0, broken, "{order}");
    }
}

/// A history may be that of the time at which it was asked for, of any time since then, and of none before.
#[test]
fn a_history_that_comes_late_may_be_an_earlier_one() {
    let protocol = protocol(&json!({ "invariants": { "history": { "about": "a", "monitor": { "dialogue": {
        "history": { "on": "log", "at": "/all" }, "text": "/t",
        "asked": { "who": "u" }, "answered": { "who": "a" },
        "question": { "on": { "type": "ask", "dir": "send" }, "at": "/t" },
        "piece": { "on": "say", "at": "/t" }, "over": "done", "unsure": [],
        "request": { "type": "ask", "dir": "send", "where": { "required": ["look"] } },
        "decides": ["R-1"],
    } } } } }));
    let turn = |n: usize| {
        let question = json!({ "type": "ask", "t": format!("q{n}") });
        [question, json!({ "type": "say", "t": format!("a{n}") }), json!({ "type": "done" })]
    };
    let log = |turns: usize| {
        let all = (1..=turns).flat_map(|n| {
            [json!({ "who": "u", "t": format!("q{n}") }), json!({ "who": "a", "t": format!("a{n}") })]
        });
        json!({ "type": "log", "all": all.collect::<Vec<_>>() })
    };
    let look = json!({ "type": "ask", "look": true });
    for (shown, broken) in [(1, 1), (2, 0), (3, 0)] {
        let asked = [&turn(1)[..], &turn(2), std::slice::from_ref(&look), &turn(3), &[log(shown)]].concat();
        assert_eq!(judge(&protocol, &asked).0, broken, "{shown} turns of which two were over");
        // What nobody is known to have asked for is that of now.
        let unasked = [&turn(1)[..], &turn(2), &[log(shown)]].concat();
        assert_eq!(judge(&protocol, &unasked).0, usize::from(shown != 2), "{shown} turns");
    }
}

#[test]
fn a_history_of_nothing_said_proves_nothing() {
    let protocol = protocol(&json!({ "invariants": { "history": { "about": "a", "monitor": { "dialogue": {
        "history": { "on": "log", "at": "/all" }, "text": "/t",
        "asked": { "who": "u" }, "answered": { "who": "a" },
        "question": { "on": { "type": "ask", "dir": "send" }, "at": "/t" },
        "piece": { "on": "say", "at": "/t" }, "over": "done", "unsure": ["work"],
        "decides": ["R-1"],
    } } } } }));
    assert_eq!(judge(&protocol, &[json!({ "type": "log", "all": [] })]), (0, 0));
}

#[test]
fn a_late_message_is_no_violation_where_the_measurement_was_late_too() {
    let protocol = protocol(&json!({ "invariants": { "beats": { "about": "a", "monitor": { "cadence": {
        "on": "say", "period": "/ms", "factor": 2, "decides": ["R-1"],
    } } } } }));
    for (gap, delays, broken) in
        [(900, 0, 0), (1100, 0, 1), (1100, 200, 0), (1500, 200, 1), (1600, 700, 0), (2300, 60_000, 1)]
    {
        let mut judge = Judge::new(Arc::clone(&protocol), Limits::default(), &[]).expect("monitors");
        let mut found = 0;
        for at in [0, gap] {
            let payload = Payload::Text(json!({ "type": "say", "ms": 100 }).to_string().into());
            let (at, dir) = (Duration::from_millis(at), Direction::Recv);
            judge.delayed(Duration::from_millis(delays));
            found += judge
                .observe(&Event { at, case: None, client: "a".into(), dir, payload, why: None })
                .violations
                .len();
        }
        assert_eq!(found, broken, "{gap} ms, {delays} ms late");
    }
}
