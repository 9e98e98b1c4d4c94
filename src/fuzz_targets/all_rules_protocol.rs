//! A protocol of the fuzz targets' own: few messages with the same few fields, and every kind of monitor.

use std::sync::{Arc, LazyLock};

use crate::protocol::{Protocol, ReadingName};
use crate::source::Document;

/// Its `asyncapi.yaml`.
pub(super) const API: &str = include_str!("all_rules_protocol/asyncapi.yaml");
/// Its `requirements.yaml`.
pub(super) const REQUIREMENTS: &str = include_str!("all_rules_protocol/requirements.yaml");

/// Both files, parsed once a process.
pub(super) fn documents() -> (&'static Document, &'static Document) {
    static DOCUMENTS: LazyLock<[Document; 2]> = LazyLock::new(|| {
        [("asyncapi.yaml", API), ("requirements.yaml", REQUIREMENTS)].map(|(name, text)| {
            Document::parse(&format!("lab/{name}"), text).unwrap_or_else(|errors| panic!("{errors}"))
        })
    });
    (&DOCUMENTS[0], &DOCUMENTS[1])
}

/// The protocol, compiled once a process.
pub(super) fn all_rules() -> &'static Arc<Protocol> {
    static PROTOCOL: LazyLock<Arc<Protocol>> = LazyLock::new(|| {
        let (api, catalogue) = documents();
        Protocol::from_documents("lab", api, catalogue, ReadingName::Default, &[])
            .unwrap_or_else(|errors| panic!("{errors}"))
    });
    &PROTOCOL
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::protocol::rules::Rule;
    use crate::source::forms::forms;

    #[test]
    fn it_has_every_kind_of_monitor() {
        let kinds: BTreeSet<String> = (all_rules().extension.invariants.values())
            .filter_map(|invariant| {
                serde_json::to_value(&invariant.monitor).ok()?.as_object()?.keys().next().cloned()
            })
            .collect();
        let schema = crate::source::schema_of::<Rule>();
        let known = schema["oneOf"].as_array().expect("the kinds").len();
        assert_eq!(kinds.len(), known, "{kinds:?}");
    }

    /// What it does not use, the naive monitors may leave out unnoticed.
    #[test]
    fn it_has_every_parameter_of_every_monitor() {
        let schema = crate::source::schema_of::<Rule>();
        let mut unused: BTreeSet<(&str, &str)> = BTreeSet::new();
        for rule in schema["oneOf"].as_array().expect("the kinds") {
            for (kind, form) in rule["properties"].as_object().expect("a kind") {
                let parameters = forms(&schema, vec![form]);
                let names = parameters.iter().filter_map(|form| form["properties"].as_object()).flatten();
                unused.extend(names.map(|(name, _)| (kind.as_str(), name.as_str())));
            }
        }
        let (api, _) = documents();
        let invariants = api.value["x-frameproof"]["invariants"].as_object().expect("invariants");
        for invariant in invariants.values() {
            for (kind, parameters) in invariant["monitor"].as_object().expect("a monitor") {
                for name in parameters.as_object().into_iter().flatten().map(|(name, _)| name) {
                    unused.remove(&(kind.as_str(), name.as_str()));
                }
            }
        }
        // It has no batches: `it::batches` has servers that break this.
        assert_eq!(unused, BTreeSet::from([("correlation", "batched")]));
    }
}
