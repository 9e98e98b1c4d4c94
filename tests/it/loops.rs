//! Loops that end by a message, and values in the order of an `enum`.

use serde_json::{Value, json};

use crate::support::own::{protocol, run, serve};

const SENT: [&str; 3] = ["list", "log", "start"];
const RECEIVED: [&str; 3] = ["page", "entry", "error"];
const REST: &str = "  turn: { start: { type: start, text: '{{text}}' }, end: page }\n  barrier: [{ send: { type: log } }, { expect: entry }]\n";

/// Pages 1 to 3, each with a cursor but for the last; an entry of the level `warning`.
fn paged(asked: &Value) -> Vec<Value> {
    match asked["type"].as_str() {
        Some("list") => vec![match asked["cursor"].as_u64().unwrap_or(0) {
            cursor @ 0..2 => json!({ "type": "page", "n": cursor + 1, "next": cursor + 1 }),
            cursor => json!({ "type": "page", "n": cursor + 1 }),
        }],
        _ => vec![json!({ "type": "entry", "level": "warning" })],
    }
}

/// Always the first page.
fn endless(asked: &Value) -> Vec<Value> {
    paged(&json!({ "type": asked["type"] }))
}

/// A loop over the pages, with these modifiers, and a step behind its `expect`.
fn pages(modifiers: &str, behind: &str) -> String {
    format!(
        "      - open: a\n      - repeat:\n          - send: {{ type: list, cursor: '{{{{cursor|0}}}}' }}\n          \
         - expect: page\n            save: {{ cursor: /next, n: /n }}\n{behind}{modifiers}        covers: [A-2]\n"
    )
}

#[test]
fn a_loop_ends_by_the_message_that_a_step_takes() {
    let folder = protocol(&SENT, &RECEIVED, REST);
    let last = "        until: page\n        where: { not: { required: [next] } }\n";
    let third = "      - assert: { equal: ['{{n}}', 3] }\n";
    let (code, shown) = run(&folder, &serve(paged), &(pages(last, "") + third));
    assert_eq!(code, Some(0), "{shown}");
    let two = pages("        until: page\n        with: { n: 2 }\n", "");
    let (code, shown) = run(&folder, &serve(paged), &(two + "      - assert: { equal: ['{{n}}', 2] }\n"));
    assert_eq!(code, Some(0), "{shown}");
    // What stands behind the step that took it is not done.
    let fails = "          - assert: { equal: ['{{n}}', '{{cursor}}'] }\n";
    let (code, shown) = run(&folder, &serve(paged), &pages(last, fails));
    assert_eq!(code, Some(0), "{shown}");
    let (code, shown) = run(&folder, &serve(endless), &pages(&format!("{last}        count: 4\n"), ""));
    assert!(
        code == Some(1) && shown.contains("page did not come in 4 rounds") && shown.contains("A-2"),
        "{shown}"
    );
    // A step of the loop that fails ends the case.
    let strict = "          - check: { properties: { n: { maximum: 1 } } }\n            covers: [A-3]\n";
    let (code, shown) =
        run(&folder, &serve(paged), &pages("        until: page\n        with: { n: 9 }\n", strict));
    assert!(code == Some(1) && shown.contains("A-3") && !shown.contains("did not come in"), "{shown}");
}

#[test]
fn a_loop_that_cannot_end_is_refused() {
    let folder = protocol(&SENT, &RECEIVED, REST);
    for (modifiers, error) in [
        ("", "`repeat` needs an `until`"),
        ("        until: entry\n", "no `expect` in the loop takes entry"),
        ("        until: pag\n", "did you mean `page`?"),
        ("        until: page\n        with: { n: '{{m}}' }\n", "undefined variable `m`"),
        ("        until: page\n        count: 0\n", "count"),
        ("        until: page\n        keep: true\n", "`keep` does not go with `repeat`"),
    ] {
        let (code, shown) = run(&folder, "ws://127.0.0.1:1/", &pages(modifiers, ""));
        assert!(
            code == Some(2) && shown.contains(error) && shown.contains("s.yaml:"),
            "{modifiers}: {shown}"
        );
    }
}

#[test]
fn an_enum_has_an_order() {
    let folder = protocol(&SENT, &RECEIVED, REST);
    let levels = "enum: [debug, info, warning, error]";
    let steps = |bound: &str| {
        format!(
            "      - open: a\n      - send: {{ type: log }}\n      - expect: entry\n        save: {{ level: /level }}\n      \
                 - check: {{ properties: {{ level: {{ {levels}, {bound} }} }} }}\n        covers: [A-2]\n"
        )
    };
    for (bound, code) in [
        ("minimum: info", 0),
        ("minimum: warning", 0),
        ("minimum: error", 1),
        ("exclusiveMaximum: warning", 1),
        ("minimum: '{{level}}'", 0),
        ("exclusiveMinimum: '{{level}}'", 1),
        ("minimum: fatal", 2),
    ] {
        let (found, shown) = run(&folder, &serve(paged), &steps(bound));
        assert_eq!(found, Some(code), "{bound}: {shown}");
        assert!(code != 2 || shown.contains("is none of the values of the `enum` beside it"), "{shown}");
    }
}
