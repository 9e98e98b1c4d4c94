//! What became of a run, as plain data: events, the summary, the baseline of known failures, redaction.

pub mod baseline;
mod check;
pub mod event;
pub(crate) mod redact;
pub(crate) mod summary;

pub use check::Check;
