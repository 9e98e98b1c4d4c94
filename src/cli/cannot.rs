//! Why nothing was run.

use super::target::{Chosen, cannot_launch};
use super::{Failure, harness, usage};
use crate::run::{RunError, Target};

/// What to say where a run could not begin, or go on.
pub(super) fn cannot_run(error: &RunError, target: &Target, chosen: Option<&Chosen>) -> Failure {
    let hint = error.advice(target);
    match error {
        RunError::Interrupted => Failure::Interrupted,
        _ if error.is_shortage() => Failure::Shortage,
        RunError::Reference(start) => super::serve::cannot_start(start),
        _ if error.is_misconfigured() => usage(error, &hint),
        RunError::Launch(failure) => cannot_launch(failure, &hint, chosen),
        _ => harness(error, &hint),
    }
}
