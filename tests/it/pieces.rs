//! `joined`: texts that come in pieces.

use serde_json::{Value, json};

use crate::support::own::{protocol, run, serve};

fn pieces(numbered: &[(Value, &str)]) -> Vec<Value> {
    let piece = |(number, text): &(Value, &str)| json!({ "type": "piece", "n": number, "text": text });
    numbered.iter().map(piece).chain([json!({ "type": "done" })]).collect()
}

fn out_of_order(_: &Value) -> Vec<Value> {
    pieces(&[(json!(10), "c"), (json!(2), "b"), (Value::Null, "d"), (json!(1.5), "a")])
}

fn in_order(_: &Value) -> Vec<Value> {
    pieces(&[(json!(1), "a"), (json!(2), "b"), (json!(3), "c"), (json!(4), "d")])
}

#[test]
fn numbered_pieces_are_put_together_by_their_numbers() {
    let folder = protocol(
        &["say"],
        &["piece", "done"],
        "  turn: { start: { type: say, text: '{{text}}' }, end: done }\n",
    );
    let server: [fn(&Value) -> Vec<Value>; 2] = [out_of_order, in_order];
    for (server, order, text, code) in [
        (server[0], ", order: /n", "abcd", 0),
        (server[0], ", order: /n", "cbda", 1),
        // Without numbers, it is as they came.
        (server[0], "", "cbda", 0),
        (server[0], "", "abcd", 1),
        (server[1], ", order: /n", "abcd", 0),
        // Where nothing has a number, too.
        (server[0], ", order: /nowhere", "cbda", 0),
    ] {
        let steps = format!(
            "      - open: alice\n      - send: {{ type: say, text: hi }}\n      - expect: done\n      \
             - joined: {{ of: piece, at: [/text]{order} }}\n        where: {{ const: {text} }}\n        covers: [A-2]\n"
        );
        let (found, shown) = run(&folder, &serve(server), &steps);
        assert_eq!((found, shown.contains("A-2 MUST")), (Some(code), code == 1), "{order} {text}: {shown}");
    }
}
