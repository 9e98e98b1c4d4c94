//! What self-tests have found, as the file that `selftest --report` writes. Each part that runs takes the place of what the file said of
//! that part, so that parts that run for long can be measured one after the other.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::results::event::Verdict;
use crate::selftest::faults::FaultResult;
use crate::selftest::styles::StyleRun;
use crate::selftest::{triggers, wire};

/// What self-tests have found of suites.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Report {
    /// The suites, by the names of their protocols.
    pub suites: BTreeMap<String, SuiteReport>,
}

/// What self-tests have found of one suite.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SuiteReport {
    /// What became of defects, by the part that tried them: `faults`, `triggers`, `wire`; with styles `wire under slow`.
    #[serde(default)]
    pub defects: BTreeMap<String, Kills>,
    /// What was held against legal styles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub styles: Option<Styles>,
    /// What was explored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exploration: Option<Exploration>,
}

/// How many were drawn, and from which seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Drawn {
    /// So many at most; absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    /// What has chosen them.
    pub seed: u64,
}

/// What became of the defects of one part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Kills {
    /// How many were drawn.
    pub drawn: Drawn,
    /// How many of them were applied: without those whose message or moment never came, and those declared harmless.
    pub mutants: usize,
    /// How many of those were found.
    pub killed: usize,
    /// How many of those were found only by requirements that they do not violate. Of mutants of the wire it is not known.
    pub by_another: usize,
    /// How many violate a MUST and were only warned of.
    pub warned: usize,
    /// How many were not found, and are declared harmless.
    pub harmless: usize,
    /// How many were not applied.
    pub not_met: usize,
    /// The names of those that were not found, or only warned of.
    pub survivors: Vec<String>,
    /// The same by requirement, of those that a defect violates or a mutant of the wire was found by.
    pub requirements: BTreeMap<String, RequirementKills>,
    /// The kinds of mutants of the wire that each requirement has found so far.
    #[serde(skip)]
    kinds: BTreeSet<(String, String)>,
}

/// What became of the defects that violate one requirement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RequirementKills {
    /// Defects that violate it.
    pub mutants: usize,
    /// Those that were found.
    pub killed: usize,
    /// Those that were found by this requirement.
    pub by_itself: usize,
    /// Those that were found by other requirements only.
    pub by_another: usize,
    /// Mutants of the wire that were found by this requirement. Nothing says which requirements they violate.
    pub found: usize,
    /// How many kinds of mutants these are: a message, a field and an operator, at whichever of the messages.
    #[serde(default)]
    pub kinds: usize,
}

/// What was held against correct servers with legal styles.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Styles {
    /// How many combinations were drawn, and from which seed.
    pub drawn: Drawn,
    /// The styles that were tried alone.
    pub alone: Vec<String>,
    /// How many combinations were tried.
    pub combinations: usize,
    /// Failures, which are false alarms.
    pub failures: usize,
    /// Warnings that no style declares.
    pub warnings: usize,
    /// The styles and combinations against which something was held.
    pub against: Vec<Against>,
}

/// What was held against one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Against {
    /// Its styles.
    pub styles: Vec<String>,
    /// The cases that held something against it, with the requirements.
    pub cases: BTreeMap<String, Vec<String>>,
}

/// What was explored: in which states which moves were made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Exploration {
    /// The seed.
    pub seed: u64,
    /// How many walks there were.
    pub walks: u64,
    /// How many moves they had.
    pub moves: u64,
    /// How many findings there were: on a correct server none.
    pub findings: usize,
    /// The states.
    pub states: Vec<String>,
    /// How often each move was made, in the order of the states.
    pub counts: BTreeMap<String, Vec<u64>>,
    /// Legal pairs of state and move that were never made: `STATE: MOVE`.
    pub never: Vec<String>,
}

/// What a part of the self-test is called that has styles besides.
pub fn part(name: &str, styles: &[String]) -> String {
    if styles.is_empty() { name.to_owned() } else { format!("{name} under {}", styles.join(",")) }
}

impl Kills {
    /// Nothing yet.
    pub fn new(sample: Option<usize>, seed: u64) -> Self {
        Self { drawn: Drawn { sample, seed }, ..Self::default() }
    }

    /// A fault, or a mutant of a target. The correct server is none.
    pub fn add_fault(&mut self, result: &FaultResult) {
        let Some(fault) = &result.fault else { return };
        let ids = fault.violates.iter().map(String::as_str);
        self.add(&fault.name, ids, |id| result.by.contains_key(id), !result.by.is_empty());
    }

    /// A fault under a trigger.
    pub fn add_triggered(&mut self, mutant: &triggers::Mutant) {
        match mutant.outcome {
            triggers::MutantOutcome::Unmet => return self.not_met += 1,
            triggers::MutantOutcome::Harmless => return self.harmless += 1,
            _ => {}
        }
        let is_killed =
            !matches!(mutant.outcome, triggers::MutantOutcome::Survived | triggers::MutantOutcome::Warned);
        self.warned += usize::from(mutant.outcome == triggers::MutantOutcome::Warned);
        let ids = mutant.fault.violates.iter().copied();
        self.add(&mutant.name(), ids, |id| mutant.by.contains_key(id), is_killed);
    }

    /// A mutant of the wire.
    pub fn add_wire(&mut self, mutant: &wire::Mutant) {
        match mutant.outcome {
            wire::MutantOutcome::NotReached => self.not_met += 1,
            wire::MutantOutcome::Harmless => self.harmless += 1,
            wire::MutantOutcome::Killed | wire::MutantOutcome::Survived => {
                self.mutants += 1;
                if mutant.outcome == wire::MutantOutcome::Killed {
                    self.killed += 1;
                } else {
                    self.survivors.push(mutant.name.clone());
                }
            }
        }
        let kind = mutant.name.rsplit_once(' ').map_or("", |(kind, _)| kind);
        for id in &mutant.by {
            let is_new = self.kinds.insert((id.clone(), kind.to_owned()));
            let of = self.requirements.entry(id.clone()).or_default();
            of.found += 1;
            of.kinds += usize::from(is_new);
        }
    }

    fn add<'i>(
        &mut self,
        name: &str,
        violates: impl Iterator<Item = &'i str>,
        is_found_by: impl Fn(&str) -> bool,
        is_killed: bool,
    ) {
        self.mutants += 1;
        let mut by_another = is_killed;
        for id in violates {
            let itself = is_killed && is_found_by(id);
            by_another &= !itself;
            let of = self.requirements.entry(id.to_owned()).or_default();
            of.mutants += 1;
            of.killed += usize::from(is_killed);
            of.by_itself += usize::from(itself);
            of.by_another += usize::from(is_killed && !itself);
        }
        self.killed += usize::from(is_killed);
        self.by_another += usize::from(by_another);
        if !is_killed {
            self.survivors.push(name.to_owned());
        }
    }
}

impl Styles {
    /// Nothing yet.
    pub fn new(combinations: usize, seed: u64) -> Self {
        Self { drawn: Drawn { sample: Some(combinations), seed }, ..Self::default() }
    }

    /// What the suite made of one server.
    pub fn add(&mut self, run: &StyleRun) {
        match run.styles.as_slice() {
            [one] => self.alone.push((*one).to_owned()),
            _ => self.combinations += 1,
        }
        if run.alarms.is_empty() {
            return;
        }
        let mut cases: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for alarm in &run.alarms {
            let warned = alarm.verdict == Verdict::Warned;
            self.warnings += usize::from(warned);
            self.failures += usize::from(!warned);
            cases.entry(alarm.case.clone()).or_default().extend(alarm.requirements.iter().cloned());
        }
        let styles = run.styles.iter().map(|style| (*style).to_owned()).collect();
        self.against.push(Against { styles, cases });
    }
}

impl SuiteReport {
    /// All parts together, by requirement.
    pub fn requirements(&self) -> BTreeMap<&str, RequirementKills> {
        let mut all: BTreeMap<&str, RequirementKills> = BTreeMap::new();
        for (id, kills) in self.defects.values().flat_map(|kills| &kills.requirements) {
            let sum = all.entry(id).or_default();
            sum.mutants += kills.mutants;
            sum.killed += kills.killed;
            sum.by_itself += kills.by_itself;
            sum.by_another += kills.by_another;
            sum.found += kills.found;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{Fault, Trigger};
    use crate::selftest::faults::SeededDefect;

    #[test]
    fn kills_are_counted_by_the_requirements_that_are_violated() {
        let by = |ids: &[&str]| -> BTreeMap<String, usize> {
            ids.iter().map(|id| ((*id).to_owned(), 1)).collect()
        };
        let mut kills = Kills::new(Some(4), 7);
        let mut add = |violates: &'static [&'static str], outcome, found: &[&str]| {
            let fault = Fault { name: "f", title: "", violates, also: &[] };
            let by = by(found);
            let mutant = triggers::Mutant { fault, trigger: Trigger::Late, outcome, by, declared: None };
            kills.add_triggered(&mutant);
        };
        add(&["A", "B"], triggers::MutantOutcome::Killed, &["A"]);
        add(&["A"], triggers::MutantOutcome::KilledByAnother, &["C"]);
        add(&["A"], triggers::MutantOutcome::Survived, &[]);
        add(&["B"], triggers::MutantOutcome::Warned, &["B"]);
        add(&["B"], triggers::MutantOutcome::Unmet, &[]);
        add(&["B"], triggers::MutantOutcome::Harmless, &[]);
        let a = RequirementKills { mutants: 3, killed: 2, by_itself: 1, by_another: 1, found: 0, kinds: 0 };
        let b = RequirementKills { mutants: 2, killed: 1, by_itself: 0, by_another: 1, found: 0, kinds: 0 };
        assert_eq!(kills.requirements, BTreeMap::from([("A".to_owned(), a), ("B".to_owned(), b)]));
        assert_eq!((kills.mutants, kills.killed, kills.by_another), (4, 2, 1));
        assert_eq!((kills.warned, kills.not_met, kills.harmless, kills.survivors.len()), (1, 1, 1, 2));

        let defect =
            SeededDefect { name: "own".to_owned(), violates: vec!["A".to_owned()], also: Vec::new() };
        let found = BTreeMap::from([("A".to_owned(), Vec::new())]);
        let (missing, unrelated, not_exercised) = (Vec::new(), Vec::new(), Vec::new());
        let fault = FaultResult { fault: Some(defect), by: found, missing, unrelated, not_exercised };
        kills.add_fault(&fault);
        kills.add_fault(&FaultResult { fault: None, ..fault });
        let suite = SuiteReport {
            defects: BTreeMap::from([("faults".to_owned(), kills.clone()), ("triggers".to_owned(), kills)]),
            ..SuiteReport::default()
        };
        assert_eq!(suite.requirements()["A"].by_itself, 4);
    }

    #[test]
    fn what_the_wire_did_is_counted_by_what_found_it() {
        let mut kills = Kills::new(None, 1);
        for (outcome, ids) in [
            (wire::MutantOutcome::Killed, &["A", "B"][..]),
            (wire::MutantOutcome::Survived, &[]),
            (wire::MutantOutcome::Harmless, &[]),
            (wire::MutantOutcome::NotReached, &[]),
        ] {
            let by = ids.iter().map(|id| (*id).to_owned()).collect();
            kills.add_wire(&wire::Mutant { name: "m".to_owned(), outcome, by, hits: 1, declared: None });
        }
        assert_eq!((kills.mutants, kills.killed, kills.harmless, kills.not_met), (2, 1, 1, 1));
        assert_eq!(
            kills.requirements["B"],
            RequirementKills { found: 1, kinds: 1, ..RequirementKills::default() }
        );
    }

    #[test]
    fn parts_are_called_by_their_styles() {
        assert_eq!(part("wire", &[]), "wire");
        assert_eq!(part("wire", &["slow".to_owned(), "jitter".to_owned()]), "wire under slow,jitter");
    }
}
