//! Names on the server that a case writes and reads, and that another case could write, too.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Linter, Rule};
use crate::protocol::script::TurnStep;
use crate::source::{Part, escape_token};

const HINT: &str =
    "cases run at the same time, and runs after each other, on one server: write `{{uid}}` in it";

/// An argument of a call: its class, the argument's name, its value.
type Argument<'c> = (&'c str, &'c str, &'c str);

/// Looks for equal texts in the arguments of calls of different classes: what one writes the other reads.
pub(super) fn look(linter: &mut Linter<'_>) {
    let case = &linter.case.case;
    let turn = case.turn.iter().map(|steps| ("/turn".to_owned(), steps));
    let named = case.turns.iter().map(|(name, steps)| (format!("/turns/{}", escape_token(name)), steps));
    let mut first: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for (at, steps) in turn.chain(named) {
        for (index, step) in steps.iter().enumerate() {
            for (class, name, value) in constants(step) {
                if *first.entry((name, value)).or_insert(class) != class {
                    let message = format!("`{value}` is what another call of the case has, too");
                    let at = format!("{at}/{index}/call/args/{}", escape_token(name));
                    linter.found(Rule::SharedName, &at, Part::Value, message, HINT);
                }
            }
        }
    }
}

/// The texts among the arguments of a call that are the same in every run.
fn constants(step: &TurnStep) -> Vec<Argument<'_>> {
    let part = |name| step.call.as_ref().and_then(|call| call.get(name));
    let (Some(class), Some(args)) =
        (part("class").and_then(Value::as_str), part("args").and_then(Value::as_object))
    else {
        return Vec::new();
    };
    let texts = args.iter().filter_map(|(name, value)| Some((class, name.as_str(), value.as_str()?)));
    texts.filter(|(.., value)| !value.is_empty() && !value.contains("{{")).collect()
}
