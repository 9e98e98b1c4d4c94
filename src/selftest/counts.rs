//! How many independent mutants each requirement has: what a suite finds of a requirement with a single one says little.

use std::collections::BTreeMap;

use crate::protocol::{Level, Protocol, Requirement, Side};
use crate::reference::faults;
use crate::selftest::report::{RequirementKills, SuiteReport};

/// So many independent mutants a MUST is to have.
pub const ENOUGH: usize = 3;

/// Whether a requirement is a MUST of the server that a suite can exercise.
fn counts(requirement: &Requirement) -> bool {
    requirement.level == Level::Must
        && requirement.side == Side::Server
        && requirement.unobservable.is_none()
        && requirement.unexercised.is_none()
}

/// The mutants of one requirement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mutants {
    /// The faults of the reference server that violate it. They are independent of each other: each is a defect of its own in the code.
    pub faults: Vec<&'static str>,
    /// Kinds of mutants of the wire that were found by it.
    pub wire: usize,
    /// Faults at certain moments that were found by it. They are not independent of the faults.
    pub triggered: usize,
}

impl Mutants {
    /// How many are independent of each other.
    pub fn independent(&self) -> usize {
        self.faults.len() + self.wire
    }
}

/// The mutants of each MUST that a suite can exercise; with what was measured of the suite, if anything was.
pub fn of_musts(protocol: &Protocol, measured: Option<&SuiteReport>) -> BTreeMap<String, Mutants> {
    let musts = protocol.requirements.0.iter().filter(|(_, requirement)| counts(requirement));
    let faults = faults(&protocol.name);
    let of = |id: &str| {
        let violating = faults.iter().filter(|fault| fault.violates.contains(&id)).map(|fault| fault.name);
        // The same mutants may have been tried with several styles.
        let most = |of: fn(&RequirementKills) -> usize| {
            let parts = measured.into_iter().flat_map(|suite| suite.defects.values());
            parts.filter_map(|kills| kills.requirements.get(id)).map(of).max().unwrap_or(0)
        };
        Mutants {
            faults: violating.collect(),
            wire: most(|kills| kills.kinds),
            triggered: most(|kills| kills.by_itself),
        }
    };
    musts.map(|(id, _)| (id.clone(), of(id))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LoadOptions;
    use crate::selftest::report::Kills;

    #[test]
    fn the_observable_musts_of_the_server_are_counted() {
        for name in Protocol::embedded_names() {
            let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("a shipped protocol");
            let counts = of_musts(&protocol, None);
            for (id, requirement) in &protocol.requirements.0 {
                let is_left_out = requirement.level != Level::Must
                    || requirement.side == Side::Client
                    || requirement.unobservable.is_some()
                    || requirement.unexercised.is_some();
                assert_eq!(counts.contains_key(id), !is_left_out, "{id}");
            }
            for (id, mutants) in counts {
                let violating = faults(name).iter().filter(|fault| fault.violates.contains(&id.as_str()));
                assert_eq!(mutants.independent(), violating.count(), "{id}");
            }
        }
    }

    #[test]
    fn what_was_measured_is_counted() {
        let protocol =
            Protocol::embedded(Protocol::embedded_names()[0], &LoadOptions::default()).expect("it loads");
        let plain = of_musts(&protocol, None);
        let (id, mutants) = plain.first_key_value().expect("a MUST");
        let of = |kinds, by_itself| {
            let kills = RequirementKills { kinds, by_itself, ..RequirementKills::default() };
            let mut of = Kills::new(None, 1);
            of.requirements = [(id.clone(), kills)].into();
            of
        };
        let defects = [("triggers", of(0, 9)), ("wire", of(2, 0)), ("wire under slow", of(1, 0))];
        let defects = defects.map(|(part, kills)| (part.to_owned(), kills)).into();
        let measured = SuiteReport { defects, ..SuiteReport::default() };
        let counted = &of_musts(&protocol, Some(&measured))[id];
        assert_eq!((counted.independent(), counted.triggered), (mutants.faults.len() + 2, 9));
    }
}
