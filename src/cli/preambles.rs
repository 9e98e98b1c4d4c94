//! `--preambles`, and globs with `@`: cases behind what was done on the server before.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use rustc_hash::FxBuildHasher;
use schemars::JsonSchema;
use serde::Deserialize;

use super::source::{Filter, Suite};
use super::{Failure, usage};
use crate::results::case_id;
use crate::scenario::LoadedCase;

/// Cases behind preambles.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Preambles {
    /// Run each case also behind each preamble of its suite, after a denial, in a later turn and so on: `abort/idle@denial`. With N,
    /// behind N of them only, which the seed chooses for each case; with `few`, behind those that contain others; with `none`, behind none. A
    /// glob over cases that has an `@` selects such cases without this option: `abort/*@*`. Default: `few` where `run` has a server of
    /// yours (`--url`, `--target`) and no cases are selected, else `none`.
    #[arg(long, value_name = "N|few|none", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    preambles: Option<Extent>,
    /// The configuration's, for whole suites.
    #[arg(skip)]
    configured: Option<Extent>,
}

/// Behind how many preambles each case is run.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(super) enum Extent {
    None,
    /// Those that contain others.
    Few,
    Some(NonZeroUsize),
    All,
}

impl FromStr for Extent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "few" => Ok(Self::Few),
            "none" => Ok(Self::None),
            number => {
                number.parse().map(Self::Some).map_err(|_| "a number from 1, `few`, or `none`".to_owned())
            }
        }
    }
}

impl TryFrom<String> for Extent {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl Preambles {
    /// Whether it is said behind how many of them.
    pub fn is_given(&self) -> bool {
        self.preambles.is_some()
    }

    /// What a configuration says, for runs of whole suites.
    pub fn configure(&mut self, extent: Option<Extent>) {
        self.configured = extent;
    }

    /// Adds to each suite the cases behind preambles that are asked for. `is_own`: where nothing is said, those behind few, for it is a server
    /// of the user's that is tried by whole suites; reference servers are known to pass.
    pub fn add(&self, suites: &mut [Suite], filter: &Filter, seed: u64, is_own: bool) -> Result<(), Failure> {
        let globs = filter.behind()?;
        let by_default = if is_own { Extent::Few } else { Extent::None };
        let of_whole = self.configured.unwrap_or(by_default);
        let extent = self.preambles.unwrap_or(if filter.is_empty() { of_whole } else { Extent::None });
        if globs.is_empty() && matches!(extent, Extent::None) {
            return Ok(());
        }
        let named = |id: &str| globs.iter().any(|glob| glob.is_match(id));
        let contains = |preamble: &LoadedCase| !preamble.case.beginning.contains.is_empty();
        let mut added = false;
        for suite in suites {
            let cases = &suite.cases;
            let behind = match extent {
                Extent::None => behind(pairs(cases, |_, id| named(id)))?,
                Extent::Few => behind(pairs(cases, |preamble, id| contains(preamble) || named(id)))?,
                Extent::All => behind(pairs(cases, |_, _| true))?,
                Extent::Some(most) => {
                    let drawn = drawn(cases, most, seed);
                    behind(pairs(cases, |_, id| drawn.contains(id) || named(id)))?
                }
            };
            added |= !behind.is_empty();
            suite.cases.extend(behind);
        }
        if !added && !matches!(self.preambles, None | Some(Extent::None)) {
            let message = match self.preambles {
                Some(Extent::Few) => "there is no preamble that contains others",
                _ => "there is no preamble",
            };
            let hint = "a case with `preamble: true` is one, and other cases are run behind it; `contains` names others that it sums up";
            return Err(usage(message, hint));
        }
        Ok(())
    }
}

/// The ids of so many cases behind preambles for each case.
fn drawn(cases: &[LoadedCase], most: NonZeroUsize, seed: u64) -> HashSet<String> {
    let mut by_case: HashMap<&str, Vec<(u64, String)>> = HashMap::new();
    for (_, case, id) in pairs(cases, |_, _| true) {
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
    wanted: impl Fn(&LoadedCase, &str) -> bool,
) -> impl Iterator<Item = (Arc<LoadedCase>, &LoadedCase, String)> {
    let preambles = cases.iter().filter(|case| case.case.beginning.is_preamble);
    preambles.flat_map(move |preamble| {
        let preamble = Arc::new(preamble.clone());
        let ids = cases.iter().map(|case| (case, case_id::behind(&case.id, preamble.name())));
        // The id is looked at first: whether a case may stand there takes longer to find out.
        let behind = ids.filter(|(case, id)| wanted(&preamble, id) && case.may_stand_behind(&preamble));
        behind.map(|(case, id)| (Arc::clone(&preamble), case, id)).collect::<Vec<_>>()
    })
}

/// The cases behind the preambles.
fn behind<'c>(
    pairs: impl Iterator<Item = (Arc<LoadedCase>, &'c LoadedCase, String)>,
) -> Result<Vec<LoadedCase>, Failure> {
    let mut all = Vec::new();
    for (preamble, case, _) in pairs {
        if let Some(name) = case.collides(&preamble) {
            let message = format!("`{name}` means one thing in {} and another in {}", case.id, preamble.id);
            return Err(usage(message, "choose another name in the preamble"));
        }
        all.push(case.behind(&preamble));
    }
    Ok(all)
}
