//! How many independent mutants each requirement has: what a suite finds of a requirement with a single one says little.

use std::collections::BTreeMap;

use crate::protocol::{Level, Protocol, Requirement, Side};
use crate::reference::faults;

/// So many independent mutants a MUST is to have.
pub const ENOUGH: usize = 3;

/// Whether a requirement is a MUST of the server that a suite can exercise.
fn counts(requirement: &Requirement) -> bool {
    requirement.level == Level::Must
        && requirement.side == Side::Server
        && requirement.unobservable.is_none()
        && requirement.unexercised.is_none()
}

/// The faults of the reference server that violate each MUST that a suite can exercise. Faults are independent of each other: each is
/// a defect of its own in the code; what the engine makes of one by triggers is not counted.
pub fn of_musts(protocol: &Protocol) -> BTreeMap<String, Vec<&'static str>> {
    let musts = protocol.requirements.0.iter().filter(|(_, requirement)| counts(requirement));
    let faults = faults(&protocol.name);
    let violating = |id: &str| {
        faults.iter().filter(|fault| fault.violates.contains(&id)).map(|fault| fault.name).collect()
    };
    musts.map(|(id, _)| (id.clone(), violating(id))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LoadOptions;

    #[test]
    fn the_observable_musts_of_the_server_are_counted() {
        for name in Protocol::embedded_names() {
            let protocol = Protocol::embedded(name, &LoadOptions::default()).expect("a shipped protocol");
            let counts = of_musts(&protocol);
            for (id, requirement) in &protocol.requirements.0 {
                let is_left_out = requirement.level != Level::Must
                    || requirement.side == Side::Client
                    || requirement.unobservable.is_some()
                    || requirement.unexercised.is_some();
                assert_eq!(counts.contains_key(id), !is_left_out, "{id}");
            }
            for (id, faulty) in counts {
                let violating = faults(name).iter().filter(|fault| fault.violates.contains(&id.as_str()));
                assert_eq!(faulty.len(), violating.count(), "{id}");
            }
        }
    }
}
