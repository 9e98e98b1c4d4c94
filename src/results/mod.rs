//! What became of a run, as plain data: events, the summary, the baseline of known failures, redaction.

pub mod baseline;
pub mod event;
pub(crate) mod redact;
pub(crate) mod summary;
