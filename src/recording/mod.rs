//! Recordings: what is made of a trace that is there already.
//!
//! [`judged`] makes the events of a run of a judged one, so that every report can be made of it. [`compare`] compares two: what was
//! said ([`entry`]) is paired (`align.rs`), what differs from run to run is matched ([`ids`]) at the [`places`] that the protocol
//! names, and what is left has changed.

mod align;
pub mod compare;
pub mod entry;
pub mod ids;
pub mod judged;
pub mod places;
