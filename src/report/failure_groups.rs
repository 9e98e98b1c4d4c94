//! Cases that went wrong, by their cause.

use std::cmp::Reverse;

use super::runs::Run;
use crate::results::event::CaseReport;

/// Cases that went wrong for the same reason.
pub(super) struct FailureGroup<'e> {
    /// The number of the run.
    pub run: usize,
    /// The one that has the evidence.
    pub first: &'e CaseReport,
    pub others: Vec<&'e CaseReport>,
}

/// What went wrong: the worst first, then what most cases suffer from.
pub(super) fn grouped<'e>(runs: &[Run<'e>]) -> Vec<FailureGroup<'e>> {
    let mut groups: Vec<FailureGroup<'e>> = Vec::new();
    for (run, cases) in runs.iter().map(|run| &run.cases).enumerate() {
        let (first, others): (Vec<&CaseReport>, Vec<&CaseReport>) =
            cases.iter().filter(|case| case.is_notable()).partition(|case| case.same_as.is_none());
        let begin = groups.len();
        groups.extend(first.into_iter().map(|first| FailureGroup { run, first, others: Vec::new() }));
        for case in others {
            let told = groups[begin..].iter_mut().find(|group| {
                Some(&group.first.case) == case.same_as.as_ref() || group.first.same_as == case.same_as
            });
            match told {
                Some(group) => group.others.push(case),
                // Its like is not in these events.
                None => groups.push(FailureGroup { run, first: case, others: Vec::new() }),
            }
        }
    }
    groups.sort_by_key(|group| (Reverse(group.first.verdict), group.run, Reverse(group.others.len())));
    groups
}
