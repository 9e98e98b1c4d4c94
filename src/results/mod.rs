//! What became of a run, as plain data: events, the summary, the baseline of known failures, redaction.

pub mod baseline;
mod bounded_value;
pub mod case_id;
pub mod cause;
mod check;
pub mod compare;
mod counts;
pub mod death;
pub mod event;
pub mod evidence;
pub mod excused;
pub mod failure;
pub mod kept;
pub mod merge;
pub mod recorded;
pub(crate) mod redact;
pub mod reproduce;
mod secret;
pub(crate) mod summary;
pub mod window;

pub use check::Check;
pub use counts::Counts;
