//! `--preambles`, and globs with `@`: cases behind what was done on the server before.

use std::sync::Arc;

use clap::Args;
use globset::{Glob, GlobMatcher};

use super::source::{Filter, Suite};
use super::{Failure, usage};
use crate::scenario::{BEHIND, LoadedCase};

/// Cases behind preambles.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Preambles {
    /// Run each case also behind each preamble of its suite, after a denial, in a later turn and so on: `abort/idle@after-denial`. A glob
    /// over cases that has an `@` selects such cases without this option: `abort/*@*`.
    #[arg(long)]
    preambles: bool,
}

impl Preambles {
    /// Adds to each suite the cases behind preambles that are asked for.
    pub fn add(&self, suites: &mut [Suite], filter: &Filter) -> Result<(), Failure> {
        let globs = filter.globs.iter().chain(&filter.case).filter(|glob| glob.contains(BEHIND));
        // What is no glob is reported where cases are selected.
        let globs: Vec<GlobMatcher> =
            globs.filter_map(|glob| Some(Glob::new(glob).ok()?.compile_matcher())).collect();
        if !self.preambles && globs.is_empty() {
            return Ok(());
        }
        let mut added = false;
        for suite in suites {
            let behind = behind_all(&suite.cases)?;
            let wanted =
                |case: &LoadedCase| self.preambles || globs.iter().any(|glob| glob.is_match(&case.id));
            let behind: Vec<_> = behind.into_iter().filter(wanted).collect();
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

/// Each case behind each preamble, where that makes sense.
fn behind_all(cases: &[LoadedCase]) -> Result<Vec<LoadedCase>, Failure> {
    let preambles: Vec<_> =
        cases.iter().filter(|case| case.case.beginning.is_preamble).cloned().map(Arc::new).collect();
    let mut all = Vec::new();
    for preamble in &preambles {
        for case in cases {
            let Some(behind) = case.behind(preamble) else { continue };
            if let Some(name) = case.collides(preamble) {
                let message =
                    format!("`{name}` means one thing in {} and another in {}", case.id, preamble.id);
                return Err(usage(message, "choose another name in the preamble"));
            }
            all.push(behind);
        }
    }
    Ok(all)
}
