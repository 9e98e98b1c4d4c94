//! Which answers to ambiguities of the document a failure depends on: reports quote these and no others.

use serde_json::Value;

use crate::protocol::Protocol;
use crate::protocol::extension::Reading;
use crate::results::Check;
use crate::results::event::Failure;
use crate::scenario::LoadedCase;

/// The readings of the broken requirements on which the failure depends, by their ids.
pub(crate) fn touched(protocol: &Protocol, loaded: &LoadedCase, failure: &Failure) -> Vec<String> {
    let requirements = failure.requirements.iter().filter_map(|id| protocol.requirements.get(id));
    let mut ids: Vec<&String> = requirements.filter_map(|requirement| requirement.reading.as_ref()).collect();
    ids.dedup();
    let is_touched = |id: &&String| {
        let Some(reading) = protocol.extension.readings.get(*id) else { return false };
        changes(reading, failure) || loaded.source().contains(id.as_str())
    };
    ids.into_iter().filter(is_touched).cloned().collect()
}

/// Whether another answer may change the check that failed. One without patches is an answer about the requirement as a whole.
fn changes(reading: &Reading, failure: &Failure) -> bool {
    let changed = |at: &[&str]| {
        reading.patch.values().any(|patch| at.iter().try_fold(patch, |value, key| value.get(key)).is_some())
    };
    reading.patch.values().all(is_empty)
        || match &failure.check {
            Check::Invariant(name) => changed(&["x-frameproof", "invariants", name]),
            Check::Message | Check::Schema | Check::Frame => changed(&["components"]),
            _ => false,
        }
}

fn is_empty(patch: &Value) -> bool {
    patch.as_object().is_none_or(serde_json::Map::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LoadOptions;
    use crate::results::event::Verdict;

    /// For each reading of a requirement, in each shipped protocol: it is quoted where its own patch strikes, and not elsewhere.
    #[test]
    fn a_reading_is_quoted_where_it_decides() {
        let (mut quoted, mut silent) = (0, 0);
        for name in Protocol::embedded_names() {
            let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("it loads");
            let cases = crate::scenario::embedded(&protocol).expect("they load");
            for requirement in protocol.requirements.0.values() {
                let Some(reading) = requirement.reading.as_ref() else { continue };
                let patches = protocol.extension.readings[reading].patch.values();
                let invariants =
                    patches.filter_map(|patch| patch.pointer("/x-frameproof/invariants")?.as_object());
                let Some(own) = invariants.flat_map(serde_json::Map::keys).next() else { continue };
                let case = cases.iter().find(|case| !case.source().contains(reading.as_str())).expect("one");
                let failure = |check: &str| {
                    Failure::new(Check::Invariant(check.into()), Verdict::Failed, "no")
                        .breaking(std::slice::from_ref(&requirement.id))
                };
                assert_eq!(touched(&protocol, case, &failure(own)), std::slice::from_ref(reading));
                assert!(touched(&protocol, case, &failure("another")).is_empty(), "{reading}");
                quoted += 1;
                let named = cases.iter().find(|case| case.source().contains(reading.as_str()));
                let named = named.map(|case| touched(&protocol, case, &failure("another")));
                silent += usize::from(named.is_none());
                assert!(named.is_none_or(|named| named == [reading.clone()]), "{reading}");
            }
        }
        assert!(quoted > 5, "{quoted} {silent}");
    }
}
