//! `doctor`: walks through a target step by step and says in plain words what is missing.
//!
//! Each step is a case made for it and run as any other, so that what it finds is what a run would find.

pub(crate) mod finding;
mod late;
mod reported;
mod walk;

pub use finding::{StepFinding, StepState};
pub use walk::doctor;
