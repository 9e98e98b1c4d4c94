//! Lengths of time in a protocol file.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Protocol;
use super::path::INVARIANTS;
use crate::source::{Diagnostic, Diagnostics, Document, Part, duration, escape_token};

/// A length of time: `250ms`, `3s`, or the name of one of the protocol's `times`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Time(pub String);

impl Protocol {
    /// A length of time that is written as `250ms`, or as one of the protocol's `times`.
    ///
    /// # Errors
    /// It is neither. Without a place.
    pub fn time(&self, text: &str) -> Result<Duration, Diagnostics> {
        let times = &self.extension.times;
        match times.get(text) {
            Some(time) => duration(time).map_err(|error| Diagnostic::new(error).into()),
            None => duration(text).map_err(|error| {
                let known = times.keys().map(String::as_str);
                let named =
                    if times.is_empty() { "" } else { ", or the name of one of the protocol's `times`" };
                Diagnostic::new(format!("{error}{named}")).suggest(text, known).into()
            }),
        }
    }
}

/// All times must be lengths of time, and a name must not look like one.
pub(super) fn verify_times(protocol: &Protocol, api: &Document, errors: &mut Diagnostics) {
    for (name, time) in &protocol.extension.times {
        let at = format!("/x-frameproof/times/{}", escape_token(name));
        if duration(name).is_ok() {
            let message = format!("`{name}` is a length of time itself, and cannot be the name of one");
            errors.push(Diagnostic::new(message).at(api, &at, Part::Key));
        }
        if let Err(error) = duration(time) {
            errors.push(Diagnostic::new(error).at(api, &at, Part::Value));
        }
    }
    for (name, invariant) in &protocol.extension.invariants {
        if let Some((field, time)) = invariant.monitor.within()
            && let Err(error) = protocol.time(&time.0)
        {
            let at = format!("{INVARIANTS}/{}/monitor/{field}", escape_token(name));
            errors.0.extend(error.0.into_iter().map(|one| one.at(api, &at, Part::Value)));
        }
    }
}
