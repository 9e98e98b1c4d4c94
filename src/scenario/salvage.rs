//! What can still be checked of a scenario file whose structure is wrong, so that all its mistakes are told at once.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::model::{Case, Step};
use crate::source::Document;

/// A case without what is no field of it or of the wrong shape.
pub(super) struct Salvaged {
    pub case: Case,
    /// Where it stands.
    pub pointer: String,
    /// The steps that are wrong; what is right of them, if anything, stands in their places.
    pub broken: BTreeSet<usize>,
}

/// The cases, as far as they are some.
pub(super) fn cases(document: &Document) -> Vec<Salvaged> {
    let cases = document.value.get("cases").and_then(Value::as_array);
    let cases = cases.into_iter().flatten().enumerate();
    cases.filter_map(|(index, case)| salvage(case.as_object()?, format!("/cases/{index}"))).collect()
}

fn salvage(given: &Map<String, Value>, pointer: String) -> Option<Salvaged> {
    let stand_in = json!({ "name": "x", "title": "", "steps": [] });
    let mut case: Case = rightful(given, stand_in.as_object()?.clone(), &["steps"])?;
    let mut broken = BTreeSet::new();
    for (index, given) in given.get("steps").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let step = serde_json::from_value::<Step>(given.clone());
        if step.is_err() {
            broken.insert(index);
        }
        let rest = || rightful(given.as_object()?, Map::new(), &[]);
        case.steps.push(step.ok().or_else(rest).unwrap_or_default());
    }
    Some(Salvaged { case, pointer, broken })
}

/// The fields of a map that are some, and of the right shape. `stand_in` is there for those that must be.
fn rightful<T: DeserializeOwned>(
    given: &Map<String, Value>,
    stand_in: Map<String, Value>,
    without: &[&str],
) -> Option<T> {
    let read = |fields: &Map<String, Value>| serde_json::from_value::<T>(Value::Object(fields.clone())).ok();
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
