//! Frames in, verdicts out.

use std::sync::Arc;

use serde_json::Value;

use super::{Exercised, Violation};
use crate::frame::Limits;
use crate::protocol::Protocol;
use crate::source::Diagnostics;
use crate::trace::Event;

/// Judges one case or one recording. Events go in in the order in which they were seen.
pub struct Judge {}

/// What one event turned out to be.
#[derive(Debug, Default)]
pub struct Judged {
    /// The JSON object of a text frame, sent or received, if it is one.
    pub body: Option<Value>,
    /// Its message (index in [`Protocol::messages`]), if it is one.
    pub message: Option<usize>,
    /// What this event broke.
    pub violations: Vec<Violation>,
}

impl Judge {
    /// A judge with the monitors of the protocol, except those named in `suspended`.
    ///
    /// # Errors
    /// An invariant whose pattern does not compile (found when the protocol is loaded, too).
    pub fn new(
        _protocol: Arc<Protocol>,
        _limits: Limits,
        _suspended: &[String],
    ) -> Result<Self, Diagnostics> {
        todo!()
    }

    /// Takes the next event.
    pub fn observe(&mut self, _event: &Event) -> Judged {
        todo!()
    }

    /// Ends the trace. `settled`: everything that the server had to say has been seen.
    pub fn finish(self, _settled: bool) -> (Vec<Violation>, Exercised) {
        todo!()
    }
}
