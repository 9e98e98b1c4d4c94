//! What a protocol declares to be harmless: mutants of the wire, and faults at certain moments.

use globset::{Glob, GlobMatcher};
use indexmap::IndexMap;

use crate::protocol::HarmlessMutants;

/// The mutants that a protocol declares to be harmless.
pub(super) struct Harmless<'p>(Vec<(&'p str, Vec<GlobMatcher>)>);

impl<'p> Harmless<'p> {
    /// What is no glob was told when the protocol was loaded.
    pub fn new(declared: &'p IndexMap<String, HarmlessMutants>) -> Self {
        let globs = |one: &HarmlessMutants| {
            let globs = one.mutants.as_slice().iter().filter_map(|glob| Glob::new(glob).ok());
            globs.map(|glob| glob.compile_matcher()).collect()
        };
        Self(declared.iter().map(|(name, one)| (name.as_str(), globs(one))).collect())
    }

    /// The declaration that names this mutant.
    pub fn of(&self, mutant: &str) -> Option<String> {
        let mut all = self.0.iter();
        let found = all.find(|(_, globs)| globs.iter().any(|glob| glob.is_match(mutant)));
        found.map(|(name, _)| (*name).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{LoadOptions, Protocol};
    use crate::reference::{Trigger, faults};
    use crate::selftest::wire::mutations;
    use crate::wire::relay::Mutation;
    use std::sync::Arc;

    #[test]
    fn what_is_declared_harmless_is_known_by_its_name() {
        let declared: IndexMap<String, HarmlessMutants> = serde_json::from_value(serde_json::json!({
            "texts": { "mutants": ["snapshot/title other-*", "* one-more second"], "allowed-by": ["X-1"], "why": "free" },
            "moments": { "mutants": "{no-hello,two-hellos}@after-*", "allowed-by": ["X-2"], "why": "once" },
        }))
        .expect("declarations");
        let harmless = Harmless::new(&declared);
        assert_eq!(harmless.of("snapshot/title other-text every").as_deref(), Some("texts"));
        assert_eq!(harmless.of("status/run/n one-more second").as_deref(), Some("texts"));
        assert_eq!(harmless.of("snapshot/title null every"), None);
        assert_eq!(harmless.of("no-hello@after-abort").as_deref(), Some("moments"));
        assert_eq!(harmless.of("no-hello@again"), None);
    }

    /// A declaration of something that is not there would hide nothing today, and a hole tomorrow.
    #[test]
    fn what_the_shipped_protocols_declare_is_there() {
        for name in Protocol::embedded_names() {
            let protocol = Arc::new(Protocol::embedded(name, &LoadOptions::default()).expect("it loads"));
            let triggers = || Trigger::ALL.iter().map(|(_, trigger, _)| *trigger);
            let pairs =
                faults(name).iter().flat_map(|fault| triggers().map(|it| format!("{}@{it}", fault.name)));
            let all: Vec<String> =
                mutations(&protocol).iter().map(Mutation::name).chain(pairs.collect::<Vec<_>>()).collect();
            for (declaration, one) in &protocol.extension.mutants {
                for glob in one.mutants.as_slice() {
                    let matcher = Glob::new(glob).expect("a glob").compile_matcher();
                    let is_there = all.iter().any(|mutant| matcher.is_match(mutant));
                    assert!(is_there, "{name}: {declaration}: there is no mutant `{glob}`");
                }
            }
        }
    }
}
