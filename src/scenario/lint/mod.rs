//! Lint of scenarios and of their protocol: what is allowed, does what it says, and yet proves less than its author thinks. Whether a step is
//! of any use is found out by `selftest --steps`.

mod covers;
mod literal;
mod places;
mod refused;
mod shared;
mod vacuous;

use std::fmt;
use std::sync::Arc;

use super::LoadedCase;
use super::case::{Step, Verb};
use crate::protocol::{Deciders, Protocol};
use crate::source::{Diagnostic, Part};

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// An id that the server gives is written as a literal: another server gives another one.
    LiteralId,
    /// A step that no message can fail.
    CannotFail,
    /// A condition that is the same in every run.
    FixedCondition,
    /// A case covers a requirement that none of its steps decides, and no rule of the protocol.
    UndecidedCovers,
    /// A message that is to be refused is followed at once by the same one that is not: whatever the first one has done looks like the
    /// effect of the second one.
    HiddenEffect,
    /// A turn's end is asked for on behalf of something lighter, before a turn has been seen to end.
    LightTurnEnd,
    /// A pointer of the protocol file, or a pointer or condition of a step, leads to a place that no message has.
    UnknownPlace,
    /// What one call of a case writes and another reads has a name that other cases can use, too.
    SharedName,
}

impl Rule {
    /// All of them, with what is wrong with a case that breaks it.
    pub const ALL: [(Self, &'static str, &'static str); 8] = [
        (Self::LiteralId, "literal-id", "an id that the server gives is written as a literal"),
        (Self::CannotFail, "cannot-fail", "no message can fail the step"),
        (Self::FixedCondition, "fixed-condition", "the condition is the same in every run"),
        (Self::UndecidedCovers, "undecided-covers", "no step of the case decides what it covers"),
        (
            Self::HiddenEffect,
            "hidden-effect",
            "an effect of a refused message would look like an effect of the next one",
        ),
        (
            Self::LightTurnEnd,
            "light-turn-end",
            "a server whose turns never end would be reported as violating only a SHOULD",
        ),
        (
            Self::UnknownPlace,
            "unknown-place",
            "a pointer or a condition leads to a place that no message has",
        ),
        (
            Self::SharedName,
            "shared-name",
            "what a call writes and another reads has a name that other cases can use, too",
        ),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(rule, ..)| *rule == self).map_or("", |(_, name, _)| name)
    }

    /// The rule of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(rule, ..)| *rule)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Something found in a case.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Which rule it breaks.
    pub rule: Rule,
    /// The case, as `family/name`; empty: the protocol.
    pub case: String,
    /// What, where, and what to do.
    pub diagnostic: Diagnostic,
}

/// Looks at cases of one protocol by all rules. Findings come in the order of the cases, and of the places in each.
pub fn lint(protocol: &Protocol, cases: &[LoadedCase]) -> Vec<Finding> {
    let deciders = Deciders::index(protocol);
    let mut findings: Vec<Finding> = protocol.unknown_places().iter().map(of_protocol).collect();
    for case in cases {
        let mut linter =
            Linter { protocol, deciders: &deciders, case, in_unchanged: false, findings: Vec::new() };
        covers::look(&mut linter);
        shared::look(&mut linter);
        linter.list(&case.case.steps, "/steps");
        findings.append(&mut linter.findings);
    }
    findings
}

fn of_protocol(note: &Diagnostic) -> Finding {
    let rule = Rule::UnknownPlace;
    let diagnostic = Diagnostic { message: format!("{} [{rule}]", note.message), ..note.clone() };
    Finding { rule, case: String::new(), diagnostic }
}

/// Looks at one case.
struct Linter<'p> {
    protocol: &'p Protocol,
    deciders: &'p Deciders<'p>,
    case: &'p LoadedCase,
    /// The steps are such as must change nothing.
    in_unchanged: bool,
    findings: Vec<Finding>,
}

impl Linter<'_> {
    /// Notes a finding; `at`: JSON Pointer from the case on.
    fn found(&mut self, rule: Rule, at: &str, part: Part, message: String, hint: &str) {
        let at = format!("{}{at}", self.case.pointer);
        let diagnostic = Diagnostic::note(format!("{message} [{rule}]")).hint(hint);
        let diagnostic = diagnostic.at(&self.case.document, &at, part);
        self.findings.push(Finding { rule, case: self.case.id.clone(), diagnostic });
    }

    /// Looks at a list of steps, and at those within them.
    fn list(&mut self, steps: &[Arc<Step>], at: &str) {
        let (all, places): (Vec<_>, Vec<_>) = ungroup(steps, at).into_iter().unzip();
        refused::look(self, &all, &places);
        for (index, (step, place)) in all.iter().zip(&places).enumerate() {
            literal::look(self, step, &all[index + 1..], place);
            vacuous::look(self, step, &all[..index], place);
            places::look(self, step, place);
            match &step.verb {
                Verb::Unchanged(verb) => {
                    self.in_unchanged = true;
                    self.list(&verb.steps, &format!("{place}/unchanged"));
                    self.in_unchanged = false;
                }
                Verb::Repeat(verb) => self.list(&verb.steps, &format!("{place}/repeat")),
                Verb::Parallel(branches) => {
                    for (index, branch) in branches.iter().enumerate() {
                        self.list(branch, &format!("{place}/parallel/{index}"));
                    }
                }
                _ => {}
            }
        }
    }
}

/// The steps in the order in which they are done, each group in front of its own, and their places.
fn ungroup<'s>(steps: &'s [Arc<Step>], at: &str) -> Vec<(&'s Step, String)> {
    let placed = steps.iter().enumerate().flat_map(|(index, step)| {
        let place = format!("{at}/{index}");
        let within = match &step.verb {
            Verb::Steps(group) => ungroup(&group.steps, &format!("{place}/steps")),
            _ => Vec::new(),
        };
        std::iter::once((step.as_ref(), place)).chain(within)
    });
    placed.collect()
}

/// The step sends something.
fn is_stimulus(step: &Step) -> bool {
    matches!(step.verb, Verb::Send(_) | Verb::Raw(_) | Verb::Binary(_) | Verb::Frame(_) | Verb::Bytes(_))
}

/// The step finds out whether what was sent was refused.
fn awaits_refusal(step: &Step, protocol: &Protocol) -> bool {
    match &step.verb {
        Verb::Rejected(_) => true,
        Verb::Expect(verb) => {
            let is_error = |name: &String| {
                let errors = protocol.roles().errors.as_ref().and_then(|(on, _)| on.messages());
                let index = protocol.index_of(name, crate::trace::Direction::Recv);
                index.is_some_and(|index| errors.is_some_and(|errors| errors.contains(&index)))
            };
            !verb.awaited.names.is_empty() && verb.awaited.names.iter().all(is_error)
        }
        _ => false,
    }
}
