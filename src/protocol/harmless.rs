//! Mutants that a protocol declares to be harmless: what a suite need not find, and why.

use globset::Glob;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{OneOrMany, Protocol};
use crate::source::{Diagnostic, Diagnostics, Document, Part, escape_token};

/// Mutants that the suite need not find in `selftest --wire`, or faults at certain moments in `selftest --triggers`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HarmlessMutants {
    /// Globs over the names of the mutants, as `selftest` prints them: `snapshot/title * first`, `no-hello@after-abort`.
    pub mutants: OneOrMany,
    /// The requirements or readings that allow a server to do so.
    pub allowed_by: Vec<String>,
    /// Why that is so, in one sentence.
    pub why: String,
}

/// What they name must be there.
pub(super) fn verify_harmless(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    for (name, declared) in &protocol.extension.mutants {
        let at = format!("/x-frameproof/mutants/{}", escape_token(name));
        for glob in declared.mutants.as_slice() {
            if let Err(error) = Glob::new(glob) {
                let error = Diagnostic::new(format!("`{glob}` is not a glob: {}", error.kind()));
                errors.push(error.at(api, &format!("{at}/mutants"), Part::Value));
            }
        }
        if declared.allowed_by.is_empty() {
            let error =
                Diagnostic::new("nothing allows it").hint("name a requirement or a reading in `allowed-by`");
            errors.push(error.at(api, &format!("{at}/allowed-by"), Part::Value));
        }
        let known = || protocol.requirements.0.keys().chain(protocol.readings.keys()).map(String::as_str);
        for (index, id) in declared.allowed_by.iter().enumerate() {
            if !known().any(|known| known == id) {
                let error = Diagnostic::new(format!("`{id}` is neither a requirement nor a reading"));
                let error = error.suggest(id, known());
                errors.push(error.at(api, &format!("{at}/allowed-by/{index}"), Part::Value));
            }
        }
    }
}
