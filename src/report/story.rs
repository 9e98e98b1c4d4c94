//! Cases that went wrong, by their cause.

use std::cmp::Reverse;

use super::runs::Run;
use crate::results::event::CaseReport;

/// Cases that went wrong for the same reason.
pub(super) struct Story<'e> {
    /// The number of the run.
    pub run: usize,
    /// The one that has the evidence.
    pub first: &'e CaseReport,
    pub others: Vec<&'e CaseReport>,
}

/// What went wrong: the worst first, then what most cases suffer from.
pub(super) fn stories<'e>(runs: &[Run<'e>]) -> Vec<Story<'e>> {
    let mut stories: Vec<Story<'e>> = Vec::new();
    for (run, cases) in runs.iter().map(|run| &run.cases).enumerate() {
        let (first, others): (Vec<&CaseReport>, Vec<&CaseReport>) =
            cases.iter().filter(|case| case.is_notable()).partition(|case| case.same_as.is_none());
        let begin = stories.len();
        stories.extend(first.into_iter().map(|first| Story { run, first, others: Vec::new() }));
        for case in others {
            let told = stories[begin..].iter_mut().find(|story| {
                Some(&story.first.case) == case.same_as.as_ref() || story.first.same_as == case.same_as
            });
            match told {
                Some(story) => story.others.push(case),
                // Its like is not in these events.
                None => stories.push(Story { run, first: case, others: Vec::new() }),
            }
        }
    }
    stories.sort_by_key(|story| (Reverse(story.first.verdict), story.run, Reverse(story.others.len())));
    stories
}
