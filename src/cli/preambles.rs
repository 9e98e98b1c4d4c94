//! `--preambles`, and globs with `@`: cases behind what was done on the server before.

use std::sync::Arc;

use clap::Args;

use super::source::{Filter, Suite};
use super::{Failure, usage};
use crate::results::case_id;
use crate::scenario::LoadedCase;

/// Cases behind preambles.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Preambles {
    /// Run each case also behind each preamble of its suite, after a denial, in a later turn and so on: `abort/idle@denial`. A glob
    /// over cases that has an `@` selects such cases without this option: `abort/*@*`.
    #[arg(long)]
    preambles: bool,
}

impl Preambles {
    /// Adds to each suite the cases behind preambles that are asked for.
    pub fn add(&self, suites: &mut [Suite], filter: &Filter) -> Result<(), Failure> {
        let globs = filter.behind()?;
        if !self.preambles && globs.is_empty() {
            return Ok(());
        }
        let wanted = |id: &str| self.preambles || globs.iter().any(|glob| glob.is_match(id));
        let mut added = false;
        for suite in suites {
            let behind = behind_all(&suite.cases, wanted)?;
            added |= !behind.is_empty();
            suite.cases.extend(behind);
        }
        if self.preambles && !added {
            let hint = "a case with `preamble: true` is one, and other cases are run behind it";
            return Err(usage("there is no preamble", hint));
        }
        Ok(())
    }
}

/// Each case behind each preamble, where that makes sense and the id is wanted.
fn behind_all(cases: &[LoadedCase], wanted: impl Fn(&str) -> bool) -> Result<Vec<LoadedCase>, Failure> {
    let mut all = Vec::new();
    for preamble in cases.iter().filter(|case| case.case.beginning.is_preamble) {
        let preamble = Arc::new(preamble.clone());
        for case in cases.iter().filter(|case| case.may_stand_behind(&preamble)) {
            if let Some(name) = case.collides(&preamble) {
                let message =
                    format!("`{name}` means one thing in {} and another in {}", case.id, preamble.id);
                return Err(usage(message, "choose another name in the preamble"));
            }
            if wanted(&case_id::behind(&case.id, preamble.name())) {
                all.push(case.behind(&preamble));
            }
        }
    }
    Ok(all)
}
