//! Steps that are done as a unit: `steps`, with variables of their own.

use serde_json::{Value, json};

use crate::support::own::{protocol, run, serve};

const REST: &str = "  turn: { start: { type: say, text: '{{text}}' }, end: said }\n  barrier: [{ send: { type: say } }, { expect: said }]\n";

/// Repeats what it is told.
fn echo(asked: &Value) -> Vec<Value> {
    vec![json!({ "type": "said", "n": asked["n"] })]
}

/// The outcome of a case with these steps, as lines of YAML.
fn outcome(steps: &[&str]) -> (Option<i32>, String) {
    let folder = protocol(&["say"], &["said"], REST);
    let steps = steps.iter().map(|step| format!("      - {step}\n")).collect::<String>();
    run(&folder, &serve(echo), &format!("      - open: a\n{steps}"))
}

/// Says a number, and keeps the answer.
const ROUND: &str =
    "steps: &round [{ send: { type: say, n: '{{n}}' } }, { expect: said, save: { told: /n } }]";

#[test]
fn one_list_serves_in_several_places_with_other_values() {
    let (code, shown) = outcome(&[
        &format!("{{ {ROUND}, vars: {{ n: 1 }} }}"),
        "{ assert: { equal: ['{{told}}', 1] } }",
        // A value may be a template, and lists may be within each other.
        "{ steps: [{ steps: *round, vars: { n: '{{m}}' } }], vars: { m: 7 } }",
        "{ assert: { equal: ['{{told}}', 7] } }",
        "{ steps: *round, vars: { n: 8 }, when: { equal: [1, 2] } }",
        "{ assert: { equal: ['{{told}}', 7] } }",
    ]);
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn the_outer_value_is_back_behind_the_steps() {
    let (code, shown) = outcome(&[
        "{ send: { type: say, n: 3 } }",
        "{ expect: said, save: { n: /n } }",
        &format!("{{ {ROUND}, vars: {{ n: 1 }} }}"),
        "{ assert: { equal: ['{{n}}', 3] } }",
        "{ assert: { equal: ['{{told}}', 1] } }",
    ]);
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn a_failure_within_is_told_at_its_place() {
    let (code, shown) = outcome(&[
        "steps:\n          - send: { type: say, n: 1 }\n          - expect: said\n            with: { n: '{{n}}' }\n            \
         covers: [A-2]\n        vars: { n: 2 }",
    ]);
    assert!(
        code == Some(1) && shown.contains("A-2") && shown.contains("at s.yaml:10  - expect: said"),
        "{shown}"
    );
}

#[test]
fn a_variable_of_the_steps_is_unknown_behind_them() {
    let (code, shown) =
        outcome(&[&format!("{{ {ROUND}, vars: {{ n: 1 }} }}"), "{ assert: { equal: ['{{n}}', 1] } }"]);
    assert!(code == Some(2) && shown.contains("undefined variable `n`"), "{shown}");
}
