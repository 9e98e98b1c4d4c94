//! `--shard`: the part of the cases that is this process's, where several run one suite.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use sha2::{Digest, Sha256};

use super::report::read;
use super::source::Suite;
use super::{Failure, usage};
use crate::results::event::{RunEvent, Shard};

/// Which part, of how many, and how they are balanced.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Sharding {
    /// Run part I of N of the selected cases: `2/4`. `auto`: part and number from CI_NODE_INDEX and CI_NODE_TOTAL. `auto/N`: the part
    /// from JOB_COMPLETION_INDEX or CI_NODE_INDEX. `frameproof merge` puts the parts together.
    #[arg(long, value_name = "I/N")]
    shard: Option<Choice>,
    /// An earlier run, as `--json` wrote it: the parts are chosen so that they take about the same time.
    #[arg(long, value_name = "FILE", requires = "shard")]
    shard_by: Option<PathBuf>,
}

/// Most parts.
const MOST: u32 = 10_000;
/// Where CI says which part this is, from 1, and of how many.
const INDEX: &str = "CI_NODE_INDEX";
const TOTAL: &str = "CI_NODE_TOTAL";
/// Where a Kubernetes indexed Job says which part this is, from 0.
const JOB_INDEX: &str = "JOB_COMPLETION_INDEX";

/// What `--shard` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// `I/N`.
    Given { index: u32, total: u32 },
    /// `auto`, or `auto/N`.
    Environment { total: Option<u32> },
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const HINT: &str = "write I/N, such as 2/4 with I from 1 to N, or `auto`";
        let number = |text: &str| text.parse().ok().filter(|number| (1..=MOST).contains(number));
        let parsed = match text.split_once('/') {
            None if text == "auto" => Some(Self::Environment { total: None }),
            None => None,
            Some(("auto", total)) => number(total).map(|total| Self::Environment { total: Some(total) }),
            Some((index, total)) => {
                let both = number(index).zip(number(total)).filter(|(index, total)| index <= total);
                both.map(|(index, total)| Self::Given { index, total })
            }
        };
        parsed.ok_or_else(|| format!("`{text}` is not a shard: {HINT}"))
    }
}

impl Choice {
    /// The part, from 1, and the number of parts.
    fn resolve(self, environment: &dyn Fn(&str) -> Option<String>) -> Result<(u32, u32), String> {
        let number = |name: &str, from: u32| match environment(name) {
            None => Ok(None),
            Some(text) => match text.parse::<u32>() {
                Ok(number) if number >= from && number <= MOST => Ok(Some(number)),
                _ => Err(format!("{name} is `{text}`, which is not a number from {from} to {MOST}")),
            },
        };
        let total = match self {
            Self::Given { index, total } => return Ok((index, total)),
            Self::Environment { total } => total,
        };
        let index = match number(INDEX, 1)? {
            Some(index) => index,
            None => match number(JOB_INDEX, 0)? {
                Some(index) => index + 1,
                None => return Err(format!("--shard auto: neither {INDEX} nor {JOB_INDEX} is set")),
            },
        };
        let total = match total {
            Some(total) => total,
            None => number(TOTAL, 1)?
                .ok_or_else(|| format!("--shard auto: {TOTAL} is not set; write --shard auto/N"))?,
        };
        if index > total {
            return Err(format!("--shard auto: this is part {index}, but there are only {total}"));
        }
        Ok((index, total))
    }
}

impl Sharding {
    /// Whether only a part is run.
    pub fn is_given(&self) -> bool {
        self.shard.is_some()
    }

    /// Leaves of the suites what this process is to run, and says for each protocol which part that is. A protocol without a case
    /// in it is left out, but for one, so that there is a run to report.
    pub fn select(&self, suites: &mut Vec<Suite>) -> Result<Option<HashMap<String, Shard>>, Failure> {
        let Some(choice) = self.shard else { return Ok(None) };
        let environment = |name: &str| std::env::var(name).ok();
        let (index, total) = choice
            .resolve(&environment)
            .map_err(|error| usage(error, "write the part and the number: --shard 2/4"))?;
        let known = self.shard_by.as_deref().map(durations).transpose()?.unwrap_or_default();
        let of = |suite: &Suite| {
            let (all, selection) =
                (suite.cases.len(), digest(suite.cases.iter().map(|case| case.id.as_str())));
            (suite.protocol.name.clone(), Shard { index, total, all, selection })
        };
        let shards = suites.iter().map(of).collect();
        let keys: Vec<Key> = suites
            .iter()
            .flat_map(|suite| suite.cases.iter().map(|case| (suite.protocol.name.clone(), case.id.clone())))
            .collect();
        let own = part(&keys, &known, index, total);
        for suite in suites.iter_mut() {
            let name = suite.protocol.name.clone();
            suite.cases.retain(|case| own.contains(&(name.clone(), case.id.clone())));
        }
        let empty = suites.iter().all(|suite| suite.cases.is_empty());
        if empty {
            suites.truncate(1);
        } else {
            suites.retain(|suite| !suite.cases.is_empty());
        }
        Ok(Some(shards))
    }
}

/// A number that stands for a selection of cases, whatever their order; it is exact in JavaScript, too.
fn digest<'c>(ids: impl Iterator<Item = &'c str>) -> u64 {
    let mut ids: Vec<&str> = ids.collect();
    ids.sort_unstable();
    let digest = Sha256::digest(ids.join("\n"));
    digest.iter().take(6).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Protocol and case.
type Key = (String, String);

/// The seconds that each case took in an earlier run.
fn durations(path: &Path) -> Result<HashMap<Key, f64>, Failure> {
    let events = read(path)?;
    let mut protocol = String::new();
    let mut known = HashMap::new();
    for event in events {
        match event {
            RunEvent::RunStarted(started) => protocol = started.protocol,
            RunEvent::CaseFinished(report) => {
                known.insert((protocol.clone(), report.case), report.seconds.max(0.0));
            }
            _ => {}
        }
    }
    if known.is_empty() {
        let hint = "--shard-by takes a file that `frameproof run --json FILE` wrote";
        return Err(usage(format!("{} has no case", path.display()), hint));
    }
    Ok(known)
}

/// The cases of part `index` of `total`, the longest first dealt to the part that has the least to do. The same in each process.
fn part(keys: &[Key], known: &HashMap<Key, f64>, index: u32, total: u32) -> HashSet<Key> {
    // A case that nobody has timed takes as long as one in the middle does.
    let mut times: Vec<f64> = known.values().copied().collect();
    times.sort_by(f64::total_cmp);
    let usual = times.get(times.len() / 2).copied().unwrap_or(1.0);
    let mut timed: Vec<(f64, &Key)> =
        keys.iter().map(|key| (known.get(key).copied().unwrap_or(usual), key)).collect();
    timed.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    let mut loads = vec![0.0; total as usize];
    let mut own = HashSet::new();
    for (seconds, key) in timed {
        let least = loads.iter().enumerate().min_by(|one, other| f64::total_cmp(one.1, other.1));
        let Some((place, _)) = least else { break };
        loads[place] += seconds;
        if place + 1 == index as usize {
            own.insert(key.clone());
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: usize) -> Vec<Key> {
        (0..count).map(|number| ("p".to_owned(), format!("f/{number:03}"))).collect()
    }

    #[test]
    fn the_parts_are_the_whole() {
        let (keys, total) = (keys(50), 7);
        let parts: Vec<_> = (1..=total).map(|index| part(&keys, &HashMap::new(), index, total)).collect();
        assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), 50);
        assert!(parts.iter().all(|part| (7..=8).contains(&part.len())));
        assert!(keys.iter().all(|key| parts.iter().filter(|part| part.contains(key)).count() == 1));
    }

    #[test]
    fn a_long_case_has_a_part_of_its_own() {
        let keys = keys(11);
        let known = keys.iter().map(|key| (key.clone(), 1.0)).chain([(keys[5].clone(), 10.0)]).collect();
        let long = (1..=2).map(|index| part(&keys, &known, index, 2)).find(|part| part.contains(&keys[5]));
        assert_eq!(long.map(|part| part.len()), Some(1));
    }

    #[test]
    fn parts_are_read_and_refused() {
        assert_eq!("2/4".parse(), Ok(Choice::Given { index: 2, total: 4 }));
        assert_eq!("auto/4".parse(), Ok(Choice::Environment { total: Some(4) }));
        for bad in ["", "4", "0/4", "5/4", "1/0", "a/b", "1/2/3", "auto/", "1/99999"] {
            assert!(bad.parse::<Choice>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_environment_says_which_part() {
        let resolve = |choice: &str, variables: &[(&str, &str)]| {
            let variables: HashMap<_, _> = variables.iter().copied().collect();
            let choice: Choice = choice.parse().expect("a choice");
            choice.resolve(&|name| variables.get(name).map(|value| (*value).to_owned()))
        };
        assert_eq!(resolve("auto", &[(INDEX, "3"), (TOTAL, "5")]), Ok((3, 5)));
        assert_eq!(resolve("auto/5", &[(JOB_INDEX, "0")]), Ok((1, 5)));
        for (choice, variables) in [
            ("auto", &[][..]),
            ("auto", &[(INDEX, "3")]),
            ("auto", &[(INDEX, "0"), (TOTAL, "5")]),
            ("auto/2", &[(JOB_INDEX, "2")]),
            ("auto/2", &[(JOB_INDEX, "x")]),
        ] {
            assert!(resolve(choice, variables).is_err(), "{choice} {variables:?}");
        }
    }
}
