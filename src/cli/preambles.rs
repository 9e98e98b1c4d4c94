//! `--preambles`, and globs with `@`: cases behind what was done on the server before.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::num::NonZeroUsize;
use std::sync::Arc;

use clap::Args;
use rustc_hash::FxBuildHasher;

use super::source::{Filter, Suite};
use super::{Failure, usage};
use crate::results::case_id;
use crate::scenario::LoadedCase;

/// Cases behind preambles.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Preambles {
    /// Run each case also behind each preamble of its suite, after a denial, in a later turn and so on: `abort/idle@denial`. With N,
    /// behind N of them only, which the seed chooses for each case. A glob over cases that has an `@` selects such cases without this
    /// option: `abort/*@*`.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true)]
    preambles: Option<Option<NonZeroUsize>>,
}

impl Preambles {
    /// Whether more is asked for than a glob selects.
    pub fn is_given(&self) -> bool {
        self.preambles.is_some()
    }

    /// Adds to each suite the cases behind preambles that are asked for.
    pub fn add(&self, suites: &mut [Suite], filter: &Filter, seed: u64) -> Result<(), Failure> {
        let globs = filter.behind()?;
        if self.preambles.is_none() && globs.is_empty() {
            return Ok(());
        }
        let named = |id: &str| globs.iter().any(|glob| glob.is_match(id));
        let mut added = false;
        for suite in suites {
            let behind = match self.preambles {
                None => behind(&suite.cases, named)?,
                Some(None) => behind(&suite.cases, |_| true)?,
                Some(Some(most)) => {
                    let drawn = drawn(&suite.cases, most, seed);
                    behind(&suite.cases, |id| drawn.contains(id) || named(id))?
                }
            };
            added |= !behind.is_empty();
            suite.cases.extend(behind);
        }
        if self.preambles.is_some() && !added {
            let hint = "a case with `preamble: true` is one, and other cases are run behind it";
            return Err(usage("there is no preamble", hint));
        }
        Ok(())
    }
}

/// The ids of so many cases behind preambles for each case.
fn drawn(cases: &[LoadedCase], most: NonZeroUsize, seed: u64) -> HashSet<String> {
    let mut by_case: HashMap<&str, Vec<(u64, String)>> = HashMap::new();
    for (_, case, id) in pairs(cases, |_| true) {
        by_case.entry(&case.id).or_default().push((FxBuildHasher.hash_one((seed, &id)), id));
    }
    let mut drawn = HashSet::new();
    for mut draws in by_case.into_values() {
        draws.sort_unstable();
        drawn.extend(draws.into_iter().take(most.get()).map(|(_, id)| id));
    }
    drawn
}

/// Each preamble and each case that may stand behind it, with the id that the case has there, where that is wanted.
fn pairs(
    cases: &[LoadedCase],
    wanted: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (Arc<LoadedCase>, &LoadedCase, String)> {
    let preambles = cases.iter().filter(|case| case.case.beginning.is_preamble);
    preambles.flat_map(move |preamble| {
        let preamble = Arc::new(preamble.clone());
        let ids = cases.iter().map(|case| (case, case_id::behind(&case.id, preamble.name())));
        // The id is looked at first: whether a case may stand there takes longer to find out.
        let behind = ids.filter(|(case, id)| wanted(id) && case.may_stand_behind(&preamble));
        behind.map(|(case, id)| (Arc::clone(&preamble), case, id)).collect::<Vec<_>>()
    })
}

/// Each case behind each preamble, where that makes sense and the id is wanted.
fn behind(cases: &[LoadedCase], wanted: impl Fn(&str) -> bool) -> Result<Vec<LoadedCase>, Failure> {
    let mut all = Vec::new();
    for (preamble, case, _) in pairs(cases, wanted) {
        if let Some(name) = case.collides(&preamble) {
            let message = format!("`{name}` means one thing in {} and another in {}", case.id, preamble.id);
            return Err(usage(message, "choose another name in the preamble"));
        }
        all.push(case.behind(&preamble));
    }
    Ok(all)
}
