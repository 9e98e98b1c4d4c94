//! What can still be checked of a scenario file whose structure is wrong, so that all its mistakes are told at once.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::file::{Case, Step};
use crate::source::{Document, read};

/// A case without what is no field of it or of the wrong shape.
pub(super) struct RecoveredCase {
    pub case: Case,
    /// Where it stands.
    pub pointer: String,
    /// What is missing of it.
    pub gaps: Gaps,
}

/// What is missing of a case that had the wrong shape.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// The steps that are wrong; what is right of them, if anything, stands in their places.
    pub steps: BTreeSet<usize>,
    /// Words in what is wrong: it may have been meant to set variables of these names.
    pub words: BTreeSet<String>,
}

/// Every key and every text in a value.
fn words(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => drop(found.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| words(item, found)),
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            words(value, found);
        }),
        _ => {}
    }
}

/// The cases, as far as they are some.
pub(super) fn cases(document: &Document) -> Vec<RecoveredCase> {
    let cases = document.value.get("cases").and_then(Value::as_array);
    let cases = cases.into_iter().flatten().enumerate();
    cases.filter_map(|(index, case)| recover(case.as_object()?, format!("/cases/{index}"))).collect()
}

fn recover(given: &Map<String, Value>, pointer: String) -> Option<RecoveredCase> {
    let stand_in = json!({ "name": "x", "title": "", "steps": [] });
    let mut case: Case = valid_fields(given, stand_in.as_object()?.clone(), &["steps"])?;
    let mut gaps = Gaps::default();
    for (_, value) in given.iter().filter(|(key, _)| *key != "steps") {
        words(value, &mut gaps.words);
    }
    for (index, given) in given.get("steps").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let step = read::<Step>(given);
        if step.is_err() {
            gaps.steps.insert(index);
            words(given, &mut gaps.words);
        }
        let rest = || valid_fields(given.as_object()?, Map::new(), &[]);
        case.steps.push(step.ok().or_else(rest).unwrap_or_default());
    }
    Some(RecoveredCase { case, pointer, gaps })
}

/// The fields of a map that are some, and of the right shape. `stand_in` is there for those that must be.
fn valid_fields<T: DeserializeOwned>(
    given: &Map<String, Value>,
    stand_in: Map<String, Value>,
    without: &[&str],
) -> Option<T> {
    let read = |fields: &Map<String, Value>| read::<T>(&Value::Object(fields.clone())).ok();
    let mut fields = stand_in;
    for (key, value) in given.iter().filter(|(key, _)| !without.contains(&key.as_str())) {
        let mut more = fields.clone();
        more.insert(key.clone(), value.clone());
        if read(&more).is_some() {
            fields = more;
        }
    }
    read(&fields)
}
