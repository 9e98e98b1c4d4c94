//! The keys of monitors.

use super::Protocol;
use super::path::INVARIANTS;
use crate::source::{Diagnostic, Diagnostics, Document, Part, escape_token};

/// A key must say where it stands, and nothing that the monitor would not look at.
pub(super) fn verify_keys(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    for (name, invariant) in &protocol.extension.invariants {
        if let Some((field, key, sides)) = invariant.monitor.key()
            && let Some(mistake) = key.mistake(sides)
        {
            let at = format!("{INVARIANTS}/{}/monitor/{field}", escape_token(name));
            errors.push(Diagnostic::new(mistake).at(api, &at, Part::Value));
        }
    }
}
